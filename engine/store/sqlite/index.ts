/** The embedded store: one SQLite file. */
import { AppError } from '../../errors.ts'
import { createAggregates } from '../aggregates.ts'
import { changeLog } from '../change-log.ts'
import { refuseUnfinished } from '../facts.ts'
import { newId } from '../ids.ts'
import type { Store } from '../port.ts'
import { soleNode } from '../slots.ts'
import { createAccounts, createSqliteRemoval, createUsers } from './accounts.ts'
import { backupFile } from './backup.ts'
import { createContacts } from './contacts.ts'
import { openDatabase, type Database, type SyncMode } from './database.ts'
import { createFolders } from './folders.ts'
import { createNonces, openKeyedCollections } from './keyed.ts'
import { createMessages } from './messages.ts'
import { createOutbox } from './outbox.ts'
import { migrate, newest, openFacts, probeWrite } from './schema.ts'
import { createSync, lastSeq } from './sync.ts'

export interface SqliteOptions {
  /** The database file; made when it does not exist. Its directory must. */
  readonly path: string
  /** full: a commit survives a power loss; normal: a crash of the process; off: for tests. */
  readonly sync: SyncMode
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number
  /** Longest wait for another process that holds the write lock; blocks the thread. Default 2000. */
  readonly busyMs?: number
}

/**
 * Opens the file and brings its schema up to date. AppError `store_unavailable` when the file cannot be opened,
 * `bad_request` when this Mailroom does not know its schema, `conflict` when the copy into it is unfinished.
 */
export async function createSqliteStore({ path, sync, now = Date.now, busyMs = 2000 }: SqliteOptions): Promise<Store> {
  const db = openDatabase(path, sync, busyMs)
  try {
    await migrate(db, path)
    const facts = openFacts(db)
    await refuseUnfinished(facts, path)
    await facts.save('served', newId())
    return await createStore(db, path, now)
  } catch (error) {
    await db.close()
    throw error
  }
}

/** The service holds the lock for the time of one commit. */
const patienceMs = 5000

/**
 * The operators and the audit trail alone, beside a process that may have the store in use: no other part of it may be
 * opened so. `bad_request` when the schema is not this Mailroom's: it is for the service to change it.
 */
export async function openOperators(path: string): Promise<Pick<Store, 'operators' | 'audit' | 'close'>> {
  const db = openDatabase(path, 'full', patienceMs)
  const version = db.number('PRAGMA user_version')
  if (version !== newest) {
    await db.close()
    const words = `${path} has schema version ${version}, not ${newest}: start the service of this version once`
    throw new AppError('bad_request', words)
  }
  const { operators, audit } = createAggregates(openKeyedCollections(db, Date.now), () => Promise.resolve())
  return { operators, audit, close: () => db.close() }
}

async function createStore(db: Database, path: string, now: () => number): Promise<Store> {
  const keyed = openKeyedCollections(db, now)
  const outbox = createOutbox(db, keyed)
  const removal = createSqliteRemoval(db, keyed, outbox.channels)
  // before anything is served; what cannot be finished now is left to `tidy`
  await removal.finish().catch(() => undefined)
  return {
    kind: 'sqlite',
    ...createAggregates(keyed, removal.removeWebhook),
    users: createUsers(db, keyed, removal),
    accounts: createAccounts(db, keyed, removal),
    folders: createFolders(db, keyed, now),
    messages: createMessages(db),
    sync: createSync(db, keyed, now),
    changes: changeLog(keyed, (accountId) => db.read(() => db.number(lastSeq, accountId))),
    outbox,
    contacts: createContacts(db, keyed),
    nonces: createNonces(db, now),
    nodes: soleNode(),
    tidy: removal.tidy,
    ping: (room = 0) => probeWrite(db, room, now),
    backup: (target) => backupFile(path, target),
    close: () => db.close(),
  }
}
