/** The embedded store: one SQLite file. */
import { createAggregates } from '../aggregates.ts'
import type { Store } from '../port.ts'
import { createAccounts } from './accounts.ts'
import { backupFile } from './backup.ts'
import { createChanges } from './changes.ts'
import { createContacts } from './contacts.ts'
import { openDatabase, type Database, type SyncMode } from './database.ts'
import { createFolders } from './folders.ts'
import { createNonces, openKeyedCollections } from './keyed.ts'
import { createMessages } from './messages.ts'
import { createOutbox } from './outbox.ts'
import { removeWebhook, tidyWebhooks } from './removal.ts'
import { migrate, probeWrite, refuseUnfinished } from './schema.ts'
import { createSync } from './sync.ts'
import { createUsers } from './users.ts'

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
 * `bad_request` when a newer Mailroom made it, `conflict` when the copy into it is unfinished.
 */
export async function createSqliteStore({ path, sync, now = Date.now, busyMs = 2000 }: SqliteOptions): Promise<Store> {
  const db = openDatabase(path, sync, busyMs)
  try {
    await migrate(db, path)
    await refuseUnfinished(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  return createStore(db, path, now)
}

function createStore(db: Database, path: string, now: () => number): Store {
  const keyed = openKeyedCollections(db, now)
  return {
    kind: 'sqlite',
    ...createAggregates(keyed, (id) => removeWebhook(db, id, false)),
    users: createUsers(db, keyed),
    accounts: createAccounts(db, keyed),
    folders: createFolders(db, keyed, now),
    messages: createMessages(db),
    sync: createSync(db, now),
    changes: createChanges(db, keyed),
    outbox: createOutbox(db, keyed),
    contacts: createContacts(db, keyed),
    nonces: createNonces(db, now),
    tidy: () => tidyWebhooks(db),
    ping: (room = 0) => probeWrite(db, room, now),
    backup: (target) => backupFile(path, target),
    close: () => {
      db.close()
      return Promise.resolve()
    },
  }
}
