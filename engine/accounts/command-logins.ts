/**
 * The logins of an account's command connection, as its chart sees them. A login that fails says the same of the account as one of
 * the connection that watches, so the chart hears of it; while it holds the next one back nobody logs in, and the caller is told why
 * and until when.
 */
import { type AppError, failureClasses, toAppError } from '../errors.ts'
import { failureFrom } from './actors.ts'
import { recorded } from './check.ts'
import { unavailable } from './live.ts'
import type { AccountRegistry } from './pool.ts'
import type { SyncDeps } from './state.ts'

/** Who is told of a failure may ask for the account next: by then the record says the same, unless the store is slow. */
const recordMs = 2000

export interface CommandLogins {
  /** Throws `account_unavailable` while no login may begin. */
  enter(): void
  connected(): void
  /** Resolves with what to tell who wanted the login. */
  failed(error: unknown): Promise<AppError>
}

export function createCommandLogins(
  registry: AccountRegistry,
  sync: Pick<SyncDeps, 'log' | 'now'>,
  accountId: string,
): CommandLogins {
  const { now } = sync
  return {
    enter() {
      const snapshot = registry.snapshot(accountId)
      if (snapshot?.hasTag('held') === true) throw unavailable(snapshot, now())
    },
    connected: () => void registry.send(accountId, { type: 'command.connected', at: now() }),
    async failed(thrown) {
      const error = toAppError(thrown)
      if (!isOfTheServer(error)) return error
      registry.send(accountId, { type: 'command.failed', failure: failureFrom(sync, error) })
      const snapshot = registry.snapshot(accountId)
      await recorded(registry, accountId, now() + recordMs, now)
      return snapshot === null ? error : unavailable(snapshot, now(), error)
    },
  }
}

/** What the store or the end of the link did says nothing about the login. */
function isOfTheServer(error: AppError): boolean {
  return error.code === 'timeout' || failureClasses.some((name) => name === error.code)
}
