/** A directory for the store files of one test file, and stores on them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../engine/store/port.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { epochStart } from './contract/records.ts'

export function sqliteFiles() {
  const directory = mkdtempSync(join(tmpdir(), 'mailroom-sqlite-'))
  let number = 0
  return {
    directory,
    newPath: (): string => join(directory, `${(number += 1)}.sqlite`),
    /** Closes the store after `work`. */
    async withStore<T>(path: string, work: (store: Store) => Promise<T>): Promise<T> {
      const store = await createSqliteStore({ path, sync: 'off', now: () => epochStart, busyMs: 50 })
      try {
        return await work(store)
      } finally {
        await store.close()
      }
    },
    remove: (): void => rmSync(directory, { recursive: true, force: true }),
  }
}
