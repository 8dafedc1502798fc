/** The server of the MongoDB tests: MONGODB_URI, with one database per test file that is dropped at the end. */
import { randomBytes } from 'node:crypto'
import { silentLogger, type Logger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import type { Store } from '../../engine/store/port.ts'
import type { SlotWork } from '../../engine/store/slots.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'

/** Milliseconds that one operation may take in the tests that do not say otherwise. */
const timeoutMs = 10_000

export interface TestDatabase {
  readonly uri: string
  /** A store on it, or by another way to it (a proxy). */
  open(options?: {
    readonly uri?: string
    readonly now?: () => number
    readonly timeoutMs?: number
    readonly pool?: number
    readonly log?: Logger
    readonly lost?: () => void
    readonly beatMs?: number
  }): Promise<Store>
  /** Closes the stores and drops the database. */
  remove(): Promise<void>
}

/** Of a node that does nothing with its slots. `gained`: told how many they are, before they count as started. */
export function work(gained: (slots: number) => void = () => undefined): SlotWork {
  return {
    async gained(slots) {
      await Promise.resolve()
      gained(slots.length)
    },
    rest: () => Promise.resolve(),
    shed: () => Promise.resolve(),
    heard: () => Promise.resolve(),
    weightOf: () => 1,
    announce: () => undefined,
    announceNews: () => Promise.resolve(),
  }
}

/** A database of its own on `server`; MONGODB_URI without one. */
export function testDatabase(server = process.env['MONGODB_URI'] ?? ''): TestDatabase {
  const uri = databaseOn(server, `mailroom_test_${randomBytes(4).toString('hex')}`)
  const stores: Store[] = []
  return {
    uri,
    open: async (options = {}) => {
      const store = await createMongoStore({ uri, pool: 10, timeoutMs, log: silentLogger, ...options })
      stores.push(store)
      return store
    },
    remove: async () => {
      for (const store of stores) await store.close()
      await dropDatabase(uri)
    },
  }
}
