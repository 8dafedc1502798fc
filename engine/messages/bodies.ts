/**
 * A body part as transferred → the text that callers are shown, and the text in HTML to search in. Own code for
 * format=flowed: libmime joins quotes of different depth and `-- ` (bodies.test.ts, unflow; corpus: flowed).
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

/** HTML without a declared charset says it in its own head, in ASCII, near the start. */
function charsetOfHtml(bytes: Buffer): string | null {
  const found = metaCharset.exec(bytes.subarray(0, 4096).toString('latin1'))?.[1] ?? null
  // A document that reads as ASCII is not UTF-16 whatever it says.
  return found !== null && isKnownCharset(found) && !/^utf-?(?:16|32)/i.test(found) ? found : null
}

interface Line {
  readonly depth: number
  readonly text: string
}

/** Quote marks counted, then one stuffed space taken away (§4.3-4.5). */
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
 * Joins lines that end in a space with the next one of the same quote depth; `delSp` = that space was added for the
 * fold alone. `-- ` stays a line of its own. Lines end in LF alone, in and out. Linear.
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
 * Body text in UTF-8 characters: transfer encoding and charset undone, byte-order mark gone, lines end in LF,
 * format=flowed joined to paragraphs. `cut` = the bytes are the beginning of a longer part: what is not whole at their
 * end is left out. Never throws.
 */
export function decodeBody(bytes: Uint8Array, part: Described, cut = false): string {
  const decoded = decodeTransfer(bytes, part.encoding, cut)
  const declared = part.charset !== null && isKnownCharset(part.charset) ? part.charset : null
  const charset = declared ?? (part.type === 'text/html' ? charsetOfHtml(decoded) : null)
  const text = decodeText(decoded, charset ?? part.charset, cut).replaceAll('\r\n', '\n')
  return part.flowed ? unflow(text, part.delSp) : text
}

/** Their content is not text of the body; the tokenizer ends them by their own closing tag only. */
const silent = new Set(['script', 'style', 'title'])

/** Stand within a word; every other tag parts two. */
const withinWords = new Set(
  (
    'a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr o:p q s samp small span strike strong ' +
    'sub sup time tt u var wbr'
  ).split(' '),
)

/** Soft hyphen, zero-width space, word joiner, zero-width no-break space: a reader does not see them. */
const unseen = /[\u00ad\u200b\u2060\ufeff]/g

/** Characters that are read before others get their turn: some milliseconds. */
export const turnLength = 262_144

/**
 * The text that a reader sees in an HTML body. White space is joined, as a browser joins it. It is read from the tags
 * as they come, without a tree: that takes linear time, however deep and however wrongly they are nested. html-to-text,
 * which mailparser uses, builds a tree.
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
