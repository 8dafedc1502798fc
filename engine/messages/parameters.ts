/**
 * `value; name=parameter` headers (RFC 2045 §5.1) with RFC 2231 charsets and continuations. Own code, because libmime decodes a
 * literal segment of a mixed continuation as if it were percent-encoded, cannot be given a charset decoder, and sees no comments.
 */
import { decodeText, isKnownCharset } from './charsets.ts'
import { decodeWords } from './encoded-words.ts'
import { maxParameters, maxStructuredLength } from './limits.ts'

export interface Structured {
  /** Lower case: 'text/plain', 'attachment'. */
  readonly value: string
  /** Lower-cased names; decoded. */
  readonly parameters: Readonly<Record<string, string>>
}

interface Piece {
  readonly text: string
  readonly end: number
}

/** Behind the comment that opens at `from`; -1 when it is never closed: then it is none. */
function commentEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return at + 1
  }
  return -1
}

function readQuoted(text: string, from: number): Piece {
  let value = ''
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at] ?? ''
    if (char === '"') return { text: value, end: at + 1 }
    // Only `\"` and `\\` are escapes: senders put Windows paths in quotes as they are.
    if (char === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')) value += text[++at] ?? ''
    else value += char
  }
  return { text: value, end: text.length }
}

/** Up to the next `;` outside of quotes. A quoted string is the whole value; what follows it is noise. */
function readValue(text: string, from: number): Piece {
  let at = from
  while (text[at] === ' ' || text[at] === '\t') at++
  if (text[at] === '"') {
    const quoted = readQuoted(text, at)
    const next = text.indexOf(';', quoted.end)
    return { text: quoted.text, end: next < 0 ? text.length : next }
  }
  const next = text.indexOf(';', at)
  const end = next < 0 ? text.length : next
  return { text: withoutComment(text.slice(at, end)), end }
}

/** `us-ascii (Plain text)` → `us-ascii`; `Invoice(1).pdf` stays: a comment stands apart. */
function withoutComment(text: string): string {
  const open = text.search(/[ \t]\(/)
  if (open < 0) return text.trim()
  const end = commentEnd(text, open + 1)
  return (end < 0 ? text : text.slice(0, open) + text.slice(end)).trim()
}

function readHead(text: string): Piece {
  // Where one comment is not closed none is looked for any more: each search goes over the rest of the text.
  let comments = true
  let at = 0
  let value = ''
  while (at < text.length && text[at] !== ';') {
    const end = comments && text[at] === '(' ? commentEnd(text, at) : -1
    if (text[at] === '(' && end < 0) comments = false
    if (end < 0) value += text[at++] ?? ''
    else at = end
  }
  return { text: value.trim().toLowerCase(), end: at }
}

/** Takes a header value apart; encoded-words and RFC 2231 decoded. The first of several parameters of one name counts. Never throws. */
export function parseStructured(whole: string): Structured {
  const text = whole.slice(0, maxStructuredLength)
  const head = readHead(text)
  const found = new Map<string, string>()
  let at = head.end
  while (at < text.length && found.size < maxParameters) {
    const equals = text.indexOf('=', at)
    if (equals < 0) break
    // `; flag; name=value`: the name starts after the last `;` before its `=`.
    const name = text
      .slice(text.lastIndexOf(';', equals) + 1, equals)
      .trim()
      .toLowerCase()
    const value = readValue(text, equals + 1)
    if (name !== '' && name.length <= 100 && !found.has(name)) found.set(name, value.text)
    at = value.end
    if (text[at] === ';') at++
  }
  return { value: head.text, parameters: resolveParameters(Object.fromEntries(found)) }
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8').toString('latin1')
  return Buffer.from(
    bytes.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

interface Segment {
  readonly index: number
  readonly extended: boolean
  readonly value: string
}

const charsetPrefix = /^([^']{0,60})'([^']{0,40})'/

function joinSegments(segments: readonly Segment[]): string {
  const ordered = segments.toSorted((a, b) => a.index - b.index)
  const first = ordered[0]
  const prefix = first?.extended === true ? charsetPrefix.exec(first.value) : null
  const bytes = ordered.map(({ extended, value }, at) => {
    const text = at === 0 && prefix ? value.slice(prefix[0].length) : value
    return extended ? percentDecoded(text) : Buffer.from(text, 'utf8')
  })
  if (!ordered.some(({ extended }) => extended)) return decodeWords(ordered.map(({ value }) => value).join(''))
  return decodeText(Buffer.concat(bytes), prefix?.[1] ?? null)
}

/** Plain values: encoded-words (forbidden and common), RFC 2231 syntax without the star, UTF-8 that was read byte by byte. */
function plainValue(value: string): string {
  const prefix = charsetPrefix.exec(value)
  if (prefix?.[1] !== undefined && value.includes('%') && isKnownCharset(prefix[1])) {
    return decodeText(percentDecoded(value.slice(prefix[0].length)), prefix[1])
  }
  if (/[\u0080-\u00ff]/.test(value) && !/[^\u0000-\u00ff]/.test(value)) {
    return decodeWords(healed(value))
  }
  return decodeWords(value)
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function healed(value: string): string {
  try {
    return strictUtf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}

/**
 * RFC 2231: `name*`, `name*0`, `name*1*` … become `name`; an extended form outweighs the plain one (its fallback).
 * Does nothing to parameters that a client library has resolved already.
 */
export function resolveParameters(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const plain = new Map<string, string>()
  const extended = new Map<string, Segment[]>()
  for (const [name, value] of Object.entries(parameters).slice(0, maxParameters)) {
    const match = /^([^*]+)\*(?:(\d{1,4})(\*)?)?$/.exec(name.toLowerCase())
    if (!match?.[1]) {
      plain.set(name.toLowerCase(), plainValue(value))
      continue
    }
    const segment = { index: Number(match[2] ?? 0), extended: match[2] === undefined || match[3] === '*', value }
    const segments = extended.get(match[1])
    if (segments) segments.push(segment)
    else extended.set(match[1], [segment])
  }
  for (const [name, segments] of extended) plain.set(name, joinSegments(segments))
  return Object.fromEntries(plain)
}
