/**
 * Moves everything from one store to another, with progress, verified by count. No engine may run on either side. The
 * target notes position and source after every page, so that a copy that was cut short goes on when it is started
 * again.
 */
import { AppError } from '../errors.ts'
import type { Kinds } from './keyed.ts'
import type * as stored from './records.ts'

export interface CountedMessage {
  readonly message: stored.MessageRecord
  readonly counted: readonly string[]
}

/** A contact with `<account> <delta's key>` of counted deltas whose messages may not be there to say so. */
export interface CountedContact {
  readonly contact: stored.StoredContact
  readonly counted: readonly string[]
}

export interface NonceRow {
  readonly apiKey: string
  readonly nonce: string
  readonly timestamp: number
  readonly expiresAt: number
}

export interface TransferRecords extends Omit<Kinds, 'contacts'> {
  readonly messages: CountedMessage
  readonly contacts: CountedContact
  readonly nonces: NonceRow
}

export type TransferName = keyof TransferRecords

/** Records that expire by themselves, at any moment of a copy: their counts prove nothing. */
const expiring: ReadonlySet<TransferName> = new Set(['nonces', 'tokens'])

/** In the order in which they are copied: what others lean on comes first. */
export const transferNames = [
  'developers',
  'users',
  'accounts',
  'folders',
  'messages',
  'changes',
  'webhooks',
  'scans',
  'outbox',
  'contacts',
  'tokens',
  'providers',
  'operators',
  'nonces',
  'calls',
] as const satisfies readonly TransferName[]

export interface ExportedPage<N extends TransferName> {
  readonly records: readonly TransferRecords[N][]
  /** Where the next page starts; null = this was the last. */
  readonly next: string | null
}

/** All that a store holds, as plain records. Not part of the port: only the copy uses it. */
export interface StoreTransfer {
  /** What it is, for people: host and database, or the path. Never a password. */
  readonly name: string
  /** What names it however it is spelt and reached. */
  identity(): Promise<string>
  /** What has expired does not count, and is not exported. */
  count(collection: TransferName): Promise<number>
  /** A page in a stable order, after the position that the page before gave (null = from the start). */
  export<N extends TransferName>(collection: N, after: string | null, limit: number): Promise<ExportedPage<N>>
  import<N extends TransferName>(collection: N, records: readonly TransferRecords[N][]): Promise<void>
  /** What a copy into this store has noted of its progress; null = none is under way. */
  progress(): Promise<string | null>
  saveProgress(note: string | null): Promise<void>
  close(): Promise<void>
}

export interface CopyOptions {
  readonly from: StoreTransfer
  readonly to: StoreTransfer
  /** Copy although the target holds something: records with the same id are written over, others stay. */
  readonly intoExisting: boolean
  readonly progress: (step: CopyStep) => void
  readonly pageSize?: number
}

export interface CopyStep {
  readonly collection: TransferName
  readonly copied: number
  readonly total: number
}

export type Counts = Readonly<Record<TransferName, number>>

interface Note {
  readonly source: string
  readonly sourceId: string
  readonly intoExisting: boolean
  readonly collection: TransferName
  readonly after: string | null
  readonly copied: number
}

const defaultPageSize = 500

export async function countAll(store: StoreTransfer): Promise<Counts> {
  const counts: [TransferName, number][] = []
  for (const name of transferNames) counts.push([name, await store.count(name)])
  return Object.fromEntries(counts) as Counts
}

/**
 * Copies and verifies; answers the counts of the source. AppError `conflict` when the target is not empty (and may not
 * be), or is the target of an unfinished copy from elsewhere; `internal` when the counts differ at the end.
 */
export async function copyStore(options: CopyOptions): Promise<Counts> {
  const { from, to } = options
  const note = await startOf(options)
  for (const name of transferNames.slice(transferNames.indexOf(note.collection))) {
    if (name === note.collection) await copyCollection(options, note)
    else {
      const begun = { ...note, collection: name, after: null, copied: 0 }
      await to.saveProgress(JSON.stringify(begun))
      await copyCollection(options, begun)
    }
  }
  const counts = await verify(from, to, note.intoExisting)
  await to.saveProgress(null)
  return counts
}

/** Where to go on: the noted position of an earlier try, or the very start of a target that may be written. */
async function startOf({ from, to, intoExisting }: CopyOptions): Promise<Note> {
  const sourceId = await from.identity()
  const text = await to.progress()
  if (text !== null) {
    const note = JSON.parse(text) as Note
    if (note.sourceId === sourceId) return note
    throw new AppError('conflict', `${to.name} is the target of an unfinished copy from ${note.source}`)
  }
  const held = Object.entries(await countAll(to)).filter(([, count]) => count > 0)
  if (held.length > 0 && !intoExisting) {
    const what = held.map(([name, count]) => `${count} ${name}`).join(', ')
    throw new AppError('conflict', `${to.name} is not empty (${what}); --into-existing copies into it all the same`)
  }
  const begun = { collection: transferNames[0], after: null, copied: 0 }
  const start: Note = { source: from.name, sourceId, intoExisting, ...begun }
  await to.saveProgress(JSON.stringify(start))
  return start
}

async function copyCollection(options: CopyOptions, begun: Note): Promise<void> {
  const { from, to, progress, pageSize = defaultPageSize } = options
  const { collection } = begun
  const total = await from.count(collection)
  let { after, copied } = begun
  for (;;) {
    const page = await from.export(collection, after, pageSize)
    if (page.records.length > 0) {
      await to.import(collection, page.records)
      copied += page.records.length
      progress({ collection, copied, total })
    }
    if (page.next === null) return
    after = page.next
    await to.saveProgress(JSON.stringify({ ...begun, after, copied } satisfies Note))
  }
}

async function verify(from: StoreTransfer, to: StoreTransfer, intoExisting: boolean): Promise<Counts> {
  const [source, target] = [await countAll(from), await countAll(to)]
  const wrong = transferNames
    .filter((name) => !expiring.has(name))
    .filter((name) => (intoExisting ? target[name] < source[name] : target[name] !== source[name]))
  if (wrong.length === 0) return source
  const what = wrong.map((name) => `${name}: ${source[name]} there, ${target[name]} here`).join('; ')
  throw new AppError('internal', `the copy is not whole (is a service running on either side?): ${what}`)
}
