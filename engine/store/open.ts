/** MongoDB when MONGODB_URI is set, else one SQLite file in the data directory. */
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { makeDataDir } from '../data-dir.ts'
import type { Logger } from '../observe/log.ts'
import type { Store } from './port.ts'
import { createSqliteStore } from './sqlite/index.ts'
import { lockStore } from './sqlite/file.ts'

export type StoreConfig = Pick<
  Config,
  'MONGODB_URI' | 'MAILROOM_MONGO_POOL' | 'MAILROOM_STORE_TIMEOUT' | 'MAILROOM_DATA_DIR' | 'MAILROOM_SQLITE_SYNC'
>

/**
 * Opens the store with its schema up to date. AppError `bad_request` (one line) when the configuration is wrong or a
 * newer Mailroom made the data; `conflict` when another process uses the embedded file or the copy into the store is
 * unfinished, `store_unavailable` when it cannot be opened. Waits for a MongoDB that is away, or that another process
 * serves; `lost` is called when another one has taken over.
 */
export async function openStore(
  config: StoreConfig,
  log: Logger,
  signal?: AbortSignal,
  lost: () => void = () => undefined,
): Promise<Store> {
  if (config.MONGODB_URI !== null) return openMongo(config.MONGODB_URI, config, log, signal, lost)
  const directory = config.MAILROOM_DATA_DIR
  makeDataDir(directory)
  const path = join(directory, 'mailroom.sqlite')
  const release = lockStore(path)
  try {
    const store = await createSqliteStore({ path, sync: config.MAILROOM_SQLITE_SYNC })
    log.info({ store: 'sqlite', path }, 'store open')
    return { ...store, close: () => store.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

/** The driver is loaded only when it is used: it costs memory. */
async function openMongo(
  uri: string,
  config: StoreConfig,
  log: Logger,
  signal: AbortSignal | undefined,
  lost: () => void,
): Promise<Store> {
  const { createMongoStore } = await import('./mongo/index.ts')
  return createMongoStore({
    uri,
    pool: config.MAILROOM_MONGO_POOL,
    timeoutMs: config.MAILROOM_STORE_TIMEOUT,
    log,
    lost,
    ...(signal === undefined ? {} : { signal }),
  })
}
