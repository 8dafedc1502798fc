/**
 * Telling of what vanished. A disappearance is held (MAILROOM_GONE_HOLD), so that a move is told as a move: by then the
 * message has turned up elsewhere, or it is deleted. One that is back in the same folder, under whatever UID, is not
 * told at all.
 */
import type { GonePlacement, MessageRecord } from '../store/records.ts'
import { planGone, type PlannedChange } from './plan.ts'
import type { AccountState, BatchParts, SyncDeps } from './state.ts'

/** Messages looked at in one go; more when all of these have to wait. */
const step = 100
const stepMax = 6400

/** Tells what is due. Entries of a folder that is still being read anew after a UIDVALIDITY change wait for its end. */
export async function tellGone(deps: SyncDeps, state: AccountState): Promise<void> {
  const before = deps.now() - deps.config.MAILROOM_GONE_HOLD
  const carrier = state.folderByPath('INBOX')
  if (carrier === null || carrier.cursor === null) return
  for (let limit = step; limit <= stepMax;) {
    const found = await deps.store.messages.gone(state.account.id, before, limit)
    const due = found.filter((message) => message.gone.some((entry) => isDue(state, entry, before)))
    for (let start = 0; start < due.length; start += step)
      await tell(deps, state, carrier.id, due.slice(start, start + step), before)
    if (found.length < limit) return
    if (due.length === 0) limit *= 4
  }
}

function isDue(state: AccountState, entry: GonePlacement, before: number): boolean {
  const cursor = state.folders.get(entry.folderId)?.cursor
  const remapping = cursor?.remapSince !== undefined && cursor.backfillBelow > 1
  return entry.at <= before && !remapping && !state.own.isLeaving(entry.folderId, entry.uid)
}

/** Told with the cursor of the folder `carrier`: any will do, INBOX is always there. */
async function tell(
  deps: SyncDeps,
  state: AccountState,
  carrier: string,
  due: readonly MessageRecord[],
  before: number,
): Promise<void> {
  await state.commit(carrier, async (folder) => {
    if (folder.cursor === null) return null
    // Read anew: until now another batch may have found the message elsewhere.
    const rows = await deps.store.messages.byIds(
      state.account.id,
      due.map((message) => message.id),
    )
    const told = rows.map((message) =>
      departed(
        state,
        message,
        message.gone.filter((entry) => isDue(state, entry, before)),
        deps.now(),
      ),
    )
    return {
      cursor: folder.cursor,
      told: told.flatMap((one) => one.told),
      changes: told.flatMap((one) => one.changes),
    }
  })
}

/** One that lies in the same folder, under whatever UID, has not left it. */
export function departed(
  { account, folders }: Pick<AccountState, 'account' | 'folders'>,
  message: MessageRecord,
  entries: readonly GonePlacement[],
  now: number,
): Required<Pick<BatchParts, 'told' | 'changes'>> {
  const changes: PlannedChange[] = []
  const sorted = [...entries].sort((a, b) => a.at - b.at)
  for (const [index, entry] of sorted.entries()) {
    const last = index === sorted.length - 1 && sorted.length === message.gone.length
    const back = message.placements.some((placement) => placement.folderId === entry.folderId)
    if (!back) changes.push(planGone(account, folders, message, entry, last, now))
  }
  return { told: sorted.map((entry) => ({ messageId: message.id, ...placeOf(entry) })), changes }
}

function placeOf({
  folderId,
  uidValidity,
  uid,
}: GonePlacement): Pick<GonePlacement, 'folderId' | 'uidValidity' | 'uid'> {
  return { folderId, uidValidity, uid }
}
