/** What a test does to the store of a service that is stopped. */
import assert from 'node:assert/strict'
import { readConfig } from '../../engine/config.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openStore } from '../../engine/sealed-store.ts'
import { createSealer, keyFrom, sealCredential } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { accountRecord, userRecord } from './records.ts'
import type { Service } from './service.ts'
import type { StoreChoice } from './store-choice.ts'

export async function storeOf({ dataDir }: Service, { env }: StoreChoice): Promise<Store & AsyncDisposable> {
  const config = readConfig({ MAILROOM_DATA_DIR: dataDir, MAILROOM_SQLITE_SYNC: 'off', ...env })
  const store = await openStore(config, silentLogger)
  return { ...store, [Symbol.asyncDispose]: () => store.close() }
}

/** Email accounts of the first developer that nobody watches, with passwords that `secret` seals. */
export async function addAccounts(store: Store, secret: string, count: number): Promise<void> {
  const developer = await store.developers.first()
  assert(developer !== null)
  const sealer = createSealer(keyFrom(secret))
  for (let index = 0; index < count; index += 1) {
    const user = userRecord(developer.id)
    const account = accountRecord(user, { paused: true })
    const sealedCredential = sealCredential(sealer, account.id, { kind: 'password', password: `password ${index}` })
    await store.users.createWithAccount(user, { ...account, sealedCredential })
  }
}
