/**
 * Rows that belong to a user are not there without it. Without transactions that takes a look before and one after the write:
 * a removal deletes the user's row and then looks for rows once more (removal.ts), so of the two at least one sees the other.
 */
import type { Collection } from 'mongodb'
import { notFound } from '../../errors.ts'
import type { MongoContext } from './documents.ts'
import { deadlineOf, insertOnce, insist } from './insist.ts'

async function checkUser({ collections, read }: MongoContext, id: string): Promise<void> {
  const user = await collections.users.findOne({ _id: id }, { ...read, projection: { _id: 1 } })
  if (!user) throw notFound('user', id)
}

/**
 * Inserts a row with an id of its own. `not_found`, and nothing written, when the user is not there, or not any more. `undo`
 * takes the row away again.
 */
export async function insertOwned<D extends { readonly _id: string }>(
  context: MongoContext,
  userId: string | null,
  collection: Collection<D>,
  doc: D,
  undo: () => Promise<unknown>,
): Promise<void> {
  const deadline = deadlineOf(context)
  if (userId === null) {
    await insertOnce(collection, doc, deadline)
    return
  }
  await insist(deadline, () => checkUser(context, userId))
  await insertOnce(collection, doc, deadline)
  try {
    await insist(deadline, () => checkUser(context, userId))
  } catch (error) {
    await undo()
    throw error
  }
}
