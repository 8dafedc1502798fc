/**
 * Content-Transfer-Encoding undone (RFC 2045 §6), as a stream and at once: the same bytes however the input is cut. libbase64 and
 * libqp decode. What is done here is what they lack, each with the test that shows it in transfer-encoding.test.ts and the corpus:
 * the end of base64 where a list server put a footer below (corpus: base64-footer), streams that hold no more than a line ("white
 * space without end is not held without end"), white space before a bare CR (`a \rb`), and uuencode, which no library of mail reads.
 */
import { Transform, type TransformCallback } from 'node:stream'
import libbase64 from 'libbase64'
import libqp from 'libqp'

/** Fed in pieces of any size; `end` gives what was still held back. */
export interface TransferDecoder {
  write(chunk: Buffer): Buffer
  end(): Buffer
}

const nothing = Buffer.alloc(0)
const identity: TransferDecoder = { write: (chunk) => chunk, end: () => nothing }

/** Characters that are held back at most. */
const maxHeld = 65_536

const notBase64 = /[^A-Za-z0-9+/=]+/g
/** Whole padded texts at the start of a line that is no base64 further on. */
const paddedStart = /^=?(?:(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))+/

/** A line after padding: several words are prose, unless each of them is whole quanta. `cut`: the last word goes on. */
function isProse(line: string, cut: boolean): boolean {
  if (/[^A-Za-z0-9+/= \t\r\n]/.test(line)) return true
  // The second sign of the padding may come first.
  const words = line.replace(/^=/, '').split(/[ \t\r\n]+/)
  const ended = words.slice(0, cut ? -1 : undefined).filter((word) => word !== '')
  return ended.length > 1 && ended.some(({ length }) => length % 4 !== 0)
}

/**
 * Padding ends the data, with one exception that is common: texts that were encoded apart and joined. So after padding only lines
 * that hold nothing but base64 are read, and the first other one ends it. Lines decide, never the cut of the input.
 */
function createBase64Decoder(): TransferDecoder {
  let state: 'text' | 'padded' | 'over' = 'text'
  /** Letters of a quantum that is not whole. */
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

/** White space of this length is hidden from libqp, which looks at each sign of a run for where the run ends. */
const longRun = 50

/**
 * `goesOn`: no line ends where the text does. White space at the end of a line goes (RFC 2045 §6.7 rule 3), but for whole multiples of
 * what is held at most. libqp does not see what stays before a bare CR or the end, which it takes for the end of a line.
 */
function decodeQuotedPrintable(text: string, goesOn = false): Buffer {
  const spaced = text.replace(/[\t ]+/g, (run, at: number) => {
    const next = text.slice(at + run.length, at + run.length + 2)
    const ends = (goesOn ? /^\r?\n/ : /^\r?(?:\n|$)/).test(next)
    const kept = ends ? run.slice(0, run.length - (run.length % maxHeld)) : run
    if (kept.length < longRun && next !== '' && !next.startsWith('\r')) return kept
    return kept.replaceAll(' ', '=20').replaceAll('\t', '=09')
  })
  // For a soft line break libqp takes `=` at the end.
  return libqp.decode(goesOn ? spaced.replace(/=$/, '=3D') : spaced)
}

/**
 * Where the end begins that cannot be judged before more comes: `=`, `=4`, white space, CR. Of white space no more is held than
 * `maxHeld`.
 */
function undecided(text: string): number {
  const last = text.length - (text.endsWith('\r') ? 1 : 0)
  let start = last
  while (text[start - 1] === ' ' || text[start - 1] === '\t') start -= 1
  const through = last - start - ((last - start) % maxHeld)
  if (through > 0) return start + through
  if (text[start - 1] === '=') return start - 1
  return start === text.length && text[start - 2] === '=' ? start - 2 : start
}

function createQuotedPrintableDecoder(): TransferDecoder {
  let held = ''
  return {
    write(chunk) {
      const text = held + chunk.toString('latin1')
      const end = undecided(text)
      held = text.slice(end)
      return decodeQuotedPrintable(text.slice(0, end), true)
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
    // Spaces at the end of a line are often lost on the way: what is missing is 0.
    const [a, b, c, d] = [0, 1, 2, 3].map((step) => valueOf(line[from + step])) as [number, number, number, number]
    decoded.writeUIntBE((a << 18) | (b << 12) | (c << 6) | d, to, 3)
  }
  return decoded.subarray(0, size)
}

/** As long as its first character says, but for `lost` spaces and a check character added. */
function isUuData(line: Buffer, lost: number): boolean {
  const size = valueOf(line[0])
  const length = 1 + Math.ceil(size / 3) * 4
  const fits = line.length >= length - lost && line.length <= length + 1
  return size > 0 && fits && line.every((code) => code >= 32 && code <= 96)
}

/**
 * uuencode (POSIX, historical algorithm), never standardised for mail and still sent: lines between `begin <mode> <name>` and `end`,
 * each with its number of bytes as its first character. Data without its `begin` is taken from the first line that can be data.
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

/** Decoder of a Content-Transfer-Encoding; 7bit, 8bit, binary and unknown words pass bytes through. */
export function createTransferDecoder(encoding: string): TransferDecoder {
  const name = encoding.trim().toLowerCase()
  if (name === 'base64') return createBase64Decoder()
  if (name === 'quoted-printable') return createQuotedPrintableDecoder()
  return uuNames.has(name) ? createUuDecoder() : identity
}

/** All at once. `cut` = more would follow: what is held back until it is known is left out. Never throws. */
export function decodeTransfer(bytes: Uint8Array, encoding: string, cut = false): Buffer {
  const decoder = createTransferDecoder(encoding)
  const first = decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (cut) return first
  const last = decoder.end()
  return last.length === 0 ? first : Buffer.concat([first, last])
}

/** As a stream, for attachments: encoded bytes in, decoded bytes out, holding back a line at most. */
export function createTransferStream(encoding: string): Transform {
  const decoder = createTransferDecoder(encoding)
  return new Transform({
    transform: (chunk: Buffer, _, done: TransformCallback) => done(null, decoder.write(chunk)),
    flush: (done: TransformCallback) => done(null, decoder.end()),
  })
}
