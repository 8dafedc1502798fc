/**
 * Rows that belong to a user are not there without it. Without transactions that takes a look before and one after the write:
 * a removal deletes the user's row and then looks for rows once more (removal.ts), so of the two at least one sees the other.
 */
import { notFound } from '../../errors.ts'
import type { MongoContext } from './documents.ts'

async function checkUser({ collections, read }: MongoContext, id: string): Promise<void> {
  const user = await collections.users.findOne({ _id: id }, { ...read, projection: { _id: 1 } })
  if (!user) throw notFound('user', id)
}

/** `not_found`, and nothing written, when the user is not there, or not any more. `undo` takes the row away again. */
export async function insertOwned(
  context: MongoContext,
  userId: string | null,
  insert: () => Promise<unknown>,
  undo: () => Promise<unknown>,
): Promise<void> {
  if (userId === null) {
    await insert()
    return
  }
  await checkUser(context, userId)
  await insert()
  try {
    await checkUser(context, userId)
  } catch (error) {
    await undo()
    throw error
  }
}
