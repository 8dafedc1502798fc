/**
 * Folders that the server refuses. One that cannot be opened three times, or that asks to be slowed down, is parked for six hours
 * and does not hold up the others; it comes due by itself.
 */
import { type AppError, toAppError } from '../errors.ts'
import { saysGone } from './lost.ts'
import type { AccountState, SyncDeps } from './state.ts'

const parkAfter = 3
const parkMs = 6 * 3_600_000
const retryMs = 20_000
/** These concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

export interface Parking {
  /** Works on the folder. What concerns this folder alone is recorded; all else rejects. */
  attempt(path: string, work: () => Promise<void>): Promise<void>
}

export function createParking(sync: SyncDeps, state: AccountState): Parking {
  const failures = new Map<string, number>()
  return {
    async attempt(path, work) {
      try {
        await work()
        failures.delete(path)
      } catch (cause) {
        const error = toAppError(cause)
        const slowDown = error.details['slowDown'] === true
        if (!folderFailures.has(error.code) && !slowDown) throw error
        const count = (failures.get(path) ?? 0) + 1
        failures.set(path, count)
        await putOff(sync, state, { path, count, error, park: slowDown || count >= parkAfter })
      }
    },
  }
}

interface Refusal {
  readonly path: string
  readonly count: number
  readonly error: AppError
  readonly park: boolean
}

async function putOff(sync: SyncDeps, state: AccountState, { path, count, error, park }: Refusal): Promise<void> {
  const folder = state.folderByPath(path)
  if (folder === null) return
  if (saysGone(error) && folder.cursor !== null) {
    state.absent.say(path)
    state.askLook(path)
  }
  const parkedUntil = sync.now() + (park ? parkMs : retryMs)
  sync.log.warn(
    { accountId: state.account.id, folder: path, failures: count, reason: error.message },
    park ? 'folder parked' : 'folder refused',
  )
  await sync.store.folders.setParked(folder.id, count, parkedUntil)
  state.setFolders(
    [...state.folders.values()].map((one) => (one.id === folder.id ? { ...one, failures: count, parkedUntil } : one)),
  )
}
