/** What a command works with. */
import type { Link } from '../link.ts'
import type { Session } from '../session-types.ts'
import type { AccountState, SyncDeps } from '../state.ts'

/** A live account: its state and command connection. */
export interface LiveAccount {
  readonly state: AccountState
  readonly link: Link
}

export interface CommandDeps {
  readonly sync: SyncDeps
  /** Rejects with `account_disabled` or `account_unavailable`, the reason and when the next try is. */
  readonly live: (accountId: string) => Promise<LiveAccount>
  /** Lists the folders anew over this session and reconciles. */
  readonly relist: (live: LiveAccount, session: Session) => Promise<void>
}
