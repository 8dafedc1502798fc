/** A raw header block → its fields, and the shapes that callers are shown. Bytes are kept as one character each until a value is decoded. */
import { decodeText, decodeUnlabelled } from './charsets.ts'
import { decodeWords, oneLine } from './encoded-words.ts'
import { maxHeaderBytes, maxHeaderFields } from './limits.ts'
import { parseStructured } from './parameters.ts'

export interface HeaderField {
  /** Lower case. */
  readonly name: string
  /** Unfolded, one character per byte (latin1), not decoded. */
  readonly raw: string
}

const fieldStart = /^([!-9;-~]{1,200})[ \t]*:/

/**
 * The fields in order, up to the first empty line. Folded lines are joined (RFC 5322 §2.2.3: the line break goes, the white space
 * stays); LF alone ends a line too; lines that are neither a field nor a continuation (mbox `From `, noise) are left out.
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

/** Spaces and tabs alone: what Unicode calls white space are bytes of other characters here. By index, as a regex would go quadratic. */
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

/** Bytes → characters, encoded-words left alone: for structured fields, which are taken apart before words are decoded. */
export function headerText(field: HeaderField, charset: string | null): string {
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
  const values = new Map<string, string[]>()
  for (const field of fields) {
    const value = oneLine(decodeWords(headerText(field, charset)), maxHeaderBytes)
    const known = values.get(field.name)
    if (known) known.push(value)
    else values.set(field.name, [value])
  }
  return Object.fromEntries(values)
}

/** A header block as text, line ends and folding as sent, for raw=1. 8-bit headers are read as headerText reads them. */
export function headerBlockText(block: Uint8Array): string {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  return decodeUnlabelled(bytes, readHeaders(block).charset)
}
