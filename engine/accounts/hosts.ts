/** Knowledge of mail servers, shared by all accounts of a host. Kept in memory: a restart learns it anew. */
import { LRUCache } from 'lru-cache'

export interface KnownHost {
  /** The host has pushed to an IDLE of one of its accounts. */
  pushes: boolean
  /** false = NOTIFY has missed a change that a poll found. */
  tells: boolean
  /** Old messages of one page, so that the page takes about a second. */
  page: number
  /** Ids of accounts whose last login did not reach the host. */
  readonly unreached: Set<string>
  /** The latest logins: 'ok', or the class of the failure. */
  readonly outcomes: { readonly at: number; readonly outcome: string }[]
}

export type Hosts = ReturnType<typeof createHosts>

/** Callers choose the names of hosts: the hosts that were used longest ago are forgotten. */
const mostHosts = 10_000
const minuteMs = 60_000
/** Only the latest logins of a host without a limit count. */
const mostLogins = 1000

export function createHosts(now: () => number) {
  const hosts = new LRUCache<string, KnownHost>({ maxSize: mostHosts, sizeCalculation: () => 1 })
  const of = (name: string): KnownHost => {
    const key = name.toLowerCase()
    const fresh = { pushes: false, tells: true, page: Infinity, unreached: new Set<string>(), outcomes: [] }
    const host = hosts.get(key) ?? fresh
    hosts.set(key, host)
    return host
  }
  return {
    of,
    countLogin(name: string, outcome: string): void {
      const { outcomes } = of(name)
      outcomes.push({ at: now(), outcome })
      if (outcomes.length > mostLogins) outcomes.shift()
    },
    /** The logins of the last minute, by outcome. */
    logins(name: string): Record<string, number> {
      const since = now() - minuteMs
      const recent = (hosts.get(name.toLowerCase())?.outcomes ?? []).filter(({ at }) => at > since)
      return Object.fromEntries(
        Map.groupBy(recent, ({ outcome }) => outcome)
          .entries()
          .map(([key, all]) => [key, all.length]),
      )
    },
  }
}
