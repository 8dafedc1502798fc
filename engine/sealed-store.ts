/**
 * Opens the store (MongoDB when MONGODB_URI is set, else one SQLite file in the data directory) with the key that seals
 * its credentials, and seals values again with a new key. The secret of the first developer is the check value: it
 * exists since the first start, so a lost or changed key is noticed before any other read or write.
 */
import { join } from 'node:path'
import type { Config } from './config.ts'
import { keepDirPrivate, makeDataDir } from './data-dir.ts'
import { AppError } from './errors.ts'
import type { Logger } from './observe/log.ts'
import { createSealer, formerKeys, makeKey, readKey, secretFile, type Sealer } from './secrets/seal.ts'
import { pagesOf } from './store/keyed.ts'
import type { Store } from './store/port.ts'
import type { DeveloperRecord } from './store/records.ts'
import { openLocked } from './store/sqlite/file.ts'
import { createSqliteStore } from './store/sqlite/index.ts'
import { removeSpools } from './spool.ts'

/**
 * Opens the store, and brings its schema up to date. Waits for a MongoDB that is away, or whose schema is in use.
 * AppError `bad_request` (one line) when the configuration is wrong or the schema is newer; `conflict` when another
 * process uses the embedded file or a copy into the store is unfinished; `store_unavailable` when it cannot be opened.
 * `lost` makes this process a node; it is called when other nodes have taken the process for dead.
 */
export async function openStore(config: Config, log: Logger, signal?: AbortSignal, lost?: () => void): Promise<Store> {
  if (config.MONGODB_URI !== null) {
    const { MONGODB_URI: uri, MAILROOM_MONGO_POOL: pool, MAILROOM_STORE_TIMEOUT: timeoutMs } = config
    // Imported here, because the driver takes memory.
    const { createMongoStore } = await import('./store/mongo/index.ts')
    const works = config.MAILROOM_ROLE !== 'api'
    return createMongoStore({ uri, pool, timeoutMs, log, works, signal, ...(lost && { lost }) })
  }
  const directory = config.MAILROOM_DATA_DIR
  makeDataDir(directory)
  const path = join(directory, 'mailroom.sqlite')
  const store = await openLocked(path, () => createSqliteStore({ path, sync: config.MAILROOM_SQLITE_SYNC }))
  log.info({ store: 'sqlite', path }, 'store open')
  return store
}

interface SealedStore {
  readonly store: Store
  readonly sealer: Sealer
}

/** Errors as those of openStore; `bad_request` when the key is missing, or not that of this store. */
export async function openSealedStore(
  config: Config,
  log: Logger,
  signal: AbortSignal | undefined,
  lost: () => void,
): Promise<SealedStore> {
  if (config.MONGODB_URI === null || config.MAILROOM_SECRET === null) keepDirPrivate(config.MAILROOM_DATA_DIR, log)
  const key = readKey(config, log)
  const store = await openStore(config, log, signal, lost)
  removeSpools(config.MAILROOM_DATA_DIR)
  try {
    const sealer = sealerFor(await store.developers.first(), key, config)
    if (!config.MAILROOM_SECRET_LOST) refuseLost(await lostValues({ store, sealer }))
    return { store, sealer }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Stops the start when a former key still seals values. Their accounts would fail later, with less to read. */
function refuseLost(lost: Readonly<Record<string, number>>): void {
  const counts = Object.entries(lost).map(([key, count]) => `${count} sealed with the key ${key}`)
  if (counts.length === 0) return
  throw new AppError(
    'bad_request',
    `MAILROOM_SECRET_OLD: still needed for stored secrets (${counts.join(', ')}). ` +
      'Set it to the former MAILROOM_SECRET, start, and run `mailroom reseal` until it says that the setting may go. ' +
      'If that secret is lost for good: MAILROOM_SECRET_LOST=1 starts without them',
  )
}

/** For new stores. A store sealed with a shorter pass phrase still opens. */
const shortestPhrase = 16

function sealerFor(first: DeveloperRecord | null, key: Buffer | null, config: Config): Sealer {
  if (first === null) {
    const phrase = config.MAILROOM_SECRET
    if (phrase !== null && phrase.length < shortestPhrase)
      throw new AppError('bad_request', `MAILROOM_SECRET: a pass phrase needs at least ${shortestPhrase} characters`)
    return createSealer(key ?? makeKey(config), formerKeys(config))
  }
  if (key === null) {
    const file = secretFile(config)
    throw new AppError(
      'bad_request',
      `${file} is missing, and the store is sealed with it: bring it back, or set MAILROOM_SECRET to what was in it`,
    )
  }
  const sealer = createSealer(key, formerKeys(config))
  try {
    sealer.open(first.sealedSecret, first.id)
  } catch (cause) {
    // developers.ensureFirst replaces the secret.
    if (config.MAILROOM_SECRET_LOST) return sealer
    const source = config.MAILROOM_SECRET === null ? secretFile(config) : 'MAILROOM_SECRET'
    throw new AppError(
      'bad_request',
      `${source}: not the one this store was sealed with. A former one belongs in MAILROOM_SECRET_OLD until \`mailroom reseal\` is done`,
      { cause },
    )
  }
  return sealer
}

/**
 * Seals values of former keys with the current one, at most `most` of them; counts all. Each write compares with the
 * value that was read, so the process may be killed and started again at any time. `internal` when a key is missing.
 * `keys`: number of values by key id; 'v1' = sealed by a version that named no key. `left`: those of other keys.
 */
export async function reseal({ store, sealer }: SealedStore, most: number) {
  const keys: Record<string, number> = { [sealer.keyId]: 0 }
  let resealed = 0
  for await (const value of sealedValues(store)) {
    let key = sealer.keyOf(value.sealed)
    if (key !== sealer.keyId && resealed < most) {
      const done = await value.replace(sealer.seal(sealer.open(value.sealed, value.id), value.id))
      if (done) [key, resealed] = [sealer.keyId, resealed + 1]
    }
    keys[key] = (keys[key] ?? 0) + 1
  }
  const left = Object.entries(keys).reduce((sum, [key, count]) => sum + (key === sealer.keyId ? 0 : count), 0)
  return { resealed, left, done: left === 0, keys }
}

/** Number of values whose key is missing, by key id. */
async function lostValues({ store, sealer }: SealedStore): Promise<Readonly<Record<string, number>>> {
  const lost: Record<string, number> = {}
  for await (const { id, sealed } of sealedValues(store)) {
    if (sealer.opens(sealed, id)) continue
    const key = sealer.keyOf(sealed)
    lost[key] = (lost[key] ?? 0) + 1
  }
  return lost
}

async function* sealedValues(store: Store) {
  const { sealed } = store
  for await (const page of pagesOf(store.developers.page)) {
    for (const { id, sealedSecret } of page) {
      yield { id, sealed: sealedSecret, replace: (by: string) => sealed.developer(id, sealedSecret, by) }
      for (const { consumerKey, sealedSecret: from } of await store.providers.list(id))
        yield {
          id: `${id}:${consumerKey}`,
          sealed: from,
          replace: (by: string) => sealed.provider(id, consumerKey, from, by),
        }
    }
  }
  for await (const page of pagesOf(store.accounts.page)) {
    for (const { id, sealedCredential: from } of page)
      yield { id, sealed: from, replace: (by: string) => sealed.account(id, from, by) }
  }
  for await (const page of pagesOf(store.webhooks.page)) {
    for (const { id, sealedSecrets: from } of page)
      yield { id, sealed: from, replace: (by: string) => sealed.webhook(id, from, by) }
  }
}
