/** The life of an account that has been read: INBOX is watched, and all the rest goes on beside it. */
import { createBackground, type BackgroundDeps } from './background.ts'
import type { Connection } from './connection.ts'
import type { PushRecords } from './pushes.ts'
import type { AccountState, SyncDeps } from './state.ts'
import { watchInbox } from './watch.ts'

/** Hosts that drop IDLE early (imap-servers.md, figures). */
const shortIdleHosts: readonly (readonly [RegExp, number])[] = [
  [/(^|\.)(yahoo|aol|verizon|aim)\./i, 3 * 60_000],
  [/(^|\.)(163|126|yeah|rambler|naver)\./i, 55_000],
]

export interface Attendance {
  readonly sync: SyncDeps
  readonly backfilling: BackgroundDeps['backfilling']
  readonly pushes: PushRecords
  /** The server has answered, or a batch was written. */
  readonly alive: () => void
  /** Every folder has been read to its end for the first time. */
  readonly completed: () => void
}

/** Resolves when stopped or when the session has to be renewed; rejects with what ended it. */
export async function attend(
  { sync, backfilling, pushes, alive, completed }: Attendance,
  { session, state, link, tokenExpiresAt }: Connection,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  state.onWrite(alive)
  const onComplete = (): Promise<void> => tellCompleted(sync, state.account.id, completed)
  const background = createBackground({ sync, state, link, backfilling, onComplete })
  background.moved(unopened(state))
  const renewMs = idleMs(state.account.server) ?? sync.config.MAILROOM_IDLE_RENEW
  const options = { renewMs, pushes, tokenExpiresAt, moved: background.moved, alive }
  try {
    const side = background.run(both).then(() => 'stopped' as const)
    return await Promise.race([watchInbox({ deps: sync, state, session }, options, both), side])
  } finally {
    stop.abort()
  }
}

function idleMs(server: string): number | null {
  return shortIdleHosts.find(([host]) => host.test(server))?.[1] ?? null
}

/** Once in the life of an account. */
async function tellCompleted({ store, listener }: SyncDeps, accountId: string, completed: () => void): Promise<void> {
  const account = await store.accounts.get(accountId)
  if (account === null || account.resume.initialSyncAt !== null) return
  completed()
  await listener.initialSyncDone(account)
}

/** Folders that were never opened: the background reads them after the start. */
function unopened(state: AccountState): string[] {
  return [...state.folders.values()]
    .filter((folder) => folder.selectable && folder.cursor === null && folder.path !== 'INBOX')
    .map((folder) => folder.path)
}
