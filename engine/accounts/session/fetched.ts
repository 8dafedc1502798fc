/**
 * One FETCH response, item by item, in whatever order and company the server sends them.
 *
 * Flags and keywords are the same in any case (RFC 9051 §2.3.2). Behind this border the system flags have one spelling;
 * keywords keep the server's, and are compared without regard to case.
 */
import { parseDate } from '../../messages/dates.ts'
import { inflateName } from './names.ts'
import {
  bytes,
  decimal,
  type ImapResponse,
  list,
  number,
  positive,
  sequence,
  text,
  texts,
  type Token,
} from './tokens.ts'

export interface FetchItems {
  readonly sequence: number | null
  readonly uid: number | null
  /** In one spelling, see canonicalFlags. */
  readonly flags: readonly string[] | null
  readonly modseq: string | null
  readonly internalDate: number | null
  readonly size: number | null
  readonly body: Token | undefined
  readonly emailId: string | null
  readonly threadId: string | null
  readonly labels: readonly string[] | null
  /** BODY[section] by its name in capitals; null = NIL. `partial`: the server kept to the range that was asked. */
  readonly sections: ReadonlyMap<string, { readonly bytes: Buffer | null; readonly partial: boolean }>
}

/** '05-Mar-2024 09:08:07 +0000', as APPEND takes it. */
export function formatInternalDate(time: number): string {
  const [, day, month, year, clock] = new Date(time).toUTCString().split(' ')
  return `${day}-${month}-${year} ${clock} +0000`
}

function sectionName(section: readonly Token[]): string {
  return (text(section[0]) ?? '').toUpperCase()
}

function labelsOf(value: Token): string[] {
  return texts(value).map(inflateName)
}

/** Of a message's flags no more are kept, and none that is longer. */
const mostFlagsOfOne = 200
const longestFlag = 200

function flagsOf(value: Token): string[] {
  return canonicalFlags(texts(value, longestFlag).slice(0, mostFlagsOfOne))
}

/** RFC 8474 §4: EMAILID and THREADID. Gmail's are numbers. */
const longestId = 255

function idOf(token: Token | undefined): string | null {
  const id = text(token)
  return id === null || id.length > longestId ? null : id
}

/** BODY[…] goes to `sections`. A name that is no atom shifts the pairs by one, so that the rest is still read. */
export function readFetch(response: ImapResponse): FetchItems {
  const members = list(response.attributes?.[1])
  const items = new Map<string, Token>()
  const sections = new Map<string, { bytes: Buffer | null; partial: boolean }>()
  for (let at = 0; at + 1 < members.length;) {
    const name = members[at]
    const value = members[at + 1] ?? null
    const word = text(name)?.toUpperCase()
    if (name === null || name === undefined || Array.isArray(name) || word === undefined) {
      at += 1
      continue
    }
    if (name.section) {
      sections.set(sectionName(name.section), { bytes: bytes(value), partial: name.partial !== undefined })
    } else items.set(word, value)
    at += 2
  }
  const identity = items.get('X-GM-MSGID') ?? list(items.get('EMAILID'))[0]
  const thread = items.get('X-GM-THRID') ?? list(items.get('THREADID'))[0]
  const labels = items.get('X-GM-LABELS')
  const flags = items.get('FLAGS')
  const modseq = items.get('MODSEQ')
  return {
    sequence: sequence(response),
    uid: positive(items.get('UID')),
    flags: flags === undefined ? null : flagsOf(flags),
    modseq: decimal(Array.isArray(modseq) ? modseq[0] : modseq),
    internalDate: parseDate(text(items.get('INTERNALDATE')) ?? ''),
    size: number(items.get('RFC822.SIZE')),
    body: items.get('BODYSTRUCTURE'),
    emailId: idOf(identity),
    threadId: idOf(thread),
    labels: labels === undefined ? null : labelsOf(labels),
    sections,
  }
}

const systemFlags = ['\\Answered', '\\Flagged', '\\Deleted', '\\Seen', '\\Draft', '\\Recent']
const spellings = new Map(systemFlags.map((flag) => [flag.toLowerCase(), flag]))

/** As the server has them, each once, system flags in the spelling of the RFC. */
function canonicalFlags(flags: readonly string[]): string[] {
  const found = new Map<string, string>()
  for (const flag of flags) {
    const key = flag.toLowerCase()
    if (!found.has(key)) found.set(key, spellings.get(key) ?? flag)
  }
  return [...found.values()]
}

/** null is no flags that could be the same. */
export function sameFlags(one: readonly string[] | null, other: readonly string[]): boolean {
  return one !== null && keysOf(one).symmetricDifference(keysOf(other)).size === 0
}

function keysOf(flags: readonly string[]): Set<string> {
  return new Set(flags.map((flag) => flag.toLowerCase()))
}

/** The same flags, keywords spelled as they are known: two connections may be told one keyword in two spellings. */
export function spelledAs(known: readonly string[], flags: readonly string[]): string[] {
  const keywords = new Map(known.filter((flag) => !flag.startsWith('\\')).map((flag) => [flag.toLowerCase(), flag]))
  return flags.map((flag) => keywords.get(flag.toLowerCase()) ?? flag).sort()
}
