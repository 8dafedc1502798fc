/**
 * A UID that holds another message than the index has there, under the same UIDVALIDITY, which the RFC forbids: a
 * mailbox restored from a backup, a server without a memory. Its predecessor is told as gone, and it is told as what it
 * is. Looked for at the newest known UID, which every reading of new mail brings along; what is found there leads to
 * those before it.
 */
import type { KnownUid } from '../store/port.ts'
import { readMissing, unseenArrived } from './compare.ts'
import { openNotes, withNotes } from './generations.ts'
import { isLikeMail } from './identity.ts'
import { readMessage } from './plan.ts'
import { readUids } from './read.ts'
import type { FetchedMessage } from './session-types.ts'
import { batchesOf, cursorOf, knownAt, rowsById, type SyncContext } from './write.ts'

/** `newest`: a message below the cursor's UIDNEXT, as the server has it now. */
export async function checkReuse(context: SyncContext, folderId: string, newest: FetchedMessage): Promise<void> {
  const { session, state, deps } = context
  if ((await replacedBy(context, folderId, [newest])).length === 0) return
  deps.log.warn({ accountId: state.account.id, folder: folderId, uid: newest.uid }, 'uid given again by the server')
  const cursor = cursorOf(state, folderId)
  const known = await knownAt(context, folderId, [Math.max(1, cursor.backfillBelow), newest.uid])
  for (const page of batchesOf(deps, [...known.keys()].reverse())) {
    const { messages } = await readUids(session, page)
    const replaced = await replacedBy(context, folderId, messages)
    if (replaced.length === 0) return
    await replace(context, folderId, cursor.uidValidity, replaced)
  }
}

/** What the index has at the UIDs of these messages and is other mail. */
async function replacedBy(
  context: SyncContext,
  folderId: string,
  messages: readonly FetchedMessage[],
): Promise<KnownUid[]> {
  const { session, state } = context
  const uids = messages.map(({ uid }) => uid)
  const known = await knownAt(context, folderId, uids)
  const ids = uids.flatMap((uid) => known.get(uid)?.messageId ?? [])
  const rows = await rowsById(context, ids)
  return messages.flatMap((message) => {
    const there = known.get(message.uid)
    const row = there && rows.get(there.messageId)
    if (row === undefined) return []
    const read = readMessage(state.account, message, session.capabilities.identity)
    return read.id === row.id || isLikeMail(read.facts, row) ? [] : (there ?? [])
  })
}

async function replace(
  context: SyncContext,
  folderId: string,
  uidValidity: string,
  replaced: readonly KnownUid[],
): Promise<void> {
  const { state, deps } = context
  const uids = replaced.map(({ uid }) => uid)
  await state.commit(folderId, async () => {
    const cursor = cursorOf(state, folderId)
    const now = await knownAt(context, folderId, uids)
    const still = replaced.filter(({ uid, messageId }) => now.get(uid)?.messageId === messageId)
    if (cursor.uidValidity !== uidValidity || still.length === 0) return null
    const generation = deps.now()
    const notes = still.map(({ uid }) => ({ uid, generation, replaces: true }))
    return { cursor: withNotes(cursor, notes) }
  })
  await readNoted(context, folderId)
}

/**
 * Reads the noted UIDs when their predecessors have been taken out. A store without transactions writes the cursor
 * last, so the notes are there before anything else changes, and a crash is made good here.
 */
export async function readNoted(context: SyncContext, folderId: string): Promise<void> {
  const { state } = context
  const open = openNotes(cursorOf(state, folderId))
  if (open.length === 0) return
  await state.commit(folderId, async (folder) => {
    const cursor = cursorOf(state, folderId)
    const noted = (cursor.again ?? []).filter(({ replaces }) => replaces)
    if (noted.length === 0) return null
    const now = await knownAt(
      context,
      folderId,
      noted.map(({ uid }) => uid),
    )
    // What has the note's generation is what the note was made for, read by now.
    const before = noted.flatMap(({ uid, generation }) => {
      const one = now.get(uid)
      return one === undefined || generation === (one.generation ?? 0) ? [] : [one]
    })
    if (before.length === 0) return null
    const unseen = folder.unseen - unseenArrived(state.toldCounts.get(folderId), cursor, before)
    return {
      cursor,
      vanished: before.map(({ uid }) => uid),
      counts: { messages: folder.messages, unseen: Math.max(0, unseen) },
    }
  })
  await readMissing(context, folderId, open)
}
