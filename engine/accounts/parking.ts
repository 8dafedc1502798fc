/**
 * A folder that is refused three times with nothing read in between, or of which the server asks us to slow down, is
 * parked for six hours; one over which the session ends is put off, each time for longer, so that INBOX has its time.
 * Neither holds up the others, and both come due by themselves. The first sync, and what may have been moved into it,
 * wait for a folder that is put off, and for none that is parked.
 */
import { type AppError, isAppError, toAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'
import { isGoneMeanwhile, retryMs, isFolderGone } from './absent.ts'
import type { AccountState, SyncDeps } from './state.ts'

const parkAfter = 3
const parkMs = 6 * 3_600_000
/** The first time after the session has ended over the folder, and twice as long each further time in a row. */
const endedMs = 5000
/** These concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

/** A failure after which the session goes on with other folders. */
export function isOfFolder(error: unknown): boolean {
  return (
    isGoneMeanwhile(error) ||
    (isAppError(error) && (folderFailures.has(error.code) || error.details['slowDown'] === true))
  )
}

/** These end the session, and may be due to the folder. */
const sessionFailures = new Set(['network', 'timeout', 'protocol'])

type Parked = Pick<FolderRecord, 'failures' | 'parkedUntil'>

async function setParked(deps: SyncDeps, state: AccountState, id: string, parked: Parked): Promise<void> {
  await deps.store.folders.setParked(id, parked.failures, parked.parkedUntil)
  state.change(id, parked)
}

/** The folders are not parked any more; their failures count on. */
export async function tryAgain(deps: SyncDeps, state: AccountState, parked: readonly FolderRecord[]): Promise<void> {
  for (const { id, failures, parkedUntil } of parked)
    if (parkedUntil !== null) await setParked(deps, state, id, { failures, parkedUntil: null })
}

/** Answers how to work on a folder. A failure that concerns this folder alone is recorded; any other rejects. */
export function createParking(sync: SyncDeps, state: AccountState) {
  async function putOff(folder: FolderRecord, error: AppError): Promise<void> {
    const { path, cursor } = folder
    const failures = folder.failures + 1
    if (isFolderGone(error)) {
      if (cursor !== null) state.absent.reportMissing(path)
      // The list says what became of it, also of one that was never opened.
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
