/**
 * Reads parsed responses: words and numbers, status texts, FETCH items in any order, BODYSTRUCTURE. Lenient: a value
 * that does not fit is null or empty, never an error.
 *
 * Flags and keywords ignore case (RFC 9051 §2.3.2). From here on system flags have one spelling; keywords keep the
 * server's, and are compared without regard to case.
 */
import { parseDate } from '../../messages/dates.ts'
import { parseStructured } from '../../messages/headers.ts'
import type { BodyNode } from '../session-types.ts'
import type { ImapAttribute, ImapResponse } from './below.ts'

export type Token = ImapAttribute

/** Text of an atom, string or literal (UTF-8); null for NIL and lists. */
export function text(token: Token | undefined): string | null {
  const value = valueOf(token)
  if (typeof value === 'string') return flat(value)
  if (typeof value === 'number') return String(value)
  return Buffer.isBuffer(value) ? value.toString('utf8') : null
}

function valueOf(token: Token | undefined) {
  return token === null || token === undefined || Array.isArray(token) ? undefined : token.value
}

/**
 * imapflow adds character to character, and V8 keeps 32 bytes for each until a regular expression reads the whole text.
 * A call of `includes` whose result is unused is optimised away once it is hot; a regular expression is not.
 */
function flat(value: string): string {
  start.test(value)
  return value
}

const start = /^/

/** Bytes of a literal or string (which was decoded as UTF-8); null for NIL and lists. */
function bytes(token: Token | undefined): Buffer | null {
  const value = valueOf(token)
  if (Buffer.isBuffer(value)) return value
  return typeof value === 'string' ? Buffer.from(value) : null
}

export function list(token: Token | undefined): readonly Token[] {
  return Array.isArray(token) ? token : []
}

/** Texts of a list's members, or of the single token in its place, without those longer than `longest`. */
export function texts(token: Token | undefined, longest = Infinity): string[] {
  const members = Array.isArray(token) ? token : [token]
  const reported = members.map(text).filter((member) => member !== null)
  return reported.filter(({ length }) => length <= longest)
}

/** A plain decimal number within 2^53, else null. */
export function number(token: Token | undefined): number | null {
  const digits = text(token)
  if (digits === null || !/^\d{1,16}$/.test(digits)) return null
  const value = Number(digits)
  return Number.isSafeInteger(value) ? value : null
}

/** A number above 0, else null: UIDs and UIDNEXT, where some servers send 0 for "unknown". */
export function positive(token: Token | undefined): number | null {
  return number(token) || null
}

/** A positive decimal of up to 20 digits, without leading zeros, else null: UIDVALIDITY, MODSEQ. */
export function decimal(token: Token | undefined): string | null {
  const digits = text(token)
  return digits !== null && /^\d{1,20}$/.test(digits) && !/^0+$/.test(digits) ? digits.replace(/^0+/, '') : null
}

export type StatusText = ReturnType<typeof statusText>

/** `[CODE arguments] text` of an OK, NO, BAD or BYE; the code in capitals, or null. */
export function statusText({ attributes = [] }: ImapResponse) {
  const first = attributes[0]
  const section = first !== null && !Array.isArray(first) ? (first?.section ?? []) : []
  const code = text(section[0])
  const words = attributes.map(text).filter((word) => word !== null && word !== '')
  return {
    code: code === null ? null : code.toUpperCase().trim(),
    args: section.slice(1),
    text: words.join(' ').trim(),
  }
}

/** The number of `* 12 EXISTS`; null when the response has none. */
export function sequence(response: ImapResponse): number | null {
  return /^\d{1,10}$/.test(response.command ?? '') ? Number(response.command) : null
}

/** '05-Mar-2024 09:08:07 +0000', as APPEND takes it. */
export function formatInternalDate(time: number): string {
  const [, day, month, year, clock] = new Date(time).toUTCString().split(' ')
  return `${day}-${month}-${year} ${clock} +0000`
}

/** Flags of one message that are kept, and characters of the longest. */
const mostFlagsOfOne = 200
const longestFlag = 200

/** RFC 8474 §4: EMAILID and THREADID. Gmail's are numbers. */
const longestId = 255

function idOf(token: Token | undefined): string | null {
  const id = text(token)
  return id === null || id.length > longestId ? null : id
}

/** The value of BODY[section]; null = NIL. `partial`: the server named the range that was asked for. */
export interface Section {
  readonly bytes: Buffer | null
  readonly partial: boolean
}

export type FetchItems = ReturnType<typeof readFetch>

/** One FETCH response. After a name that is no atom the pairs shift by one, so that the rest is still read. */
export function readFetch(response: ImapResponse) {
  const members = list(response.attributes?.[1])
  const items = new Map<string, Token>()
  /** By the section's name in capitals. */
  const sections = new Map<string, Section>()
  for (let at = 0; at + 1 < members.length;) {
    const name = members[at]
    const value = members[at + 1] ?? null
    const word = text(name)?.toUpperCase()
    if (name === null || name === undefined || Array.isArray(name) || word === undefined) {
      at += 1
      continue
    }
    const section = name.section && (text(name.section[0]) ?? '').toUpperCase()
    if (section === undefined) items.set(word, value)
    else sections.set(section, { bytes: bytes(value), partial: name.partial !== undefined })
    at += 2
  }
  const flags = items.get('FLAGS')
  const modseq = items.get('MODSEQ')
  return {
    sequence: sequence(response),
    uid: positive(items.get('UID')),
    flags: flags === undefined ? null : canonicalFlags(texts(flags, longestFlag).slice(0, mostFlagsOfOne)),
    modseq: decimal(Array.isArray(modseq) ? modseq[0] : modseq),
    internalDate: parseDate(text(items.get('INTERNALDATE')) ?? ''),
    size: number(items.get('RFC822.SIZE')),
    body: items.get('BODYSTRUCTURE'),
    emailId: idOf(items.get('X-GM-MSGID') ?? list(items.get('EMAILID'))[0]),
    threadId: idOf(items.get('X-GM-THRID') ?? list(items.get('THREADID'))[0]),
    sections,
  }
}

const systemFlags = ['\\Answered', '\\Flagged', '\\Deleted', '\\Seen', '\\Draft', '\\Recent']
const spellings = new Map(systemFlags.map((flag) => [flag.toLowerCase(), flag]))

/** The flags in the server's order, each once, system flags in the spelling of the RFC. */
function canonicalFlags(flags: readonly string[]): string[] {
  const found = new Map<string, string>()
  for (const flag of flags) {
    const key = flag.toLowerCase()
    if (!found.has(key)) found.set(key, spellings.get(key) ?? flag)
  }
  return [...found.values()]
}

function parametersOf(token: Token | undefined): Record<string, string> {
  const members = list(token)
  const parameters: Record<string, string> = {}
  for (let at = 0; at + 1 < members.length; at += 2) {
    const name = text(members[at])?.toLowerCase()
    const value = text(members[at + 1])
    if (name !== undefined && name !== '__proto__' && value !== null) parameters[name] = value
  }
  return parameters
}

/** ("attachment" ("filename" "a.pdf")) or ("inline" NIL): a word, then a list or NIL, then nothing. */
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
  const found = extension.find(isDisposition)
  if (found === undefined) return dispositionText(extension)
  const members = list(found)
  const word = text(members[0])?.toLowerCase()
  return { ...(word ? { disposition: word } : {}), dispositionParameters: parametersOf(members[1]) }
}

/** pymap gives the whole header field as one string: "attachment; filename=a.txt". */
function dispositionText(extension: readonly Token[]): Disposition {
  const field = extension.map(text).find((words) => /^(?:attachment|inline)\s*(?:;|$)/i.test(words ?? ''))
  if (!field) return { dispositionParameters: {} }
  const { value, parameters } = parseStructured(field)
  return { disposition: value, dispositionParameters: parameters }
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
  return {
    type: `multipart/${subtype}`,
    parameters: parametersOf(members[at + 1]),
    ...dispositionOf(members.slice(at + 2)),
    children,
  }
}

function optional<K extends string, V>(key: K, value: V | null | undefined): Partial<Record<K, V>> {
  return value === null || value === undefined ? {} : ({ [key]: value } as Record<K, V>)
}

function single(members: readonly Token[], section: string): BodyNode | null {
  const type = text(members[0])?.toLowerCase()
  const subtype = text(members[1])?.toLowerCase()
  if (!type || !subtype) return null
  const message = type === 'message' && (subtype === 'rfc822' || subtype === 'global') && Array.isArray(members[8])
  // The multipart of a nested message has no number of its own, its only part is .1.
  const inner = message ? node(members[8], section, `${section}.1`) : null
  return {
    part: section,
    type: `${type}/${subtype}`,
    parameters: parametersOf(members[2]),
    ...optional('id', text(members[3])),
    ...optional('encoding', text(members[5])?.toLowerCase()),
    ...optional('size', number(members[6])),
    ...dispositionOf(members.slice(message ? 9 : 7)),
    ...(message ? optional('subject', text(list(members[7])[1])) : {}),
    children: inner ? [inner] : [],
  }
}

/** `alone`: the section when the node is no multipart. */
function node(token: Token | undefined, section: string, alone = section): BodyNode | null {
  const members = list(token)
  return Array.isArray(members[0]) ? multipart(members, section) : single(members, alone)
}

/** A server that could not read Content-Type (`"" "" NIL NIL NIL "7bit" 15`) still gives the size. */
function untyped(token: Token | undefined): BodyNode | null {
  const members = list(token)
  const size = Array.isArray(members[0]) ? null : number(members[6])
  return size === null ? null : { part: '1', type: '', parameters: {}, size, dispositionParameters: {}, children: [] }
}

/**
 * BODYSTRUCTURE → BodyNode. Servers get it wrong in many ways: values are read by their shape rather than their place.
 * null = unreadable, and the caller falls back to the header fields. The parser has limited the depth.
 */
export function readBodyStructure(token: Token | undefined): BodyNode | null {
  return node(token, '', '1') ?? untyped(token)
}
