/**
 * A body part as transferred → the text for callers, and the text of HTML for searches. Own code for format=flowed:
 * libmime joins quotes of different depth and `-- ` (bodies.test.ts, unflow; corpus: flowed).
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { decodeText, isKnownCharset } from './charsets.ts'
import { decodeTransfer } from './transfer-encoding.ts'
import type { BodyPartRecord } from '../store/records.ts'

/** Bytes of one body part that the body call gives, as transferred. */
export const maxBodyBytes = 16 * 1_048_576

const metaCharset =
  /<(?:meta\b[^>]{0,300}?\bcharset|\?xml\b[^>]{0,300}?\bencoding)\s{0,10}=\s{0,10}["']?\s{0,10}([\w:.-]{2,40})/i

/** The charset that HTML declares in its own head, in ASCII, near the start. */
function charsetOfHtml(bytes: Buffer): string | null {
  const found = metaCharset.exec(bytes.subarray(0, 4096).toString('latin1'))?.[1] ?? null
  // A document that is readable as ASCII is not UTF-16, whatever it declares.
  return found !== null && isKnownCharset(found) && !/^utf-?(?:16|32)/i.test(found) ? found : null
}

interface Line {
  readonly depth: number
  readonly text: string
}

/** Counts the quote marks, and removes one stuffed space (RFC 3676 §4.3-4.5). */
function readLine(line: string): Line {
  let depth = 0
  while (line[depth] === '>') depth++
  const text = line.slice(depth)
  return { depth, text: text.startsWith(' ') ? text.slice(1) : text }
}

function quoted(depth: number, text: string): string {
  if (depth === 0) return text
  return text === '' ? '>'.repeat(depth) : `${'>'.repeat(depth)} ${text}`
}

/**
 * Joins a line that ends in a space with the next line of the same quote depth; `delSp` removes that space. `-- ` stays
 * a line of its own. Lines end in LF, in and out. Linear.
 */
export function unflow(text: string, delSp: boolean): string {
  const result: string[] = []
  let paragraph: string[] = []
  let depth = 0
  const close = (): void => {
    if (paragraph.length > 0) result.push(quoted(depth, paragraph.join('')))
    paragraph = []
  }
  for (const raw of text.split('\n')) {
    const line = readLine(raw)
    if (line.depth !== depth || line.text === '-- ') close()
    depth = line.depth
    const flows = line.text.endsWith(' ') && line.text !== '-- '
    paragraph.push(flows && delSp ? line.text.slice(0, -1) : line.text)
    if (!flows) close()
  }
  close()
  return result.join('\n')
}

type Described = Pick<BodyPartRecord, 'type' | 'charset' | 'encoding' | 'flowed' | 'delSp'>

/**
 * Body text, with transfer encoding and charset decoded, without byte-order mark, with LF as line end, and with
 * paragraphs of format=flowed joined. `cut` = the bytes are the beginning of a longer part: an incomplete character at
 * their end is left out. Never throws.
 */
export function decodeBody(bytes: Uint8Array, part: Described, cut = false): string {
  const decoded = decodeTransfer(bytes, part.encoding, cut)
  const declared = part.charset !== null && isKnownCharset(part.charset) ? part.charset : null
  const charset = declared ?? (part.type === 'text/html' ? charsetOfHtml(decoded) : null)
  const text = decodeText(decoded, charset ?? part.charset, cut).replaceAll('\r\n', '\n')
  return part.flowed ? unflow(text, part.delSp) : text
}

/** Elements whose content is no text of the body; the tokenizer ends each only at its own closing tag. */
const silent = new Set(['script', 'style', 'title'])

/** Elements within a word; every other tag separates words. */
const withinWords = new Set(
  (
    'a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr o:p q s samp small span strike strong ' +
    'sub sup time tt u var wbr'
  ).split(' '),
)

/** Soft hyphen, zero-width space, word joiner, zero-width no-break space: invisible to a reader. */
const unseen = /[\u00ad\u200b\u2060\ufeff]/g

/** Characters that are read between two turns of the event loop: some milliseconds. */
export const turnLength = 262_144

/**
 * The text that a reader sees in an HTML body, with white space joined as in a browser. Linear, because it reads tag by
 * tag, however they are nested; html-to-text, which mailparser uses, builds a tree.
 */
export async function htmlText(html: string): Promise<string> {
  const pieces: string[] = []
  const tokenizer = new Tokenizer({ decodeEntities: true }, readInto(pieces, html))
  for (let at = 0; at < html.length; at += turnLength) {
    if (at > 0) await nextTurn()
    tokenizer.write(html.slice(at, at + turnLength))
  }
  tokenizer.end()
  return pieces.join('').replace(unseen, '').replace(/\s+/g, ' ').trim()
}

function readInto(pieces: string[], html: string): TokenizerCallbacks {
  let within: string | null = null
  const part = (name: string): void => {
    if (!withinWords.has(name)) pieces.push(' ')
  }
  const ignore = (): void => undefined
  return {
    onopentagname(start, end) {
      const name = html.slice(start, end).toLowerCase()
      if (silent.has(name)) within ??= name
      part(name)
    },
    onclosetag(start, end) {
      const name = html.slice(start, end).toLowerCase()
      if (name === within) within = null
      part(name)
    },
    ontext(start, end) {
      if (within === null) pieces.push(html.slice(start, end))
    },
    ontextentity(codepoint) {
      if (within === null) pieces.push(String.fromCodePoint(codepoint))
    },
    onattribdata: ignore,
    onattribentity: ignore,
    onattribend: ignore,
    onattribname: ignore,
    oncdata: ignore,
    oncomment: ignore,
    ondeclaration: ignore,
    onend: ignore,
    onopentagend: ignore,
    onprocessinginstruction: ignore,
    onselfclosingtag: ignore,
  }
}
