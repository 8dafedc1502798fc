/**
 * Spreads new logins over time, host by host, so that a restart with a thousand accounts does not look like an attack. A username
 * whose logins a host rejects is tried there less often, but never not at all; the other usernames of the host notice nothing.
 * What was rejected is a credential: a new one need not wait for the failures of the old, up to a number that looks like guessing.
 */
import { createHmac, randomBytes } from 'node:crypto'

/** Failed logins of one username within this time count … */
const failureWindowMs = 600_000
/** … and from this many with one credential on, the username is slowed at this host with that credential … */
const failureBudget = 5
/** … from this many on with whichever … */
const usernameBudget = 15
/** … by this factor. */
const slowFactor = 10
const minuteMs = 60_000
/** The ramp: logins of a host are this many times closer together than an even spread, until the minute's number is used. */
const rampFactor = 4
/** Callers choose the names of hosts: when more are known than this, the oldest where nobody waits are forgotten. */
const mostHosts = 10_000

export interface LoginLimiter {
  /**
   * Resolves when a login to the host may begin. An `urgent` one (an API call waits for it) goes before the others. `secret` = what the
   * login is made with; nothing of it is kept.
   */
  enter(
    host: string,
    username: string,
    options: { readonly urgent: boolean; readonly signal: AbortSignal; readonly secret?: string },
  ): Promise<void>
  /** The server rejected the login that was let in. */
  failed(host: string, username: string, secret?: string): void
  /** ms until an urgent login asked for now could begin at the earliest; 0 = at once. */
  delay(host: string, username: string, secret?: string): number
  /** How many rejected logins slow this one; 0 = none do, only the pace of the host. */
  rejections(host: string, username: string, secret?: string): number
  /** Logins waiting, over all hosts. */
  readonly waiting: number
  /** Hosts of which something is remembered. */
  readonly hosts: number
}

/** Who logs in: a username, and the fingerprint of the credential. */
interface Who {
  readonly user: string
  readonly key: string
}

interface Entrant extends Who {
  readonly urgent: boolean
  readonly admit: () => void
}

/** A username that failed lately: when its logins began, and when they failed; oldest first. */
interface Suspect {
  starts: number[]
  failures: { readonly at: number; readonly key: string }[]
}

interface Gate {
  /** Times of the logins of the last minute, oldest first. */
  starts: number[]
  readonly suspects: Map<string, Suspect>
  queue: Entrant[]
  timer: NodeJS.Timeout | null
}

interface Limits {
  readonly perMinute: number
  readonly now: () => number
}

/** When one more may start: the minute's number is kept over any 60 s, and two keep their distance. */
function nextStart(starts: readonly number[], limit: number, distance: number, at: number): number {
  const first = starts[starts.length - limit]
  const last = starts.at(-1)
  return Math.max(at, first === undefined ? at : first + minuteMs, last === undefined ? at : last + distance)
}

/** An urgent login need not keep its distance to others. */
function hostStart({ starts }: Gate, perMinute: number, at: number, urgent: boolean): number {
  return nextStart(starts, perMinute, urgent ? 0 : minuteMs / perMinute / rampFactor, at)
}

/** Failures that count against this login; 0 while they are within the budgets. */
function rejectionsOf({ suspects }: Gate, { user, key }: Who): number {
  const failures = suspects.get(user)?.failures ?? []
  const same = failures.filter((failure) => failure.key === key).length
  if (same >= failureBudget) return same
  return failures.length >= usernameBudget ? failures.length : 0
}

/** `at` for everybody who is not slowed. */
function ownStart(gate: Gate, who: Who, perMinute: number, at: number): number {
  const suspect = gate.suspects.get(who.user)
  if (suspect === undefined || rejectionsOf(gate, who) === 0) return at
  const limit = Math.max(1, Math.floor(perMinute / slowFactor))
  return nextStart(suspect.starts, limit, minuteMs / limit, at)
}

function forget(gate: Gate, at: number): void {
  gate.starts = gate.starts.filter((time) => time > at - minuteMs)
  for (const [user, suspect] of gate.suspects) {
    suspect.starts = suspect.starts.filter((time) => time > at - minuteMs)
    suspect.failures = suspect.failures.filter((failure) => failure.at > at - failureWindowMs)
    if (suspect.failures.length === 0) gate.suspects.delete(user)
  }
}

/** Who is next, and when. One who must wait because of own failures does not hold up those behind. */
function nextUp(
  gate: Gate,
  perMinute: number,
  at: number,
): { readonly entrant: Entrant; readonly start: number } | null {
  let best: { readonly entrant: Entrant; readonly start: number } | null = null
  for (const entrant of gate.queue) {
    const own = ownStart(gate, entrant, perMinute, at)
    const start = Math.max(own, hostStart(gate, perMinute, at, entrant.urgent))
    if (best === null || start < best.start) best = { entrant, start }
    // Nobody behind can be earlier than one whom only the host's pace holds.
    if (own <= at) break
  }
  return best
}

/** Lets in who may, and sets the timer for who may not yet. */
function advance(gate: Gate, limits: Limits): void {
  if (gate.timer) clearTimeout(gate.timer)
  gate.timer = null
  for (;;) {
    const at = limits.now()
    forget(gate, at)
    const next = nextUp(gate, limits.perMinute, at)
    if (next === null) return
    const { entrant, start } = next
    if (start > at) {
      gate.timer = setTimeout(() => advance(gate, limits), Math.ceil(start - at))
      return
    }
    gate.queue = gate.queue.filter((other) => other !== entrant)
    gate.starts.push(at)
    gate.suspects.get(entrant.user)?.starts.push(at)
    entrant.admit()
  }
}

/** Behind the urgent ones when urgent, else at the end. */
function enqueue(gate: Gate, entrant: Entrant): void {
  const behind = entrant.urgent ? gate.queue.findIndex((other) => !other.urgent) : -1
  if (behind < 0) gate.queue.push(entrant)
  else gate.queue.splice(behind, 0, entrant)
}

function wait(gate: Gate, limits: Limits, who: Omit<Entrant, 'admit'>, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const giveUp = (): void => {
      gate.queue = gate.queue.filter((other) => other !== entrant)
      reject(signal.reason as Error)
      advance(gate, limits)
    }
    const admit = (): void => {
      signal.removeEventListener('abort', giveUp)
      resolve()
    }
    const entrant: Entrant = { ...who, admit }
    signal.addEventListener('abort', giveUp, { once: true })
    enqueue(gate, entrant)
    advance(gate, limits)
  })
}

interface Gates {
  of(host: string): Gate
  /** Without making one. */
  known(host: string): Gate | undefined
  readonly all: ReadonlyMap<string, Gate>
}

/** What nobody needs to remember any more is dropped, at most once a minute, and at once where there are too many. */
function createGates(now: () => number): Gates {
  const gates = new Map<string, Gate>()
  let swept = now()

  function sweep(at: number): void {
    swept = at
    // Down to half, so that a flood of names does not mean a sweep for each.
    const most = gates.size > mostHosts ? mostHosts / 2 : mostHosts
    for (const [key, gate] of gates) {
      forget(gate, at)
      const idle = gate.queue.length === 0
      const empty = gate.starts.length === 0 && gate.suspects.size === 0
      if (idle && (empty || gates.size > most)) gates.delete(key)
    }
  }

  return {
    of(host) {
      const key = host.toLowerCase()
      const at = now()
      const gate = gates.get(key) ?? { starts: [], suspects: new Map<string, Suspect>(), queue: [], timer: null }
      if (!gates.has(key) && (at - swept >= minuteMs || gates.size > mostHosts)) sweep(at)
      gates.set(key, gate)
      return gate
    },
    known: (host) => gates.get(host.toLowerCase()),
    all: gates,
  }
}

/** Tells credentials apart without keeping them; the key of the fingerprints is this process's own. */
function createFingerprints(): (username: string, secret?: string) => Who {
  const salt = randomBytes(32)
  return (username, secret = '') => ({
    user: username.toLowerCase(),
    key: createHmac('sha256', salt).update(secret).digest('base64'),
  })
}

/** `perMinute` 0 = no limit. */
export function createLoginLimiter(options: { readonly perMinute: number; readonly now?: () => number }): LoginLimiter {
  const limits: Limits = { perMinute: options.perMinute, now: options.now ?? Date.now }
  const { perMinute, now } = limits
  const gates = createGates(now)
  const whoIs = createFingerprints()
  return {
    async enter(host, username, { urgent, signal, secret }) {
      signal.throwIfAborted()
      if (perMinute > 0) await wait(gates.of(host), limits, { ...whoIs(username, secret), urgent }, signal)
    },
    failed(host, username, secret) {
      if (perMinute === 0) return
      const { suspects, starts } = gates.of(host)
      const { user, key } = whoIs(username, secret)
      const suspect = suspects.get(user) ?? { starts: starts.slice(-1), failures: [] }
      suspect.failures.push({ at: now(), key })
      suspects.set(user, suspect)
    },
    delay(host, username, secret) {
      const gate = gates.known(host)
      if (perMinute === 0 || gate === undefined) return 0
      const at = now()
      forget(gate, at)
      const own = ownStart(gate, whoIs(username, secret), perMinute, at)
      return Math.ceil(Math.max(own, hostStart(gate, perMinute, at, true)) - at)
    },
    rejections(host, username, secret) {
      const gate = gates.known(host)
      if (perMinute === 0 || gate === undefined) return 0
      forget(gate, now())
      return rejectionsOf(gate, whoIs(username, secret))
    },
    get waiting() {
      return [...gates.all.values()].reduce((sum, gate) => sum + gate.queue.length, 0)
    },
    get hosts() {
      return gates.all.size
    },
  }
}
