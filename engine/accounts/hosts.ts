/** What one account learns of its mail server, for all accounts of that host. In memory: a restart learns it anew. */

export interface KnownHost {
  /** It has pushed to IDLE. */
  pushes: boolean
  /** Accounts that could not reach it when they tried last. */
  readonly unreached: Set<string>
}

export type Hosts = ReturnType<typeof createHosts>

/** Of more than this the oldest is forgotten: callers choose the names. */
const most = 10_000

export function createHosts() {
  const hosts = new Map<string, KnownHost>()
  return {
    of(name: string): KnownHost {
      const key = name.toLowerCase()
      const host = hosts.get(key) ?? { pushes: false, unreached: new Set() }
      hosts.set(key, host)
      const [oldest = key] = hosts.keys()
      if (hosts.size > most) hosts.delete(oldest)
      return host
    },
  }
}
