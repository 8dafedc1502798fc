/**
 * The parts of a message, by BODYSTRUCTURE: text parts that are bodies, and all others as attachments. By the rules of
 * RFC 8621 §4.1.4 (what a mail program shows as text), with two additions: a text part of any kind directly in a
 * multipart/alternative, or alone in the message, is a body, but text/calendar never is.
 *
 * At the end the same tree from a whole message, for an unreadable BODYSTRUCTURE. Sections have IMAP's numbers (RFC
 * 3501 §6.4.5), so the parts can be fetched from the server. Own code: mailparser joins the texts of all parts and adds
 * what is missing (corpus: boundary-never-used, type-unfinished); its mailsplit fails from 1000 parts on and needs
 * seconds for a long header (structure.test.ts, "hostile nesting", "a header of folded lines"). No range of the message
 * is copied.
 */
import { decodeWords, maxLineLength, oneLine } from './encoded-words.ts'
import { maxHeaderBytes, parseStructured, rawValue, readHeaders, resolveParameters, type Headers } from './headers.ts'
import { cleanFileName, subjectFileName } from './names.ts'
import type { AttachmentRecord, BodyPartRecord } from '../store/records.ts'
import type { BodyNode } from '../accounts/session-types.ts'

/** Levels of multipart that are listed. */
const maxDepth = 50
/** Parts of one message that are listed. */
const maxParts = 1_000
/** Bytes searched for boundaries, over all levels: this many times the message, and this many more. */
const maxSearched = 8
const leastSearched = 1_048_576

export interface Structure {
  readonly bodies: readonly BodyPartRecord[]
  readonly attachments: readonly AttachmentRecord[]
}

/** A leaf and its place in the tree. */
interface Leaf {
  readonly node: BodyNode
  readonly section: string
  /** Type of the multipart right around it; '' at the root. */
  readonly parent: string
  /** First in that multipart: the root of a multipart/related. */
  readonly first: boolean
  /** Inside a multipart/related, at any depth, and not its root. */
  readonly related: boolean
}

type Place = Omit<Leaf, 'node' | 'section'>

/** RFC 2045 §5.2: a part whose type cannot be read is plain text. */
function withType(node: BodyNode): BodyNode {
  return /^[^\s/]+\/[^\s/]+$/.test(node.type) ? node : { ...node, type: 'text/plain' }
}

function leavesOf(root: BodyNode): Leaf[] {
  const leaves: Leaf[] = []
  const walk = (node: BodyNode, place: Place, section: string, depth: number): void => {
    if (leaves.length >= maxParts || depth > maxDepth) return
    if (!node.type.startsWith('multipart/')) {
      leaves.push({ ...place, node: withType(node), section })
      return
    }
    const children = node.children.slice(0, maxParts)
    children.forEach((child, index) => {
      const related = place.related || (node.type === 'multipart/related' && index > 0)
      const number = section === '' ? String(index + 1) : `${section}.${index + 1}`
      walk(child, { parent: node.type, first: index === 0, related }, child.part ?? number, depth + 1)
    })
  }
  const single = root.type.startsWith('multipart/') ? '' : '1'
  walk(root, { parent: '', first: true, related: false }, root.part ?? single, 0)
  return leaves
}

function nameOf(node: BodyNode): string {
  const disposition = resolveParameters(node.dispositionParameters)
  const parameters = resolveParameters(node.parameters)
  const name = cleanFileName(disposition['filename'] ?? '') || cleanFileName(parameters['name'] ?? '')
  if (name !== '' || node.type !== 'message/rfc822') return name
  // The subject of ENVELOPE is still encoded.
  return subjectFileName(decodeWords(node.subject ?? ''))
}

function isBody(leaf: Leaf, alone: boolean): boolean {
  const { node } = leaf
  if (!node.type.startsWith('text/') || node.type === 'text/calendar' || node.disposition === 'attachment') return false
  const shown = node.type === 'text/plain' || node.type === 'text/html'
  if (alone) return shown || nameOf(node) === ''
  if (!shown && leaf.parent !== 'multipart/alternative') return false
  // A text file that a mail program put inline has a name; the text of the message, if it has a name, comes first.
  return leaf.first || (!leaf.related && nameOf(node) === '')
}

function encodingOf(node: BodyNode): string {
  const encoding = oneLine(node.encoding ?? '', 100).toLowerCase()
  return encoding === '' ? '7bit' : encoding
}

function sizeOf(node: BodyNode): number {
  const size = node.size ?? 0
  return Number.isSafeInteger(size) && size >= 0 ? size : 0
}

function bodyOf({ node, section }: Leaf): BodyPartRecord {
  const parameters = resolveParameters(node.parameters)
  const charset = oneLine(parameters['charset'] ?? '', 100).toLowerCase()
  const flowed = node.type === 'text/plain' && parameters['format']?.toLowerCase() === 'flowed'
  return {
    section,
    type: node.type,
    charset: charset === '' ? null : charset,
    encoding: encodingOf(node),
    size: sizeOf(node),
    flowed,
    delSp: flowed && parameters['delsp']?.toLowerCase() === 'yes',
  }
}

function contentIdOf(node: BodyNode): string | null {
  const id = oneLine(node.id ?? '', 1000).replace(/^<|>$/g, '')
  return id === '' ? null : id
}

function attachmentOf({ node, section, related }: Leaf, index: number): AttachmentRecord {
  const contentId = contentIdOf(node)
  const disposition = oneLine(node.disposition ?? '', 100).toLowerCase()
  return {
    index,
    section,
    type: node.type,
    encoding: encodingOf(node),
    size: sizeOf(node),
    fileName: nameOf(node),
    // RFC 2183 §2.8: an unknown disposition counts as attachment.
    disposition: disposition === '' || disposition === 'inline' ? disposition : 'attachment',
    contentId,
    embedded: related && contentId !== null && disposition !== 'attachment',
  }
}

/** Bodies and attachments in the order of the message. A nested message is one attachment, without its own parts. */
export function structureOf(root: BodyNode): Structure {
  const leaves = leavesOf(root)
  const { body = [], other = [] } = Object.groupBy(leaves, (leaf) =>
    isBody(leaf, leaves.length === 1) ? 'body' : 'other',
  )
  return { bodies: body.map(bodyOf), attachments: other.map(attachmentOf) }
}

const [tab, lf, cr, space, hyphen] = [0x09, 0x0a, 0x0d, 0x20, 0x2d]

/** Part of the message: [start, end) of an entity, header and body. */
interface Range {
  readonly start: number
  readonly end: number
}

/** The place after the first empty line. */
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

/** null unless a delimiter line is at `at` (RFC 2046 §5.1.1): at the start of a line, only white space after it. */
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
  if (limit <= 0) return []
  const delimiter = Buffer.from(`--${boundary}`, 'utf8')
  // Text after the body is not searched: other bodies may follow, and each would search the rest again.
  const within = raw.subarray(0, body.end)
  const parts: Range[] = []
  let open: number | null = null
  let at = within.indexOf(delimiter, body.start)
  while (at >= 0 && parts.length < limit) {
    const found = delimiterAt(raw, at, delimiter.length, body)
    if (found) {
      if (open !== null) parts.push({ start: open, end: Math.max(open, beforeLineEnd(raw, at, open)) })
      open = found.closing ? null : found.after
      if (found.closing) break
    }
    at = within.indexOf(delimiter, found ? found.after : at + 1)
  }
  if (open !== null && parts.length < limit) parts.push({ start: open, end: body.end })
  return parts
}

interface Context {
  readonly raw: Buffer
  /** The place of each section's body. */
  readonly ranges: Map<string, Range>
  partsLeft: number
  /** Bytes that may be searched for boundaries, those of a nested part twice. */
  bytesLeft: number
}

function subjectOf(raw: Buffer, range: Range): string {
  const headers = readHeaders(raw.subarray(range.start, Math.min(bodyStart(raw, range), range.start + maxHeaderBytes)))
  return oneLine(decodeWords(rawValue(headers, 'subject')), maxLineLength)
}

function childrenOf(context: Context, body: Range, node: BodyNode, section: string, depth: number): BodyNode[] {
  const boundary = node.parameters['boundary'] ?? ''
  context.bytesLeft -= body.end - body.start
  const known = boundary !== '' && context.bytesLeft >= 0
  const ranges = known ? partsOf(context.raw, body, boundary, context.partsLeft) : []
  context.partsLeft -= ranges.length
  const fallback = node.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
  return ranges.map((range, index) => {
    const number = section === '' ? String(index + 1) : `${section}.${index + 1}`
    return entity(context, range, number, fallback, depth + 1)
  })
}

/** A part by its header. `fallback`: its type when the header names none. */
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
  // A multipart without any part is text; as the whole message it has no number in IMAP.
  const part = section || (multipart ? 'TEXT' : '1')
  ranges.set(part, body)
  if (multipart) return { ...node, part, type: 'text/plain' }
  return { ...node, part, ...(node.type === 'message/rfc822' ? { subject: subjectOf(raw, body) } : {}) }
}

function scan(raw: Buffer, ranges: Map<string, Range>): BodyNode {
  const context = { raw, ranges, partsLeft: maxParts, bytesLeft: maxSearched * raw.length + leastSearched }
  return entity(context, { start: 0, end: raw.length }, '', 'text/plain', 0)
}

/** `raw` = the message, or its beginning. Never throws. */
export function bodyNodeOf(raw: Buffer): BodyNode {
  return scan(raw, new Map())
}

/** The bytes of one section as IMAP gives them, still encoded; null when it is absent. `raw` = the whole message. */
export function sectionOf(raw: Buffer, section: string): Buffer | null {
  const ranges = new Map<string, Range>()
  scan(raw, ranges)
  const range = section === '' ? undefined : ranges.get(section)
  return range === undefined ? null : raw.subarray(range.start, range.end)
}
