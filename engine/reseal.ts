/**
 * After MAILROOM_SECRET has changed: what former keys sealed is sealed anew, record by record. Each one is written only
 * if nobody has changed it meanwhile, so it may be killed and started again at any time.
 */
import type { Sealer } from './secrets/seal.ts'
import { pagesOf } from './store/pages.ts'
import type { Page, Store } from './store/port.ts'

export interface Resealed {
  readonly resealed: number
  /** Nothing is left that another key sealed. */
  readonly done: boolean
  /** How many values each key seals; 'v1' = sealed by a version that named no key. */
  readonly keys: Readonly<Record<string, number>>
}

interface SealedValue {
  readonly id: string
  readonly sealed: string
  replace(by: string): Promise<boolean>
}

type Deps = { readonly store: Store; readonly sealer: Sealer }

const pageSize = 500

/** Seals at most `most` values anew and counts all. `internal` when a key is missing: none of its values is changed. */
export async function reseal({ store, sealer }: Deps, most: number): Promise<Resealed> {
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
  return { resealed, done: Object.keys(keys).length === 1, keys }
}

async function* sealedValues(store: Store): AsyncGenerator<SealedValue, void, undefined> {
  const { sealed } = store
  for await (const { id, sealedSecret } of listed((page) => store.developers.list(page))) {
    yield { id, sealed: sealedSecret, replace: (by) => sealed.developer(id, sealedSecret, by) }
    for (const provider of await store.providers.list(id)) {
      const { consumerKey, sealedSecret: from } = provider
      const replace = (by: string): Promise<boolean> => sealed.provider(id, consumerKey, from, by)
      yield { id: `${id}:${consumerKey}`, sealed: from, replace }
    }
  }
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit))) {
    for (const { id, sealedCredential: from } of page)
      yield { id, sealed: from, replace: (by) => sealed.account(id, from, by) }
  }
  for await (const page of pagesOf((after, limit) => store.webhooks.page(after, limit))) {
    for (const { id, sealedSecrets: from } of page)
      yield { id, sealed: from, replace: (by) => sealed.webhook(id, from, by) }
  }
}

async function* listed<T>(list: (page: Page) => Promise<T[]>): AsyncGenerator<T, void, undefined> {
  for (let offset = 0; ; offset += pageSize) {
    const rows = await list({ limit: pageSize, offset })
    yield* rows
    if (rows.length < pageSize) return
  }
}
