/**
 * BODYSTRUCTURE → BodyNode. Servers get it wrong in many ways: what can be read is read by its shape rather than its
 * place, and what makes no sense at all is null, for which the caller falls back to the header fields.
 */
import type { BodyNode } from '../session-types.ts'
import { bytes, list, number, text, type Token } from './tokens.ts'

function parametersOf(token: Token | undefined): Record<string, string> {
  const members = list(token)
  const parameters: Record<string, string> = {}
  for (let at = 0; at + 1 < members.length; at += 2) {
    const name = text(members[at])?.toLowerCase()
    const value = bytes(members[at + 1])
    if (name === undefined || name === '__proto__' || value === null) continue
    parameters[name] = value.toString('utf8')
  }
  return parameters
}

/** ("attachment" ("filename" "a.pdf")) or ("inline" NIL): a word, then a list or NIL, and no more. */
function isDisposition(token: Token | undefined): boolean {
  const members = list(token)
  if (members.length === 0 || members.length > 2 || text(members[0]) === null) return false
  return members[1] === null || members[1] === undefined ? members.length === 2 : Array.isArray(members[1])
}

interface Disposition {
  readonly disposition?: string
  readonly dispositionParameters: Readonly<Record<string, string>>
}

function dispositionOf(extension: readonly Token[]): Disposition {
  const members = list(extension.find(isDisposition))
  const word = text(members[0])?.toLowerCase()
  return { ...(word ? { disposition: word } : {}), dispositionParameters: parametersOf(members[1]) }
}

function multipart(members: readonly Token[], section: string): BodyNode | null {
  const children: BodyNode[] = []
  let at = 0
  for (; Array.isArray(members[at]); at += 1) {
    const child = node(members[at], section === '' ? String(at + 1) : `${section}.${at + 1}`)
    if (!child) return null
    children.push(child)
  }
  const subtype = text(members[at])?.toLowerCase() ?? 'mixed'
  const extension = members.slice(at + 2)
  return {
    type: `multipart/${subtype}`,
    parameters: parametersOf(members[at + 1]),
    ...dispositionOf(extension),
    children,
  }
}

function optional<K extends string, V>(key: K, value: V | null | undefined): Partial<Record<K, V>> {
  return value === null || value === undefined ? {} : ({ [key]: value } as Record<K, V>)
}

/** The message within a message/rfc822: its multipart has no number of its own, its only part is .1. */
function inner(token: Token | undefined, section: string): readonly BodyNode[] {
  const members = list(token)
  if (members.length === 0) return []
  const child = Array.isArray(members[0]) ? multipart(members, section) : single(members, `${section}.1`)
  return child ? [child] : []
}

function single(members: readonly Token[], section: string): BodyNode | null {
  const type = text(members[0])?.toLowerCase()
  const subtype = text(members[1])?.toLowerCase()
  if (!type || !subtype) return null
  const message = type === 'message' && (subtype === 'rfc822' || subtype === 'global') && Array.isArray(members[8])
  return {
    part: section,
    type: `${type}/${subtype}`,
    parameters: parametersOf(members[2]),
    ...optional('id', text(members[3])),
    ...optional('encoding', text(members[5])?.toLowerCase()),
    ...optional('size', number(members[6])),
    ...dispositionOf(members.slice(message ? 9 : 7)),
    ...(message ? optional('subject', text(list(members[7])[1])) : {}),
    children: message ? inner(members[8], section) : [],
  }
}

function node(token: Token | undefined, section: string): BodyNode | null {
  const members = list(token)
  return Array.isArray(members[0]) ? multipart(members, section) : single(members, section)
}

/** A server that could not read Content-Type (`"" "" NIL NIL NIL "7bit" 15`) still gives the size. */
function untyped(members: readonly Token[]): BodyNode | null {
  const size = number(members[6])
  return size === null ? null : { part: '1', type: '', parameters: {}, size, dispositionParameters: {}, children: [] }
}

/** null when it cannot be read. The parser has limited the depth. */
export function readBodyStructure(token: Token | undefined): BodyNode | null {
  const members = list(token)
  if (members.length === 0) return null
  return Array.isArray(members[0]) ? multipart(members, '') : (single(members, '1') ?? untyped(members))
}
