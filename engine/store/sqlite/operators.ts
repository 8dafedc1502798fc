/** The operators alone, beside a process that may have the store in use: no other part of it may be opened so. */
import { AppError } from '../../errors.ts'
import { createAggregates } from '../aggregates.ts'
import type { Store } from '../port.ts'
import { openDatabase } from './database.ts'
import { openKeyedCollections } from './keyed.ts'
import { migrations } from './schema.ts'

/** The service holds the lock for the time of one commit. */
const busyMs = 5000

/** `bad_request` when the schema is not this Mailroom's: it is for the service to change it. */
export function openOperators(path: string): { readonly operators: Store['operators']; readonly close: () => void } {
  const db = openDatabase(path, 'full', busyMs)
  const version = db.number('PRAGMA user_version')
  if (version !== migrations.length) {
    db.close()
    const words = `${path} has schema version ${version}, not ${migrations.length}: start the service of this version once`
    throw new AppError('bad_request', words)
  }
  const { operators } = createAggregates(openKeyedCollections(db, Date.now), () => Promise.resolve())
  return { operators, close: () => db.close() }
}
