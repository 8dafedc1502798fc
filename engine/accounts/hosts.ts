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
}

export type Hosts = ReturnType<typeof createHosts>

/** Callers choose the names of hosts: the hosts that were used longest ago are forgotten. */
const mostHosts = 10_000

export function createHosts() {
  const hosts = new LRUCache<string, KnownHost>({ maxSize: mostHosts, sizeCalculation: () => 1 })
  return {
    of(name: string): KnownHost {
      const key = name.toLowerCase()
      const host = hosts.get(key) ?? { pushes: false, tells: true, page: Infinity, unreached: new Set() }
      hosts.set(key, host)
      return host
    },
  }
}
