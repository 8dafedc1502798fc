/**
 * uuencode as a Content-Transfer-Encoding (x-uuencode: never standardised, still sent): lines between `begin <mode> <name>` and
 * `end`, each with its number of bytes as its first character (POSIX uuencode, historical algorithm).
 */
import type { TransferDecoder } from './transfer-decoder.ts'

/** No line of an encoder is longer than 61 characters; a longer one is not held whole. */
const longestLine = 1000

/** A space and a backquote both mean 0. */
function value(code: number | undefined): number {
  return ((code ?? 32) - 32) & 63
}

function decodeLine(line: Buffer): Buffer {
  const size = value(line[0])
  const decoded = Buffer.alloc(Math.ceil(size / 3) * 3)
  for (let from = 1, to = 0; to < size; from += 4, to += 3) {
    // Spaces at the end of a line are often lost on the way: what is missing is 0.
    const [a, b, c, d] = [0, 1, 2, 3].map((step) => value(line[from + step])) as [number, number, number, number]
    decoded.writeUIntBE((a << 18) | (b << 12) | (c << 6) | d, to, 3)
  }
  return decoded.subarray(0, size)
}

/** As long as its first character says, but for `lost` spaces and a check character added. */
function isData(line: Buffer, lost: number): boolean {
  const size = value(line[0])
  const length = 1 + Math.ceil(size / 3) * 4
  const fits = line.length >= length - lost && line.length <= length + 1
  return size > 0 && fits && line.every((code) => code >= 32 && code <= 96)
}

function trimmed(line: Buffer): Buffer {
  return line.at(-1) === 13 ? line.subarray(0, -1) : line
}

/** Text around the data is left out; data without its `begin` is taken from the first line that can be data. */
export function createUuDecoder(): TransferDecoder {
  let open = Buffer.alloc(0)
  let at: 'before' | 'data' | 'after' = 'before'

  function read(line: Buffer): Buffer[] {
    const text = line.length < 300 ? line.toString('latin1') : ''
    if (/^begin(?:-[a-z0-9]+)? [0-7]{3,4} /.test(text)) {
      at = 'data'
      return []
    }
    if (at === 'before' && isData(line, 0)) at = 'data'
    else if (at === 'data' && text.trimEnd() === 'end') at = 'after'
    return at === 'data' && isData(line, longestLine) ? [decodeLine(line)] : []
  }

  return {
    write(chunk) {
      const bytes = open.length === 0 ? chunk : Buffer.concat([open, chunk])
      const decoded: Buffer[] = []
      let start = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
        decoded.push(...read(trimmed(bytes.subarray(start, end))))
        start = end + 1
      }
      open = Buffer.from(bytes.subarray(start).subarray(0, longestLine))
      return Buffer.concat(decoded)
    },
    end: () => Buffer.concat(open.length === 0 ? [] : read(trimmed(open))),
  }
}
