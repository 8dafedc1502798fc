/**
 * The BodyNode tree of a whole message, for when a server's BODYSTRUCTURE cannot be read. Sections are numbered as IMAP
 * numbers them (RFC 3501 §6.4.5), so the parts can be fetched from the server. Own code: mailparser joins the texts of
 * all parts and fills in what is missing (corpus: boundary-never-used, type-unfinished); its mailsplit fails from 1000
 * parts on and needs seconds for a long header (structure.test.ts, "hostile nesting", "a header of folded lines"). A
 * range of the message is never copied, only looked at.
 */
import { decodeWords, maxLineLength, oneLine } from './encoded-words.ts'
import { maxHeaderBytes, rawValue, readHeaders, type Headers } from './headers.ts'
import { parseStructured } from './parameters.ts'
import { maxDepth, maxParts } from './structure.ts'
import type { BodyNode } from '../accounts/session-types.ts'

const [tab, lf, cr, space, hyphen] = [0x09, 0x0a, 0x0d, 0x20, 0x2d]

/** Part of the message: [start, end) of an entity, header and body. */
interface Range {
  readonly start: number
  readonly end: number
}

/** Where the body starts: after the first empty line. */
function bodyStart(raw: Buffer, { start, end }: Range): number {
  let line = start
  while (line < end) {
    const next = raw.indexOf(lf, line)
    if (next < 0 || next >= end) return end
    if (next === line || (next === line + 1 && raw[line] === cr)) return next + 1
    line = next + 1
  }
  return end
}

/**
 * The delimiter line at `at`, if it is one (RFC 2046 §5.1.1): at the start of a line, nothing but white space after it.
 */
function delimiterAt(
  raw: Buffer,
  at: number,
  length: number,
  range: Range,
): { after: number; closing: boolean } | null {
  if (at > range.start && raw[at - 1] !== lf) return null
  let next = at + length
  const closing = raw[next] === hyphen && raw[next + 1] === hyphen
  if (closing) return { after: next + 2, closing }
  while (next < range.end && (raw[next] === space || raw[next] === tab)) next++
  if (raw[next] === cr) next++
  if (next >= range.end) return { after: range.end, closing }
  return raw[next] === lf ? { after: next + 1, closing } : null
}

/** The line end before a delimiter belongs to the delimiter. */
function beforeLineEnd(raw: Buffer, at: number, start: number): number {
  if (at <= start || raw[at - 1] !== lf) return at
  return at - 1 > start && raw[at - 2] === cr ? at - 2 : at - 1
}

/** The parts of a multipart body. Without a closing delimiter the last one goes to the end. */
function partsOf(raw: Buffer, body: Range, boundary: string, limit: number): Range[] {
  const delimiter = Buffer.from(`--${boundary}`, 'utf8')
  const parts: Range[] = []
  let open: number | null = null
  let at = raw.indexOf(delimiter, body.start)
  while (at >= 0 && at + delimiter.length <= body.end && parts.length < limit) {
    const found = delimiterAt(raw, at, delimiter.length, body)
    if (found) {
      if (open !== null) parts.push({ start: open, end: Math.max(open, beforeLineEnd(raw, at, open)) })
      open = found.closing ? null : found.after
      if (found.closing) break
    }
    at = raw.indexOf(delimiter, found ? found.after : at + 1)
  }
  if (open !== null && parts.length < limit) parts.push({ start: open, end: body.end })
  return parts
}

interface Context {
  readonly raw: Buffer
  /** Where the bytes of each section are, without its header. */
  readonly ranges: Map<string, Range>
  partsLeft: number
}

function subjectOf(raw: Buffer, range: Range): string {
  const headers = readHeaders(raw.subarray(range.start, Math.min(bodyStart(raw, range), range.start + maxHeaderBytes)))
  return oneLine(decodeWords(rawValue(headers, 'subject')), maxLineLength)
}

function childrenOf(context: Context, body: Range, node: BodyNode, section: string, depth: number): BodyNode[] {
  const boundary = node.parameters['boundary'] ?? ''
  const ranges = boundary === '' ? [] : partsOf(context.raw, body, boundary, context.partsLeft)
  context.partsLeft -= ranges.length
  const fallback = node.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
  return ranges.map((range, index) => {
    const number = section === '' ? String(index + 1) : `${section}.${index + 1}`
    return entity(context, range, number, fallback, depth + 1)
  })
}

/** A part as its header describes it. `fallback`: the type when the header names none. */
export function describedNode(headers: Headers, part: string, size: number, fallback = 'text/plain'): BodyNode {
  const { value, parameters } = parseStructured(rawValue(headers, 'content-type'))
  const disposition = parseStructured(rawValue(headers, 'content-disposition'))
  const id = oneLine(rawValue(headers, 'content-id'), maxLineLength)
  return {
    part,
    type: /^[\w.+-]+\/[\w.+-]+$/.test(value) ? value : fallback,
    parameters,
    ...(id === '' ? {} : { id }),
    encoding: parseStructured(rawValue(headers, 'content-transfer-encoding')).value,
    size,
    ...(disposition.value === '' ? {} : { disposition: disposition.value }),
    dispositionParameters: disposition.parameters,
    children: [],
  }
}

function entity(context: Context, range: Range, section: string, fallback: string, depth: number): BodyNode {
  const { raw, ranges } = context
  const start = bodyStart(raw, range)
  const body = { start, end: Math.max(start, range.end) }
  const headers = readHeaders(raw.subarray(range.start, Math.min(start, range.start + maxHeaderBytes)))
  const node = describedNode(headers, section, body.end - body.start, fallback)
  const multipart = node.type.startsWith('multipart/')
  ranges.set(section, body)
  const children = multipart && depth < maxDepth ? childrenOf(context, body, node, section, depth) : []
  if (children.length > 0) return { ...node, children }
  // A multipart without a single part is text; servers have no number for it when it is the whole message.
  const part = section || (multipart ? 'TEXT' : '1')
  ranges.set(part, body)
  if (multipart) return { ...node, part, type: 'text/plain' }
  return { ...node, part, ...(node.type === 'message/rfc822' ? { subject: subjectOf(raw, body) } : {}) }
}

function scan(raw: Buffer, ranges: Map<string, Range>): BodyNode {
  return entity({ raw, ranges, partsLeft: maxParts }, { start: 0, end: raw.length }, '', 'text/plain', 0)
}

/** `raw` = the whole message, or as much of it as the caller wants to hold. Never throws. */
export function bodyNodeOf(raw: Buffer): BodyNode {
  return scan(raw, new Map())
}

/**
 * The bytes of one section as IMAP would give them, still encoded; null when there is none. `raw` = the whole message.
 */
export function sectionOf(raw: Buffer, section: string): Buffer | null {
  const ranges = new Map<string, Range>()
  scan(raw, ranges)
  const range = section === '' ? undefined : ranges.get(section)
  return range === undefined ? null : raw.subarray(range.start, range.end)
}
