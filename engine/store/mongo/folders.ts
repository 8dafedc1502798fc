/** Folders of an account: what the server lists, and how far each has been read. */
import type { Filter } from 'mongodb'
import { folderId } from '../ids.ts'
import type { FolderStore, ListedFolder } from '../port.ts'
import type { FolderRecord, Placement } from '../records.ts'
import { folderRank, listedFolder, vanishWhere } from '../rows.ts'
import { checkEpoch } from './accounts.ts'
import { orNull, toRecord, type Doc, type MessageDoc, type MongoContext } from './documents.ts'
import { changeMessages } from './message-rows.ts'

const folderOrder = { path: 1 } as const

/** Placements taken away between two checks of the epoch when a folder goes. */
const stepPlacements = 500

async function list({ collections, read }: MongoContext, accountId: string): Promise<FolderRecord[]> {
  const docs = await collections.folders.find({ accountId }, read).sort(folderOrder).toArray()
  const records = docs.map((doc) => toRecord<FolderRecord>(doc))
  return records.sort((left, right) => folderRank(left.path) - folderRank(right.path))
}

/**
 * What the server says, on rows old and new; how far a folder was read belongs to the sync and is set on new rows
 * alone.
 */
function upsert(accountId: string, epoch: number, listed: ListedFolder) {
  const {
    id,
    accountId: owner,
    cursor,
    failures,
    parkedUntil,
    messages,
    unseen,
    ...said
  } = listedFolder(accountId, epoch, null, listed)
  const counts = {
    ...(listed.messages === null ? {} : { messages }),
    ...(listed.unseen === null ? {} : { unseen }),
  }
  const unsaid = {
    ...(listed.messages === null ? { messages } : {}),
    ...(listed.unseen === null ? { unseen } : {}),
  }
  return {
    updateOne: {
      filter: { _id: id, accountId: owner },
      update: { $set: { ...said, ...counts }, $setOnInsert: { cursor, failures, parkedUntil, ...unsaid } },
      upsert: true,
    },
  }
}

/** The same over a stored row: writes only when something differs. */
function differs(stored: FolderRecord, listed: ListedFolder, epoch: number): boolean {
  const next = listedFolder(stored.accountId, epoch, stored, listed)
  return JSON.stringify(sorted(next)) !== JSON.stringify(sorted(stored))
}

function sorted(folder: FolderRecord): [string, unknown][] {
  return Object.entries(folder).sort(([left], [right]) => (left < right ? -1 : 1))
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
  const changed = [...byId].filter(([id, item]) => {
    const there = stored.get(id)
    return there === undefined || differs(there, item, epoch)
  })
  if (changed.length > 0) {
    await folders.bulkWrite(
      changed.map(([, item]) => upsert(accountId, epoch, item)),
      { ordered: false },
    )
  }
  const missing = [...stored.values()].filter(({ id }) => !byId.has(id))
  for (const folder of complete ? missing : []) await removeFolder(context, folder, epoch)
  return list(context, accountId)
}

/** Placements of a folder but for one UIDVALIDITY (null = all). */
function othersFilter(accountId: string, folderId: string, keep: string | null): Filter<MessageDoc> {
  const validity = keep === null ? {} : { uidValidity: { $ne: keep } }
  return { accountId, placements: { $elemMatch: { folderId, ...validity } } }
}

/**
 * The folder is gone, or its UIDs mean nothing any more: moves the placements of up to `limit` messages to their
 * `gone`, and reports nothing. Answers how many messages are left with one, counted no further than `limit` + 1: a
 * large folder goes in many steps.
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

export function createFolders(context: MongoContext): FolderStore {
  const { folders } = context.collections
  const edit = async (id: string, patch: Partial<Doc<FolderRecord>>): Promise<void> => {
    await folders.updateOne({ _id: id }, { $set: patch })
  }
  return {
    list: (accountId) => list(context, accountId),
    byPath: async (accountId, path) =>
      orNull(
        await folders.findOne({ _id: folderId(accountId, path), accountId }, context.read),
        toRecord<FolderRecord>,
      ),
    reconcile: (accountId, epoch, listed, complete) => reconcile(context, accountId, epoch, listed, complete),
    setCounts: (id, { messages, unseen }) => edit(id, { messages, unseen }),
    setParked: (id, failures, parkedUntil) => edit(id, { failures, parkedUntil }),
  }
}
