/**
 * UID FETCH: the items of the index, flags, and parts of a message, whole or piece by piece, by
 * BODY.PEEK[section]<from.count>. Never RFC822, which iCloud answers with nothing. A part that the server refuses is
 * cut out of the whole message: GreenMail does not find a message within a message.
 */
import { isAppError, badParameter } from '../../errors.ts'
import { sectionOf } from '../../messages/structure.ts'
import { indexedHeaders, type Chunk, type FetchedMessage, type FromWhole } from '../session-types.ts'
import type { FlagsOf, IdentifiedFlags } from '../session-types.ts'
import { atom, uidSet, type Argument, type Untagged } from './below.ts'
import { readBodyStructure, type FetchItems, readFetch, type Section } from './responses.ts'
import { type Allowance, fetches, cutOf } from './frames.ts'
import { orNull, type Send, tellsGone } from './line.ts'
import { type Facts, identityKind } from './server-state.ts'
import { inSet, splitSet, toSet } from './uids.ts'
import type { Parts } from './parts.ts'

const headerItem: Argument = {
  type: 'ATOM',
  value: 'BODY.PEEK',
  section: [atom('HEADER.FIELDS'), indexedHeaders.map(atom)],
}

/** Bytes of a message's header fields that are read. */
const longestHeaders = 524_288
const headersOnly: Allowance = {
  ...fetches,
  piece: { from: 0, count: longestHeaders, sections: 1 },
  // `mostAtOnce` messages have been read long before.
  beyond: () => undefined,
}
/** Messages of one answer that are read: no batch is larger, but `100:*` may mean any number. */
const mostAtOnce = 1000

/** `plain` leaves out the items of extensions, `bodyless` BODYSTRUCTURE too. */
type Form = 'full' | 'plain' | 'bodyless'

function indexItems(facts: Facts, form: Form): Argument[] {
  const names = ['UID', 'FLAGS', 'INTERNALDATE', 'RFC822.SIZE']
  if (form !== 'bodyless') names.push('BODYSTRUCTURE')
  if (form === 'full') names.push(...optionalItems(facts))
  return [...names.map(atom), headerItem]
}

const idItems = { gmail: ['X-GM-MSGID', 'X-GM-THRID'], objectid: ['EMAILID', 'THREADID'] } as const

function optionalItems(facts: Facts): string[] {
  const kind = identityKind(facts)
  return [...(facts.modseqs ? ['MODSEQ'] : []), ...(kind === null ? [] : idItems[kind])]
}

/** The header block of Courier's placeholder for a message that another session has removed. */
const placeholder = Buffer.from('From: System Administrator <root@localhost>\r\nSubject: message unavailable\r\n\r\n')

/** null when the items do not answer the question: the header block is missing, or a UID that `asked` does not give. */
function messageOf(items: FetchItems, asked: string): FetchedMessage | null {
  const uid = items.uid ?? (/^\d+$/.test(asked) ? Number(asked) : null)
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
  }
}

function refusal(error: unknown): 'NO' | 'BAD' | null {
  if (!isAppError(error, 'server_refused')) return null
  return error.details['status'] === 'BAD' ? 'BAD' : 'NO'
}

interface Job {
  readonly send: Send
  readonly range: string
  /** The answer may hold the mailbox's last message besides. */
  readonly last: boolean
  /** UIDs in `found`, against an answer that comes twice. */
  readonly seen: Set<number>
  readonly found: FetchedMessage[]
  readonly onRefusal: (said: string) => void
  /** A response was left out. */
  isShort: boolean
}

async function ask({ facts }: Parts, job: Job, form: Form): Promise<void> {
  const { send, range, last, seen, found } = job
  const within = last ? () => true : inSet(range)
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const message = messageOf(items, range)
    if (!message) facts.flagsReported(items)
    else if (message.headers.equals(placeholder)) return
    else if (seen.size < mostAtOnce && within(message.uid) && !seen.has(message.uid)) {
      seen.add(message.uid)
      found.push(message)
    }
  }
  const leftOut = (): void => void (job.isShort = true)
  const args: Argument[] = [uidSet(range), indexItems(facts, form)]
  const reply = await send('UID FETCH', args, { FETCH: onFetch }, { ...headersOnly, leftOut })
  // Not by RFC822.SIZE, which a server may have in its cache. The caller asks again for messages dropped by mistake.
  const isThere = ({ headers, body }: FetchedMessage): boolean => headers.length > 0 && body?.size !== 0
  if (tellsGone(reply.code)) found.splice(0, found.length, ...found.filter(isThere))
}

/** true = answered. After a NO or BAD the missing messages are left out: the caller asks for less. */
async function tried(deps: Parts, job: Job, form: Form): Promise<true | 'NO' | 'BAD'> {
  try {
    await ask(deps, job, form)
    return true
  } catch (error) {
    const status = refusal(error)
    if (status === null) throw error
    if (isAppError(error)) job.onRefusal(`${status} ${String(error.details['response'])}`)
    return status
  }
}

/**
 * Asks in the full form; after BAD in the plain form, and from then on in that form if it was answered. Asks once more
 * without BODYSTRUCTURE, mostly the reason why an answer is invalid or too long.
 */
async function fetchPiece(deps: Parts, job: Job): Promise<void> {
  const { facts } = deps
  const outcome = await tried(deps, job, 'full')
  if (outcome === 'BAD' && optionalItems(facts).length > 0 && (await tried(deps, job, 'plain')) === true) {
    facts.refuse('modseq')
    facts.refuse('identity')
  }
  if (job.isShort) await tried(deps, job, 'bodyless')
}

interface IndexOptions {
  /** Includes the mailbox's last message, which 100:* names too when its UID is below 100 (RFC 3501 §6.4.8). */
  readonly last?: boolean
  /** Gets the text of each NO and BAD. */
  readonly onRefusal?: (said: string) => void
}

/** Messages and response bytes that are held at once of the changes since a mod-sequence. */
const mostFlags = 20_000
const mostFlagBytes = 8 * 1_048_576

interface FlagsQuery {
  readonly range: string
  readonly since: string | null
  /** Called when the answer has more than is held at once; absent = the range has few enough messages. */
  readonly onMore: (() => void) | undefined
  /** Asks for X-GM-MSGID too. */
  readonly ids?: true
}

async function askFlags(send: Send, { facts }: Parts, query: FlagsQuery): Promise<IdentifiedFlags[]> {
  const { range, since, onMore, ids } = query
  const found = new Map<number, IdentifiedFlags>()
  const within = inSet(range)
  const names = ['UID', 'FLAGS', ...(facts.modseqs ? ['MODSEQ'] : []), ...(ids ? ['X-GM-MSGID'] : [])]
  const vanished = facts.namesVanished ? [atom('VANISHED')] : []
  const modifier: Argument[] =
    since === null || !facts.modseqs ? [] : [[atom('CHANGEDSINCE'), atom(since), ...vanished]]
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const { uid, flags, modseq, emailId } = items
    if (uid === null || flags === null) facts.flagsReported(items)
    else if (within(uid) && onMore && found.size >= mostFlags && !found.has(uid)) onMore()
    else if (within(uid)) found.set(uid, { uid, flags, modseq, emailId })
  }
  const args = [uidSet(range), names.map(atom), ...modifier]
  const allowance = onMore ? { ...fetches, bytes: mostFlagBytes, beyond: onMore } : fetches
  await send('UID FETCH', args, { FETCH: onFetch }, allowance)
  return [...found.values()]
}

async function fetchFlags(send: Send, deps: Parts, query: FlagsQuery): Promise<IdentifiedFlags[]> {
  const found = new Map<number, IdentifiedFlags>()
  for (const range of splitSet(query.range)) {
    const reported = await askFlags(send, deps, { ...query, range }).catch(async (error: unknown) => {
      if (refusal(error) !== 'BAD' || !deps.facts.modseqs || query.ids) throw error
      deps.facts.refuse(query.since !== null && deps.facts.namesVanished ? 'vanished' : 'modseq')
      return fetchFlags(send, deps, { ...query, range })
    })
    for (const one of reported) found.set(one.uid, one)
  }
  return [...found.values()]
}

const sectionShape = /^(?:\d{1,5}(?:\.\d{1,5})*(?:\.(?:MIME|HEADER|TEXT))?|HEADER|TEXT)?$/

interface Wanted {
  readonly uid: number
  readonly section: string
  readonly from: number
  readonly count: number
}

function partItem({ section, from, count }: Omit<Wanted, 'uid'>): Argument {
  if (!sectionShape.test(section)) throw badParameter('section', 'expected an IMAP section such as 1.2')
  const inner: Argument[] = section === '' ? [] : [atom(section)]
  return { type: 'ATOM', value: 'BODY.PEEK', section: inner, partial: [from, count] }
}

/** The largest literal that is asked for: a longer part comes in pieces, one command after the other. */
const pieceBytes = 1_048_576

async function readChunk({ line, facts }: Parts, wanted: Wanted): Promise<Chunk | null> {
  const end = wanted.from + wanted.count
  return line.run(async (send) => {
    const pieces: Buffer[] = []
    for (let from = wanted.from; ;) {
      const count = Math.min(pieceBytes, end - from)
      const piece = await readPiece(send, facts, { ...wanted, from, count })
      if (piece === null) return null
      pieces.push(piece.bytes)
      from += piece.bytes.length
      if (!piece.last && from < end) continue
      return { bytes: pieces.length === 1 ? piece.bytes : Buffer.concat(pieces), last: piece.last }
    }
  })
}

async function readPiece(send: Send, facts: Facts, wanted: Wanted): Promise<Chunk | null> {
  const { uid, section, from, count } = wanted
  const answers: Section[] = []
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const found = items.sections.get(section)
    if (found && (items.uid === null || items.uid === uid)) answers[0] = found
    else facts.flagsReported(items)
  }
  const args: Argument[] = [uidSet(String(uid)), [atom('UID'), partItem(wanted)]]
  const reply = await send('UID FETCH', args, { FETCH: onFetch }, { ...fetches, piece: { from, count, sections: 1 } })
  const [answer] = answers
  if (answer === undefined || (answer.bytes === null && tellsGone(reply.code))) return null
  return cut({ ...answer, bytes: given(section, answer) }, from, count)
}

/** Bytes of the longest message that is read whole, to cut a part out of it. */
const wholeMax = 16 * 1_048_576

/** One chunk from `from` to the end of the part: the next chunk would cost the whole message again. */
async function readRefused(deps: Parts, wanted: Wanted, refusal: unknown): Promise<Chunk | null> {
  if (!isAppError(refusal, 'server_refused') || wanted.section === '') throw refusal
  const part = (await readFromWhole(deps, wanted.uid, [wanted.section]))?.parts.get(wanted.section)
  if (part === undefined) throw refusal
  return { bytes: part.subarray(wanted.from), last: true }
}

async function readFromWhole(deps: Parts, uid: number, sections: readonly string[]): Promise<FromWhole | null> {
  const whole = await readChunk(deps, { uid, section: '', from: 0, count: wholeMax })
  if (whole?.last !== true) return null
  const parts = new Map<string, Buffer>()
  for (const section of sections) {
    const part = sectionOf(whole.bytes, section)
    if (part !== null) parts.set(section, part)
  }
  return { parts, size: whole.bytes.length }
}

type SectionsRead = ReadonlyMap<number, ReadonlyMap<string, Buffer>>

/**
 * Sends one command for each piece of the set of UIDs. Ignores answers without a UID. Leaves out sections that are
 * longer than one literal may be.
 */
async function readSections(
  deps: Parts,
  uids: readonly number[],
  sections: readonly string[],
  maxBytes: number,
): Promise<SectionsRead> {
  const count = Math.min(pieceBytes, Math.max(1, maxBytes))
  const items = sections.map((section) => partItem({ section, from: 0, count }))
  const piece = { from: 0, count, sections: sections.length }
  const read = new Map(uids.map((uid) => [uid, new Map<string, Buffer>()]))
  const { line, facts } = deps
  const onFetch: Untagged = (response) => {
    const reported = readFetch(response)
    const parts = reported.uid === null ? undefined : read.get(reported.uid)
    if (parts === undefined || reported.sections.size === 0) facts.flagsReported(reported)
    for (const section of sections) {
      const bytes = given(section, reported.sections.get(section))
      if (bytes) parts?.set(section, bytes.subarray(0, count))
    }
  }
  for (const range of uids.length === 0 ? [] : splitSet(toSet(uids))) {
    const args: Argument[] = [uidSet(range), [atom('UID'), ...items]]
    const reply = await line.run((send) => send('UID FETCH', args, { FETCH: onFetch }, { ...fetches, piece }))
    // An empty section may be the NIL of a message that has gone.
    if (tellsGone(reply.code)) drop(read.values(), (bytes) => bytes.length === 0)
  }
  if (maxBytes > pieceBytes) drop(read.values(), (bytes) => bytes.length >= pieceBytes)
  return read
}

function drop(read: Iterable<Map<string, Buffer>>, isDropped: (bytes: Buffer) => boolean): void {
  for (const parts of read) for (const [section, bytes] of parts) if (isDropped(bytes)) parts.delete(section)
}

export function createFetcher(deps: Parts) {
  const read = (wanted: Wanted): Promise<Chunk | null> =>
    readChunk(deps, wanted).catch((error: unknown) => readRefused(deps, wanted, error))
  return {
    /**
     * UID FETCH of the index's items. `range` is a UID set ('5:9,12', '100:*'). Messages that the server cannot give
     * (tagged NO, unreadable) are left out: the caller bisects.
     */
    async fetchIndex(range: string, options: IndexOptions = {}): Promise<FetchedMessage[]> {
      const pieces = splitSet(range)
      const { last = false, onRefusal = () => undefined } = options
      return deps.line.run(async (send) => {
        const found: FetchedMessage[] = []
        for (const piece of pieces)
          await fetchPiece(deps, { send, range: piece, last, seen: new Set(), found, onRefusal, isShort: false })
        return found
      })
    },
    /**
     * Flags of the range; with `since` only of messages changed since that mod-sequence (CONDSTORE). Calls `onMore`
     * when some messages are missing, because not all can be held at once: the caller asks for smaller ranges.
     */
    fetchFlags: (range: string, since?: string, onMore?: () => void): Promise<FlagsOf[]> =>
      deps.line.run((send) => fetchFlags(send, deps, { range, since: since ?? null, onMore })),
    /** Flags and X-GM-MSGID of one page; null = refused. */
    fetchIds: (range: string): Promise<IdentifiedFlags[] | null> =>
      deps.line.run((send) => orNull(fetchFlags(send, deps, { range, since: null, onMore: undefined, ids: true }))),
    /** `section`: '' = whole message, 'HEADER' = header block, '1.2.MIME' … null when it is absent. */
    async fetchSection(uid: number, section: string, maxBytes: number): Promise<Buffer | null> {
      const count = Math.max(1, maxBytes)
      const found = await read({ uid, section, from: 0, count })
      return found?.bytes.subarray(0, count) ?? null
    },
    /** Sections of several messages, by UID and section; absent ones are left out. */
    fetchSections: (uids: readonly number[], sections: readonly string[], maxBytes: number): Promise<SectionsRead> =>
      readSections(deps, uids, sections, maxBytes),
    /** One piece of a section, undecoded. null when the message or the section is not there. */
    fetchChunk: (uid: number, section: string, from: number, count: number): Promise<Chunk | null> =>
      read({ uid, section, from, count }),
    /** Sections that the server gives wrongly. null when the message is not there, or is too long to be held. */
    fetchFromWhole: (uid: number, sections: readonly string[]): Promise<FromWhole | null> =>
      readFromWhole(deps, uid, sections),
  }
}

/** NIL means an empty part, but an absent header or whole message, which are never empty. */
function given(section: string, answer: Section | undefined): Buffer | null {
  const mayBeEmpty = answer !== undefined && /^(?:TEXT|\d+(?:\.\d+)*)$/.test(section)
  return answer?.bytes ?? (mayBeEmpty ? empty : null)
}

/** Cuts a short answer, which is no literal. A server may send more bytes than were asked for, or NIL past the end. */
function cut({ bytes, partial }: Section, from: number, count: number): Chunk | null {
  if (bytes === null) return from === 0 ? null : { bytes: empty, last: true }
  const known = cutOf(bytes)
  if (known !== null) return { bytes, last: known.from + bytes.length >= known.size }
  if (bytes.length > count || (!partial && from > 0)) {
    const part = bytes.subarray(from, from + count)
    return { bytes: part, last: from + part.length >= bytes.length }
  }
  return { bytes, last: bytes.length < count }
}

const empty = Buffer.alloc(0)
