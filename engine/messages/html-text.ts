/**
 * The text that a reader sees in an HTML body, to search in. It is read from the tags as they come, without a tree:
 * that takes linear time, however deep and however wrongly they are nested. html-to-text, which mailparser uses, builds
 * a tree.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'

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

/** White space is joined, as a browser joins it. */
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
