/**
 * A raw header block → its fields, their Message-IDs, and the shapes that callers see. Each byte is one character until
 * a value is decoded. Own code: mailsplit, and so mailparser, needs seconds for 300 KB of folded lines
 * (structure.test.ts, "a header of folded lines without end").
 *
 * At the end `value; name=parameter` fields (RFC 2045 §5.1) with RFC 2231 charsets and continuations. Own code, because
 * libmime drops the backslashes of Windows paths, decodes a literal segment of a mixed continuation as percent-encoded,
 * and ignores comments (parameters.test.ts).
 */
import { isUtf8 } from 'node:buffer'
import { badParameter } from '../errors.ts'
import { decodeText, decodeUnlabelled, isKnownCharset } from './charsets.ts'
import { withoutComments } from './dates.ts'
import { decodeWords, escapedBytes, oneLine } from './encoded-words.ts'

/** Bytes of a header block that are parsed, and fetched (commands/reading.ts). */
export const maxHeaderBytes = 4_194_304
/** Fields of a header block that are parsed. Usual mail has hundreds; so many take less than a second. */
const maxHeaderFields = 100_000
/** Characters of a header block's fields with encoded-words that are decoded; further fields stay encoded. */
const maxEncoded = 524_288
/** Message-IDs kept of References: the root and the newest. */
const maxReferences = 100
/** Characters of a Message-ID; a longer one is ignored. */
const maxMessageIdLength = 998

interface HeaderField {
  /** Lower case. */
  readonly name: string
  /** Unfolded, one character per byte (latin1), not decoded. */
  readonly raw: string
}

const fieldStart = /^([!-9;-~]{1,200})[ \t]*:/

/**
 * The fields in order, up to the first empty line. Folded lines are joined (RFC 5322 §2.2.3: without the line break,
 * with the white space); LF alone ends a line too; a line that is neither a field nor a continuation (mbox `From `,
 * noise) is left out.
 */
export function headerFields(block: Uint8Array): HeaderField[] {
  const bytes = Buffer.from(block.buffer, block.byteOffset, Math.min(block.byteLength, maxHeaderBytes))
  const fields: { name: string; raw: string }[] = []
  let open: { raw: string } | null = null
  for (const line of bytes.toString('latin1').split('\n')) {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line
    if (text === '') break
    if (text.startsWith(' ') || text.startsWith('\t')) {
      if (open !== null) open.raw += text
      continue
    }
    const match = fieldStart.exec(text)
    open = null
    if (!match || fields.length >= maxHeaderFields) continue
    const field = { name: (match[1] ?? '').toLowerCase(), raw: text.slice(match[0].length) }
    fields.push(field)
    open = field
  }
  for (const field of fields) field.raw = trimSpace(field.raw)
  return fields
}

/** Only spaces and tabs: other white space of Unicode is part of a character here. A regex would be quadratic. */
function trimSpace(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && (text[from] === ' ' || text[from] === '\t')) from++
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to--
  return text.slice(from, to)
}

export interface Headers {
  readonly fields: readonly HeaderField[]
  /** Charset that the message declares for its body; raw 8-bit headers mostly have the same. */
  readonly charset: string | null
}

export function readHeaders(block: Uint8Array): Headers {
  const fields = headerFields(block)
  const type = fields.find(({ name }) => name === 'content-type')
  const charset = type ? parseStructured(type.raw).parameters['charset'] : undefined
  return { fields, charset: charset ?? null }
}

/** Bytes → characters, with encoded-words as they are: structured fields are parsed before words are decoded. */
function headerText(field: HeaderField, charset: string | null): string {
  if (!/[\u0080-\u00ff\u001b]/.test(field.raw)) return field.raw
  const bytes = Buffer.from(field.raw, 'latin1')
  return field.raw.includes('\u001b') ? decodeText(bytes, null) : decodeUnlabelled(bytes, charset)
}

/** Values of a field in order, unfolded, encoded-words still encoded. */
export function rawValues(headers: Headers, name: string): string[] {
  return headers.fields.filter((field) => field.name === name).map((field) => headerText(field, headers.charset))
}

/** First value of a field, unfolded, encoded-words still encoded; '' when the field is absent. */
export function rawValue(headers: Headers, name: string): string {
  const field = headers.fields.find((candidate) => candidate.name === name)
  return field ? headerText(field, headers.charset) : ''
}

/** Lower-cased name → decoded values, names and values in the order of the message. Never throws. */
export function headerObject(block: Uint8Array): Record<string, string[]> {
  const { fields, charset } = readHeaders(block)
  let left = maxEncoded
  const text = (field: HeaderField): string => {
    const encoded = headerText(field, charset)
    const decoded = left > 0 ? decodeWords(encoded) : encoded
    if (encoded.includes('=?')) left -= encoded.length
    return oneLine(decoded, maxHeaderBytes)
  }
  const named = Map.groupBy(fields, ({ name }) => name)
  return Object.fromEntries(Array.from(named, ([name, some]) => [name, some.map(text)]))
}

/** A header block as text, with line ends and folding as sent, for raw=1. */
export function headerBlockText(block: Uint8Array): string {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  return decodeUnlabelled(bytes, readHeaders(block).charset)
}

/** Wider than RFC 5322, which forbids more than brackets and white space in an id. */
const bracketed = /<[^<>]{1,2000}>/g

/**
 * All ids of an unfolded value, without angle brackets, in order, each once; ids without brackets only if there is no
 * id in brackets. Never throws.
 */
export function messageIdsOf(text: string): string[] {
  if (text === '') return []
  // A folded id has white space where the line broke.
  const inBrackets = (text.match(bracketed) ?? []).map((id) => id.slice(1, -1).replace(/\s+/g, ''))
  const found = inBrackets.length > 0 ? inBrackets : bareIds(text)
  return [...new Set(found)].filter((id) => id !== '' && id.length <= maxMessageIdLength)
}

function bareIds(text: string): string[] {
  const tokens = text.split(/[\s<>,;"()]+/).filter((token) => token.length <= maxMessageIdLength)
  return tokens.filter((token) => /^[^@]+@/.test(token))
}

/**
 * The id of a message: the first id in its Message-ID fields; without one, the first value that is a single word
 * (`Message-ID: 12345`). null = absent.
 */
export function ownMessageId(values: readonly string[]): string | null {
  const [first] = values.flatMap(messageIdsOf)
  return first ?? values.map((value) => value.trim()).find((value) => /^[^\s<>]{1,998}$/.test(value)) ?? null
}

/** References, oldest first. A very long list keeps the root, which names the thread, and the newest ids. */
export function cappedReferences(ids: readonly string[]): string[] {
  if (ids.length <= maxReferences) return [...ids]
  return [...ids.slice(0, 1), ...ids.slice(1 - maxReferences)]
}

const fieldBegin = /^[!-9;-~]+[ \t]*:/
/** Characters of a header that mailparser gets: it is slow for long ones. */
const headerMax = 32 * 1024

/**
 * The Message-ID of a message to append, without angle brackets; null = it has none. `head`: the message's first bytes.
 * Rejects with `bad_request` when the message does not begin with a header field (RFC 5322 §2.2).
 */
export async function readAppended(head: Buffer): Promise<{ readonly emailMessageId: string | null }> {
  const text = head.toString('latin1', 0, headerMax)
  if (!fieldBegin.test(text))
    throw badParameter('message', 'is no message: it has to begin with a header field such as "From: …" (RFC 5322)')
  const end = /\r\n\r\n/.exec(text)?.index ?? text.length
  // mailparser takes 30 MB of memory, and few processes ever append.
  const { simpleParser } = await import('mailparser')
  const { headerLines } = await simpleParser(Buffer.from(`${text.slice(0, end)}\r\n\r\n`, 'latin1'))
  // Not `messageId`, which keeps comments, folds and a second id: the id has to be equal to that in the index.
  const values = headerLines.filter(({ key }) => key === 'message-id').map(({ line }) => line)
  return { emailMessageId: ownMessageId(values.map((line) => line.slice(line.indexOf(':') + 1))) }
}

/** Parameters of one Content-Type or Content-Disposition; each continuation counts. */
const maxParameters = 200
const maxStructuredLength = 16_384

interface Structured {
  /** Lower case: 'text/plain', 'attachment'. */
  readonly value: string
  /** Lower-cased names; decoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Up to the first `;` outside of comments. */
const valueHead = /^(?:\([^()]*\)|[^;])*/
const quoted = /[ \t]*"((?:[^"\\]|\\[^])*)/y

/** Decodes encoded-words and RFC 2231 too. Of parameters with the same name the first counts. Never throws. */
export function parseStructured(whole: string): Structured {
  const text = whole.slice(0, maxStructuredLength)
  const [value = ''] = valueHead.exec(text) ?? []
  const found = new Map<string, string>()
  let equals = text.indexOf('=', value.length)
  while (equals >= 0 && found.size < maxParameters) {
    // `; flag; name=value`: the name starts after the last `;` before its `=`.
    const name = text.slice(text.lastIndexOf(';', equals) + 1, equals).trim()
    quoted.lastIndex = equals + 1
    const match = quoted.exec(text)
    // A quoted string is the whole value; the text after it is noise.
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

/** Only `\"` and `\\` are escapes: senders do not escape Windows paths in quotes. */
function unquoted(match: RegExpExecArray | null): string | undefined {
  return match?.[1]?.replace(/\\(["\\])/g, '$1')
}

/** `us-ascii (Plain text)` → `us-ascii`; `Invoice(1).pdf` stays: white space precedes a comment. */
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

/** Plain values with encoded-words (forbidden and common), RFC 2231 syntax without the star, or raw UTF-8. */
function plainValue(value: string): string {
  const prefix = value.includes('%') ? charsetPrefix.exec(value) : null
  if (prefix?.[1] !== undefined && isKnownCharset(prefix[1])) {
    return decodeText(escapedBytes(value.slice(prefix[0].length), percent), prefix[1])
  }
  if (!/[\u0080-\u00ff]/.test(value) || /[^\u0000-\u00ff]/.test(value)) return decodeWords(value)
  const bytes = Buffer.from(value, 'latin1')
  return decodeWords(isUtf8(bytes) ? decodeText(bytes, 'utf-8') : value)
}

/** RFC 2231: `name*`, `name*0`, `name*1*` … become `name`; the extended form outweighs the plain one, its fallback. */
export function resolveParameters(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const plain = new Map<string, string>()
  const extended = new Map<string, Segment[]>()
  const given = Object.entries(parameters)
  if (given.length === 0) return {}
  for (const [name, value] of given.slice(0, maxParameters)) {
    const match = name.includes('*') ? /^([^*]+)\*(?:(\d{1,4})(\*)?)?$/.exec(name.toLowerCase()) : null
    if (!match?.[1]) {
      plain.set(name.toLowerCase(), plainValue(value))
      continue
    }
    const segments = extended.get(match[1]) ?? []
    segments.push({ index: Number(match[2] ?? 0), extended: match[2] === undefined || match[3] === '*', value })
    extended.set(match[1], segments)
  }
  for (const [name, segments] of extended) plain.set(name, joinSegments(segments))
  return Object.fromEntries(plain)
}
