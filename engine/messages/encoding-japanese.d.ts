/** The one function used of encoding-japanese, which brings no types. */
declare module 'encoding-japanese' {
  interface ConvertOptions {
    readonly from: 'JIS' | 'SJIS' | 'EUCJP'
    readonly to: 'UNICODE'
    readonly type: 'string'
  }
  const encodingJapanese: { convert(data: Uint8Array, options: ConvertOptions): string }
  export default encodingJapanese
}
