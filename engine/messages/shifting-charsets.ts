/**
 * Seven-bit charsets that switch tables by escape or shift sequences, which iconv-lite does not read:
 * ISO-2022-JP and its relatives (encoding-japanese), ISO-2022-KR (RFC 1557) and HZ (RFC 1843).
 */
import encodingJapanese from 'encoding-japanese'
import iconv from 'iconv-lite'

/** Seven-bit pairs with the high bit set are EUC. */
function decodeEuc(text: string, euc: string): string {
  if (text === '') return ''
  const bytes = Buffer.from(text, 'latin1').map((byte) => (byte > 0x20 && byte < 0x7f ? byte | 0x80 : byte))
  return iconv.decode(Buffer.from(bytes), euc)
}

/** Text between `shiftIn` and `shiftOut` is in the two-byte table, the rest is ASCII. */
function decodeShifted(text: string, shiftIn: string, shiftOut: string, euc: string): string {
  const [plain = '', ...shifted] = text.split(shiftIn)
  const pieces = [plain]
  for (const piece of shifted) {
    const end = piece.indexOf(shiftOut)
    const inside = end < 0 ? piece : piece.slice(0, end)
    if (end >= 0) pieces.push(decodeEuc(inside, euc), piece.slice(end + shiftOut.length))
    else pieces.push(decodeEuc(inside, euc))
  }
  return pieces.join('')
}

function decodeKorean(bytes: Buffer): string {
  const text = bytes.toString('latin1').replaceAll('\x1b$)C', '')
  return decodeShifted(text, '\x0e', '\x0f', 'cp949')
}

function decodeHz(bytes: Buffer): string {
  // `~~` is a tilde and `~` at the end of a line joins it with the next. No pair of the table holds a tilde, so both can be
  // marked before the shifts are looked for.
  const text = bytes
    .toString('latin1')
    .replaceAll('~~', '\0')
    .replace(/~\r?\n/g, '')
  return decodeShifted(text, '~{', '~}', 'gb18030').replaceAll('\0', '~')
}

/** `name` as charsets.ts gives it: iso2022jp…, jis, cp5022x, iso2022kr, hz. */
export function decodeShiftingCharset(bytes: Buffer, name: string): string {
  if (name === 'iso2022kr') return decodeKorean(bytes)
  if (name.startsWith('hz')) return decodeHz(bytes)
  return encodingJapanese.convert(bytes, { from: 'JIS', to: 'UNICODE', type: 'string' })
}
