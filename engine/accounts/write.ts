/** Writing what was read: one batch of one folder, planned against the newest cursor and stored in one step. */
import { AppError } from '../errors.ts'
import { createGiveWay } from '../give-way.ts'
import type { FolderCursor, FolderRecord, MessageRecord } from '../store/records.ts'
import { correspondentsOf, ownerOf } from './correspondents.ts'
import { isAwaited } from './generations.ts'
import { unseenArrived } from './counts.ts'
import { isSameMail } from './identity.ts'
import { planAdded, readMessage, type ReadMessage, type Source } from './plan.ts'
import type { FetchedMessage, Session } from './session-types.ts'
import type { AccountState, SyncDeps } from './state.ts'

export interface SyncContext {
  readonly deps: SyncDeps
  readonly state: AccountState
  readonly session: Session
}

export function cursorOf(state: AccountState, folderId: string): FolderCursor {
  const cursor = state.folders.get(folderId)?.cursor
  if (cursor === undefined || cursor === null) throw new AppError('internal', `folder ${folderId} has no cursor`)
  return cursor
}

const quarantineMax = 1000

export function quarantine(quarantined: readonly number[], poison: readonly number[]): number[] {
  return [...new Set([...quarantined, ...poison])].slice(-quarantineMax)
}

/**
 * The messages under the identities that the index knows them by: a move by APPEND or a migration gives mail a new INTERNALDATE, so
 * mail that looks new, live or in a folder that is read anew, is looked up once more by its Message-ID, and is the known message
 * when that one left its place or lies in another folder only.
 */
async function recognised(context: SyncContext, folderId: string, reading: Reading): Promise<ReadMessage[]> {
  const { state, deps, session } = context
  const { identity } = session.capabilities
  const all: ReadMessage[] = []
  const giveWay = createGiveWay()
  for (const message of reading.messages) {
    all.push(readMessage(state.account, message, identity))
    await giveWay()
  }
  const anew = reading.source === 'live' || state.folders.get(folderId)?.cursor?.remapSince !== undefined
  const references = anew && identity === null ? all.flatMap(({ facts }) => facts.emailMessageId ?? []) : []
  if (references.length === 0) return all
  const known = await deps.store.messages.byMessageIds(state.account.id, references)
  return all.map((read) => knownAs(read, folderId, known.get(read.facts.emailMessageId ?? '')))
}

function knownAs(read: ReadMessage, folderId: string, row: MessageRecord | undefined): ReadMessage {
  if (row === undefined || row.id === read.id || !isSameMail(read.facts, row)) return read
  const here = row.placements.filter((placement) => placement.folderId === folderId)
  const isThatOne =
    here.length === 0 || row.gone.length > 0 || here.some((placement) => placement.uid === read.fetched.uid)
  return isThatOne ? { ...read, id: row.id, identity: row.identity } : read
}

/** What one reading brought, and how it moves the cursor. */
export interface Reading {
  readonly messages: readonly FetchedMessage[]
  readonly source: Source
  /** 'above': at or above the cursor's UIDNEXT; 'awaited': see isAwaited; the others were stored meanwhile by another session. */
  readonly only: 'above' | 'awaited' | 'all'
  readonly move: (cursor: FolderCursor) => FolderCursor
}

/** UIDs of an earlier or later UIDVALIDITY than the cursor's mean nothing: the folder has to be opened anew. */
function checkValidity({ session }: SyncContext, folder: FolderRecord, cursor: FolderCursor): void {
  const { selected } = session
  if (selected === null || selected.path !== folder.path || selected.uidValidity === null) return
  if (selected.uidValidity === cursor.uidValidity) return
  throw new AppError('network', `${folder.path} was numbered anew while it was read`, { retryAfterMs: 1000 })
}

function isWanted(only: Reading['only'], cursor: FolderCursor, uid: number): boolean {
  if (only === 'above') return uid >= cursor.uidNext
  return only === 'all' || isAwaited(cursor, uid)
}

/** Stores read messages: rows, contacts, changes with their callbacks, and the cursor as `move` leaves it. */
export async function storeRead(context: SyncContext, folderId: string, reading: Reading): Promise<void> {
  const { state, deps } = context
  const { messages, source, only, move } = reading
  const all = await recognised(context, folderId, reading)
  const ids = all.map((message) => message.id)
  await state.commit(folderId, async (folder) => {
    const cursor = cursorOf(state, folderId)
    checkValidity(context, folder, cursor)
    const now = deps.now()
    const [existing, owner] = await Promise.all([rowsById(context, ids), ownerOf(deps.store, state.account)])
    const read = all.filter((one) => isWanted(only, cursor, one.fetched.uid))
    const plan = { account: state.account, folder, uidValidity: cursor.uidValidity, now }
    const { added, changes, fresh, misnamed } = planAdded(plan, read, existing, source)
    const contacts = await correspondentsOf(context, owner, folder, read)
    const next = { ...move(cursor), syncedAt: now }
    const arrived = read.flatMap(({ fetched }) => (fresh.has(fetched.uid) ? [fetched] : []))
    const unseen = folder.unseen + unseenArrived(state.toldCounts.get(folderId), cursor, arrived)
    const counts = source === 'live' ? { messages: next.exists, unseen } : null
    return { cursor: next, added, changes, vanished: misnamed, contacts, counts }
  })
  deps.metrics.messagesIndexed.inc({ source }, messages.length)
}

export async function rowsById(context: SyncContext, ids: readonly string[]): Promise<Map<string, MessageRecord>> {
  if (ids.length === 0) return new Map()
  const rows = await context.deps.store.messages.byIds(context.state.account.id, [...new Set(ids)])
  return new Map(rows.map((row) => [row.id, row]))
}
