/**
 * The schema's version, kept in `meta`: steps forward, each idempotent, since a start may die in the middle of one and two
 * nodes may take it at the same time. A step that has been released is never edited; a new one is added.
 */
import type { Db } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import type { MongoContext } from './documents.ts'

export interface Migration {
  /** What it does, for the log. */
  readonly name: string
  up(db: Db): Promise<void>
}

/** Step n leads from version n + 1 to n + 2: version 1 is what indexes.ts makes in an empty database. */
export const migrations: readonly Migration[] = []

/** Brings the database up to date. AppError `bad_request`, one line, when a newer Mailroom has written it. */
export async function migrate(
  db: Db,
  { collections }: Pick<MongoContext, 'collections'>,
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
async function setVersion(collections: MongoContext['collections'], version: number): Promise<void> {
  await collections.meta.updateOne({ _id: 'schema' }, { $max: { version } }, { upsert: true })
}
