/**
 * Parses usual FETCH responses in one pass. imapflow's tokenizer awaits a promise for each token and adds up each text
 * by the character: that took a fifth of a first sync. For an unusual response the result is null, and imapflow's
 * parser reads it; both give the same (fetch-parser.test.ts).
 */
import type { ImapAttribute, ImapResponse } from 'imapflow'

const head = /^\* (\d{1,10}) FETCH \(/i
const word = /\\?[a-z\d.$_/+=-]+/iy
/** BODY[HEADER.FIELDS (FROM TO)]<0>. Nobody needs the names of the fields. */
const section = /\[(?!NIL[\] ])([a-z\d.]*)(?: \([^()[\]{}]*\))?\](?:<(0|[1-9]\d{0,9})(?:\.(?:0|[1-9]\d{0,9}))?>)?/iy
const quoted = /"[^"\\]*(?:\\[^][^"\\]*)*"/y
const escaped = /\\([^])/g
const literal = /\{\d{1,10}\}\r?\n/y
/** Deeper lists are left to imapflow, whose limit is 25 of its nodes. */
const deepest = 20

const space = 0x20
const quote = 0x22
const open = 0x28
const close = 0x29
const bracket = 0x5b
const brace = 0x7b

/** null = the response is unusual. */
export function parseFetch(payload: Buffer, literals: readonly Buffer[]): ImapResponse | null {
  const begin = head.exec(payload.toString('latin1', 0, 40))
  if (begin === null) return null
  const text = payload.toString('utf8')
  const items: ImapAttribute[] = []
  const end = parseList({ text, literals, literal: 0 }, begin[0].length, items, 1)
  if (end !== text.length) return null
  return { tag: '*', command: begin[1] ?? '', attributes: [{ type: 'ATOM', value: 'FETCH' }, items] }
}

interface Source {
  readonly text: string
  readonly literals: readonly Buffer[]
  /** Index of the next literal. */
  literal: number
}

/** Parses the list that begins at `at`, behind its bracket. Returns its end; -1 = it is unusual. */
function parseList(source: Source, at: number, list: ImapAttribute[], depth: number): number {
  const { text } = source
  while (at >= 0 && at < text.length) {
    const code = text.charCodeAt(at)
    if (code === close) return at + 1
    if (code === space) at += 1
    else if (code === open) {
      const inner: ImapAttribute[] = []
      list.push(inner)
      at = depth < deepest ? parseList(source, at + 1, inner, depth + 1) : -1
    } else at = ended(text, parseToken(source, at, code, list))
  }
  return -1
}

function parseToken(source: Source, at: number, code: number, list: ImapAttribute[]): number {
  const { text } = source
  if (code === quote) {
    quoted.lastIndex = at
    if (!quoted.test(text)) return -1
    const value = text.slice(at + 1, quoted.lastIndex - 1)
    list.push({ type: 'STRING', value: value.includes('\\') ? value.replaceAll(escaped, '$1') : value })
    return quoted.lastIndex
  }
  if (code === brace) {
    const value = source.literals[source.literal++]
    literal.lastIndex = at
    if (value === undefined || !literal.test(text)) return -1
    list.push({ type: 'LITERAL', value })
    return literal.lastIndex
  }
  word.lastIndex = at
  if (!word.test(text)) return -1
  const end = word.lastIndex
  const value = text.slice(at, end)
  if (text.charCodeAt(end) === bracket) return parseSection(text, value, end, list)
  list.push(value.length === 3 && value.toUpperCase() === 'NIL' ? null : { type: 'ATOM', value })
  return end
}

function parseSection(text: string, value: string, at: number, list: ImapAttribute[]): number {
  section.lastIndex = at
  const [, name = '', from] = section.exec(text) ?? []
  if (section.lastIndex === 0 || value.toUpperCase() !== 'BODY') return -1
  list.push({
    ...{ type: 'ATOM', value, section: name === '' ? [] : [{ type: 'ATOM', value: name }] },
    ...(from === undefined ? {} : { partial: [Number(from)] }),
  })
  return section.lastIndex
}

/** `at`, when a token may end there; otherwise -1. */
function ended(text: string, at: number): number {
  const code = at < 0 ? 0 : text.charCodeAt(at)
  return code === space || code === close ? at : -1
}
