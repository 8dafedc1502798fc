/** Reading what imapflow's parser made of a response. Lenient: what does not fit is null or empty, never an error. */
import type { ImapAttribute, ImapResponse } from './below.ts'

export type Token = ImapAttribute
export type { ImapResponse }

/** Text of an atom, string or literal (UTF-8); null for NIL and lists. */
export function text(token: Token | undefined): string | null {
  const value = token === null || token === undefined || Array.isArray(token) ? undefined : token.value
  if (typeof value === 'string') return flat(value)
  if (typeof value === 'number') return String(value)
  return Buffer.isBuffer(value) ? value.toString('utf8') : null
}

/**
 * imapflow adds character to character, and V8 keeps 32 bytes for each until an expression looks at the whole. A call
 * whose answer is not used, as `includes`, V8 leaves out once it is hot; an expression it does not.
 */
function flat(value: string): string {
  start.test(value)
  return value
}

const start = /^/

/** Bytes of a literal or string (which was decoded as UTF-8); null for NIL and lists. */
export function bytes(token: Token | undefined): Buffer | null {
  const value = token === null || token === undefined || Array.isArray(token) ? undefined : token.value
  if (Buffer.isBuffer(value)) return value
  return typeof value === 'string' ? Buffer.from(value) : null
}

export function list(token: Token | undefined): readonly Token[] {
  return Array.isArray(token) ? token : []
}

/** Texts of a list's members, or of the one token that stands in its place, without those that are longer. */
export function texts(token: Token | undefined, longest = Infinity): string[] {
  const members = Array.isArray(token) ? token : [token]
  const told = members.map(text).filter((member) => member !== null)
  return told.filter(({ length }) => length <= longest)
}

/** A plain decimal number within 2^53, else null. */
export function number(token: Token | undefined): number | null {
  const digits = text(token)
  if (digits === null || !/^\d{1,16}$/.test(digits)) return null
  const value = Number(digits)
  return Number.isSafeInteger(value) ? value : null
}

/** A number above 0 (UIDs, UIDNEXT, UIDVALIDITY: 0 is what some servers send for "unknown"), else null. */
export function positive(token: Token | undefined): number | null {
  const value = number(token)
  return value === null || value === 0 ? null : value
}

/** A positive decimal of any size as it stands: UIDVALIDITY, MODSEQ; null otherwise. */
export function decimal(token: Token | undefined): string | null {
  const digits = text(token)
  return digits !== null && /^\d{1,20}$/.test(digits) && !/^0+$/.test(digits) ? digits.replace(/^0+/, '') : null
}

/** `[CODE arguments] text` of an OK, NO, BAD or BYE. */
export interface StatusText {
  /** In capitals, or null. */
  readonly code: string | null
  readonly args: readonly Token[]
  readonly text: string
}

export function statusText(response: ImapResponse): StatusText {
  const attributes = response.attributes ?? []
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

/** The sequence number of `* 12 EXISTS`; null when it is none. */
export function sequence(response: ImapResponse): number | null {
  return /^\d{1,10}$/.test(response.command ?? '') ? Number(response.command) : null
}
