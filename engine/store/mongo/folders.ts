/** Folders of an account: what the server lists, and how far each has been read. */
import { isDeepStrictEqual } from 'node:util'
import type { Filter } from 'mongodb'
import { folderBasics, type KeyedCollections } from '../aggregates.ts'
import { folderId } from '../ids.ts'
import type { FolderStore, ListedFolder } from '../port.ts'
import type { FolderRecord, Placement } from '../records.ts'
import { folderRank, listedFolder, vanishWhere } from '../rows.ts'
import { checkEpoch, clearUpBehind } from './accounts.ts'
import { shapes, type MessageDoc, type MongoContext } from './documents.ts'
import { changeMessages } from './messages.ts'

const folderOrder = { path: 1 } as const

const stepPlacements = 500

async function list({ collections, read }: MongoContext, accountId: string): Promise<FolderRecord[]> {
  const docs = await collections.folders.find({ accountId }, read).sort(folderOrder).toArray()
  return docs.map(shapes.folders.record).sort((left, right) => folderRank(left.path) - folderRank(right.path))
}

/** How far a folder was read, and how often it failed, belong to the sync: they are set on new rows alone. */
function upsert(next: FolderRecord, { messages, unseen }: ListedFolder) {
  const { id, accountId, cursor, failures, parkedUntil, ...listed } = next
  const kept = {
    ...(messages === null ? { messages: listed.messages } : {}),
    ...(unseen === null ? { unseen: listed.unseen } : {}),
  }
  const set = Object.fromEntries(Object.entries(listed).filter(([field]) => !(field in kept)))
  const update = { $set: set, $setOnInsert: { cursor, failures, parkedUntil, ...kept } }
  return { updateOne: { filter: { _id: id, accountId }, update, upsert: true } }
}

async function reconcile(
  context: MongoContext,
  accountId: string,
  epoch: number,
  listed: readonly ListedFolder[],
  complete: boolean,
): Promise<FolderRecord[]> {
  const { folders } = context.collections
  await checkEpoch(context, accountId, epoch)
  const stored = new Map((await list(context, accountId)).map((folder) => [folder.id, folder]))
  const byId = new Map(listed.map((item) => [folderId(accountId, item.path), item]))
  const changes = [...byId].flatMap(([id, item]) => {
    const there = stored.get(id) ?? null
    const next = listedFolder(accountId, epoch, there, item)
    return isDeepStrictEqual(next, there) ? [] : [upsert(next, item)]
  })
  if (changes.length > 0) {
    await folders.bulkWrite(changes, { ordered: false })
    // an upsert makes what a removal has taken: its account is gone by then
    await clearUpBehind(context, accountId)
    await checkEpoch(context, accountId, epoch)
  }
  const missing = [...stored.values()].filter(({ id }) => !byId.has(id))
  for (const folder of complete ? missing : []) await removeFolder(context, folder, epoch)
  return list(context, accountId)
}

function othersFilter(accountId: string, folderId: string, keep: string | null): Filter<MessageDoc> {
  const validity = keep === null ? {} : { uidValidity: { $ne: keep } }
  return { accountId, placements: { $elemMatch: { folderId, ...validity } } }
}

/** Moves places in the folder to `gone`, of up to `limit` messages. Answers how many are left, at most `limit` + 1. */
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
  await changeMessages(context, accountId, docs, (record) => vanishWhere(record, lost, at))
  return messages.countDocuments(where, { ...context.read, limit: limit + 1 })
}

/** The placements first, in bounded steps, then the folder. */
async function removeFolder(context: MongoContext, { id, accountId }: FolderRecord, epoch: number): Promise<void> {
  for (;;) {
    await checkEpoch(context, accountId, epoch)
    if ((await forgetFolder(context, accountId, id, null, stepPlacements)) === 0) break
  }
  await context.collections.folders.deleteOne({ _id: id, accountId, epoch })
}

export function createFolders(context: MongoContext, keyed: KeyedCollections): FolderStore {
  return {
    ...folderBasics(keyed),
    list: (accountId) => list(context, accountId),
    reconcile: (accountId, epoch, listed, complete) => reconcile(context, accountId, epoch, listed, complete),
  }
}
