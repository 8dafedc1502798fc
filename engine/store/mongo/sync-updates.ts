/**
 * What a batch changes on message rows that exist: places added and lost, flags, and disappearances that were reported.
 */
import type { SyncBatch } from '../port.ts'
import type { MessageRecord, Placement } from '../records.ts'
import { addPlacement, liesAt, tell, updateFlags, vanish } from '../rows.ts'
import type { MongoContext } from './documents.ts'
import { changeMessages, type Step } from './message-rows.ts'
import { placedFilter } from './messages.ts'

/** A stored message that has a place of the batch's folder among the UIDs the batch speaks of. */
export interface Holder {
  readonly id: string
  readonly uid: number
  readonly uidValidity: string
}

/**
 * The messages at the UIDs that the batch adds or takes away: as many as it names. Read before the first write, so that
 * its own rows are not among them.
 */
export async function findHolders({ collections }: MongoContext, batch: SyncBatch): Promise<Holder[]> {
  const { accountId, folderId, added, vanished } = batch
  const own = added.filter(({ placement }) => placement.folderId === folderId).map(({ placement }) => placement.uid)
  const uids = new Set([...own, ...vanished])
  if (uids.size === 0) return []
  const where = placedFilter(accountId, folderId, { $in: [...uids] })
  const docs = await collections.messages.find(where, { projection: { placements: 1 } }).toArray()
  return docs.flatMap(({ _id, placements }) =>
    placements
      .filter((there) => there.folderId === folderId && uids.has(there.uid))
      .map(({ uid, uidValidity }) => ({ id: _id, uid, uidValidity })),
  )
}

/** The steps of each message, in the order in which they are to be taken. */
function stepsOf(batch: SyncBatch, inserted: ReadonlySet<string>, holders: readonly Holder[]): Map<string, Step[]> {
  const steps = new Map<string, Step[]>()
  const add = (id: string, step: Step): void => {
    const own = steps.get(id) ?? []
    steps.set(id, own)
    own.push(step)
  }
  for (const { id, placement } of batch.added) {
    for (const other of displacedBy(id, placement, batch, holders)) add(other, (row) => giveUp(row, placement))
    if (!inserted.has(id)) add(id, (row) => addPlacement(row, placement))
  }
  const place = { folderId: batch.folderId, uidValidity: batch.cursorAfter.uidValidity }
  for (const update of batch.flagUpdates) add(update.messageId, (row) => updateFlags(row, place, update))
  for (const uid of batch.vanished) {
    for (const id of holding(uid, batch, holders)) add(id, (row) => vanish(row, { ...place, uid }, batch.vanishedAt))
  }
  for (const told of batch.told) add(told.messageId, (row) => tell(row, told))
  return steps
}

/** A UID is one message: when its identity was read differently before, the older row gives the place up. */
function displacedBy(id: string, place: Placement, batch: SyncBatch, holders: readonly Holder[]): string[] {
  if (place.folderId !== batch.folderId) return []
  const there = holders.filter(({ uid, uidValidity }) => uid === place.uid && uidValidity === place.uidValidity)
  return there.map((holder) => holder.id).filter((other) => other !== id)
}

function giveUp(row: MessageRecord, place: Placement): MessageRecord {
  const placements = row.placements.filter((there) => !liesAt(there, place))
  return placements.length === row.placements.length ? row : { ...row, placements }
}

function holding(uid: number, batch: SyncBatch, holders: readonly Holder[]): Set<string> {
  const { uidValidity } = batch.cursorAfter
  const stored = holders.filter((holder) => holder.uid === uid && holder.uidValidity === uidValidity)
  const added = batch.added.filter(({ placement }) => liesAt(placement, { folderId: batch.folderId, uidValidity, uid }))
  return new Set([...stored, ...added].map(({ id }) => id))
}

export async function updateExisting(
  context: MongoContext,
  batch: SyncBatch,
  inserted: ReadonlySet<string>,
  holders: readonly Holder[],
): Promise<void> {
  const { accountId } = batch
  const steps = stepsOf(batch, inserted, holders)
  if (steps.size === 0) return
  const docs = await context.collections.messages.find({ accountId, _id: { $in: [...steps.keys()] } }).toArray()
  await changeMessages(
    context,
    accountId,
    docs,
    (id) => (record) => (steps.get(id) ?? []).reduce((row, step) => step(row), record),
  )
}
