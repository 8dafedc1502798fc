/**
 * What our own writes have changed on the server, told like anybody's change: one batch with the row, the change, its callbacks and
 * the cursor. The sync sees the same before, meanwhile or afterwards; whoever comes second finds it in the index. What was cut
 * short in between the sync tells.
 */
import type { FolderCursor, FolderRecord, MessageRecord, Placement } from '../store/records.ts'
import { liesAt, vanish } from '../store/rows.ts'
import { flagParts } from './compare.ts'
import { departed } from './gone.ts'
import { planAdded } from './plan.ts'
import type { Placed } from './session-types.ts'
import type { BatchParts } from './state.ts'
import type { SyncContext } from './write.ts'

type Build = (folder: FolderRecord, cursor: FolderCursor) => Promise<BatchParts | null>

/** Nothing where the folder is not the one of this UIDVALIDITY any more: it is read anew, and the sync tells. */
async function commitIn({ state }: SyncContext, { folderId, uidValidity }: Spot, build: Build): Promise<void> {
  const cursorOf = (folder: FolderRecord | undefined): FolderCursor | null =>
    folder?.cursor?.uidValidity === uidValidity ? folder.cursor : null
  if (cursorOf(state.folders.get(folderId)) === null) return
  const inFolder = async (folder: FolderRecord): Promise<BatchParts | null> => {
    const cursor = cursorOf(folder)
    return cursor === null ? null : build(folder, cursor)
  }
  await state.commit(folderId, inFolder, 'api')
}

type Spot = Pick<Placement, 'folderId' | 'uidValidity'>

async function rowOf({ deps, state }: SyncContext, messageId: string): Promise<MessageRecord | null> {
  return deps.store.messages.get(state.account.id, messageId)
}

/** Flags as the server told them. */
interface Word {
  readonly flags: readonly string[]
  readonly modseq: string | null
}

/** Others may change the same flags again and again. */
const askedMost = 5

/** The server's answer to our STORE. `place` = as the index had it before. The folder is selected. */
export async function tellFlags(context: SyncContext, place: Placement, stored: Word): Promise<void> {
  const { session, deps } = context
  const { folderId, uidValidity, uid } = place
  let word: Word | undefined = stored
  let rev: number | undefined = place.rev
  for (let asked = 0; asked < askedMost && word !== undefined && rev !== undefined; asked += 1) {
    if (await storeWord(context, place, word, rev)) return
    // The sync has stored others since we asked.
    const [known] = await deps.store.messages.knownUids(folderId, uidValidity, uid, uid)
    rev = known?.rev
    word = (await session.fetchFlags(String(uid))).find((one) => one.uid === uid)
  }
}

/** false when the index has others than it had at this rev. */
async function storeWord(context: SyncContext, place: Placement, word: Word, rev: number): Promise<boolean> {
  const { folderId, uid } = place
  let sure = true
  context.state.own.wrote(folderId, uid)
  await commitIn(context, place, async (folder, cursor) => {
    const seen = { flags: [{ uid, ...word }], isUnsure: (known: { readonly rev: number }) => known.rev !== rev }
    // Counts that the server told do not have our own write in them yet (own-counts.ts).
    const { unsure, parts } = await flagParts(context, folder, cursor, seen, undefined)
    sure = !unsure
    return parts && { cursor, ...parts }
  })
  return sure
}

/**
 * Our MOVE or COPY has put the message into the folder, at the UID that the server named. `before` = the message as it was. false =
 * it has to be looked for there.
 */
export async function tellArrival(
  context: SyncContext,
  before: MessageRecord,
  to: FolderRecord,
  { newUid, uidValidity }: Placed,
  flags: readonly string[],
): Promise<boolean> {
  const { state, deps } = context
  const validity = uidValidity ?? state.folders.get(to.id)?.cursor?.uidValidity
  let arrived = false
  if (newUid === null || validity === undefined) return false
  await commitIn(context, { folderId: to.id, uidValidity: validity }, async (folder, cursor) => {
    const row = await rowOf(context, before.id)
    if (row === null) return null
    // The sync was here first; or the server named the UID of another message.
    arrived = isNewIn(to.id, row, before)
    if (arrived || newUid < cursor.uidNext) return null
    arrived = true
    const message = { id: row.id, identity: row.identity, facts: row, fetched: { uid: newUid, flags, modseq: null } }
    const plan = { account: state.account, folder, uidValidity: validity, now: deps.now() }
    const { added, changes } = planAdded(plan, [message], new Map([[row.id, row]]), 'ours')
    const counts = { messages: folder.messages + 1, unseen: folder.unseen + (flags.includes('\\Seen') ? 0 : 1) }
    return { cursor, added, changes, counts }
  })
  return arrived
}

function isNewIn(folderId: string, { placements }: MessageRecord, before: MessageRecord): boolean {
  return placements.some((place) => place.folderId === folderId && !before.placements.some((one) => liesAt(one, place)))
}

/**
 * Our own write has taken the message away from its place. Told at once, unless it has to turn up in the folder `to` first and does
 * not lie there yet: then it is held like anybody's move.
 */
export async function tellDeparture(
  context: SyncContext,
  messageId: string,
  place: Placement,
  to: FolderRecord | null,
): Promise<void> {
  const { state, deps } = context
  await commitIn(context, place, async (folder, cursor) => {
    const row = await rowOf(context, messageId)
    if (row === null) return null
    const after = vanish(row, place, deps.now())
    const entry = after.gone.find((one) => liesAt(one, place))
    if (entry === undefined) return null
    const isSure = to === null || after.placements.some(({ folderId }) => folderId === to.id)
    const parts = { cursor, ...(isSure ? departed(state, after, [entry], deps.now()) : {}) }
    // Else the sync has taken it out, and off the counts.
    const here = row.placements.find((one) => liesAt(one, place))
    if (here === undefined) return isSure ? parts : null
    const unseen = Math.max(0, folder.unseen - (here.flags.includes('\\Seen') ? 0 : 1))
    const counts = { messages: Math.max(0, folder.messages - 1), unseen }
    return { ...parts, vanished: [place.uid], counts }
  })
}
