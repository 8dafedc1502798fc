/** Outcomes of the logins of the last minute at each host, for operators. */

const minuteMs = 60_000
/** Callers choose hosts: of more than this the oldest are forgotten. */
const mostHosts = 10_000
/** No host lets in more in a minute, but for one without a limit: of those the latest count. */
const mostLogins = 1000

interface Outcome {
  readonly at: number
  /** 'ok', or the class of the failure. */
  readonly outcome: string
}

export type HostLogins = ReturnType<typeof createHostLogins>

export function createHostLogins(now: () => number) {
  const hosts = new Map<string, Outcome[]>()
  const recent = (host: string): Outcome[] => (hosts.get(host) ?? []).filter(({ at }) => at > now() - minuteMs)
  return {
    count(host: string, outcome: string): void {
      const key = host.toLowerCase()
      const outcomes = recent(key).slice(1 - mostLogins)
      hosts.delete(key)
      hosts.set(key, [...outcomes, { at: now(), outcome }])
      const [oldest] = hosts.keys()
      if (hosts.size > mostHosts && oldest !== undefined) hosts.delete(oldest)
    },
    /** By outcome. */
    of(host: string): Record<string, number> {
      const counts: Record<string, number> = {}
      for (const { outcome } of recent(host.toLowerCase())) counts[outcome] = (counts[outcome] ?? 0) + 1
      return counts
    },
  }
}
