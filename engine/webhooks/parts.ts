/** Dependencies of the webhooks' room, and parts that its files share. */
import type { Accounts } from '../accounts/index.ts'
import type { Budget } from '../budget.ts'
import type { Config } from '../config.ts'
import type { Developers } from '../developers.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { Undo } from '../creation-undo.ts'
import type { Pace } from './envelope.ts'
import type { Searches } from './searches.ts'
import type { Targets } from './targets.ts'

export type Mail = Pick<Accounts, 'fetchParts' | 'fetchMany' | 'streamPart' | 'fetchHeaders'>

export interface WebhooksDeps {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing?: Tracing
  readonly store: Store
  readonly sealer: Sealer
  readonly developers: Pick<Developers, 'get'>
  readonly budget: Budget
  readonly mail: Mail
  readonly undo: Undo
  /** Base of resource_url in callbacks, without a trailing slash: MAILROOM_PUBLIC_URL or where the API listens. */
  readonly baseUrl: () => string
}

export interface WebhookParts extends WebhooksDeps {
  readonly targets: Targets
  readonly pace: Pace
  readonly searches: Searches
  readonly now: () => number
  /** For jitter, in [0, 1). */
  readonly random: () => number
  /** Rows were stored for this channel: it reads the store. */
  readonly reread: (channelId: string) => void
  /** The same, on all nodes. */
  readonly rereadAll: (channelId: string) => void
  /** A webhook was changed: other nodes read it again. */
  readonly changed: (webhookId: string) => void
}
