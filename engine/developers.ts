/** Developers: API keys and secrets. The secret is sealed in the store, and opened once per process and key. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Config } from './config.ts'
import { AppError } from './errors.ts'
import type { Sealer } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import type { Store } from './store/port.ts'
import type { DeveloperRecord } from './store/records.ts'

export interface Authenticated {
  readonly developer: DeveloperRecord
  /** In the clear, for signatures; never logged, never returned. */
  readonly secret: string
}

interface Generated {
  readonly apiKey: string
  readonly apiSecret: string
}

export type Developers = ReturnType<typeof createDevelopers>

interface Deps {
  readonly store: Store
  readonly sealer: Sealer
  readonly config: Pick<Config, 'MAILROOM_API_KEY' | 'MAILROOM_API_SECRET'>
}

export function createDevelopers(deps: Deps) {
  const { store, sealer } = deps
  const byKey = new LRUCache<string, Authenticated>({ max: 1000, ttl: 30_000 })
  const byId = new LRUCache<string, Authenticated>({ max: 1000, ttl: 30_000 })

  function opened(developer: DeveloperRecord | null): Authenticated | null {
    if (developer === null) return null
    const found = { developer, secret: sealer.open(developer.sealedSecret, developer.id) }
    byKey.set(developer.apiKey, found)
    byId.set(developer.id, found)
    return found
  }

  return {
    /** null when the key is unknown. Cached for 30 s, so that another process's change is seen soon. */
    authenticate: async (apiKey: string) => byKey.get(apiKey) ?? opened(await store.developers.byKey(apiKey)),
    get: async (id: string) => byId.get(id) ?? opened(await store.developers.get(id)),

    async setStatusCallbackUrl(developer: DeveloperRecord, url: string | null): Promise<void> {
      await store.developers.setStatusCallbackUrl(developer.id, url)
      byKey.delete(developer.apiKey)
      byId.delete(developer.id)
    },

    /**
     * Makes the first developer, or brings its secret up to date with MAILROOM_API_SECRET. Answers key and secret only
     * when they were generated now: they are shown once.
     */
    async ensureFirst(): Promise<Generated | null> {
      const { MAILROOM_API_KEY: key, MAILROOM_API_SECRET: secret } = deps.config
      if (key === null || secret === null) return generateFirst(deps)
      const known = await store.developers.byKey(key)
      if (known === null) await create(deps, key, secret)
      else await refreshSecret(deps, known, secret)
      return null
    },
  }
}

/** Key and secret of the first developer; null when there is one. */
async function generateFirst(deps: Deps): Promise<Generated | null> {
  if ((await deps.store.developers.count()) > 0) return null
  const generated = { apiKey: randomBytes(12).toString('hex'), apiSecret: randomBytes(24).toString('base64url') }
  await create(deps, generated.apiKey, generated.apiSecret)
  return generated
}

async function create({ store, sealer }: Deps, apiKey: string, apiSecret: string): Promise<void> {
  const id = newId()
  const sealedSecret = sealer.seal(apiSecret, id)
  await store.developers.create({ id, apiKey, sealedSecret, statusCallbackUrl: null, createdAt: Date.now() })
}

async function refreshSecret({ store, sealer }: Deps, known: DeveloperRecord, secret: string): Promise<void> {
  let current: string
  try {
    current = sealer.open(known.sealedSecret, known.id)
  } catch (cause) {
    throw new AppError('bad_request', 'MAILROOM_SECRET: not the one that sealed this data directory', { cause })
  }
  if (current !== secret) await store.developers.setSecret(known.id, sealer.seal(secret, known.id))
}
