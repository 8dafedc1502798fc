/**
 * Parks folders that cannot be read, so that they do not hold up the others; each comes due by itself. A folder that is
 * refused three times in a row, or for which the server asks us to slow down, is parked for six hours. A folder over
 * which the session ends is parked each time for longer, so that INBOX has its time. The first sync and departures wait
 * for a folder that is parked for a short time only.
 */
import { type AppError, isAppError, toAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'
import { isGoneMeanwhile, retryMs, isFolderGone } from './absent.ts'
import type { AccountState, SyncDeps } from './state.ts'

const parkAfter = 3
const parkMs = 6 * 3_600_000
/** The first time after the session has ended over the folder; doubled each further time in a row. */
const endedMs = 5000
/** Errors that concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

/** A failure after which the session goes on with other folders. */
export function isOfFolder(error: unknown): boolean {
  return (
    isGoneMeanwhile(error) ||
    (isAppError(error) && (folderFailures.has(error.code) || error.details['slowDown'] === true))
  )
}

/** Failures that end the session, and that the folder may have caused. */
const sessionFailures = new Set(['network', 'timeout', 'protocol'])

type Parked = Pick<FolderRecord, 'failures' | 'parkedUntil'>

async function setParked(deps: SyncDeps, state: AccountState, id: string, parked: Parked): Promise<void> {
  await deps.store.folders.setParked(id, parked.failures, parked.parkedUntil)
  state.change(id, parked)
}

/** Ends the parking of these folders; their failures count on. */
export async function tryAgain(deps: SyncDeps, state: AccountState, parked: readonly FolderRecord[]): Promise<void> {
  for (const { id, failures, parkedUntil } of parked)
    if (parkedUntil !== null) await setParked(deps, state, id, { failures, parkedUntil: null })
}

/** Returns a function that works on a folder, and records a failure of this folder alone; any other rejects. */
export function createParking(sync: SyncDeps, state: AccountState) {
  async function putOff(folder: FolderRecord, error: AppError): Promise<void> {
    const { path, cursor } = folder
    const failures = folder.failures + 1
    if (isFolderGone(error)) {
      if (cursor !== null) state.absent.reportMissing(path)
      // The next list shows whether the folder has a new name.
      state.askLook()
    }
    const isParked = error.details['slowDown'] === true || (folderFailures.has(error.code) && failures >= parkAfter)
    const waitMs = folderFailures.has(error.code) ? retryMs : Math.min(parkMs, endedMs * 2 ** (failures - 1))
    sync.log.warn(
      { accountId: state.account.id, folder: path, failures, reason: error.message },
      isParked ? 'folder parked' : 'folder refused',
    )
    const parkedUntil = sync.now() + (isParked ? parkMs : waitMs)
    await setParked(sync, state, folder.id, { failures, parkedUntil })
  }

  return async (path: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      const folder = state.folderByPath(path)
      if (folder !== null && folder.failures > 0)
        await setParked(sync, state, folder.id, { failures: 0, parkedUntil: null })
    } catch (cause) {
      const error = toAppError(cause)
      const mayBe = path !== 'INBOX' && sessionFailures.has(error.code) && !state.hasEnded()
      const folder = isGoneMeanwhile(error) || !(isOfFolder(error) || mayBe) ? null : state.folderByPath(path)
      if (state.folderByPath(path) === null) state.moved.forget(path)
      if (folder !== null) await putOff(folder, error)
      if (!isOfFolder(error)) throw error
    }
  }
}
