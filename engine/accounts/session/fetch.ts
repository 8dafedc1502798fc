/** UID FETCH of what the index needs, and of flags. */
import { isAppError } from '../../errors.ts'
import { indexedHeaders, type FetchedMessage, type FlagsOf } from '../session-types.ts'
import { readBodyStructure } from './bodystructure.ts'
import { atom, uidSet, type Argument, type Untagged } from './below.ts'
import type { Facts } from './server-state.ts'
import { type FetchItems, readFetch } from './fetched.ts'
import { type Allowance, fetches } from './frames.ts'
import type { Parts, Send } from './line.ts'
import { inSet, singleUid, splitSet, toSet } from './sets.ts'

const headerItem: Argument = {
  type: 'ATOM',
  value: 'BODY.PEEK',
  section: [atom('HEADER.FIELDS'), indexedHeaders.map(atom)],
}

/** Of more header fields than this the rest is not read. */
const longestHeaders = 524_288
const headersOnly: Allowance = {
  ...fetches,
  piece: { from: 0, count: longestHeaders, sections: 1 },
  // `mostAtOnce` have been read long before.
  beyond: () => undefined,
}
/** More messages in one answer are not read: no batch is larger, but `100:*` may mean any number. */
const mostAtOnce = 1000

/** `plain` leaves out what only extensions know, `bodyless` also BODYSTRUCTURE. */
type Form = 'full' | 'plain' | 'bodyless'

function indexItems(facts: Facts, form: Form): Argument[] {
  const names = ['UID', 'FLAGS', 'INTERNALDATE', 'RFC822.SIZE']
  if (form !== 'bodyless') names.push('BODYSTRUCTURE')
  if (form === 'full') names.push(...optionalItems(facts))
  return [...names.map(atom), headerItem]
}

function optionalItems(facts: Facts): string[] {
  const names = facts.modseqs ? ['MODSEQ'] : []
  if (facts.refused('identity')) return names
  if (facts.offers('X-GM-EXT-1')) return [...names, 'X-GM-MSGID', 'X-GM-THRID', 'X-GM-LABELS']
  return facts.offers('OBJECTID') ? [...names, 'EMAILID', 'THREADID'] : names
}

/** null when it is no answer to our question: it lacks a UID that could be told otherwise, or the header block. */
function messageOf(items: FetchItems, asked: string): FetchedMessage | null {
  const uid = items.uid ?? singleUid(asked)
  const headers = items.sections.get('HEADER.FIELDS')
  if (uid === null || !headers) return null
  return {
    uid,
    flags: items.flags,
    modseq: items.modseq,
    internalDate: items.internalDate,
    size: items.size ?? 0,
    body: items.body === undefined ? null : readBodyStructure(items.body),
    headers: headers.bytes ?? Buffer.alloc(0),
    emailId: items.emailId,
    threadId: items.threadId,
    labels: items.labels,
  }
}

function refusal(error: unknown): 'NO' | 'BAD' | null {
  if (!isAppError(error, 'server_refused')) return null
  return error.details['status'] === 'BAD' ? 'BAD' : 'NO'
}

interface Job {
  readonly send: Send
  readonly range: string
  /** The answer may hold the last message besides. */
  readonly last: boolean
  /** UIDs that have been handed on: an answer that comes twice is told once. */
  readonly seen: Set<number>
  readonly found: FetchedMessage[]
  readonly heard: (() => void) | undefined
}

async function ask(deps: Parts, { send, range, last, seen, found, heard }: Job, form: Form): Promise<void> {
  const { facts, unparsed } = deps
  const within = last ? () => true : inSet(range)
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const message = messageOf(items, range)
    if (!message) facts.flagsTold(items)
    else if (seen.size < mostAtOnce && within(message.uid) && !seen.has(message.uid)) {
      seen.add(message.uid)
      found.push(message)
      heard?.()
    }
  }
  const args: Argument[] = [uidSet(range), indexItems(facts, form)]
  await send('UID FETCH', args, { FETCH: onFetch }, { ...headersOnly, leftOut: (head) => unparsed.add(head) })
}

/** true when it was answered; NO and BAD leave out what was not told: the caller asks for less. */
async function tried(deps: Parts, job: Job, form: Form): Promise<true | 'NO' | 'BAD'> {
  try {
    await ask(deps, job, form)
    return true
  } catch (error) {
    const status = refusal(error)
    if (status === null) throw error
    return status
  }
}

/** The full form; BAD: the plain form, and that from now on when the plain form was answered. */
async function fetchPiece(deps: Parts, job: Job): Promise<void> {
  const { facts, unparsed } = deps
  unparsed.take()
  const outcome = await tried(deps, job, 'full')
  if (outcome === 'BAD' && optionalItems(facts).length > 0 && (await tried(deps, job, 'plain')) === true) {
    facts.refuse('modseq')
    facts.refuse('identity')
  }
  await fetchUnparsed(deps, job, unparsed.take())
  unparsed.take()
}

/** An answer that is no IMAP, or too long, mostly for its BODYSTRUCTURE: once more without. */
async function fetchUnparsed(deps: Parts, job: Job, uids: readonly number[]): Promise<void> {
  if (uids.length === 0) return
  const pieces = uids.includes(0) ? [job.range] : splitSet(toSet(uids))
  for (const range of pieces) await tried(deps, { ...job, range }, 'bodyless')
}

interface IndexOptions {
  /** With the mailbox's last message, by which servers answer 100:* when it is below 100 (RFC 3501 §6.4.8). */
  readonly last?: boolean
  readonly heard?: (() => void) | undefined
}

function fetchIndex(deps: Parts, range: string, { last = false, heard }: IndexOptions): Promise<FetchedMessage[]> {
  const pieces = splitSet(range)
  return deps.line.run(async (send) => {
    const found: FetchedMessage[] = []
    for (const piece of pieces) await fetchPiece(deps, { send, range: piece, last, heard, seen: new Set(), found })
    return found
  })
}

/** Of what changed since a mod-sequence no more is held at once: messages, and bytes of what the server says. */
const mostFlags = 20_000
const mostFlagBytes = 8 * 1_048_576

interface FlagsQuery {
  readonly range: string
  readonly since: string | null
  /** There is more than is held at once; without it a range has few enough messages. */
  readonly onMore: (() => void) | undefined
}

async function askFlags(send: Send, { facts }: Parts, { range, since, onMore }: FlagsQuery): Promise<FlagsOf[]> {
  const found = new Map<number, FlagsOf>()
  const within = inSet(range)
  const names = facts.modseqs ? ['UID', 'FLAGS', 'MODSEQ'] : ['UID', 'FLAGS']
  const modifier: Argument[] = since === null || !facts.modseqs ? [] : [[atom('CHANGEDSINCE'), atom(since)]]
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const { uid, flags, modseq } = items
    if (uid === null || flags === null) facts.flagsTold(items)
    else if (within(uid) && onMore && found.size >= mostFlags && !found.has(uid)) onMore()
    else if (within(uid)) found.set(uid, { uid, flags, modseq })
  }
  const args = [uidSet(range), names.map(atom), ...modifier]
  const allowance = onMore ? { ...fetches, bytes: mostFlagBytes, beyond: onMore } : fetches
  await send('UID FETCH', args, { FETCH: onFetch }, allowance)
  return [...found.values()]
}

async function fetchFlags(send: Send, deps: Parts, query: FlagsQuery): Promise<FlagsOf[]> {
  const found = new Map<number, FlagsOf>()
  for (const range of splitSet(query.range)) {
    const told = await askFlags(send, deps, { ...query, range }).catch(async (error: unknown) => {
      if (refusal(error) !== 'BAD' || !deps.facts.modseqs) throw error
      deps.facts.refuse('modseq')
      return askFlags(send, deps, { ...query, range, since: null })
    })
    for (const one of told) found.set(one.uid, one)
  }
  return [...found.values()]
}

export function createFetcher(deps: Parts) {
  return {
    /**
     * UID FETCH of what the index needs. `range` is a UID set ('5:9,12', '100:*'). What the server cannot give (tagged
     * NO, unreadable) is left out: the caller bisects.
     */
    fetchIndex: (range: string, options: IndexOptions = {}): Promise<FetchedMessage[]> =>
      fetchIndex(deps, range, options),
    /**
     * With `since` only what changed since (CONDSTORE). `onMore` is called when that is more than is held at once: then
     * the answer lacks some, and they have to be asked for by smaller ranges.
     */
    fetchFlags: (range: string, since?: string, onMore?: () => void): Promise<FlagsOf[]> =>
      deps.line.run((send) => fetchFlags(send, deps, { range, since: since ?? null, onMore })),
  }
}
