/** All that api/ and main may see of the engine. */
import type { Accounts } from './accounts/types.ts'
import type { Config } from './config.ts'
import type { Developers } from './developers.ts'
import type { Mailboxes } from './mailboxes.ts'
import type { Logger } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import type { Store } from './store/port.ts'
import type { Sealer } from './secrets/seal.ts'
import type { Webhooks } from './webhooks/types.ts'

export interface Engine {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly store: Store
  readonly sealer: Sealer
  /** API keys and secrets. */
  readonly developers: Developers
  /** Creation, edit and removal of users and email accounts as whole business steps. */
  readonly mailboxes: Mailboxes
  readonly accounts: Accounts
  readonly webhooks: Webhooks
  /** Starts every actor. Resolves when all are started. */
  start(): Promise<void>
  /** Ends every actor, waits for open work up to MAILROOM_SHUTDOWN_TIMEOUT, closes the store. */
  stop(): Promise<void>
  /** true when the store answers and the actors are started. */
  ready(): Promise<boolean>
}

export * from './accounts/types.ts'
export * from './config.ts'
export * from './developers.ts'
export * from './mailboxes.ts'
export * from './errors.ts'
export type * from './store/port.ts'
export type * from './store/records.ts'
export * from './webhooks/types.ts'
