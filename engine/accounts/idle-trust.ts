/**
 * Whether IDLE tells what happens in INBOX. A server shows that it does not by three misses: INBOX had moved and
 * nothing was pushed. From then on INBOX is asked. A push takes that back, of the account and of its host; the misses
 * of an account count for its host too, so that the others there need not find it out again. An account that misses
 * pushes goes on to ask where others of its host hear them: servers that run out of watches push to some mailboxes
 * only. Kept in memory, for hosts that missed something.
 */

/** Misses until INBOX is asked with NOOP; as many again, which NOOP did not tell, until STATUS is asked. */
const toAsk = 3
const toDoubt = 2 * toAsk

type Asking = 'never' | 'noop' | 'status'

type Pushes = ReturnType<typeof createPushes>

export type PushRecords = ReturnType<typeof createPushRecords>

interface Host {
  misses: number
  readonly wakes: Set<() => void>
}

export function createPushRecords(spreadMs: number) {
  const hosts = new Map<string, Host>()
  return {
    /** `wake`: the host turns out not to push. Called within `spreadMs`, so that not all ask in one moment. */
    join(name: string, wake: () => void): Pushes {
      const key = name.toLowerCase()
      const host: Host = hosts.get(key) ?? { misses: 0, wakes: new Set() }
      hosts.set(key, host)
      host.wakes.add(wake)
      const end = (): void => {
        host.wakes.delete(wake)
        if (host.wakes.size === 0 && host.misses === 0 && hosts.get(key) === host) hosts.delete(key)
      }
      return createPushes(host, () => wakeAll(host, spreadMs), end)
    },
  }
}

function wakeAll({ wakes }: Host, spreadMs: number): void {
  for (const wake of wakes) setTimeout(wake, Math.random() * spreadMs).unref()
}

function createPushes(host: Host, wakeOthers: () => void, end: () => void) {
  let own = 0
  const count = (most: number): void => {
    own = Math.max(own, Math.min(own + 1, most))
    const before = host.misses
    host.misses = Math.max(before, Math.min(before + 1, most))
    if (before < toAsk && host.misses >= toAsk) wakeOthers()
  }
  return {
    /** `idles`: false = the session has no IDLE, which pushes nothing. */
    asking(idles: boolean): Asking {
      const misses = Math.max(own, host.misses)
      if (misses >= toDoubt) return 'status'
      return idles && misses < toAsk ? 'never' : 'noop'
    },
    pushed(): void {
      own = 0
      host.misses = 0
    },
    /** Something was told when IDLE had ended, and not before. */
    toldLate: (): void => count(toAsk),
    answered(): void {
      own = Math.min(own, toAsk)
      host.misses = Math.min(host.misses, toAsk)
    },
    /** A poll found INBOX moved, and nothing had been told. */
    missed: (): void => count(toDoubt),
    end,
  }
}
