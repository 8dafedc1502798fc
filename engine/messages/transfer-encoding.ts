/**
 * Decodes Content-Transfer-Encoding (RFC 2045 §6), as a stream or at once, to the same bytes however the input is cut.
 * libbase64 decodes base64; this file finds its end, because a list server may have added a footer (corpus:
 * base64-footer). Own code for quoted-printable: libqp takes quadratic time for white space, holds the whole part in
 * its stream, and trims before a bare CR (transfer-encoding.test.ts, "white space …", `a \rb`). Own code for uuencode,
 * which no mail library reads.
 */
import { Transform, type TransformCallback } from 'node:stream'
import libbase64 from 'libbase64'

/** Takes pieces of any size; `end` returns the held rest. */
interface TransferDecoder {
  write(chunk: Buffer): Buffer
  end(): Buffer
}

const nothing = Buffer.alloc(0)
const identity: TransferDecoder = { write: (chunk) => chunk, end: () => nothing }

/** Characters that are held back at most. */
const maxHeld = 65_536

const notBase64 = /[^A-Za-z0-9+/=]+/g
/** Whole padded texts at the start of a line that ends in prose. */
const paddedStart = /^=?(?:(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))+/

/** A line after padding: several words are prose, unless each has 4n letters. `cut`: the last word is incomplete. */
function isProse(line: string, cut: boolean): boolean {
  if (/[^A-Za-z0-9+/= \t\r\n]/.test(line)) return true
  // The second sign of the padding may come first.
  const words = line.replace(/^=/, '').split(/[ \t\r\n]+/)
  const ended = words.slice(0, cut ? -1 : undefined).filter((word) => word !== '')
  return ended.length > 1 && ended.some(({ length }) => length % 4 !== 0)
}

/**
 * Padding ends the data, unless several encoded texts were joined, which is common. So after padding only lines of pure
 * base64 are read, and the first other line ends the data. Lines decide, not the pieces of the input.
 */
function createBase64Decoder(): TransferDecoder {
  let state: 'text' | 'padded' | 'over' = 'text'
  /** Letters of an incomplete group of four. */
  let open = ''
  /** After padding: a line that has not ended. */
  let held = ''

  function decode(text: string): Buffer {
    const letters = open + text.replace(notBase64, '')
    const whole = letters.length - ((letters.length - letters.lastIndexOf('=') - 1) % 4)
    open = letters.slice(whole)
    return libbase64.decode(letters.slice(0, whole))
  }

  function readLine(line: string, cut: boolean): Buffer {
    if (!isProse(line, cut)) return decode(line)
    const last = paddedStart.exec(open + line)?.[0] ?? open
    state = 'over'
    open = ''
    return libbase64.decode(last)
  }

  function readLines(text: string): Buffer {
    const read: Buffer[] = []
    let start = 0
    held += text
    while (state === 'padded') {
      const end = held.indexOf('\n', start) + 1
      const cut = end === 0 || end - start > maxHeld
      if (cut && held.length - start < maxHeld) break
      const next = cut ? start + maxHeld : end
      read.push(readLine(held.slice(start, next), cut))
      start = next
    }
    held = state === 'over' ? '' : held.slice(start)
    return Buffer.concat(read)
  }

  return {
    write(chunk) {
      const text = chunk.toString('latin1')
      if (state !== 'text') return state === 'padded' ? readLines(text) : nothing
      const padding = text.indexOf('=') + 1
      if (padding === 0) return decode(text)
      state = 'padded'
      return Buffer.concat([decode(text.slice(0, padding)), readLines(text.slice(padding))])
    },
    end: () => Buffer.concat([readLine(held, false), libbase64.decode(open)]),
  }
}

const [tab, lf, cr, space, equals] = [0x09, 0x0a, 0x0d, 0x20, 0x3d]

const isSpace = (byte: number | undefined): boolean => byte === space || byte === tab

function hexValue(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** A run of white space ends after `maxHeld` at the latest; the rest is the next run. */
function spacesEnd(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at]) && at < from + maxHeld) at += 1
  return at
}

/** The place after the line end at `from`; -1 when there is none. The end of the data counts, unless it `goesOn`. */
function lineEnd(bytes: Buffer, from: number, goesOn: boolean): number {
  const at = bytes[from] === cr ? from + 1 : from
  if (bytes[at] === lf) return at + 1
  return at >= bytes.length && !goesOn ? bytes.length : -1
}

/**
 * White space at the end of a line was added in transport and is removed (RFC 2045 §6.7 rule 3), `=` before the line
 * end is a soft break (rule 5). Any other `=` without `=XX` stays, and raw 8-bit bytes stay.
 */
function decodeQuotedPrintable(bytes: Buffer, goesOn = false): Buffer {
  const out = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length;) {
    const byte = bytes[at] ?? 0
    if (isSpace(byte)) {
      const end = spacesEnd(bytes, at)
      if (lineEnd(bytes, end, goesOn) < 0) length += bytes.copy(out, length, at, end)
      at = end
      continue
    }
    const [high, low] = byte === equals ? [hexValue(bytes[at + 1]), hexValue(bytes[at + 2])] : [-1, -1]
    const next = byte === equals ? lineEnd(bytes, spacesEnd(bytes, at + 1), goesOn) : -1
    if (high >= 0 && low >= 0) {
      out[length++] = high * 16 + low
      at += 3
    } else if (next >= 0) {
      at = next
    } else {
      out[length++] = byte
      at += 1
    }
  }
  return out.subarray(0, length)
}

/** Begin of the end that is decoded only with the next piece: `=`, `=4`, white space (at most `maxHeld`), CR. */
function undecided(bytes: Buffer): number {
  const last = bytes.length - (bytes.at(-1) === cr ? 1 : 0)
  let start = last
  while (isSpace(bytes[start - 1])) start -= 1
  if (last - start > maxHeld) return last - ((last - start - 1) % maxHeld) - 1
  if (bytes[start - 1] === equals) return start - 1
  return start === bytes.length && bytes[start - 2] === equals ? start - 2 : start
}

function createQuotedPrintableDecoder(): TransferDecoder {
  let held = nothing
  return {
    write(chunk) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const end = undecided(bytes)
      held = Buffer.from(bytes.subarray(end))
      return decodeQuotedPrintable(bytes.subarray(0, end), true)
    },
    end: () => decodeQuotedPrintable(held),
  }
}

/** No line of uuencode is longer than 61 characters; a longer one is not held whole. */
const longestLine = 1000

/** A space and a backquote both mean 0. */
function valueOf(code: number | undefined): number {
  return ((code ?? 32) - 32) & 63
}

function decodeUuLine(line: Buffer): Buffer {
  const size = valueOf(line[0])
  const decoded = Buffer.alloc(Math.ceil(size / 3) * 3)
  for (let from = 1, to = 0; to < size; from += 4, to += 3) {
    // Spaces (0) at the end of a line are often lost in transport.
    const [a, b, c, d] = [0, 1, 2, 3].map((step) => valueOf(line[from + step])) as [number, number, number, number]
    decoded.writeUIntBE((a << 18) | (b << 12) | (c << 6) | d, to, 3)
  }
  return decoded.subarray(0, size)
}

/** Whether the length fits the first character, but for `lost` spaces and an added check character. */
function isUuData(line: Buffer, lost: number): boolean {
  const size = valueOf(line[0])
  const length = 1 + Math.ceil(size / 3) * 4
  const fits = line.length >= length - lost && line.length <= length + 1
  return size > 0 && fits && line.every((code) => code >= 32 && code <= 96)
}

/**
 * uuencode (POSIX, historical algorithm), never standardised for mail and still sent: lines between `begin <mode>
 * <name>` and `end`; the first character of each is its number of bytes. Without `begin` the first line that can be
 * data begins the data.
 */
export function createUuDecoder(): TransferDecoder {
  let open = nothing
  let at: 'before' | 'data' | 'after' = 'before'

  function read(whole: Buffer): Buffer {
    const line = whole.at(-1) === 13 ? whole.subarray(0, -1) : whole
    const text = line.length < 300 ? line.toString('latin1') : ''
    if (/^begin(?:-[a-z0-9]+)? [0-7]{3,4} /.test(text)) {
      at = 'data'
      return nothing
    }
    if (at === 'before' && isUuData(line, 0)) at = 'data'
    else if (at === 'data' && text.trimEnd() === 'end') at = 'after'
    return at === 'data' && isUuData(line, longestLine) ? decodeUuLine(line) : nothing
  }

  return {
    write(chunk) {
      const bytes = open.length === 0 ? chunk : Buffer.concat([open, chunk])
      const decoded: Buffer[] = []
      let start = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
        decoded.push(read(bytes.subarray(start, end)))
        start = end + 1
      }
      open = Buffer.from(bytes.subarray(start).subarray(0, longestLine))
      return Buffer.concat(decoded)
    },
    end: () => read(open),
  }
}

const uuNames = new Set(['x-uuencode', 'x-uue', 'uuencode', 'uue'])

/** Decoder of a Content-Transfer-Encoding; 7bit, 8bit, binary and unknown names pass bytes through. */
export function createTransferDecoder(encoding: string): TransferDecoder {
  const name = encoding.trim().toLowerCase()
  if (name === 'base64') return createBase64Decoder()
  if (name === 'quoted-printable') return createQuotedPrintableDecoder()
  return uuNames.has(name) ? createUuDecoder() : identity
}

/** All at once. `cut` = the bytes are the beginning of a longer part: the held rest is left out. Never throws. */
export function decodeTransfer(bytes: Uint8Array, encoding: string, cut = false): Buffer {
  const decoder = createTransferDecoder(encoding)
  const first = decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (cut) return first
  const last = decoder.end()
  return last.length === 0 ? first : Buffer.concat([first, last])
}

/** As a stream, for attachments: encoded bytes in, decoded bytes out. Holds one line at most. */
export function createTransferStream(encoding: string): Transform {
  const decoder = createTransferDecoder(encoding)
  return new Transform({
    transform: (chunk: Buffer, _, done: TransformCallback) => done(null, decoder.write(chunk)),
    flush: (done: TransformCallback) => done(null, decoder.end()),
  })
}
