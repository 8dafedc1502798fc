/**
 * Bytes in any charset of mail → text. Never throws: an unknown or wrong charset still gives text. Own table: libmime
 * does not know ISO-2022-KR, HZ and x-mac-cyrillic (corpus: charset-iso-2022-kr and others), decodes an unknown charset
 * as UTF-8 with losses, and passes names such as `hex` on to iconv-lite (charsets.test.ts).
 */
import { isAscii, isUtf8 } from 'node:buffer'
import encodingJapanese from 'encoding-japanese'
import iconv from 'iconv-lite'

/**
 * Decoder → the names for it, without punctuation. As in browsers, the decoder is of the larger charset that senders
 * mean by the name: Latin-1 means windows-1252, and so on.
 */
const namesOfDecoders = {
  'windows-1252': 'iso88591 latin1 l1',
  'windows-1254': 'iso88599 latin5',
  'windows-874': 'iso885911 tis620',
  'iso-8859-8': 'iso88598i iso88598e',
  'iso-8859-6': 'iso88596i iso88596e',
  gb18030: 'gb2312 gb231280 csgb2312 euccn gbk cp936 windows936 ansi936',
  cp949: 'ksc56011987',
  'utf-8': 'utf8 cp65001 unicode11utf8 utf8mb4',
  'utf-16': 'unicode',
  utf32: 'ucs4 iso10646ucs4 csucs4',
  'utf-7': 'utf7 unicode11utf7',
}
const decoders = new Map(
  Object.entries(namesOfDecoders).flatMap(([decoder, names]) =>
    names.split(' ').map((name) => [name, decoder] as const),
  ),
)

/** Names that say nothing about the charset. ASCII is one: ASCII text is the same in all, other text is mislabelled. */
const unsaid = new Set([
  '',
  ...'usascii ascii ansix341968 iso646us 7bit 8bit binary default none unknown unknown8bit charset'.split(' '),
])

/** Codecs of iconv-lite that are no charsets. */
const notCharsets = new Set(['base64', 'hex', 'binary', 'internal', 'utf7imap'])

const utf8 = new TextDecoder('utf-8')
const shifting = /^(?:cs)?iso2022jp|^jis$|^cp5022[012]$|^iso2022kr$|^csiso2022kr$|^hz(?:gb2312)?$/

/** 'ISO_8859-1:1987' → 'iso88591', 'x-mac-cyrillic' → 'maccyrillic'; the language tag of RFC 2231 §5 is removed. */
function bareName(charset: string): string {
  return charset
    .slice(0, 100)
    .toLowerCase()
    .replace(/\*[^]*/, '')
    .replace(/:\d{4}\s*$/, '')
    .replace(/[^0-9a-z]/g, '')
    .replace(/^x(?!x)/, '')
}

/** The decoder for a charset name: 'utf-8', a name of iconv-lite, 'shift:<name>'; null = none. */
function decoderOf(charset: string | null): string | null {
  if (charset === null) return null
  const bare = bareName(charset)
  if (unsaid.has(bare) || notCharsets.has(bare)) return null
  if (shifting.test(bare)) return `shift:${bare.replace(/^cs/, '')}`
  const name = decoders.get(bare) ?? bare
  return name === 'utf-8' || iconv.encodingExists(name) ? name : null
}

export function isKnownCharset(charset: string): boolean {
  return decoderOf(charset) !== null
}

const [shiftOut, shiftIn, tilde] = [0x0e, 0x0f, 0x7e]

/** Two printable bytes of seven bits: with the high bit set they are a pair of EUC. */
function isPair(first = 0, second = 0): boolean {
  return first > 0x20 && first < 0x7f && second > 0x20 && second < 0x7f
}

/** Text between SO and SI is in pairs, the rest is ASCII. Decoded all at once: the pieces may be very many. */
function decodeKorean(bytes: Buffer): string {
  const euc = Buffer.from(bytes.toString('latin1').replaceAll('\x1b$)C', ''), 'latin1')
  let [length, shifted] = [0, false]
  for (let at = 0; at < euc.length; at += 1) {
    const [byte = 0, next = 0] = [euc[at], euc[at + 1]]
    if (byte === shiftOut || byte === shiftIn) {
      shifted = byte === shiftOut
    } else if (shifted && isPair(byte, next)) {
      euc[length++] = byte | 0x80
      euc[length++] = next | 0x80
      at += 1
    } else {
      euc[length++] = byte
    }
  }
  return iconv.decode(euc.subarray(0, length), 'cp949')
}

/**
 * RFC 1843: text between `~{` and `~}` is in pairs, whose second byte may be a tilde too. `~~` is a tilde, and `~` at
 * the end of a line joins the line with the next.
 */
function decodeHz(bytes: Buffer): string {
  const euc = Buffer.from(bytes)
  let [length, shifted] = [0, false]
  for (let at = 0; at < euc.length; at += 1) {
    const [byte = 0, next = 0] = [euc[at], euc[at + 1]]
    const sign = byte === tilde ? /^(?:[{}~]|\r?\n)/.exec(bytes.toString('latin1', at + 1, at + 3))?.[0] : undefined
    if (sign !== undefined) {
      shifted = sign === '{' || (shifted && sign !== '}')
      if (sign === '~') euc[length++] = tilde
      at += sign.length
    } else if (shifted && byte !== tilde && isPair(byte, next)) {
      euc[length++] = byte | 0x80
      euc[length++] = next | 0x80
      at += 1
    } else {
      euc[length++] = byte
    }
  }
  return iconv.decode(euc.subarray(0, length), 'gb18030')
}

/** Seven-bit charsets with escapes, which iconv-lite does not read: iso2022jp…, jis, cp5022x, iso2022kr, hz. */
function decodeShiftingCharset(bytes: Buffer, name: string): string {
  if (name === 'iso2022kr') return decodeKorean(bytes)
  if (name.startsWith('hz')) return decodeHz(bytes)
  return encodingJapanese.convert(bytes, { from: 'JIS', to: 'UNICODE', type: 'string' })
}

const [plus, minus, notBase64] = [0x2b, 0x2d, 64]
const base64Values = new Uint8Array(256).fill(notBase64)
const base64Digits = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
base64Digits.forEach((digit, value) => (base64Values[digit] = value))

/**
 * RFC 2152: from `+` to `-`, or to another byte that is no base64, the text is UTF-16 in base64; `+-` is a plus. Own
 * code, because iconv-lite decodes run by run: short runs take a second for each megabyte.
 */
function decodeUtf7(bytes: Buffer): string {
  const units = Buffer.allocUnsafe(2 * bytes.length)
  let [length, runStart, bits, held] = [0, -1, 0, 0]
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0
    const value = base64Values[byte] ?? notBase64
    if (runStart >= 0 && value < notBase64) {
      held = ((held << 6) | value) & 0x3f_ffff
      bits += 6
      if (bits < 16) continue
      bits -= 16
      length = units.writeUInt16LE((held >> bits) & 0xffff, length)
      continue
    }
    const opens = runStart < 0 && byte === plus
    const ends = runStart >= 0 && byte === minus
    if (ends && runStart === at) length = units.writeUInt16LE(plus, length)
    else if (!opens && !ends) length = units.writeUInt16LE(byte < 0x80 ? byte : 0xfffd, length)
    runStart = opens ? at + 1 : -1
    bits = 0
  }
  return units.toString('utf16le', 0, length).replace(/^\ufeff/, '')
}

const utf7 = { write: decodeUtf7, end: () => '' }

/** Length of UTF-8 without an incomplete character at its end (bodies are read up to a limit). */
function wholeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return needed > back ? bytes.length - back : bytes.length
    }
    if (byte < 0x80) break
  }
  return bytes.length
}

/** Text without a usable charset: ISO-2022-JP by its escapes, UTF-8 when it is valid, else windows-1252. */
function decodeGuessed(bytes: Buffer, cut: boolean): string {
  const escape = bytes.indexOf('\x1b$')
  if (escape >= 0 && (bytes[escape + 2] === 0x42 || bytes[escape + 2] === 0x40)) {
    return decodeShiftingCharset(bytes, 'iso2022jp')
  }
  const whole = bytes.subarray(0, wholeLength(bytes))
  // A single letter of Latin-1 at the end looks like an incomplete character, unless characters of UTF-8 precede it.
  const cutUtf8 = whole.length < bytes.length && isUtf8(whole) && !isAscii(whole)
  if (isUtf8(bytes) || cutUtf8) return utf8.decode(cut ? whole : bytes)
  return iconv.decode(bytes, 'windows-1252')
}

/** The decoder by the byte-order mark, which outweighs the label if the rest fits; null = no such mark. */
function markedDecoder(bytes: Buffer, labelled: string | null): string | null {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return isUtf8(bytes.subarray(0, wholeLength(bytes))) ? 'utf-8' : null
  }
  const wide = labelled === null || labelled.startsWith('utf')
  // The mark of UTF-32LE starts with that of UTF-16LE. With the label UTF-16 the zeros after it are a NUL character.
  if (wide && !/^utf-?16/.test(labelled ?? '')) {
    const mark = bytes.subarray(0, 4).toString('hex')
    if (mark === 'fffe0000') return 'utf-32le'
    if (mark === '0000feff') return 'utf-32be'
  }
  if (wide && bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (wide && bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return null
}

/** `cut`: see decodeText. */
function decodeNamed(bytes: Buffer, decoder: string, cut: boolean): string {
  // Without a mark UTF-32 is big-endian (Unicode, D101), unless its zeros say otherwise.
  const options = decoder === 'utf32' ? ({ defaultEncoding: 'utf32be' } as const) : {}
  const reader = decoder === 'utf-7' ? utf7 : iconv.getDecoder(decoder, options)
  const text = reader.write(bytes)
  return cut ? text.replace(/[\ud800-\udbff]$/, '') : text + (reader.end() ?? '')
}

/**
 * Bytes → text. `charset` = the declared one; null = none. A byte-order mark is removed; invalid bytes become U+FFFD.
 * Text declared as UTF-8 is always decoded as UTF-8: a cut at a size limit must not change the charset. `cut` = the
 * bytes are the beginning of a longer text: an incomplete character at their end is left out.
 */
export function decodeText(bytes: Uint8Array, charset: string | null, cut = false): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const labelled = decoderOf(charset)
  const decoder = markedDecoder(buffer, labelled) ?? labelled
  if (decoder === null) return decodeGuessed(buffer, cut).toWellFormed()
  if (decoder === 'utf-8') return utf8.decode(cut ? buffer.subarray(0, wholeLength(buffer)) : buffer)
  if (decoder.startsWith('shift:')) {
    const text = decodeShiftingCharset(buffer, decoder.slice(6)).toWellFormed()
    // The last character may be half a pair.
    return cut ? text.slice(0, -1) : text
  }
  return decodeNamed(buffer, decoder, cut).toWellFormed()
}

/**
 * Raw 8-bit header bytes (RFC 6532 allows only UTF-8): UTF-8 when valid, else the charset that the message declares for
 * its body, else windows-1252.
 */
export function decodeUnlabelled(bytes: Uint8Array, declared: string | null): string {
  if (isUtf8(bytes)) return utf8.decode(bytes)
  const decoder = decoderOf(declared)
  return decodeText(bytes, decoder === 'utf-8' ? 'windows-1252' : declared)
}
