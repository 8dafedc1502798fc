/** Exports and imports all records of the database for ../copy.ts. */
import type { Collection } from 'mongodb'
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
import { openFacts } from './schema.ts'
import { createTransfer, type CountedContact, type CountedMessage } from '../transfer.ts'
import type { NonceRow, Side, StoreTransfer, TransferName, TransferRecords } from '../transfer.ts'

export interface MongoTransferOptions extends Omit<ConnectOptions, 'pool' | 'member'> {
  readonly role: Exclude<Role, 'service'>
  /** For tests. */
  readonly patienceMs?: number
  readonly beatMs?: number
}

type Copied<R, D> = Pick<Shape<R, D>, 'doc' | 'record'>

const messages: Copied<CountedMessage, MessageDoc> = {
  record: (doc) => ({ message: shapes.messages.record(doc), counted: doc.counted ?? [] }),
  doc: ({ message, counted }) => messageDoc(message, counted),
}

const contacts: Copied<CountedContact, ContactDoc> = {
  record: (doc) => ({ contact: shapes.contacts.record(doc), counted: doc.applied }),
  doc: ({ contact, counted }) => contactDoc(contact, counted),
}

const nonces: Copied<NonceRow, NonceDoc> = {
  record: ({ apiKey, nonce, timestamp, expiresAt }) => {
    return { apiKey, nonce, timestamp, expiresAt: expiresAt.getTime() }
  },
  doc: ({ apiKey, nonce, timestamp, expiresAt }) => nonceDoc(apiKey, nonce, timestamp, expiresAt),
}

const copied = { ...shapes, messages, contacts, nonces }

function sideOf<N extends TransferName>(collections: Collections, name: N): Side<TransferRecords[N]> {
  const collection = collections[name] as unknown as Collection<KeyDoc>
  const shape = copied[name] as unknown as Copied<TransferRecords[N], KeyDoc>
  const valid = () => (name === 'nonces' ? { expiresAt: { $gt: new Date() } } : {})
  return {
    count: () => collection.countDocuments(valid()),
    export: async (after, limit) => {
      const behind = { ...valid(), _id: { $gt: after ?? '' } }
      const docs = await collection.find(behind).sort({ _id: 1 }).limit(limit).toArray()
      const next = docs.length === limit ? (docs.at(-1)?._id ?? null) : null
      return { records: docs.map(shape.record), next }
    },
    import: async (records) => {
      if (records.length === 0) return
      const operations = records.map(shape.doc).map((doc) => {
        const { _id, ...replacement } = doc
        // A sharded collection accepts an upsert only with its shard key.
        const filter = 'accountId' in doc ? { _id, accountId: doc.accountId } : { _id }
        return { replaceOne: { filter, replacement, upsert: true } }
      })
      await collection.bulkWrite(operations, { ordered: false })
    },
  }
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
  const mustBeAlone = (): void => {
    if (!alone) throw new AppError('conflict', `${host}/${name}: another process has begun to serve the database`)
  }
  return createTransfer({
    name: `${host}/${name}`,
    facts: guarded(openFacts(collections), options.timeoutMs),
    side: (collection) => guarded(sideOf(collections, collection), options.timeoutMs, ['count', 'export', 'import']),
    check: mustBeAlone,
    close,
  })
}
