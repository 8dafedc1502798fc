/**
 * Message documents, and the one way they change after they are inserted: read, a pure step of rows.ts, and a write
 * that compares the version. Each account has one writer, but an earlier write of its own, whose answer was lost, may
 * come late: then the row is read again and the step repeated.
 */
import type { AnyBulkWriteOperation } from 'mongodb'
import type { Step } from '../batch.ts'
import type { MessageRecord } from '../records.ts'
import { folderKeys, goneAt, isLive, messageKeys, subjectKeyOf } from '../rows.ts'
import { shapes, type MessageDoc, type MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'

const { record: messageRecord } = shapes.messages

/** `counted`: kinds of contact deltas that it has been counted for. */
export function messageDoc(record: MessageRecord, counted: readonly string[] = []): MessageDoc {
  const at = goneAt(record)
  return {
    ...shapes.messages.doc(record),
    live: isLive(record),
    keys: messageKeys(record),
    subjectKey: subjectKeyOf(record),
    ...(at === null ? {} : { goneAt: at }),
    v: 0,
    ...(counted.length === 0 ? {} : { counted }),
  }
}

/** A row that is written by others this often in a row is not a busy row but a fault. */
const tries = 20

function update(doc: MessageDoc, step: Step): AnyBulkWriteOperation<MessageDoc> | null {
  const record = messageRecord(doc)
  const next = step(record)
  if (next === record) return null
  const at = goneAt(next)
  const { placements, gone } = next
  const derived = { ...keysAfter(record, next), ...(at === null ? {} : { goneAt: at }) }
  return {
    updateOne: {
      filter: { _id: doc._id, accountId: doc.accountId, v: doc.v },
      update: {
        $set: { placements, gone, ...derived },
        $inc: { v: 1 },
        ...(at === null && doc.goneAt !== undefined ? { $unset: { goneAt: 1 } } : {}),
      },
    },
  }
}

/** The facts never change: keys and life follow from the folders alone, and flags touch neither. */
function keysAfter(before: MessageRecord, after: MessageRecord): Partial<Pick<MessageDoc, 'live' | 'keys'>> {
  const [had, has] = [folderKeys(before), folderKeys(after)]
  if (had.length === has.length && had.every((key, index) => key === has[index])) return {}
  return { live: isLive(after), keys: messageKeys(after) }
}

/** In one bulk; those that were written meanwhile again, until the step has nothing left to do. */
export async function changeMessages(
  { collections: { messages } }: MongoContext,
  accountId: string,
  docs: readonly MessageDoc[],
  step: Step,
): Promise<void> {
  let pending = docs
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const operations = pending.flatMap((doc) => {
      const operation = update(doc, step)
      return operation ? [{ id: doc._id, operation }] : []
    })
    if (operations.length === 0) return
    const result = await messages.bulkWrite(
      operations.map(({ operation }) => operation),
      { ordered: false },
    )
    if (result.matchedCount === operations.length) return
    const ids = operations.map(({ id }) => id)
    pending = await messages.find({ accountId, _id: { $in: ids } }).toArray()
  }
  throw unavailable(new Error(`messages of account ${accountId} are written by others without end`))
}
