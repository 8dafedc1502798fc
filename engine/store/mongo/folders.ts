/** Folders of an account: the server's list, the counts of placements, and the removal of placements. */
import { isDeepStrictEqual } from 'node:util'
import type { Filter } from 'mongodb'
import { folderBasics, type KeyedCollections } from '../aggregates.ts'
import { type CountChanges, countChange, isWhole, noCounts } from '../folder-counts.ts'
import { folderId } from '../ids.ts'
import type { FolderStore } from '../port.ts'
import type { FolderCounts, FolderRecord, Placement } from '../records.ts'
import { folderRank, listedFolder, vanishWhere } from '../rows.ts'
import { checkEpoch, completeIfWhole, markIncomplete } from './accounts.ts'
import { shapes, type MessageDoc, type MongoContext } from './documents.ts'
import { changeMessages, readPlaced } from './messages.ts'

const folderOrder = { path: 1 } as const

const stepPlacements = 500

async function list({ collections, read }: MongoContext, accountId: string): Promise<FolderRecord[]> {
  const docs = await collections.folders.find({ accountId }, read).sort(folderOrder).toArray()
  return docs.map(shapes.folders.record).sort((left, right) => folderRank(left.path) - folderRank(right.path))
}

/** The cursor and the failures belong to the sync: only a new folder gets them. */
function upsert(next: FolderRecord, counts: FolderCounts | undefined) {
  const { id, accountId, cursor, completeAt, failures, parkedUntil, counts: first, ...listed } = next
  const onInsert = { cursor, completeAt, failures, parkedUntil, ...(counts ? {} : { counts: first }) }
  const counted = counts ? { $set: { ...listed, counts }, $unset: { counting: true as const } } : { $set: listed }
  return { updateOne: { filter: { _id: id, accountId }, update: { ...counted, $setOnInsert: onInsert }, upsert: true } }
}

/** Counts the placements in these folders. Each answer of the cursor has the deadline of a socket. */
export async function countRows(
  { collections: { messages } }: Pick<MongoContext, 'collections'>,
  accountIds: readonly string[],
  folderIds: readonly string[],
): Promise<Map<string, FolderCounts>> {
  const counts: CountChanges = new Map(folderIds.map((id) => [id, noCounts]))
  if (folderIds.length === 0) return counts
  const where = { accountId: { $in: [...accountIds] }, 'placements.folderId': { $in: [...folderIds] } }
  const projection = { 'placements.folderId': 1, 'placements.flags': 1 }
  for await (const { placements } of messages.find(where, { projection })) {
    const counted = placements.filter(({ folderId }) => counts.has(folderId))
    countChange(counts, [], counted)
  }
  return counts
}

/** Marks the folder's counts as doubtful, until the rows written from now on are counted. */
export async function beginCounting({ collections }: MongoContext, _id: string): Promise<void> {
  await collections.folders.updateOne({ _id }, { $set: { counting: true } })
}

/** Counts folders with doubtful counts again. Precondition: no other process writes. */
export async function endCounting({ collections }: Pick<MongoContext, 'collections'>): Promise<void> {
  for (const { _id, accountId } of await collections.folders.find({ counting: true }).toArray()) {
    const counts = (await countRows({ collections }, [accountId], [_id])).get(_id) ?? noCounts
    await collections.folders.updateOne({ _id, accountId }, { $set: { counts }, $unset: { counting: true } })
  }
}

const reconcile =
  (context: MongoContext): FolderStore['reconcile'] =>
  async (accountId, epoch, listed, complete) => {
    const { folders } = context.collections
    const { completeAt } = await checkEpoch(context, accountId, epoch)
    const docs = await folders.find({ accountId }, context.read).toArray()
    const stored = new Map(docs.map((doc) => [doc._id, shapes.folders.record(doc)]))
    const byId = new Map(listed.map((item) => [folderId(accountId, item.path), item]))
    // After a crash counts are doubtful; after a replacement cut short a new folder has old placements.
    const cutShort = docs.filter(({ counting }) => counting === true).map(({ _id }) => _id)
    const unsure = new Set(cutShort).union(new Set(byId.keys()).difference(stored))
    const counts = await countRows(context, [accountId], [...unsure])
    const changes = [...byId].flatMap(([id, item]) => {
      const there = stored.get(id) ?? null
      const next = listedFolder(accountId, epoch, there, item)
      const counted = counts.get(id)
      return counted === undefined && isDeepStrictEqual(next, there) ? [] : [upsert(next, counted)]
    })
    const opens = [...byId].some(([id, { selectable }]) => selectable && stored.get(id)?.selectable !== true)
    if (opens && typeof completeAt === 'number') await markIncomplete(context, accountId, epoch)
    if (changes.length > 0) {
      await folders.bulkWrite(changes, { ordered: false })
      await checkEpoch(context, accountId, epoch)
    }
    const missing = [...stored.values()].filter(({ id }) => !byId.has(id))
    for (const folder of complete ? missing : []) await removeFolder(context, folder, epoch)
    const all = await list(context, accountId)
    if (typeof completeAt !== 'number' && isWhole(all)) await completeIfWhole(context, accountId, epoch)
    return all
  }

function othersFilter(accountId: string, folderId: string, keep: string | null): Filter<MessageDoc> {
  const validity = keep === null ? {} : { uidValidity: { $ne: keep } }
  return { accountId, placements: { $elemMatch: { folderId, ...validity } } }
}

/** Moves placements in the folder to `gone`, of up to `limit` messages. Returns the rest, at most limit + 1. */
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
  const docs = await readPlaced(context, where, limit)
  const lost = (there: Placement): boolean => there.folderId === folderId && there.uidValidity !== keepUidValidity
  if (docs.length > 0) await beginCounting(context, folderId)
  await changeMessages(context, accountId, docs, (record) => vanishWhere(record, lost, at))
  return messages.countDocuments(where, { ...context.read, limit: limit + 1 })
}

/** Removes the placements in bounded steps, then the folder. */
async function removeFolder(context: MongoContext, { id, accountId }: FolderRecord, epoch: number): Promise<void> {
  do await checkEpoch(context, accountId, epoch)
  while ((await forgetFolder(context, accountId, id, null, stepPlacements)) > 0)
  await context.collections.folders.deleteOne({ _id: id, accountId, epoch })
}

export function createFolders(context: MongoContext, keyed: KeyedCollections): FolderStore {
  return {
    ...folderBasics(keyed),
    list: (accountId) => list(context, accountId),
    reconcile: reconcile(context),
  }
}
