/** Knowledge of mail servers, shared by all accounts of a host. Kept in memory: a restart learns it anew. */

export interface KnownHost {
  /** The host has pushed to an IDLE of one of its accounts. */
  pushes: boolean
  /** false = NOTIFY has told of some mail neither before nor after a poll found it. */
  tells: boolean
  /** Old messages that it gives while the watching session may be away from its news. */
  page: number
  /** Ids of accounts whose last login did not reach the host. */
  readonly unreached: Set<string>
}

export type Hosts = ReturnType<typeof createHosts>

/** Hosts kept; beyond that the one that was asked for longest ago is forgotten. Callers choose the names. */
const most = 10_000

export function createHosts() {
  const hosts = new Map<string, KnownHost>()
  return {
    of(name: string): KnownHost {
      const key = name.toLowerCase()
      const host = hosts.get(key) ?? { pushes: false, tells: true, page: Infinity, unreached: new Set() }
      hosts.delete(key)
      hosts.set(key, host)
      const [oldest = key] = hosts.keys()
      if (hosts.size > most) hosts.delete(oldest)
      return host
    },
  }
}
