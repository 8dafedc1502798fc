/** What is used of libraries that bring no types. */
declare module 'encoding-japanese' {
  interface ConvertOptions {
    readonly from: 'JIS' | 'SJIS' | 'EUCJP'
    readonly to: 'UNICODE'
    readonly type: 'string'
  }
  const encodingJapanese: { convert(data: Uint8Array, options: ConvertOptions): string }
  export default encodingJapanese
}

declare module 'libbase64' {
  const libbase64: { decode(text: string): Buffer }
  export default libbase64
}
