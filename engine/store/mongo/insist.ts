/**
 * Requests whose answer may be lost: repeated until the server says what became of them, as long as the caller waits. An insert
 * that is found there when it is repeated is our own, since its id was made for it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Collection, OptionalUnlessRequiredId } from 'mongodb'
import { isAppError } from '../../errors.ts'
import type { MongoContext } from './documents.ts'
import { isDuplicate, isRolledBack, storeError, unavailable } from './errors.ts'

const firstWaitMs = 50
const longestWaitMs = 1000

/** When the caller of a step that begins now stops waiting. */
export function deadlineOf({ read }: MongoContext): number {
  return performance.now() + read.maxTimeMS
}

/** Runs `request` until it is answered: `again` is false the first time. Past the deadline nothing is begun any more. */
export async function insist<T>(deadline: number, request: (again: boolean) => Promise<T>): Promise<T> {
  for (let waitMs = firstWaitMs, again = false; ; waitMs = Math.min(waitMs * 2, longestWaitMs), again = true) {
    if (performance.now() > deadline) throw unavailable(new Error('nobody waits for this any more'))
    try {
      return await request(again)
    } catch (error) {
      const passes = isRolledBack(error) || isAppError(storeError(error), 'store_unavailable')
      if (!passes || performance.now() + waitMs > deadline) throw error
    }
    await sleep(waitMs)
  }
}

/** Inserts a document with an id of its own. Duplicate key errors are those of the driver. */
export async function insertOnce<D extends { readonly _id: string }>(
  collection: Collection<D>,
  doc: D,
  deadline: number,
): Promise<void> {
  await insist(deadline, async (again) => {
    try {
      await collection.insertOne(doc as OptionalUnlessRequiredId<D>)
    } catch (error) {
      // any index: of those that the document violates by itself the server names one
      if (!again || !isDuplicate(error) || !(await isThere(collection, doc._id))) throw error
    }
  })
}

async function isThere<D extends { readonly _id: string }>(collection: Collection<D>, id: string): Promise<boolean> {
  const found = await collection.find<{ readonly _id: string }>({ _id: id } as never, { projection: { _id: 1 } }).next()
  return found !== null
}
