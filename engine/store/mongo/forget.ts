/** Takes placements of a folder away without telling: the folder is gone, or its UIDs mean nothing any more. */
import type { Filter } from 'mongodb'
import type { Placement } from '../records.ts'
import { vanishWhere } from '../rows.ts'
import type { MessageDoc, MongoContext } from './documents.ts'
import { changeMessages } from './message-rows.ts'

/** Placements of a folder but for one UIDVALIDITY (null = all). */
function othersFilter(accountId: string, folderId: string, keep: string | null): Filter<MessageDoc> {
  const validity = keep === null ? {} : { uidValidity: { $ne: keep } }
  return { accountId, placements: { $elemMatch: { folderId, ...validity } } }
}

/**
 * Moves the placements of up to `limit` messages to their `gone`. Answers how many messages are left with one, counted no further
 * than `limit` + 1: a large folder goes in many steps.
 */
export async function forgetFolder(
  context: MongoContext,
  accountId: string,
  folderId: string,
  keepUidValidity: string | null,
  limit: number,
): Promise<number> {
  const { messages } = context.collections
  const at = context.now()
  const where = othersFilter(accountId, folderId, keepUidValidity)
  const docs = await messages.find(where, context.read).limit(limit).toArray()
  const lost = (there: Placement): boolean => there.folderId === folderId && there.uidValidity !== keepUidValidity
  await changeMessages(context, accountId, docs, () => (record) => vanishWhere(record, lost, at))
  return messages.countDocuments(where, { ...context.read, limit: limit + 1 })
}
