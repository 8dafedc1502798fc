/**
 * BODYSTRUCTURE → the text parts that are bodies, and everything else as attachments. The rules are those of RFC 8621
 * §4.1.4 (what a mail program shows as text), with these additions: a text part of any kind directly in a
 * multipart/alternative, or alone in the message, is a body, but text/calendar never is.
 */
import { decodeWords, oneLine } from './encoded-words.ts'
import { cleanFileName, subjectFileName } from './names.ts'
import { resolveParameters } from './parameters.ts'
import type { AttachmentRecord, BodyPartRecord } from '../store/records.ts'
import type { BodyNode } from '../accounts/session-types.ts'

/** Levels of multipart that are walked; deeper ones are not listed. */
export const maxDepth = 50
/** Parts of one message that are listed. */
export const maxParts = 1_000

export interface Structure {
  readonly bodies: readonly BodyPartRecord[]
  readonly attachments: readonly AttachmentRecord[]
}

/** A leaf and what its place in the tree says of it. */
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
  // ENVELOPE gives it as it is in the header.
  return subjectFileName(decodeWords(node.subject ?? ''))
}

function isBody(leaf: Leaf, alone: boolean): boolean {
  const { node } = leaf
  if (!node.type.startsWith('text/') || node.type === 'text/calendar' || node.disposition === 'attachment') return false
  const shown = node.type === 'text/plain' || node.type === 'text/html'
  if (alone) return shown || nameOf(node) === ''
  if (!shown && leaf.parent !== 'multipart/alternative') return false
  // A text file that a mail program put inline has a name; the text itself, when it has one, comes first.
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

/**
 * Bodies and attachments in the order of the message. A nested message is one attachment; what is inside it is not
 * listed.
 */
export function structureOf(root: BodyNode): Structure {
  const leaves = leavesOf(root)
  const alone = leaves.length === 1
  const bodies = leaves.filter((leaf) => isBody(leaf, alone))
  const others = leaves.filter((leaf) => !bodies.includes(leaf))
  return { bodies: bodies.map(bodyOf), attachments: others.map(attachmentOf) }
}
