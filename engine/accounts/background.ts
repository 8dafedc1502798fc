/**
 * What goes on beside the watching: folders that moved are caught up, then folders are back-filled, one batch at a time, over the
 * command connection. A folder that cannot be opened three times is parked for six hours and does not hold up the others.
 */
import { type AppError, toAppError } from '../errors.ts'
import { backfillFolder, isComplete, nextToBackfill } from './backfill.ts'
import type { Link } from './link.ts'
import type { AccountState, SyncDeps } from './state.ts'
import { catchUp } from './sync.ts'
import { pause } from './watch.ts'

const parkAfter = 3
const parkMs = 6 * 3_600_000
const retryFirstMs = 2_000
const retryMaxMs = 5 * 60_000
/** These concern the account, not one folder: the watching actor has to know. */
const accountFailures = new Set([
  'auth_rejected',
  'consent_lost',
  'permission',
  'lease_lost',
  'store_unavailable',
  'throttled',
])
/** These concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

export interface Background {
  /** Folders to catch up with. */
  moved(paths: readonly string[]): void
  /** Works until the signal aborts. Rejects only with what concerns the whole account. */
  run(signal: AbortSignal): Promise<void>
}

export interface BackgroundDeps {
  readonly sync: SyncDeps
  readonly state: AccountState
  readonly link: Link
  /** Bounds how many accounts back-fill at once. */
  readonly slot: <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>
  /** Every folder has been read to its end; told once per actor. */
  readonly onComplete: () => Promise<void>
}

export function createBackground(deps: BackgroundDeps): Background {
  const { sync, state, link } = deps
  const waiting = new Set<string>()
  const failures = new Map<string, number>()
  let nudge: () => void = () => undefined
  let complete = false

  /** One piece of work; false when there is none. */
  async function work(signal: AbortSignal): Promise<boolean> {
    const path = waiting.values().next().value
    if (path !== undefined) {
      waiting.delete(path)
      await guarded(path, () => link.run('live', (session) => catchUp({ deps: sync, state, session }, path)))
      return true
    }
    const folderId = nextToBackfill(state, sync.now())
    if (folderId === null) return settle()
    const name = state.folders.get(folderId)?.path ?? folderId
    await guarded(name, () => deps.slot(() => backfillUntilMoved(folderId, signal), signal))
    return true
  }

  async function settle(): Promise<boolean> {
    if (complete || !isComplete(state, sync.now())) return false
    complete = true
    await deps.onComplete()
    return false
  }

  /** Live mail in other folders interrupts a long back-fill between two batches. */
  async function backfillUntilMoved(folderId: string, signal: AbortSignal): Promise<void> {
    const interrupted = new AbortController()
    const both = AbortSignal.any([signal, interrupted.signal])
    await backfillFolder(
      {
        deps: sync,
        state,
        onFolder: (path, task) => link.onFolder('backfill', path, task),
        pause: async () => {
          if (waiting.size > 0) interrupted.abort()
          else if (sync.config.MAILROOM_BACKFILL_PAUSE > 0) await pause(sync.config.MAILROOM_BACKFILL_PAUSE, both)
        },
      },
      folderId,
      both,
    )
  }

  async function guarded(path: string, task: () => Promise<void>): Promise<void> {
    try {
      await task()
      failures.delete(path)
    } catch (error) {
      await refused(path, toAppError(error))
    }
  }

  async function refused(path: string, error: AppError): Promise<void> {
    const isFolder = folderFailures.has(error.code) || error.details['slowDown'] === true
    if (!isFolder) {
      waiting.add(path)
      throw error
    }
    const count = (failures.get(path) ?? 0) + 1
    failures.set(path, count)
    const folder = state.folderByPath(path)
    if (folder === null) return
    const parked = count >= parkAfter || error.details['slowDown'] === true
    const parkedUntil = sync.now() + (parked ? parkMs : retryFirstMs * 10)
    sync.log.warn(
      { accountId: state.account.id, folder: path, failures: count, reason: error.message },
      parked ? 'folder parked' : 'folder refused',
    )
    await sync.store.folders.setParked(folder.id, count, parkedUntil)
    state.setFolders(
      [...state.folders.values()].map((one) => (one.id === folder.id ? { ...one, failures: count, parkedUntil } : one)),
    )
  }

  async function run(signal: AbortSignal): Promise<void> {
    let attempt = 0
    while (!signal.aborted) {
      try {
        if (!(await work(signal))) await idle(signal)
        attempt = 0
      } catch (error) {
        const problem = toAppError(error)
        if (signal.aborted) return
        if (accountFailures.has(problem.code) || problem.code === 'internal') throw problem
        attempt += 1
        sync.log.info(
          { accountId: state.account.id, code: problem.code, reason: problem.message },
          'command connection failed; trying again',
        )
        await pause(Math.min(retryMaxMs, problem.retryAfterMs ?? retryFirstMs * 2 ** attempt), signal)
      }
    }
  }

  /** Until something moves, or for a minute (parked folders come due). */
  async function idle(signal: AbortSignal): Promise<void> {
    if (waiting.size > 0) return
    const woken = new AbortController()
    nudge = () => woken.abort()
    await pause(60_000, AbortSignal.any([signal, woken.signal]))
  }

  return {
    moved(paths) {
      for (const path of paths) waiting.add(path)
      if (paths.length > 0) nudge()
    },
    run,
  }
}
