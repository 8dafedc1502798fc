/**
 * Departures: messages that have left a folder. Each is held for MAILROOM_GONE_HOLD, and until all folders have been
 * polled since, and the dirty and new ones read. By then a moved message is in the index at its new place, and any
 * other is deleted. A message that is back in the same folder, under whatever UID, is not reported.
 */
import { isParkedLong } from './absent.ts'
import type { SyncBatch } from '../store/port.ts'
import type { FolderCursor, GonePlacement, MessageRecord, Place } from '../store/records.ts'
import { planGone } from './plan.ts'
import type { AccountState, BatchParts, SyncDeps } from './state.ts'
import type { InAccount, SyncContext } from './write.ts'

/** Messages of one query; more when none of them is due. */
const step = 100
const stepMax = 6400

/** A folder that cannot be read holds departures for so much longer than MAILROOM_GONE_HOLD at most. */
const unsettledMostMs = 15 * 60_000

/**
 * Reports the departures that are due. A departure by our own command waits only for the folders that were dirty by
 * then; a move that does not show in its new folder is held like any other. Departures from a folder that is being read
 * anew wait for its end. Sets state.isHolding.
 */
export async function reportGone(context: Reporting): Promise<void> {
  const { deps, state } = context
  state.isHolding = (await deps.store.messages.gone(state.account.id, Number.MAX_SAFE_INTEGER, 1)).length > 0
  if (!state.isHolding) return
  const now = deps.now()
  const { before, areReadAnew } = heldUntil(deps, state, now)
  const isDueNow = (entry: GonePlacement, message: MessageRecord): boolean =>
    (!areReadAnew && isOwnDue(state, entry, message)) || isDue(state, entry, before, now)
  await reportAll(context, state.hints.departures.ids(), isDueNow)
  for (let limit = step; limit <= stepMax;) {
    const found = await deps.store.messages.gone(state.account.id, before, limit)
    const isDueIn = (message: MessageRecord) => newestOf(message).some((entry) => isDueNow(entry, message))
    const due = found.filter(isDueIn).map(({ id }) => id)
    await reportAll(context, due, isDueNow)
    if (found.length < limit) break
    if (due.length === 0) limit *= 4
  }
}

type Reporting = InAccount & Pick<SyncContext, 'giveWay'>

type IsDue = (entry: GonePlacement, message: MessageRecord) => boolean

/** Departures from before `before` are due. `areReadAnew`: some folder is new, and may hold mail of the others. */
function heldUntil({ config }: SyncDeps, state: AccountState, now: number) {
  const held = now - config.MAILROOM_GONE_HOLD
  const areReadAnew = isReading(state, now, 'new')
  const settledAt = areReadAnew ? Number.NEGATIVE_INFINITY : state.moved.settledAt - 1
  // A new session needs time to read the folders.
  const most = now - state.beganAt < unsettledMostMs ? Number.NEGATIVE_INFINITY : held - unsettledMostMs
  return { before: Math.min(held, Math.max(settledAt, most)), areReadAnew }
}

function isOwnDue({ hints, moved }: AccountState, entry: GonePlacement, { placements }: MessageRecord): boolean {
  const hint = hints.departures.get(entry)
  if (hint === undefined || !moved.isSettled(hint.mark)) return false
  return hint.to === null || placements.some(({ folderId }) => folderId === hint.to)
}

async function reportAll(context: Reporting, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  for (let start = 0; start < ids.length; start += step) {
    await report(context, ids.slice(start, start + step), isDueNow)
    await context.giveWay?.()
  }
}

async function report({ deps, state }: InAccount, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  // A batch needs a folder. Departures have none, so they go with INBOX's.
  const inbox = state.folderByPath('INBOX')
  if (inbox === null || inbox.cursor === null) return
  let told: SyncBatch['reported'] = []
  await state.commit(inbox.id, async ({ cursor }) => {
    if (cursor === null) return null
    // Another batch may have found the message elsewhere since.
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
  // A missing folder may be being read under a new name.
  if (folder === undefined) return !isReading(state, now)
  return folder.cursor?.remapSince === undefined || folder.completeAt !== null
}

/** Whether some folder is not complete: of all, or of the new ones, which may hold mail of other folders. */
function isReading({ folders }: AccountState, now: number, which: 'all' | 'new' = 'all'): boolean {
  const isNew = ({ appearedAt, remapSince }: FolderCursor) => appearedAt !== undefined || remapSince !== undefined
  return folders.values().some((folder) => {
    const { cursor, completeAt } = folder
    const isRead = isParkedLong(folder, now) || cursor === null || completeAt !== null
    return !isRead && (which === 'all' || isNew(cursor))
  })
}

/** The newest departure from each folder: the others are reported with it, and make no change. */
function newestOf({ gone }: MessageRecord): GonePlacement[] {
  return [...new Map(gone.toSorted((a, b) => a.at - b.at).map((entry) => [entry.folderId, entry])).values()]
}

/** Reports `entries`, the newest of their folders. No change is made for a message that lies in the same folder. */
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
