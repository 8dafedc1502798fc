/**
 * Address lists (RFC 5322 §3.4) as they come: groups, comments, quoted names, obsolete routes, several addresses where one
 * belongs, none where one belongs. Own code: nodemailer's addressparser ends a comment at its first `)`, loses the addresses behind a
 * bracket or quote that is not closed, joins an entry without an address to the next one, and cuts encoded-words at a comma (corpus:
 * odd-addresses; addresses.test.ts). One pass over the text, no recursion.
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { decodeWords, oneLine } from './encoded-words.ts'
import type { Address } from '../store/records.ts'

/** Addresses kept per header name. */
export const maxAddresses = 5_000
/** Characters of one name or address. */
export const maxAddressLength = 998

interface Draft {
  /** Tokens outside of angle brackets; quoted strings keep their quotes in `source`. */
  readonly words: { text: string; source: string; glued: boolean }[]
  readonly comments: string[]
  angle: string | null
  /** White space or an end of a token came before: the next one starts a new word. */
  gap: boolean
}

function newDraft(): Draft {
  return { words: [], comments: [], angle: null, gap: true }
}

interface Token {
  readonly kind: 'space' | 'comma' | 'colon' | 'comment' | 'quoted' | 'angle' | 'atom'
  readonly text: string
  readonly source: string
  readonly end: number
}

const encodedWord = /=\?[^\s?]{1,80}\?[bqBQ]\?[^?\s]{0,2000}\?=/y
const atomRun = /[^\s,;:()"<>[\]]+/y
const spaceRun = /\s+/y
const literal = /\[[^[\]\s,<>]{0,255}\]/y

function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? null
}

function readComment(text: string, from: number): Token | null {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) {
      return { kind: 'comment', text: text.slice(from + 1, at), source: '', end: at + 1 }
    }
  }
  return null
}

function readQuoted(text: string, from: number): Token | null {
  let value = ''
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return { kind: 'quoted', text: value, source: text.slice(from, at + 1), end: at + 1 }
    if (text[at] === '\\') at++
    value += text[at] ?? ''
  }
  return null
}

/** `<…>`; one that is not closed before the next address ends at the comma. A route (`<@a,@b:c@d>`) has commas of its own. */
function readAngle(text: string, from: number): Token {
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
  return { kind: 'angle', text: text.slice(start, Math.min(at, start + maxAddressLength * 2)), source: '', end }
}

/**
 * Where the last closers are: an opener behind them is an ordinary character. Set to -1 once an opener found no closer, so that
 * nothing is scanned for twice.
 */
interface Closers {
  comment: number
  quote: number
}

function readEnclosed(text: string, at: number, closers: Closers): Token | null {
  if (text[at] === '(' && at < closers.comment) {
    const comment = readComment(text, at)
    if (!comment) closers.comment = -1
    return comment
  }
  if (text[at] === '"' && at < closers.quote) {
    const quoted = readQuoted(text, at)
    if (!quoted) closers.quote = -1
    return quoted
  }
  return null
}

function nextToken(text: string, at: number, closers: Closers): Token {
  const char = text[at] ?? ''
  const atom = (value: string): Token => ({ kind: 'atom', text: value, source: value, end: at + value.length })
  if (char === ',' || char === ';') return { kind: 'comma', text: char, source: char, end: at + 1 }
  if (char === ':') return { kind: 'colon', text: char, source: char, end: at + 1 }
  if (char === '<') return readAngle(text, at)
  const enclosed = readEnclosed(text, at, closers)
  if (enclosed) return enclosed
  const space = match(spaceRun, text, at)
  if (space !== null) return { kind: 'space', text: space, source: space, end: at + space.length }
  return atom(match(encodedWord, text, at) ?? match(literal, text, at) ?? match(atomRun, text, at) ?? char)
}

const atSign = /@/

/** The words with what was written together joined again: `"john doe"@example.com` is one, and so is `john @ example.com`. */
function joinedWords(draft: Draft): { text: string; source: string }[] {
  const joined: { text: string; source: string }[] = []
  draft.words.forEach((word, index) => {
    const last = joined.at(-1)
    const around = word.source.startsWith('@') || draft.words[index - 1]?.source.endsWith('@') === true
    if (last && (word.glued || around)) {
      last.text += word.text
      last.source += word.source
    } else {
      joined.push({ text: word.text, source: word.source })
    }
  })
  return joined
}

function outsideQuotes(source: string): string {
  return source.replace(/"(?:[^"\\]|\\.)*"/g, '')
}

/** As written, without route, `mailto:`, white space outside of quotes; domain in lower case. */
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

function cleanName(words: readonly string[]): string {
  return oneLine(decodeWords(words.join(' ')), maxAddressLength)
}

function finish(draft: Draft): Address | null {
  const words = joinedWords(draft)
  const found = draft.angle === null ? words.findLastIndex(({ source }) => atSign.test(outsideQuotes(source))) : -1
  const email = cleanEmail(draft.angle ?? words[found]?.source ?? '')
  const named = words.filter((_, at) => at !== found).map(({ text }) => text)
  const name = cleanName(named.length > 0 ? named : draft.comments)
  return email === '' && name === '' ? null : { name, email }
}

/** Tokens kept of one entry. An honest entry has a dozen; the rest of a longer one is read and dropped. */
const maxWords = 500

function take(draft: Draft, token: Token): void {
  if (token.kind === 'space') draft.gap = true
  else if (draft.words.length + draft.comments.length >= maxWords) return
  else if (token.kind === 'comment') draft.comments.push(token.text)
  else if (token.kind === 'angle' && draft.angle === null) draft.angle = token.text
  else if (token.kind !== 'angle') {
    draft.words.push({ text: token.text, source: token.source, glued: !draft.gap })
    draft.gap = false
  }
  if (token.kind === 'comment' || token.kind === 'angle') draft.gap = true
}

/** `group: a, b;`: the name goes, the members stay. A colon after an address, or inside one, is no group. */
function opensGroup(draft: Draft, text: string, at: number): boolean {
  return draft.angle === null && !draft.words.some(({ source }) => source.includes('@')) && text[at + 1] !== '/'
}

/**
 * Addresses of an unfolded value whose bytes are characters already (headers.ts) and whose encoded-words are not decoded yet.
 * Groups are flattened; entries with neither name nor address are left out; at most `limit`. Never throws.
 */
export function parseAddresses(text: string, limit: number = maxAddresses): Address[] {
  const closers = { comment: text.lastIndexOf(')'), quote: text.lastIndexOf('"') }
  const addresses: Address[] = []
  let draft = newDraft()
  const close = (): void => {
    const address = finish(draft)
    if (address) addresses.push(address)
    draft = newDraft()
  }
  for (let at = 0; at < text.length && addresses.length < limit;) {
    const token = nextToken(text, at, closers)
    if (token.kind === 'comma') close()
    else if (token.kind === 'colon' && opensGroup(draft, text, at)) draft = newDraft()
    else take(draft, token)
    at = token.end
  }
  if (addresses.length < limit) close()
  return addresses
}

/** Characters of a domain that are looked at. */
const maxDomainLength = 255

/** The part after the last `@`, lower-cased, without a trailing dot; '' when there is none. */
export function domainOf(email: string): string {
  const at = email.lastIndexOf('@')
  if (at < 0) return ''
  const domain = email.slice(at + 1).toLowerCase()
  return domain.endsWith('.') ? domain.slice(0, -1) : domain
}

/** A lower-case domain as given and, when it is internationalised, in both spellings: bücher.example and xn--bcher-kva.example. */
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
 * The domain of an address and its parents, lower-cased, longest first: 'mail.example.com', 'example.com', 'com'. An
 * internationalised domain is listed in both spellings (bücher.example and xn--bcher-kva.example), so a filter may use either.
 * [] for an address without a domain.
 */
export function domainsOf(email: string): string[] {
  const domain = domainOf(email).slice(0, maxDomainLength)
  if (domain === '') return []
  return [...new Set(domainSpellings(domain).flatMap(withParents))]
}
