/** Stores in the test's own process, of the kind that store-choice.ts says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../engine/config.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openStore } from '../../engine/sealed-store.ts'
import type { Store } from '../../engine/store/port.ts'
import { chosenStore, emptyDatabase, type StoreChoice } from './store-choice.ts'

export interface TestStore {
  readonly store: Store
  /** Closes the store and removes its data. */
  readonly remove: () => Promise<void>
}

/**
 * Databases of this process that are empty again: to make one with its indexes takes ten times as long as to empty it.
 * They are dropped when all test files of the process have ended.
 */
const idle: StoreChoice[] = []
const made: StoreChoice[] = []
process.once('beforeExit', () => void Promise.all(made.map((choice) => choice.remove())))

/** A new, empty store. */
export async function openTestStore(): Promise<TestStore> {
  const directory = mkdtempSync(join(tmpdir(), 'mr-store-'))
  const choice = idle.pop() ?? newChoice()
  const config = readConfig({ MAILROOM_DATA_DIR: directory, MAILROOM_SQLITE_SYNC: 'off', ...choice.env })
  const store = await openStore(config, silentLogger)
  return {
    store,
    async remove() {
      await store.close()
      rmSync(directory, { recursive: true, force: true })
      if (choice.env.MONGODB_URI !== undefined) await emptyDatabase(choice.env.MONGODB_URI)
      idle.push(choice)
    },
  }
}

function newChoice(): StoreChoice {
  const choice = chosenStore()
  made.push(choice)
  return choice
}
