/** Unordered bulks in which a duplicate key is an answer, not a failure. */
import { MongoBulkWriteError, type Collection, type OptionalUnlessRequiredId } from 'mongodb'
import { isDuplicate, writeFailures } from './errors.ts'

/** Inserts the documents whose `_id` is not there yet. Answers those that were new, in their order. */
export async function insertMissing<D extends { readonly _id: string }>(
  collection: Collection<D>,
  docs: readonly D[],
): Promise<D[]> {
  if (docs.length === 0) return []
  try {
    await collection.insertMany(docs as readonly OptionalUnlessRequiredId<D>[], { ordered: false })
    return [...docs]
  } catch (error) {
    if (!isDuplicate(error, ['_id_'])) throw error
    const known = new Set(error instanceof MongoBulkWriteError ? writeFailures(error).map(({ index }) => index) : [0])
    return docs.filter((_, index) => !known.has(index))
  }
}
