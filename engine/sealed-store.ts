/**
 * The store together with the key that its credentials are sealed with. The secret of the first developer is the check
 * value: it is there from the first start on, so a lost or changed key is noticed before anything else is read or
 * written.
 */
import type { Config } from './config.ts'
import { keepDirPrivate } from './data-dir.ts'
import { AppError } from './errors.ts'
import type { Logger } from './observe/log.ts'
import { formerKeys, makeKey, readKey, secretFile } from './secrets/key.ts'
import { createSealer, type Sealer } from './secrets/seal.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/port.ts'
import type { DeveloperRecord } from './store/records.ts'

/** Errors as those of openStore; `bad_request` when the key is not the one of this store, or is missing. */
export async function openSealedStore(
  config: Config,
  log: Logger,
  signal: AbortSignal | undefined,
  lost: () => void,
): Promise<{ readonly store: Store; readonly sealer: Sealer }> {
  if (config.MONGODB_URI === null || config.MAILROOM_SECRET === null) keepDirPrivate(config.MAILROOM_DATA_DIR, log)
  const key = readKey(config, log)
  const store = await openStore(config, log, signal, lost)
  try {
    return { store, sealer: sealerFor(await store.developers.first(), key, config) }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** A shorter one goes on opening what it has sealed, and seals no new store. */
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
    const source = config.MAILROOM_SECRET === null ? secretFile(config) : 'MAILROOM_SECRET'
    throw new AppError('bad_request', `${source}: not the one this store was sealed with`, { cause })
  }
  return sealer
}
