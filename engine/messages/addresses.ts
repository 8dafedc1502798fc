/**
 * Address lists (RFC 5322 §3.4) with their usual mistakes: groups, comments, quoted names, obsolete routes, several
 * addresses in place of one, or none. Own code: nodemailer's addressparser ends a comment at its first `)`, loses the
 * addresses after an open bracket or quote, joins an entry without an address to the next one, and cuts encoded-words
 * at a comma (corpus: odd-addresses; addresses.test.ts). One pass over the text, no recursion.
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { decodeWords, oneLine } from './encoded-words.ts'
import type { Address } from '../store/records.ts'

/** Addresses kept per header name. */
export const maxAddresses = 1_000
/** Characters of one name or address. */
export const maxAddressLength = 998

/** The entry of the list that is being read. */
interface Draft {
  /** Words outside of angle brackets; quoted strings keep their quotes in `source`. */
  readonly words: { text: string; source: string }[]
  readonly comments: string[]
  angle: string | null
  /** White space or an end of a token came before: the next token starts a new word. */
  gap: boolean
  tokens: number
}

function newDraft(): Draft {
  return { words: [], comments: [], angle: null, gap: true, tokens: 0 }
}

/** An enclosed text, without its brackets or quotes, and the place after them. */
interface Piece {
  readonly text: string
  readonly end: number
}

/** null when the comment is not closed. */
function readComment(text: string, from: number): Piece | null {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return { text: text.slice(from + 1, at), end: at + 1 }
  }
  return null
}

function readQuoted(text: string, from: number): Piece | null {
  let value = ''
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return { text: value, end: at + 1 }
    if (text[at] === '\\') at++
    value += text[at] ?? ''
  }
  return null
}

/** `<…>`; without its `>` it ends at the next comma. Only a route (`<@a,@b:c@d>`) may contain commas. */
function readAngle(text: string, from: number): Piece {
  let start = from + 1
  let quoted = false
  let at = start
  for (; at < text.length && !(text[at] === '>' && !quoted); at++) {
    if (text[at] === '\\' && quoted) at++
    else if (text[at] === '"') quoted = !quoted
    else if (text[at] === '<' && !quoted) start = at + 1
    else if (text[at] === ',' && !quoted && text[start] !== '@') break
  }
  const end = text[at] === '>' ? at + 1 : at
  return { text: text.slice(start, Math.min(at, start + maxAddressLength * 2)), end }
}

/** An encoded-word, a domain literal, a run of other characters, or a single sign. */
const atom = /=\?[^\s?]{1,80}\?[bqBQ]\?[^?\s]{0,2000}\?=|\[[^[\]\s,<>]{0,255}\]|[^\s,;:()"<>[\]]+|[^]/y

/**
 * Places of the last closers: an opener after them is an ordinary character. -1 after an opener without a closer, so
 * that no text is scanned twice.
 */
interface Closers {
  '(': number
  '"': number
}

function readEnclosed(text: string, at: number, opener: keyof Closers, closers: Closers): Piece | null {
  if (text[at] !== opener || at >= closers[opener]) return null
  const piece = opener === '(' ? readComment(text, at) : readQuoted(text, at)
  if (piece === null) closers[opener] = -1
  return piece
}

/** Joins words without white space between them, or around an `@`: `"john doe"@example.com`, `john @ example.com`. */
function addWord(draft: Draft, text: string, source: string): void {
  const last = draft.words.at(-1)
  if (last !== undefined && (!draft.gap || source.startsWith('@') || last.source.endsWith('@'))) {
    last.text += text
    last.source += source
  } else {
    draft.words.push({ text, source })
  }
}

/** Tokens kept of one entry; a usual entry has a dozen. */
const maxTokens = 500

function take(draft: Draft, text: string, at: number, closers: Closers): number {
  if (/\s/.test(text.charAt(at))) {
    draft.gap = true
    return at + 1
  }
  const angle = text[at] === '<' ? readAngle(text, at) : null
  const comment = readEnclosed(text, at, '(', closers)
  const quoted = readEnclosed(text, at, '"', closers)
  atom.lastIndex = at
  const word = quoted?.text ?? (atom.test(text) ? text.slice(at, atom.lastIndex) : '')
  const end = (angle ?? comment ?? quoted)?.end ?? at + word.length
  if (draft.tokens < maxTokens) {
    if (angle !== null) draft.angle ??= angle.text
    else if (comment !== null) draft.comments.push(comment.text)
    else addWord(draft, word, text.slice(at, end))
    if (angle === null) draft.tokens += 1
  }
  draft.gap = (angle ?? comment) !== null
  return end
}

function outsideQuotes(source: string): string {
  return source.replace(/"(?:[^"\\]|\\.)*"/g, '')
}

/** The address without its route, `mailto:` and white space outside of quotes; domain in lower case. */
function cleanEmail(text: string): string {
  const unrouted = text
    .trim()
    .replace(/^@[^:]*:/, '')
    .replace(/^mailto:/i, '')
    .replace(/^'([^']+)'$/, '$1')
  const compact = unrouted.includes('"') ? unrouted : unrouted.replace(/\s+/g, '')
  const email = oneLine(compact, maxAddressLength)
  const at = email.lastIndexOf('@')
  return at < 0 ? email : email.slice(0, at) + email.slice(at).toLowerCase()
}

function finish({ words, comments, angle }: Draft): Address[] {
  const found = angle === null ? words.findLastIndex(({ source }) => outsideQuotes(source).includes('@')) : -1
  const email = cleanEmail(angle ?? words[found]?.source ?? '')
  const named = words.filter((_, at) => at !== found).map(({ text }) => text)
  const name = oneLine(decodeWords((named.length > 0 ? named : comments).join(' ')), maxAddressLength)
  return email === '' && name === '' ? [] : [{ name, email }]
}

/** `group: a, b;`: the name is dropped, the members are kept. A colon after or inside an address starts no group. */
function opensGroup({ angle, words }: Draft, next: string | undefined): boolean {
  return angle === null && !words.some(({ source }) => source.includes('@')) && next !== '/'
}

/**
 * At most `limit` addresses of an unfolded value with decoded bytes (headers.ts) and encoded encoded-words. Groups are
 * flattened; entries without name and address are left out. Never throws.
 */
export function parseAddresses(text: string, limit: number = maxAddresses): Address[] {
  if (text === '') return []
  const closers = { '(': text.lastIndexOf(')'), '"': text.lastIndexOf('"') }
  const addresses: Address[] = []
  let draft = newDraft()
  for (let at = 0; at < text.length && addresses.length < limit;) {
    const char = text[at]
    const ends = char === ',' || char === ';'
    if (ends) addresses.push(...finish(draft))
    if (ends || (char === ':' && opensGroup(draft, text[at + 1]))) {
      draft = newDraft()
      at += 1
    } else {
      at = take(draft, text, at, closers)
    }
  }
  return addresses.length < limit ? [...addresses, ...finish(draft)] : addresses
}

/** Characters of a domain that are read. */
const maxDomainLength = 255

/** The part after the last `@`, lower-cased, without a trailing dot; '' when there is none. */
export function domainOf(email: string): string {
  const at = email.lastIndexOf('@')
  if (at < 0) return ''
  const domain = email.slice(at + 1).toLowerCase()
  return domain.endsWith('.') ? domain.slice(0, -1) : domain
}

/** A lower-case domain; an internationalised one in both spellings, bücher.example and xn--bcher-kva.example. */
export function domainSpellings(domain: string): string[] {
  if (domain.length > maxDomainLength || !/[^\u0000-\u007f]|xn--/.test(domain)) return [domain]
  const spellings = new Set([domain, domainToASCII(domain), domainToUnicode(domain)])
  return [...spellings].filter((spelling) => spelling !== '')
}

function withParents(domain: string): string[] {
  const labels = domain.split('.')
  return labels.map((_, from) => labels.slice(from).join('.'))
}

/**
 * The domain of an address and its parents, lower-cased, longest first: 'mail.example.com', 'example.com', 'com'; an
 * internationalised one in both spellings, so that a filter may use either. [] for an address without a domain.
 */
export function domainsOf(email: string): string[] {
  const domain = domainOf(email).slice(0, maxDomainLength)
  if (domain === '') return []
  return [...new Set(domainSpellings(domain).flatMap(withParents))]
}
