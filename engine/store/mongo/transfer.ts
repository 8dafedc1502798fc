/** Exports and imports all records of the database for ../copy.ts. */
import type { Collection, Filter } from 'mongodb'
import { AppError } from '../../errors.ts'
import { connect, describeUri, type ConnectOptions, type Role } from './connect.ts'
import { contactDoc } from './contacts.ts'
import { openCollections, shapes } from './documents.ts'
import type { Collections, ContactDoc, KeyDoc, MessageDoc, NonceDoc, Shape } from './documents.ts'
import { guarded } from './errors.ts'
import { nonceDoc } from './keyed.ts'
import { alonePatienceMs } from './members.ts'
import { messageDoc } from './messages.ts'
import { endCounting } from './folders.ts'
import { copyNote, saveCopyNote, storeIdentity, storeServed } from './schema.ts'
import type { ExportedPage, StoreTransfer, TransferName, TransferRecords } from '../transfer.ts'

export interface MongoTransferOptions extends Omit<ConnectOptions, 'pool' | 'member'> {
  readonly role: Exclude<Role, 'service'>
  /** For tests. */
  readonly patienceMs?: number
  readonly beatMs?: number
}

/** Export and import of one collection. */
interface Side<R> {
  count(): Promise<number>
  export(after: string | null, limit: number): Promise<ExportedPage<R>>
  import(records: readonly R[]): Promise<void>
}

function side<D extends { readonly _id: string }, R>(
  collection: Collection<D>,
  shape: Pick<Shape<R, D>, 'doc' | 'record'>,
  alive: () => Filter<D> = () => ({}),
): Side<R> {
  return {
    count: () => collection.countDocuments(alive()),
    export: async (after, limit) => {
      const filter = { ...alive(), _id: { $gt: after ?? '' } } as Filter<D>
      const docs = (await collection.find(filter).sort({ _id: 1 }).limit(limit).toArray()) as unknown as D[]
      const last = docs.at(-1)
      return { records: docs.map(shape.record), next: last && docs.length === limit ? last._id : null }
    },
    import: async (records) => {
      if (records.length === 0) return
      const operations = records.map((record) => {
        const doc = shape.doc(record)
        const { _id, ...fields } = doc
        // A sharded collection accepts an upsert only with its shard key.
        const key = 'accountId' in doc ? { _id, accountId: doc.accountId } : { _id }
        return { replaceOne: { filter: key as unknown as Filter<D>, replacement: fields as never, upsert: true } }
      })
      await collection.bulkWrite(operations, { ordered: false })
    },
  }
}

type Sides = { readonly [N in TransferName]: Side<TransferRecords[N]> }

function createSides(collections: Collections): Sides {
  const plain = Object.entries(shapes).map(([name, shape]) => {
    const collection = collections[name as keyof typeof shapes]
    return [name, side(collection as unknown as Collection<KeyDoc>, shape as unknown as Shape<object, KeyDoc>)]
  })
  const messages = side<MessageDoc, TransferRecords['messages']>(collections.messages, {
    record: (doc) => ({ message: shapes.messages.record(doc), counted: doc.counted ?? [] }),
    doc: ({ message, counted }) => messageDoc(message, counted),
  })
  const contacts = side<ContactDoc, TransferRecords['contacts']>(collections.contacts, {
    record: (doc) => ({ contact: shapes.contacts.record(doc), counted: doc.applied }),
    doc: ({ contact, counted }) => contactDoc(contact, counted),
  })
  const nonces = side<NonceDoc, TransferRecords['nonces']>(
    collections.nonces,
    {
      record: ({ apiKey, nonce, timestamp, expiresAt }) => {
        return { apiKey, nonce, timestamp, expiresAt: expiresAt.getTime() }
      },
      doc: ({ apiKey, nonce, timestamp, expiresAt }) => nonceDoc(apiKey, nonce, timestamp, expiresAt),
    },
    () => ({ expiresAt: { $gt: new Date() } }),
  )
  return { ...Object.fromEntries(plain), messages, contacts, nonces } as Sides
}

/**
 * Connects, and works in the database alone. AppError `conflict` when another process works in it, now or later. Other
 * errors as in ../transfer.ts.
 */
export async function openMongoTransfer(options: MongoTransferOptions): Promise<StoreTransfer> {
  const { host, name } = describeUri(options.uri)
  let alone = true
  const lost = (): void => void (alone = false)
  const { patienceMs = alonePatienceMs, beatMs } = options
  const { db, close } = await connect({ ...options, pool: 4, member: { lost, patienceMs, beatMs } }, options.role)
  const collections = openCollections(db)
  // The records have no `counting`, so doubtful counts are counted first.
  if (options.role === 'source') await endCounting({ collections })
  const sides = createSides(collections)
  const mustBeAlone = (): void => {
    if (!alone) throw new AppError('conflict', `${host}/${name}: another process has begun to serve the database`)
  }
  const steps = guarded<Omit<StoreTransfer, 'name' | 'close'>>(
    {
      identity: () => storeIdentity(collections),
      served: () => storeServed(collections),
      count: (collection) => sides[collection].count(),
      export: (collection, after, limit) => {
        mustBeAlone()
        return sides[collection].export(after, limit)
      },
      import: (collection, records) => {
        mustBeAlone()
        return sides[collection].import(records)
      },
      progress: () => copyNote(collections),
      saveProgress: (note) => saveCopyNote(collections, note),
    },
    options.timeoutMs,
    ['count', 'export', 'import'],
  )
  return { name: `${host}/${name}`, ...steps, close }
}
