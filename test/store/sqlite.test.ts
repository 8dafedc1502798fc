/** The embedded store keeps the contract. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { storeContract } from './contract/index.ts'

storeContract('sqlite', async (now) => {
  const directory = await mkdtemp(join(tmpdir(), 'mailroom-store-'))
  const store = await createSqliteStore({ path: join(directory, 'store.sqlite'), sync: 'off', now })
  return {
    store,
    dispose: async () => {
      await store.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
})
