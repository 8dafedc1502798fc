/**
 * RFC 2047 encoded-words. Own code, because libmime decodes the result a second time (a subject that quotes an
 * encoded-word changes), ends a Q word at a `?` inside of it, and does not join words of different encodings
 * (encoded-words.test.ts). Adjacent words of one charset are joined as bytes, so that a character split over two words
 * is decoded.
 */
import libbase64 from 'libbase64'
import { decodeText } from './charsets.ts'

/** Characters of a subject or another one-line value. */
export const maxLineLength = 10_000
/** Words of one text that are decoded, one for each character of a line; further words stay encoded. */
const maxWords = maxLineLength

interface EncodedWord {
  readonly start: number
  readonly end: number
  readonly charset: string
  readonly encoding: string
  readonly payload: string
}

/** The words of a text in order. Linear: each search starts where the last one ended. */
function wordsOf(text: string): EncodedWord[] {
  const words: EncodedWord[] = []
  const head = /=\?([^\s?]{1,80})\?([BbQq])\?/y
  let close = -1
  for (let start = text.indexOf('=?'); start >= 0 && words.length < maxWords;) {
    head.lastIndex = start
    const match = head.exec(text)
    if (!match) {
      start = text.indexOf('=?', start + 2)
      continue
    }
    const from = head.lastIndex
    if (close < from) close = text.indexOf('?=', from)
    if (close < 0) break
    // A word that is never closed must not swallow the next one; `=?` may end a padded base64 word.
    const inner = text.indexOf('=?', from)
    if (inner >= 0 && inner < close - 1) {
      start = inner
      continue
    }
    const [, charset = '', encoding = ''] = match
    const payload = text.slice(from, close)
    words.push({ start, end: close + 2, charset, encoding: encoding.toLowerCase(), payload })
    start = text.indexOf('=?', close + 2)
  }
  return words
}

/** Text whose escapes (`=C3`, `%C3`: what `pattern` finds) stand for bytes. */
export function escapedBytes(text: string, pattern: RegExp): Buffer {
  const bytes = Buffer.from(text, 'utf8').toString('latin1')
  const characters = bytes.replace(pattern, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(characters, 'latin1')
}

/**
 * A run of words in one charset, with nothing but white space between them. Some senders split the base64 text itself
 * over words, others pad each word: libbase64 reads both.
 */
function decodeRun(run: readonly EncodedWord[]): string {
  const pieces: Buffer[] = []
  let base64 = ''
  for (const { encoding, payload } of run) {
    if (encoding === 'b') {
      base64 += payload.replace(/[^A-Za-z0-9+/=]/g, '')
      continue
    }
    pieces.push(libbase64.decode(base64), escapedBytes(payload.replaceAll('_', ' '), /=([0-9A-Fa-f]{2})/g))
    base64 = ''
  }
  return decodeText(Buffer.concat([...pieces, libbase64.decode(base64)]), run[0]?.charset ?? null)
}

const onlySpace = /^[ \t\r\n]*$/

/** Decodes every encoded-word of an unfolded text; all other text stays. Never throws. */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text
  let result = ''
  let end = 0
  let run: EncodedWord[] = []
  const flush = (): void => {
    if (run.length > 0) result += decodeRun(run)
    run = []
  }
  for (const word of wordsOf(text)) {
    const between = text.slice(end, word.start)
    const adjacent = end > 0 && onlySpace.test(between)
    if (!adjacent || run[0]?.charset.toLowerCase() !== word.charset.toLowerCase()) flush()
    if (!adjacent) result += between
    run.push(word)
    end = word.end
  }
  flush()
  return result + text.slice(end)
}

/** Turns runs of line breaks and other control characters, which decoded words may hold, into one space each. */
export function oneLine(text: string, maxLength: number): string {
  const plain = text.replace(/[\u0000-\u001f\u007f\u2028\u2029]+/g, ' ').trim()
  return plain.length > maxLength ? plain.slice(0, maxLength).toWellFormed() : plain
}
