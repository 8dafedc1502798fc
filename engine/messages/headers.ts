/**
 * A raw header block → its fields, the Message-IDs in them, and the shapes that callers are shown. Bytes are kept as
 * one character each until a value is decoded. Own code: mailsplit and so mailparser need seconds for 300 KB of folded
 * lines (structure.test.ts, "a header of folded lines without end").
 */
import { decodeText, decodeUnlabelled } from './charsets.ts'
import { decodeWords, oneLine } from './encoded-words.ts'
import { parseStructured } from './parameters.ts'

/** Bytes of a header block that are looked at: as many as are read of one (commands/reading.ts). */
export const maxHeaderBytes = 4_194_304
/** Fields of a header block. Usual mail has hundreds; this many are read within a second. */
const maxHeaderFields = 100_000
/** Message-IDs kept of References: the root and the newest. */
const maxReferences = 100
/** Characters of a Message-ID; a longer one is not believed. */
const maxMessageIdLength = 998

interface HeaderField {
  /** Lower case. */
  readonly name: string
  /** Unfolded, one character per byte (latin1), not decoded. */
  readonly raw: string
}

const fieldStart = /^([!-9;-~]{1,200})[ \t]*:/

/**
 * The fields in order, up to the first empty line. Folded lines are joined (RFC 5322 §2.2.3: the line break is removed,
 * the white space kept); LF alone ends a line too; lines that are neither a field nor a continuation (mbox `From `,
 * noise) are left out.
 */
export function headerFields(block: Uint8Array): HeaderField[] {
  const bytes = Buffer.from(block.buffer, block.byteOffset, Math.min(block.byteLength, maxHeaderBytes))
  const fields: { name: string; lines: string[] }[] = []
  let open: string[] | null = null
  for (const line of bytes.toString('latin1').split('\n')) {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line
    if (text === '') break
    if (text.startsWith(' ') || text.startsWith('\t')) {
      open?.push(text)
      continue
    }
    const match = fieldStart.exec(text)
    open = null
    if (!match || fields.length >= maxHeaderFields) continue
    open = [text.slice(match[0].length)]
    fields.push({ name: (match[1] ?? '').toLowerCase(), lines: open })
  }
  return fields.map(({ name, lines }) => ({ name, raw: trimSpace(lines.join('')) }))
}

/**
 * Spaces and tabs alone: what Unicode calls white space are bytes of other characters here. By index, as a regex would
 * go quadratic.
 */
function trimSpace(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && (text[from] === ' ' || text[from] === '\t')) from++
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to--
  return text.slice(from, to)
}

export interface Headers {
  readonly fields: readonly HeaderField[]
  /** Charset that the message declares for its body; raw 8-bit headers mostly use the same. */
  readonly charset: string | null
}

export function readHeaders(block: Uint8Array): Headers {
  const fields = headerFields(block)
  const type = fields.find(({ name }) => name === 'content-type')
  const charset = type ? parseStructured(type.raw).parameters['charset'] : undefined
  return { fields, charset: charset ?? null }
}

/**
 * Bytes → characters, encoded-words left alone: for structured fields, which are taken apart before words are decoded.
 */
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

/**
 * A header block as callers see it: lower-cased name → decoded values, names and values in the order of the message.
 * Never throws.
 */
export function headerObject(block: Uint8Array): Record<string, string[]> {
  const { fields, charset } = readHeaders(block)
  const text = (field: HeaderField): string => oneLine(decodeWords(headerText(field, charset)), maxHeaderBytes)
  const named = Map.groupBy(fields, ({ name }) => name)
  return Object.fromEntries(Array.from(named, ([name, some]) => [name, some.map(text)]))
}

/**
 * A header block as text, line ends and folding as sent, for raw=1. 8-bit headers are read as headerText reads them.
 */
export function headerBlockText(block: Uint8Array): string {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  return decodeUnlabelled(bytes, readHeaders(block).charset)
}

/** What RFC 5322 allows in an id is narrower; white space and brackets are what no id may hold. */
const bracketed = /<([^<>]{1,2000})>/g

function cleaned(text: string): string {
  // A folded id got white space where the line broke.
  return text.replace(/\s+/g, '')
}

/**
 * Every id of an unfolded value, without angle brackets, in order, each once. Ids without brackets are found when there
 * is no bracketed one. Never throws.
 */
export function messageIdsOf(text: string): string[] {
  const inBrackets = Array.from(text.matchAll(bracketed), (match) => cleaned(match[1] ?? ''))
  const found = inBrackets.length > 0 ? inBrackets : bareIds(text)
  return [...new Set(found)].filter((id) => id !== '' && id.length <= maxMessageIdLength)
}

function bareIds(text: string): string[] {
  const tokens = text.split(/[\s<>,;"()]+/).filter((token) => token.length <= maxMessageIdLength)
  return tokens.filter((token) => /^[^@]+@/.test(token))
}

/**
 * The id of a message: the first that any Message-ID field holds; when none looks like an id, the value itself
 * (`Message-ID: 12345`), as long as it is one word. null = absent.
 */
export function ownMessageId(values: readonly string[]): string | null {
  for (const value of values) {
    const [first] = messageIdsOf(value)
    if (first !== undefined) return first
  }
  const word = values.map((value) => value.trim()).find((value) => /^[^\s<>]{1,998}$/.test(value))
  return word ?? null
}

/**
 * References, oldest first. Of a very long list the root and the newest stay: the root names the thread, the newest the
 * parent.
 */
export function cappedReferences(ids: readonly string[]): string[] {
  if (ids.length <= maxReferences) return [...ids]
  return [...ids.slice(0, 1), ...ids.slice(1 - maxReferences)]
}
