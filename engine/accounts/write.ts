/**
 * Writes messages that were read: one batch of one folder, planned against the newest cursor and stored in one step,
 * with its deltas of the user's contacts. A reply and the mail that it answers may be read in either order (backfill
 * goes backwards), so both directions are looked up.
 */
import { measured } from '../observe/loop.ts'
import { yieldToLoop } from '../scheduling.ts'
import type { AccountRecord, ContactDelta, FolderCursor, FolderRecord, MessageRecord } from '../store/records.ts'
import { goneMeanwhile } from './absent.ts'
import { isLikeMail, isSameMail } from './identity.ts'
import { planAdded, readMessage, type PlannedChange, type ReadMessage, type Source } from './plan.ts'
import type { Poison } from './read.ts'
import type { FetchedMessage } from './session-types.ts'
import { fetchTexts } from './texts.ts'
import type { FetchMany } from './types.ts'
import type { AccountState, BatchParts, SyncDeps } from './state.ts'
import {
  type CountedMessage,
  countsAsReceived,
  isSentByUser,
  otherContacts,
  type Owner,
  receivedContact,
  repliedContact,
} from '../messages/contacts.ts'
import type { KnownUid, Store } from '../store/port.ts'
import type { Session } from './session/index.ts'

export interface SyncContext {
  readonly deps: SyncDeps
  readonly state: AccountState
  readonly session: Session
  /** Reads INBOX between two pages of long work in another folder, and selects that folder again. */
  readonly giveWay?: () => Promise<void>
}

/** For work that sends no command to the mail server. */
export type InAccount = Pick<SyncContext, 'deps' | 'state'>

type InFolder = Pick<FolderContext, 'state' | 'folderId'>

export interface FolderContext extends SyncContext {
  readonly folderId: string
}

/** Precondition: the folder has a cursor. Throws `goneMeanwhile` otherwise. */
export function cursorOf({ state, folderId }: InFolder): FolderCursor {
  const cursor = state.folders.get(folderId)?.cursor
  if (cursor === undefined || cursor === null) throw goneMeanwhile()
  return cursor
}

export type Build = (cursor: FolderCursor, folder: FolderRecord) => Promise<BatchParts | null> | BatchParts | null

/** Writes one batch of the folder. See AccountState.commit. */
export function commit(at: InFolder, build: Build, before?: Parameters<AccountState['commit']>[2]): Promise<void> {
  return at.state.commit(at.folderId, (folder) => build(cursorOf(at), folder), before)
}

export function moveCursor(at: InFolder, move: (cursor: FolderCursor) => FolderCursor): Promise<void> {
  return commit(at, (cursor) => ({ cursor: move(cursor) }))
}

export function* batchesOf<T>({ config }: SyncDeps, all: readonly T[]): Generator<readonly T[], void, undefined> {
  for (let start = 0; start < all.length; start += config.MAILROOM_SYNC_BATCH)
    yield all.slice(start, start + config.MAILROOM_SYNC_BATCH)
}

const quarantineMax = 1000

/** Quarantined UIDs that the server was asked for in vain, in the order of their tries; the others are due at once. */
export function refusedIn({ quarantined, refusals = {} }: FolderCursor): number[] {
  return quarantined.filter((uid) => uid in refusals)
}

/** Quarantines the poison at the end. `asked`: UIDs of this reading, which leave the quarantine unless poison. */
export function quarantine(
  { quarantined: before, refusals: earlier }: FolderCursor,
  poison: readonly Poison[],
  asked: ReadonlySet<number> = new Set(),
): Pick<FolderCursor, 'quarantined' | 'refusals'> {
  const kept = before.filter((uid) => !asked.has(uid))
  const quarantined = [...new Set([...kept, ...poison.map(({ uid }) => uid)])].slice(-quarantineMax)
  if (poison.length === 0 && earlier === undefined) return { quarantined }
  const reasons: Record<string, string> = {
    ...earlier,
    ...Object.fromEntries(poison.map(({ uid, reason }) => [uid, reason])),
  }
  const refusals = Object.entries(reasons).filter(([uid]) => quarantined.includes(Number(uid)))
  return { quarantined, refusals: Object.fromEntries(refusals) }
}

/**
 * The messages under the identities that the index has for them. A hint names the message that our own MOVE or COPY
 * put at a UID. A move by APPEND or a migration changes INTERNALDATE: a message that looks new is looked up by its
 * Message-ID, and is the known message when that has left its place or lies elsewhere.
 */
async function recognised(context: FolderContext, reading: Reading): Promise<ReadMessage[]> {
  const { state, deps, session, folderId } = context
  const { identity } = session.capabilities
  const all: ReadMessage[] = []
  for (const message of reading.messages) {
    all.push(measured(() => readMessage(state.account, message, identity)))
    await yieldToLoop()
  }
  const hinted = await byHints(context, all)
  const { remapSince, appearedAt } = state.folders.get(folderId)?.cursor ?? {}
  const anew = reading.source === 'live' || remapSince !== undefined || appearedAt !== undefined
  const references = anew && identity === null ? hinted.flatMap(({ facts }) => facts.emailMessageId ?? []) : []
  if (references.length === 0) return hinted
  const known = await deps.store.messages.byMessageIds(state.account.id, references)
  return hinted.map((read) => knownAs(read, folderId, known.get(read.facts.emailMessageId ?? '')))
}

/** A server may report a wrong UID in COPYUID: a hint counts only for a message that is like the hinted one. */
async function byHints(context: FolderContext, all: readonly ReadMessage[]): Promise<ReadMessage[]> {
  const { state, folderId } = context
  const { uidValidity } = cursorOf(context)
  const idOf = ({ fetched: { uid } }: ReadMessage) =>
    state.hints.arrivals.get({ folderId, uidValidity, uid })?.messageId
  const ids = all.flatMap((read) => idOf(read) ?? [])
  const rows = await rowsById(context, ids)
  return all.map((read) => {
    const row = rows.get(idOf(read) ?? '')
    return row !== undefined && isLikeMail(read.facts, row) ? as(row, read) : read
  })
}

function as({ id, identity }: MessageRecord, read: ReadMessage): ReadMessage {
  return { ...read, id, identity }
}

function knownAs(read: ReadMessage, folderId: string, row: MessageRecord | undefined): ReadMessage {
  if (row === undefined || row.id === read.id || !isSameMail(read.facts, row)) return read
  const here = row.placements.filter((placement) => placement.folderId === folderId)
  const isThatOne =
    here.length === 0 || row.gone.length > 0 || here.some((placement) => placement.uid === read.fetched.uid)
  return isThatOne ? as(row, read) : read
}

interface Reading {
  readonly messages: readonly FetchedMessage[]
  /** Messages of the index that lie in this folder too. */
  readonly known?: readonly ReadMessage[]
  readonly source: Source
  readonly move: (cursor: FolderCursor) => FolderCursor
}

export async function storeRead(context: FolderContext, reading: Reading): Promise<void> {
  const { state, deps, session } = context
  const { known = [], source, move } = reading
  const read = [...(await recognised(context, reading)), ...known]
  const ids = read.map((message) => message.id)
  const seenAt = deps.now()
  let found: readonly PlannedChange[] = []
  const build: Build = async (cursor, folder) => {
    const now = deps.now()
    const [existing, owner] = await Promise.all([rowsById(context, ids), ownerOf(deps.store, state.account)])
    const plan = { account: state.account, folder, uidValidity: cursor.uidValidity, now }
    const { added, changes, old } = planAdded(plan, read, existing, source)
    const contacts = await correspondentsOf(context, owner, folder, read)
    const next = { ...move(cursor), syncedAt: now }
    if (source === 'live') found = changes
    return { cursor: next, added, changes, old, contacts }
  }
  await commit(context, build, async ({ outbox }) => {
    deps.metrics.messagesIndexed.inc({ source }, read.length)
    measure(deps, found, seenAt)
    const uids = new Map(read.map(({ id, fetched }) => [id, fetched.uid]))
    const fetchMany: FetchMany = (wanted, maxBytes) => fetchTexts(session, uids, wanted, maxBytes)
    const fresh = found.map(({ message }) => message)
    if (fresh.length > 0 && outbox.length > 0) await deps.listener.readAhead(outbox, fresh, fetchMany)
  })
}

function measure({ metrics, tracing, now }: SyncDeps, found: readonly PlannedChange[], seenAt: number): void {
  const storedAt = now()
  for (const { change, message } of found) {
    tracing?.message(change, seenAt, storedAt)
    if (!change.first || change.kind !== 'received') continue
    metrics.syncLag.observe(Math.max(0, storedAt - message.receivedAt) / 1000)
  }
}

export async function rowsById(context: SyncContext, ids: readonly string[]): Promise<Map<string, MessageRecord>> {
  if (ids.length === 0) return new Map()
  const rows = await context.deps.store.messages.byIds(context.state.account.id, [...new Set(ids)])
  return new Map(rows.map((row) => [row.id, row]))
}

/** The placements that the index has in the folder at these UIDs, or from one UID to another, by UID. */
export async function knownAt(
  context: FolderContext,
  uids: readonly number[] | { readonly from: number; readonly to: number },
): Promise<Map<number, KnownUid>> {
  const { messages } = context.deps.store
  const { uidValidity } = cursorOf(context)
  const { folderId } = context
  const known =
    'from' in uids
      ? await messages.knownUids(folderId, uidValidity, uids.from, uids.to)
      : await messages.knownAmong(folderId, uidValidity, uids)
  return new Map(known.map((one) => [one.uid, one]))
}

/** Messages of one thread that are searched for a reply. */
const threadMax = 50
/** Threads of one query: a store across the network costs a round trip for each. */
const threadsAtOnce = 20

/** Contact deltas of newly read messages. The store applies each key once, so overlaps do no harm. */
async function correspondentsOf(
  context: InAccount,
  owner: Owner,
  folder: FolderRecord,
  read: readonly ReadMessage[],
): Promise<ContactDelta[]> {
  const role = folder.specialUse
  const deltas: ContactDelta[] = []
  const heard: ReadMessage[] = []
  for (const message of read) {
    deltas.push(...otherContacts(owner, role, message))
    if (isSentByUser(owner, role, message)) deltas.push(...(await answered(context, owner, message, read)))
    else if (countsAsReceived(role)) {
      const received = receivedContact(owner, role, message)
      deltas.push(...received)
      if (received.length > 0 && message.facts.emailMessageId !== null) heard.push(message)
    }
  }
  const threads = await threadsOf(context, heard)
  for (const message of heard) {
    if (wasReplied(owner, message, threads.get(message.facts.threadId) ?? []))
      deltas.push(...repliedContact(owner, message))
  }
  return deltas
}

/** The user with the current addresses, which change with the email accounts. */
async function ownerOf({ users }: Pick<Store, 'users'>, account: AccountRecord): Promise<Owner> {
  const { developerId, userId, email } = account
  const user = await users.get(developerId, userId)
  return { userId, ownAddresses: [...(user?.emailAddresses ?? []), email] }
}

async function answered(
  { deps, state }: InAccount,
  owner: Owner,
  reply: ReadMessage,
  read: readonly ReadMessage[],
): Promise<ContactDelta[]> {
  const wanted = reply.facts.inReplyTo
  if (wanted === null) return []
  const here = read.find((other) => other.facts.emailMessageId === wanted)
  const row = here ?? (await deps.store.messages.find(state.account.id, wanted))
  if (row === null) return []
  const counted: CountedMessage = 'facts' in row ? row : { id: row.id, facts: row }
  return repliedContact(owner, counted)
}

/** The newest indexed messages of the threads of these messages, by thread. */
async function threadsOf(context: InAccount, messages: readonly ReadMessage[]): Promise<Map<string, MessageRecord[]>> {
  const { store } = context.deps
  const { id } = context.state.account
  const wanted = [...new Set(messages.map(({ facts }) => facts.threadId))]
  const found: MessageRecord[] = []
  for (let start = 0; start < wanted.length; start += threadsAtOnce) {
    const threadIds = wanted.slice(start, start + threadsAtOnce)
    const limit = threadMax * 2
    const rows = await store.messages.list(id, { threadIds }, { limit, offset: 0 })
    if (rows.length < limit) {
      found.push(...rows)
      continue
    }
    // A long thread may fill the page: each thread is then asked for alone.
    for (const threadId of threadIds)
      found.push(...(await store.messages.list(id, { threadId }, { limit: threadMax, offset: 0 })))
  }
  return Map.groupBy(found, ({ threadId }) => threadId)
}

function wasReplied(owner: Owner, message: ReadMessage, thread: readonly MessageRecord[]): boolean {
  const { emailMessageId } = message.facts
  return thread.some(
    (row) =>
      row.inReplyTo === emailMessageId &&
      row.id !== message.id &&
      isSentByUser(owner, null, { id: row.id, facts: row }),
  )
}
