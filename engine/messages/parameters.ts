/**
 * `value; name=parameter` headers (RFC 2045 §5.1) with RFC 2231 charsets and continuations. Own code, because libmime
 * drops the backslashes of Windows paths, takes a literal segment of a mixed continuation for a percent-encoded one,
 * and sees no comments (parameters.test.ts).
 */
import { isUtf8 } from 'node:buffer'
import { decodeText, isKnownCharset } from './charsets.ts'
import { withoutComments } from './dates.ts'
import { decodeWords, escapedBytes } from './encoded-words.ts'

/** Parameters of one Content-Type or Content-Disposition, continuations counted singly. */
const maxParameters = 200
const maxStructuredLength = 16_384

interface Structured {
  /** Lower case: 'text/plain', 'attachment'. */
  readonly value: string
  /** Lower-cased names; decoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Up to the first `;` that is in no comment. */
const head = /^(?:\([^()]*\)|[^;])*/
const quoted = /[ \t]*"((?:[^"\\]|\\[^])*)/y

/**
 * Takes a header value apart; encoded-words and RFC 2231 decoded. The first of several parameters of one name counts.
 * Never throws.
 */
export function parseStructured(whole: string): Structured {
  const text = whole.slice(0, maxStructuredLength)
  const [value = ''] = head.exec(text) ?? []
  const found = new Map<string, string>()
  let equals = text.indexOf('=', value.length)
  while (equals >= 0 && found.size < maxParameters) {
    // `; flag; name=value`: the name starts after the last `;` before its `=`.
    const name = text.slice(text.lastIndexOf(';', equals) + 1, equals).trim()
    quoted.lastIndex = equals + 1
    const match = quoted.exec(text)
    // A quoted string is the whole value; what follows it is noise.
    const semicolon = text.indexOf(';', match ? quoted.lastIndex : equals + 1)
    const end = semicolon < 0 ? text.length : semicolon
    const known = name === '' || name.length > 100 || found.has(name.toLowerCase())
    if (!known) found.set(name.toLowerCase(), unquoted(match) ?? withoutComment(text.slice(equals + 1, end)))
    equals = text.indexOf('=', end)
  }
  return {
    value: withoutComments(value).trim().toLowerCase(),
    parameters: resolveParameters(Object.fromEntries(found)),
  }
}

/** Only `\"` and `\\` are escapes: senders put Windows paths in quotes as they are. */
function unquoted(match: RegExpExecArray | null): string | undefined {
  return match?.[1]?.replace(/\\(["\\])/g, '$1')
}

/** `us-ascii (Plain text)` → `us-ascii`; `Invoice(1).pdf` stays: a comment stands apart. */
function withoutComment(text: string): string {
  const open = text.search(/[ \t]\(/)
  return (open < 0 ? text : text.slice(0, open) + withoutComments(text.slice(open))).trim()
}

interface Segment {
  readonly index: number
  readonly extended: boolean
  readonly value: string
}

const charsetPrefix = /^([^']{0,60})'([^']{0,40})'/
const percent = /%([0-9A-Fa-f]{2})/g

function joinSegments(segments: readonly Segment[]): string {
  const ordered = segments.toSorted((a, b) => a.index - b.index)
  if (!ordered.some(({ extended }) => extended)) return decodeWords(ordered.map(({ value }) => value).join(''))
  const [first] = ordered
  const prefix = first?.extended === true ? charsetPrefix.exec(first.value) : null
  const bytes = ordered.map(({ extended, value }, at) => {
    const text = at === 0 && prefix ? value.slice(prefix[0].length) : value
    return extended ? escapedBytes(text, percent) : Buffer.from(text, 'utf8')
  })
  return decodeText(Buffer.concat(bytes), prefix?.[1] ?? null)
}

/**
 * Plain values: encoded-words (forbidden and common), RFC 2231 syntax without the star, UTF-8 that was read byte by
 * byte.
 */
function plainValue(value: string): string {
  const prefix = charsetPrefix.exec(value)
  if (prefix?.[1] !== undefined && value.includes('%') && isKnownCharset(prefix[1])) {
    return decodeText(escapedBytes(value.slice(prefix[0].length), percent), prefix[1])
  }
  const bytes = Buffer.from(value, 'latin1')
  const byteByByte = /[\u0080-\u00ff]/.test(value) && !/[^\u0000-\u00ff]/.test(value) && isUtf8(bytes)
  return decodeWords(byteByByte ? decodeText(bytes, 'utf-8') : value)
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
