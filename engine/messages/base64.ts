/**
 * Base64 (RFC 2045 §6.8) as a stream. Characters outside of the alphabet are skipped. Padding ends the data, with one exception
 * that is common: texts that were encoded apart and joined. So after padding only lines that hold nothing but base64 are read,
 * and the first other one (a footer that a list server put below) ends it. Lines decide, never the cut of the input.
 */
import type { TransferDecoder } from './transfer-decoder.ts'

const nothing = Buffer.alloc(0)
const notBase64 = /[^A-Za-z0-9+/=]+/g
/** Whole padded texts at the start of a line that is no base64 further on. */
const paddedStart = /^=?(?:(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))+/

/** Characters of a line that are held back to be judged; a longer line is judged in pieces. */
const maxLine = 65_536

const [lf, equals] = [0x0a, 0x3d]
const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=')
const whiteSpace = Buffer.from(' \t\r\n')
type Kind = 'letter' | 'space' | 'foreign'
const kinds = Array.from({ length: 256 }, (_, code): Kind => {
  if (alphabet.includes(code)) return 'letter'
  return whiteSpace.includes(code) ? 'space' : 'foreign'
})

/** A line after padding, as far as it has come. */
interface Line {
  length: number
  /** Words that have ended. */
  words: number
  /** Letters of the one that has not. */
  letters: number
  /** Some word is not whole quanta. */
  broken: boolean
  foreign: boolean
  /** What came of it in earlier pieces. */
  held: string[]
}

function newLine(): Line {
  return { length: 0, words: 0, letters: 0, broken: false, foreign: false, held: [] }
}

function endWord(line: Line): void {
  if (line.letters === 0) return
  line.words += 1
  if (line.letters % 4 !== 0) line.broken = true
  line.letters = 0
}

function note(line: Line, code: number): void {
  const kind = kinds[code]
  // The second sign of the padding may come first.
  if (kind === 'letter' && !(code === equals && line.length === 0)) line.letters += 1
  else if (kind === 'space') endWord(line)
  else if (kind === 'foreign') line.foreign = true
  line.length += 1
}

/** Several words are prose, unless each of them is whole quanta. What has become prose stays it. */
function isProse({ foreign, broken, words }: Line): boolean {
  return foreign || (broken && words > 1)
}

interface Quanta {
  /** The quantum that has not ended. */
  open: string
}

/** Base64 without anything else in it → bytes. A last quantum of one character holds no whole byte and is dropped. */
function decodeQuanta(quanta: Quanta, base64: string, atEnd = false): Buffer {
  const text = quanta.open + base64
  const out = Buffer.allocUnsafe(Math.ceil(text.length * 0.75))
  let length = 0
  let start = 0
  for (let sign = text.indexOf('='); sign >= 0; sign = text.indexOf('=', start)) {
    if (sign > start) length += out.write(text.slice(start, sign), length, 'base64')
    start = sign + 1
  }
  const whole = atEnd ? text.length : text.length - ((text.length - start) % 4)
  quanta.open = text.slice(whole)
  length += out.write(text.slice(start, whole), length, 'base64')
  return out.subarray(0, length)
}

/** Of prose nothing counts but padded texts at its start. */
function decodePaddedStart(quanta: Quanta, prose: string): Buffer {
  const padded = paddedStart.exec(quanta.open + prose)?.[0] ?? ''
  return decodeQuanta(quanta, padded.slice(quanta.open.length), true)
}

export function createBase64Decoder(): TransferDecoder {
  const quanta: Quanta = { open: '' }
  let line = newLine()
  let state: 'text' | 'padded' | 'over' = 'text'
  const decode = (...texts: string[]): Buffer => decodeQuanta(quanta, texts.join('').replace(notBase64, ''))
  const finish = (prose: string): Buffer => {
    state = 'over'
    line = newLine()
    return decodePaddedStart(quanta, prose)
  }
  const readLines = (text: string): Buffer => {
    const { held } = line
    let start = 0
    const before = (): Buffer => (start > 0 ? decode(...held, text.slice(0, start)) : nothing)
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      note(line, code)
      if (isProse(line)) return Buffer.concat([before(), finish([...line.held, text.slice(start, at)].join(''))])
      if (code !== lf && line.length < maxLine) continue
      start = at + 1
      line = newLine()
    }
    line.held.push(text.slice(start))
    return before()
  }
  const readText = (text: string): Buffer => {
    const padding = text.indexOf('=') + 1
    if (padding === 0) return decode(text)
    state = 'padded'
    return Buffer.concat([decode(text.slice(0, padding)), readLines(text.slice(padding))])
  }
  const read = { text: readText, padded: readLines, over: () => nothing }
  const end = (): Buffer => {
    endWord(line)
    const rest = line.held.join('')
    const last = isProse(line) ? finish(rest) : decode(rest)
    return Buffer.concat([last, decodeQuanta(quanta, '', true)])
  }
  return { write: (chunk) => read[state](chunk.toString('latin1')), end }
}
