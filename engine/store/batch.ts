/** What a batch does to message rows, the same for both stores: the rows it makes, and the steps of those there. */
import type { SyncBatch } from './port.ts'
import type { MessageRecord, Placement } from './records.ts'
import { addPlacement, liesAt, newMessage, tell, updateFlags, vanish } from './rows.ts'

/** A pure step; the very same record when there is nothing to do. Repeating it on its outcome must do nothing. */
export type Step = (record: MessageRecord) => MessageRecord

/** A stored message that has a place of the batch's folder among the UIDs the batch speaks of. */
export interface Holder {
  readonly id: string
  readonly uid: number
  readonly uidValidity: string
}

/** UIDs of the batch's folder that it adds or takes away: as many as it names. */
export function placesOf({ folderId, added, vanished }: SyncBatch): number[] {
  const own = added.filter(({ placement }) => placement.folderId === folderId).map(({ placement }) => placement.uid)
  return [...new Set([...own, ...vanished])]
}

/** The batch's messages as new rows; one that the batch has twice is one row with two places. */
export function newRows({ accountId, added }: SyncBatch, now: number): MessageRecord[] {
  const records = new Map<string, MessageRecord>()
  for (const one of added) {
    const known = records.get(one.id)
    records.set(one.id, known ? addPlacement(known, one.placement) : newMessage(accountId, one, now))
  }
  return [...records.values()]
}

/** In the order to take them. `inserted` = ids of the new rows, `holders` = those at placesOf() before the batch. */
export function stepsOf(
  batch: SyncBatch,
  inserted: ReadonlySet<string>,
  holders: readonly Holder[],
): ReadonlyMap<string, readonly Step[]> {
  const steps = new Map<string, Step[]>()
  const add = (id: string, step: Step): void => {
    const own = steps.get(id) ?? []
    steps.set(id, own)
    own.push(step)
  }
  const byUid = Map.groupBy(holders, ({ uid }) => uid)
  const holding = ({ uid, uidValidity }: Pick<Placement, 'uid' | 'uidValidity'>): string[] =>
    (byUid.get(uid) ?? []).filter((holder) => holder.uidValidity === uidValidity).map(({ id }) => id)
  for (const { id, placement } of batch.added) {
    // a UID is one message: when its identity was read differently before, the older row gives the place up
    const older = placement.folderId === batch.folderId ? holding(placement).filter((other) => other !== id) : []
    for (const other of older) add(other, (row) => giveUp(row, placement))
    if (!inserted.has(id)) add(id, (row) => addPlacement(row, placement))
  }
  const place = { folderId: batch.folderId, uidValidity: batch.cursorAfter.uidValidity }
  for (const update of batch.flagUpdates) add(update.messageId, (row) => updateFlags(row, place, update))
  for (const uid of batch.vanished) {
    const lost = { ...place, uid }
    const added = batch.added.filter(({ placement }) => liesAt(placement, lost)).map(({ id }) => id)
    for (const id of new Set([...holding(lost), ...added])) add(id, (row) => vanish(row, lost, batch.vanishedAt))
  }
  for (const told of batch.told) add(told.messageId, (row) => tell(row, told))
  return steps
}

function giveUp(row: MessageRecord, place: Placement): MessageRecord {
  const placements = row.placements.filter((there) => !liesAt(there, place))
  return placements.length === row.placements.length ? row : { ...row, placements }
}

/** All steps of a message, one after the other. */
export function taken(record: MessageRecord, steps: readonly Step[] = []): MessageRecord {
  return steps.reduce((row, step) => step(row), record)
}
