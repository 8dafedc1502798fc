/**
 * The facts in `meta`. The schema has steps forward, each idempotent: a start may die in the middle of one. A step that
 * has been released is never edited; a new one is added.
 */
import type { Db } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import { newId } from '../ids.ts'
import type { Collections } from './documents.ts'

export interface Migration {
  readonly name: string
  up(db: Db): Promise<void>
}

/** Step n leads from version n + 1 to n + 2: version 1 is what indexes.ts makes in an empty database. */
export const migrations: readonly Migration[] = [
  { name: 'indexes whose place others have taken', up: (db) => dropIndexes(db, replaced) },
]

const replaced = { messages: ['messages_by_message_id', 'messages_by_hosted_id'] } as const

const notFound = new Set([26, 27])

async function dropIndexes(db: Db, names: Readonly<Record<string, readonly string[]>>): Promise<void> {
  for (const [collection, indexes] of Object.entries(names)) {
    for (const index of indexes) {
      try {
        await db.collection(collection).dropIndex(index)
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : null
        if (typeof code !== 'number' || !notFound.has(code)) throw error
      }
    }
  }
}

/** Brings the database up to date. AppError `bad_request`, one line, when a newer Mailroom has written it. */
export async function migrate(
  db: Db,
  { collections }: { readonly collections: Collections },
  log: Logger,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  const newest = steps.length + 1
  const stored = await collections.meta.findOne({ _id: 'schema' })
  const version = typeof stored?.version === 'number' ? stored.version : newest
  if (version > newest) {
    throw new AppError(
      'bad_request',
      `the database has schema version ${version}, newer than the ${newest} this Mailroom knows: use a newer Mailroom`,
      { details: { version, known: newest } },
    )
  }
  for (const [offset, step] of steps.slice(version - 1).entries()) {
    const started = performance.now()
    await step.up(db)
    await setVersion(collections, version + offset + 1)
    const ms = Math.round(performance.now() - started)
    log.info({ step: step.name, version: version + offset + 1, ms }, 'database migrated')
  }
  if (!stored) await setVersion(collections, newest)
}

/** Never back: another node may be further. */
async function setVersion({ meta }: Collections, version: number): Promise<void> {
  await meta.updateOne({ _id: 'schema' }, { $max: { version } }, { upsert: true })
}

/** Whether a Mailroom has ever used the database. Makes nothing. */
export async function isStore({ meta }: Collections): Promise<boolean> {
  return (await meta.findOne({ _id: 'schema' })) !== null
}

/** What names the store wherever it is reached: given once, at random. */
export async function storeIdentity({ meta }: Collections): Promise<string> {
  await meta.updateOne({ _id: 'identity' }, { $setOnInsert: { id: newId() } }, { upsert: true })
  const stored = await meta.findOne({ _id: 'identity' })
  return String(stored?.['id'])
}

/** What an unfinished copy into this store has noted of its progress; null = none is under way. */
export async function copyNote({ meta }: Collections): Promise<string | null> {
  const stored = await meta.findOne({ _id: 'copy' })
  return typeof stored?.['note'] === 'string' ? stored['note'] : null
}

export async function saveCopyNote({ meta }: Collections, note: string | null): Promise<void> {
  if (note === null) await meta.deleteOne({ _id: 'copy' })
  else await meta.updateOne({ _id: 'copy' }, { $set: { note } }, { upsert: true })
}

/** A write that the database keeps. With `room` there is space for so many more bytes, or it rejects. */
export async function probeWrite({ meta }: Collections, room: number, now: () => number): Promise<void> {
  const save = (padding: string) => meta.updateOne({ _id: 'probe' }, { $set: { at: now(), padding } }, { upsert: true })
  if (room > 0) await save('.'.repeat(room))
  await save('')
}
