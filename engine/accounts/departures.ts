/**
 * Messages that have left a folder. Their disappearance is held, so that a move is reported as a move: for
 * MAILROOM_GONE_HOLD, and until all folders have been looked at since, and those that moved or are new have been read.
 * By then the message has turned up elsewhere, or it is deleted. One that is back in the same folder, under whatever
 * UID, is not reported.
 */
import { isParkedLong } from './absent.ts'
import type { SyncBatch } from '../store/port.ts'
import type { FolderCursor, GonePlacement, MessageRecord, Place } from '../store/records.ts'
import { planGone } from './plan.ts'
import type { AccountState, BatchParts, SyncDeps } from './state.ts'

/** Messages looked at in one go; more when all of these have to wait. */
const step = 100
const stepMax = 6400

/** No folder that cannot be read holds back what is gone for longer than this, beyond MAILROOM_GONE_HOLD. */
const unsettledMostMs = 15 * 60_000

/**
 * Tells what is due. What our own commands took away waits only for the folders that were known to have moved by then;
 * a move that does not show in its new folder is held like any other. Entries of a folder that is still being read anew
 * after a UIDVALIDITY change wait for its end. The state says from then on whether anything was held.
 */
export async function reportGone(deps: SyncDeps, state: AccountState): Promise<void> {
  state.isHolding = (await deps.store.messages.gone(state.account.id, Number.MAX_SAFE_INTEGER, 1)).length > 0
  if (!state.isHolding) return
  const now = deps.now()
  const { before, areReadAnew } = heldUntil(deps, state, now)
  const isDueNow = (entry: GonePlacement, message: MessageRecord): boolean =>
    (!areReadAnew && isOwnDue(state, entry, message)) || isDue(state, entry, before, now)
  await reportAll(deps, state, state.hints.departures.ids(), isDueNow)
  for (let limit = step; limit <= stepMax;) {
    const found = await deps.store.messages.gone(state.account.id, before, limit)
    const isDueIn = (message: MessageRecord) => newestOf(message).some((entry) => isDueNow(entry, message))
    const due = found.filter(isDueIn).map(({ id }) => id)
    await reportAll(deps, state, due, isDueNow)
    if (found.length < limit) break
    if (due.length === 0) limit *= 4
  }
}

type IsDue = (entry: GonePlacement, message: MessageRecord) => boolean

/** Departures before that time are due. `areReadAnew`: some folder is new, and mail of others may lie in it. */
function heldUntil({ config }: SyncDeps, state: AccountState, now: number) {
  const held = now - config.MAILROOM_GONE_HOLD
  const areReadAnew = isReading(state, now, isNew)
  const settledAt = areReadAnew ? Number.NEGATIVE_INFINITY : state.moved.settledAt - 1
  // Not in the first time of a session: nothing could be read before.
  const most = now - state.beganAt < unsettledMostMs ? Number.NEGATIVE_INFINITY : held - unsettledMostMs
  return { before: Math.min(held, Math.max(settledAt, most)), areReadAnew }
}

function isOwnDue({ hints, moved }: AccountState, entry: GonePlacement, { placements }: MessageRecord): boolean {
  const hint = hints.departures.get(entry)
  if (hint === undefined || !moved.isSettled(hint.mark)) return false
  return hint.to === null || placements.some(({ folderId }) => folderId === hint.to)
}

async function reportAll(deps: SyncDeps, state: AccountState, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  for (let start = 0; start < ids.length; start += step)
    await report(deps, state, ids.slice(start, start + step), isDueNow)
}

async function report(deps: SyncDeps, state: AccountState, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  // A batch needs a folder. Departures have none, so they go with INBOX's.
  const inbox = state.folderByPath('INBOX')
  if (inbox === null || inbox.cursor === null) return
  let told: SyncBatch['reported'] = []
  await state.commit(inbox.id, async ({ cursor }) => {
    if (cursor === null) return null
    // Read anew: until now another batch may have found the message elsewhere.
    const rows = await deps.store.messages.byIds(state.account.id, ids)
    const all = rows.map((message) => {
      const due = newestOf(message).filter((entry) => isDueNow(entry, message))
      return departed(state, message, due, deps.now())
    })
    told = all.flatMap(({ reported }) => reported)
    return told.length === 0 ? null : { cursor, reported: told, changes: all.flatMap(({ changes }) => changes) }
  })
  for (const place of told) state.hints.departures.delete(place)
}

function isDue(state: AccountState, entry: GonePlacement, before: number, now: number): boolean {
  if (entry.at > before) return false
  const folder = state.folders.get(entry.folderId)
  // A folder that is gone may have another name now, under which it is being read.
  if (folder === undefined) return !isReading(state, now)
  return folder.cursor?.remapSince === undefined || folder.completeAt !== null
}

/** Some folder is not read to its end, of those that `which` picks. */
function isReading(
  { folders }: AccountState,
  now: number,
  which: (cursor: FolderCursor) => boolean = () => true,
): boolean {
  return folders.values().some((folder) => {
    const { cursor, completeAt } = folder
    return !isParkedLong(folder, now) && cursor !== null && completeAt === null && which(cursor)
  })
}

/** Mail of other folders may lie in it. */
function isNew({ appearedAt, remapSince }: FolderCursor): boolean {
  return appearedAt !== undefined || remapSince !== undefined
}

/** Of several departures from one folder the newest counts: the others are reported with it, and make no change. */
function newestOf({ gone }: MessageRecord): GonePlacement[] {
  return [...new Map(gone.toSorted((a, b) => a.at - b.at).map((entry) => [entry.folderId, entry])).values()]
}

/** What the `entries`, the newest of their folders, report. What lies in the same folder has not left it. */
export function departed(
  { account, folders }: Pick<AccountState, 'account' | 'folders'>,
  message: MessageRecord,
  entries: readonly GonePlacement[],
  now: number,
): Required<Pick<BatchParts, 'reported' | 'changes'>> {
  const { id: messageId, placements, gone } = message
  const isOf = (of: readonly Place[]) => (entry: Place) => of.some(({ folderId }) => folderId === entry.folderId)
  const reported = gone.filter(isOf(entries)).map((entry) => ({ ...entry, messageId }))
  const isLast = (entry: Place): boolean => entry === entries.at(-1) && reported.length === gone.length
  const left = entries.filter((entry) => !isOf(placements)(entry))
  return { reported, changes: left.map((entry) => planGone(account, folders, message, entry, isLast(entry), now)) }
}
