/** Developers: API keys and their secrets, which are sealed in the store and cached in memory. */
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import type { Config } from './config.ts'
import { AppError, isAppError, notFound } from './errors.ts'
import {
  currentSecret,
  keptSecrets,
  onlySecret,
  openSecrets,
  rotated,
  sealSecrets,
  type Secret,
  validSecrets,
} from './secrets/list.ts'
import type { Sealer } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import type { Store } from './store/port.ts'
import type { BrandRecord, DeveloperRecord } from './store/records.ts'

export interface Authenticated {
  readonly developer: DeveloperRecord
  /** In the clear, for signatures; never logged, never returned. */
  readonly secret: string
  /** The current secret, then the secrets that it replaced. */
  readonly secrets: readonly Secret[]
}

/** The secrets that a call may use at `now`. */
export function secretsOf({ secrets }: Pick<Authenticated, 'secrets'>, now = Date.now()): readonly string[] {
  return validSecrets(secrets, now).map(({ secret }) => secret)
}

type Generated = Readonly<Record<'apiKey' | 'apiSecret', string>>

export type Developers = ReturnType<typeof createDevelopers>

interface Deps {
  readonly store: Store
  readonly sealer: Sealer
  readonly config: Pick<
    Config,
    'MAILROOM_API_KEY' | 'MAILROOM_API_SECRET' | 'MAILROOM_SECRET_LOST' | 'MAILROOM_API_SECRET_OVERLAP'
  >
  /** Called when the secret changes, and when the key is revoked or in force again. */
  readonly keyChanged?: (developer: DeveloperRecord) => void
}

type Read = () => Promise<DeveloperRecord | null>
type Patch = Parameters<Store['developers']['edit']>[1]

export function createDevelopers(deps: Deps) {
  const { store, sealer } = deps
  const { byKey, byId, inForce, edit, reread } = createCache(deps)

  /** Compares with the stored secrets, and repeats the change when another process has changed them. */
  async function changeSecrets(id: string, change: Change): Promise<Authenticated> {
    for (;;) {
      const known = await store.developers.get(id)
      if (known === null) throw notFound('developer', id)
      const secrets = change(known)
      if (await store.sealed.developer(id, known.sealedSecret, sealSecrets(sealer, id, secrets)))
        return withSecrets(await edit(id, {}, true), secrets)
    }
  }

  return {
    /** Reads the developer again, after an edit by another node. */
    reread,
    authenticate: (apiKey: string) => inForce(byKey.get(apiKey), () => store.developers.byKey(apiKey)),
    get: (id: string) => inForce(byId.get(id), () => store.developers.get(id)),
    setStatusCallbackUrl: ({ id }: DeveloperRecord, statusCallbackUrl: string | null) =>
      edit(id, { statusCallbackUrl }),
    /** Stores the developer's brand for the connect wizard. `not_found`. */
    setBrand: (id: string, brand: BrandRecord) => edit(id, { brand }),
    /** A new key with its secret, which is only shown here. */
    create: (name: string) => create(deps, newKey(), newSecret(), { name }),
    /**
     * A new secret for the same key; the old one is accepted for `overlapMs`. `not_found` for an unknown id, `conflict`
     * for the key of MAILROOM_API_KEY.
     */
    rotate: (id: string, overlapMs = deps.config.MAILROOM_API_SECRET_OVERLAP) =>
      changeSecrets(id, (known) => renewed(deps, known, overlapMs)),
    /** Refuses replaced secrets from now on. `not_found`. */
    endReplaced: async (id: string) =>
      (await changeSecrets(id, (known) => secretsKept(sealer, known).slice(0, 1))).developer,
    /** End of the last replaced secret, in ms; null = no replaced secret is accepted. */
    replacedUntil(developer: DeveloperRecord): number | null {
      const [, ...replaced] = validSecrets(secretsKept(sealer, developer), Date.now())
      return replaced.length === 0 ? null : Math.max(...replaced.map(({ expiresAt }) => expiresAt ?? 0))
    },
    /**
     * Revokes the key, or puts it in force again. A revoked key is refused at once, and its streams end; users and mail
     * stay, callbacks wait. `not_found`.
     */
    setRevoked: (id: string, revoked: boolean) => edit(id, { revokedAt: revoked ? Date.now() : null }, true),

    /**
     * Makes the first developer, or sets its secret to MAILROOM_API_SECRET. A secret that a lost key sealed is
     * replaced. Returns key and secret only if they were generated now: they are only shown here.
     */
    async ensureFirst(): Promise<Generated | null> {
      const { MAILROOM_API_KEY: key, MAILROOM_API_SECRET: secret } = deps.config
      if (key === null || secret === null) return generateFirst(deps)
      const known = await store.developers.byKey(key)
      if (known === null) await create(deps, key, secret).catch(unlessThere)
      else await refreshSecret(deps, known, secret)
      return null
    },
  }
}

/** Caches developers for 30 s, by key and by id, and edits them. */
function createCache(deps: Deps) {
  const { store, sealer, keyChanged = () => undefined } = deps
  const byKey = new LRUCache<string, Authenticated>({ max: 1000, ttl: 30_000 })
  const byId = new LRUCache<string, Authenticated>({ max: 1000, ttl: 30_000 })
  let edits = 0

  /** null when the key is unknown or revoked. */
  async function inForce(cached: Authenticated | undefined, read: Read): Promise<Authenticated | null> {
    const found = cached ?? (await opened(read))
    return found?.developer.revokedAt ? null : found
  }

  async function opened(read: Read): Promise<Authenticated | null> {
    const before = edits
    const developer = await read()
    if (developer === null) return null
    const found = withSecrets(developer, openSecrets(sealer, developer.id, developer.sealedSecret))
    // A record read during an edit may be the one before the edit.
    if (edits === before) {
      byKey.set(developer.apiKey, found)
      byId.set(developer.id, found)
    }
    return found
  }

  async function edit(id: string, patch: Patch, isKeyChanged = false): Promise<DeveloperRecord> {
    const developer = await store.developers.edit(id, patch)
    if (developer === null) throw notFound('developer', id)
    forget(developer)
    if (isKeyChanged) keyChanged(developer)
    await store.nodes.tell({ what: 'developer', id })
    return developer
  }

  function forget({ id, apiKey }: DeveloperRecord): void {
    edits += 1
    byKey.delete(apiKey)
    byId.delete(id)
  }

  async function reread(id: string): Promise<void> {
    const developer = await store.developers.get(id)
    if (developer === null) return
    forget(developer)
    keyChanged(developer)
  }

  return { byKey, byId, inForce, edit, reread }
}

/** Ignores `conflict`: another node that starts at the same time has made the developer. */
function unlessThere(error: unknown): null {
  if (!isAppError(error, 'conflict')) throw error
  return null
}

type Change = (known: DeveloperRecord) => readonly Secret[]

function renewed({ config, sealer }: Deps, known: DeveloperRecord, overlapMs: number): readonly Secret[] {
  if (known.apiKey === config.MAILROOM_API_KEY)
    throw new AppError('conflict', 'the secret of this key is MAILROOM_API_SECRET: change it there')
  return rotated(secretsKept(sealer, known), newSecret(), Date.now(), overlapMs)
}

function secretsKept(sealer: Sealer, { id, sealedSecret }: DeveloperRecord): readonly Secret[] {
  return keptSecrets(sealer, id, sealedSecret)
}

/** Replaces all secrets by this one. */
async function replaceSecrets({ store, sealer }: Deps, id: string, secret: string): Promise<void> {
  await store.developers.edit(id, { sealedSecret: sealSecrets(sealer, id, [onlySecret(secret, Date.now())]) })
}

/** Makes the first developer, or its lost secret; null = the developer is there. */
async function generateFirst(deps: Deps): Promise<Generated | null> {
  const { store, sealer, config } = deps
  const first = await store.developers.first()
  if (first === null) {
    // Nodes that start together derive the same id, so only one of them succeeds.
    const id = sealer.derive('first developer').toString('hex').slice(0, 24)
    const made = await create(deps, newKey(), newSecret(), { id }).catch(unlessThere)
    return made ? { apiKey: made.developer.apiKey, apiSecret: made.secret } : null
  }
  if (!config.MAILROOM_SECRET_LOST || sealer.opens(first.sealedSecret, first.id)) return null
  const apiSecret = newSecret()
  await replaceSecrets(deps, first.id, apiSecret)
  return { apiKey: first.apiKey, apiSecret }
}

function withSecrets(developer: DeveloperRecord, secrets: readonly Secret[]): Authenticated {
  return { developer, secret: currentSecret(secrets), secrets }
}

const newKey = (): string => randomBytes(12).toString('hex')
const newSecret = (): string => randomBytes(24).toString('base64url')

async function create(
  { store, sealer }: Deps,
  apiKey: string,
  secret: string,
  { id = newId(), ...named }: Partial<Pick<DeveloperRecord, 'id' | 'name'>> = {},
): Promise<Authenticated> {
  const secrets = [onlySecret(secret, Date.now())]
  const sealedSecret = sealSecrets(sealer, id, secrets)
  const developer = { id, apiKey, sealedSecret, statusCallbackUrl: null, createdAt: Date.now(), ...named }
  await store.developers.create(developer)
  return withSecrets(developer, secrets)
}

async function refreshSecret(deps: Deps, known: DeveloperRecord, secret: string): Promise<void> {
  if (secretsKept(deps.sealer, known)[0]?.secret !== secret) await replaceSecrets(deps, known.id, secret)
}

export type Revocations = ReturnType<typeof createRevocations>

/** Ends open streams of a key, a token or a console session when it is revoked. */
export function createRevocations(nodes: Pick<Store['nodes'], 'tell'>) {
  const ends = new EventEmitter().setMaxListeners(0)
  // The prefix keeps ids apart from event names with a meaning, such as `error`.
  const name = (id: string): string => `end ${id}`
  const end = (id: string): void => void ends.emit(name(id))
  return {
    /** Calls `end` when the developer, token or session (by label) is revoked. Returns a function that unsubscribes. */
    onEnd(id: string, end: () => void): () => void {
      ends.once(name(id), end)
      return () => void ends.off(name(id), end)
    },
    /** On this node. */
    end,
    /** Resolves when the other nodes have followed, or do not answer. */
    endEverywhere(id: string): Promise<void> {
      end(id)
      return nodes.tell({ what: 'operator', id })
    },
  }
}
