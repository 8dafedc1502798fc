/**
 * Telling of what vanished. A disappearance is held (MAILROOM_GONE_HOLD), so that a move is told as a move: by then the message has
 * turned up elsewhere, or it is deleted. One that is back in the same folder, under whatever UID, is not told at all.
 */
import type { GonePlacement, MessageRecord } from '../store/records.ts'
import { planGone } from './plan.ts'
import type { AccountState, SyncDeps } from './state.ts'

const step = 100

/** Tells what is due. Entries of a folder that is still being read anew after a UIDVALIDITY change wait for its end. */
export async function tellGone(deps: SyncDeps, state: AccountState): Promise<void> {
  const before = deps.now() - deps.config.MAILROOM_GONE_HOLD
  const due = await deps.store.messages.gone(state.account.id, before, step)
  for (const message of due) {
    for (const entry of message.gone) {
      if (entry.at <= before && !isRemapping(state, entry)) await tellOne(deps, state, message, entry)
    }
  }
}

function isRemapping(state: AccountState, entry: GonePlacement): boolean {
  const cursor = state.folders.get(entry.folderId)?.cursor
  return cursor?.remapSince !== undefined && cursor.backfillBelow > 1
}

async function tellOne(
  deps: SyncDeps,
  state: AccountState,
  message: MessageRecord,
  entry: GonePlacement,
): Promise<void> {
  const { folderId, uidValidity, uid } = entry
  const carrier = state.folders.has(folderId) ? folderId : state.folderByPath('INBOX')?.id
  if (carrier === undefined) return
  const back = message.placements.some((placement) => placement.folderId === folderId)
  await state.commit(carrier, (folder) => {
    if (folder.cursor === null) return null
    const told = [{ messageId: message.id, folderId, uidValidity, uid }]
    const changes = back ? [] : [planGone(state.account, state.folders, message, entry, deps.now())]
    return { cursor: folder.cursor, told, changes }
  })
}
