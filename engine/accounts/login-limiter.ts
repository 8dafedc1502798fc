/**
 * Spreads new logins over time, host by host, so that a restart with a thousand accounts does not look like an attack.
 * While several developers wait for a host, the one who has begun the fewest logins there in the last minute is next;
 * urgent ones go first within their developer's share. Checks of new accounts leave some of the pace to others
 * (login-gate.ts). A username whose logins a host rejects is tried there less often, but it is tried; the developer's
 * other usernames, and other developers, notice nothing. A credential was rejected: a new one does not wait for the
 * failures of the old, up to a number that looks like guessing.
 *
 * p-queue limits one rate for all, in an order that is fixed when work is added. Here several rates hold at once (of
 * the host, of a developer, of checks, of a username), the next one depends on what each developer has begun by then,
 * and a caller hears beforehand how long it would wait.
 */
import { createHmac, randomBytes } from 'node:crypto'
import {
  begin,
  begunBy,
  createGate,
  fail,
  forget,
  hostStart,
  hostStartBehind,
  isForgotten,
  minuteMs,
  ownStart,
  rejectionsOf,
  type Gate,
  type Holding,
  type Client,
} from './login-gate.ts'

/** Callers choose the names of hosts: when more are known than this, the oldest where no login waits are forgotten. */
const mostHosts = 10_000

/** Whose login it is, and where. */
export interface Login {
  readonly host: string
  readonly developerId: string
  readonly username: string
  /** What the login is made with; nothing of it is kept. */
  readonly secret?: string
  /** The check of a new account, or of one that is asked for. */
  readonly check?: boolean
}

export type LoginLimiter = ReturnType<typeof createLoginLimiter>

interface Entrant extends Client {
  readonly urgent: boolean
  readonly admit: () => void
}

interface Host {
  readonly gate: Gate
  /** By developer, urgent ones first; the developer who was let in last is the last. */
  readonly queue: Map<string, Entrant[]>
  timer: NodeJS.Timeout | null
}

interface Limits {
  readonly perMinute: number
  readonly now: () => number
}

interface Next {
  readonly entrant: Entrant
  readonly start: number
  /** Only the host's pace holds it. */
  readonly ready: boolean
}

function waitingAt({ queue }: Host): number {
  return queue.values().reduce((sum, line) => sum + line.length, 0)
}

function othersWait(host: Host): boolean {
  return host.queue.values().some((line) => line.some(({ check }) => !check))
}

/**
 * Who of a developer is next. One who must wait because of own failures, or as a check, does not hold up those behind.
 */
function nextOf(gate: Gate, line: readonly Entrant[], holding: Holding, at: number): Next | null {
  let best: Next | null = null
  for (const entrant of line) {
    const own = ownStart(gate, entrant, holding, at)
    const start = Math.max(own, hostStart(gate, holding.perMinute, at, entrant.urgent))
    if (own <= at) return { entrant, start, ready: true }
    if (best === null || start < best.start) best = { entrant, start, ready: false }
  }
  return best
}

function goesBefore(gate: Gate, one: Next, other: Next): boolean {
  if (one.ready !== other.ready) return one.ready
  if (!one.ready) return one.start < other.start
  return begunBy(gate, one.entrant.developerId) < begunBy(gate, other.entrant.developerId)
}

function nextUp(host: Host, perMinute: number, at: number): Next | null {
  const { gate, queue } = host
  const holding = { perMinute, othersWait: othersWait(host) }
  let best: Next | null = null
  for (const line of queue.values()) {
    const next = nextOf(gate, line, holding, at)
    if (next !== null && (best === null || goesBefore(gate, next, best))) best = next
  }
  return best
}

/** Lets in who may, and sets the timer for who may not yet. */
function advance(host: Host, limits: Limits): void {
  if (host.timer) clearTimeout(host.timer)
  host.timer = null
  for (;;) {
    const at = limits.now()
    forget(host.gate, at)
    const next = nextUp(host, limits.perMinute, at)
    if (next === null) return
    const { entrant, start } = next
    if (start > at) {
      host.timer = setTimeout(() => advance(host, limits), Math.ceil(start - at))
      return
    }
    leave(host, entrant)
    begin(host.gate, entrant, at)
    entrant.admit()
  }
}

/** Its developer goes to the end. */
function leave({ queue }: Host, entrant: Entrant): void {
  const line = (queue.get(entrant.developerId) ?? []).filter((other) => other !== entrant)
  queue.delete(entrant.developerId)
  if (line.length > 0) queue.set(entrant.developerId, line)
}

/** Behind the urgent ones when urgent, else at the end. */
function enqueue({ queue }: Host, entrant: Entrant): void {
  const line = queue.get(entrant.developerId) ?? []
  queue.set(entrant.developerId, line)
  const behind = entrant.urgent ? line.findIndex((other) => !other.urgent) : -1
  if (behind < 0) line.push(entrant)
  else line.splice(behind, 0, entrant)
}

function wait(host: Host, limits: Limits, who: Omit<Entrant, 'admit'>, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const giveUp = (): void => {
      leave(host, entrant)
      reject(signal.reason as Error)
      advance(host, limits)
    }
    const admit = (): void => {
      signal.removeEventListener('abort', giveUp)
      resolve()
    }
    const entrant: Entrant = { ...who, admit }
    signal.addEventListener('abort', giveUp, { once: true })
    enqueue(host, entrant)
    advance(host, limits)
  })
}

/**
 * Who goes before an urgent one: such of the same developer, and as many of each other developer as are its turn until
 * it has begun more.
 */
function aheadOf({ gate, queue }: Host, { developerId }: Client) {
  const own = (queue.get(developerId) ?? []).filter(({ urgent }) => urgent)
  const begun = begunBy(gate, developerId) + own.length
  const before = [...queue].flatMap(([other, line]) =>
    other === developerId ? own : line.slice(0, Math.max(0, begun - begunBy(gate, other) + 1)),
  )
  return {
    all: before.length,
    /** Those of them that keep their distance. */
    usual: before.filter(({ urgent }) => !urgent).length,
    own: own.length,
    checks: before.filter(({ check }) => check).length,
  }
}

function delayOf(host: Host, who: Client, perMinute: number, at: number): number {
  const ahead = aheadOf(host, who)
  const own = ownStart(host.gate, who, { perMinute, othersWait: othersWait(host), ahead }, at)
  return Math.ceil(Math.max(own, hostStartBehind(host.gate, perMinute, at, ahead)) - at)
}

/** What no longer counts is dropped, at most once a minute, and at once where there are too many. */
function createHosts(now: () => number) {
  const hosts = new Map<string, Host>()
  let swept = now()

  function sweep(at: number): void {
    swept = at
    // Down to half, so that a flood of names does not mean a sweep for each.
    const most = hosts.size > mostHosts ? mostHosts / 2 : mostHosts
    for (const [key, { gate, queue }] of hosts) {
      forget(gate, at)
      if (queue.size === 0 && (isForgotten(gate) || hosts.size > most)) hosts.delete(key)
    }
  }

  return {
    of(name: string): Host {
      const key = name.toLowerCase()
      const at = now()
      const host = hosts.get(key) ?? { gate: createGate(), queue: new Map<string, Entrant[]>(), timer: null }
      if (!hosts.has(key) && (at - swept >= minuteMs || hosts.size > mostHosts)) sweep(at)
      hosts.set(key, host)
      return host
    },
    /** Without making one. */
    known: (name: string): Host | undefined => hosts.get(name.toLowerCase()),
    all: hosts as ReadonlyMap<string, Host>,
  }
}

/** Tells credentials apart without keeping them; the key of the fingerprints is this process's own. */
function createFingerprints(): (login: Login) => Client {
  const salt = randomBytes(32)
  return ({ developerId, username, secret = '', check = false }) => ({
    developerId,
    user: `${developerId} ${username.toLowerCase()}`,
    key: createHmac('sha256', salt).update(secret).digest('base64'),
    check,
  })
}

/** `perMinute` 0 = no limit. */
export function createLoginLimiter({ perMinute, now = Date.now }: { perMinute: number; now?: () => number }) {
  const limits: Limits = { perMinute, now }
  const hosts = createHosts(now)
  const whoIs = createFingerprints()
  /** What is known of the host, as of now. */
  const known = (login: Login): Host | undefined => {
    const host = perMinute === 0 ? undefined : hosts.known(login.host)
    if (host !== undefined) forget(host.gate, now())
    return host
  }
  return {
    /** Resolves when a login to the host may begin. An `urgent` one: an API call waits for it. */
    async enter(
      login: Login,
      { urgent, signal }: { readonly urgent: boolean; readonly signal: AbortSignal },
    ): Promise<void> {
      signal.throwIfAborted()
      if (perMinute > 0) await wait(hosts.of(login.host), limits, { ...whoIs(login), urgent }, signal)
    },
    /** The server rejected the login that was let in. */
    failed(login: Login): void {
      if (perMinute > 0) fail(hosts.of(login.host).gate, whoIs(login), now())
    },
    /** ms until an urgent login asked for now could begin, behind those who wait now; 0 = at once. */
    delay(login: Login): number {
      const host = known(login)
      return host === undefined ? 0 : delayOf(host, whoIs(login), perMinute, now())
    },
    /** How many rejected logins slow this one; 0 = none do, only the pace of the host. */
    rejections(login: Login): number {
      const host = known(login)
      return host === undefined ? 0 : rejectionsOf(host.gate, whoIs(login))
    },
    /** Logins waiting, over all hosts. */
    get waiting(): number {
      return hosts.all.values().reduce((sum, host) => sum + waitingAt(host), 0)
    },
    /** Hosts of which something is remembered. */
    get hosts(): number {
      return hosts.all.size
    },
  }
}
