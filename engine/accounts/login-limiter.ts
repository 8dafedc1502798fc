/**
 * When a login may begin at a host, so that a restart with a thousand accounts does not look like an attack. While
 * several developers wait, the one who has begun the fewest logins there in the last minute is next; urgent ones go
 * first within their developer's share. Checks of accounts leave some of the pace to others. A username whose logins
 * are rejected is tried less often, but it is tried; other usernames, and other developers, notice nothing. A new
 * credential does not wait for the failures of the old, up to a number that looks like guessing. The pace is that of
 * all nodes: each hears of the others' logins, and takes no more than its part of what is left until it has heard.
 *
 * p-queue limits one rate for all, in an order that is fixed when work is added. Here several rates hold at once (of
 * the host, of a developer, of checks, of a username), the next one depends on what each developer has begun by then,
 * and a caller hears beforehand how long it would wait.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { ownUses, type Uses } from '../uses.ts'

const minuteMs = 60_000
/** Failed logins of one username within this time count … */
const failureWindowMs = 600_000
/** … and from this many with one credential on, the username is slowed at this host with that credential … */
const failureBudget = 5
/** … from this many on with whichever … */
const usernameBudget = 15
/** … by this factor. */
const slowFactor = 10
/** Until the minute's number is used, logins are this many times closer together than an even spread. */
const rampFactor = 4
/** One developer's part of a minute's number where others have logged in lately too … */
const sharedPart = 9 / 10
const knownMs = 600_000
/** … and one who adds accounts, whose first logins count as well: another developer may come. */
const addingPart = 3 / 4
/** Checks of all developers take no more while other logins wait … */
const checksPart = 1 / 2
/** … except the first ones of each. */
const firstChecksPart = 1 / 10
/** By then every node has heard of a login. */
const heardMs = 2_000
/** Callers choose the names of hosts: of more than this the oldest where no login waits are forgotten. */
const mostHosts = 10_000
/** A delay is not reckoned further than this. */
const longestDelayMs = 600_000

export interface Login {
  readonly host: string
  readonly developerId: string
  readonly username: string
  /** The password or refresh token; nothing of it is kept. */
  readonly secret?: string
  /** The check of a new account, or of one that is asked for. */
  readonly check?: boolean
}

/** A developer's username, and the fingerprint of the credential. */
interface Client {
  readonly developerId: string
  readonly user: string
  readonly key: string
  readonly check: boolean
}

type Sharer = Pick<Client, 'developerId' | 'check'>

interface Entrant extends Client {
  readonly urgent: boolean
  readonly admit: () => void
}

interface Start extends Client {
  readonly at: number
  /** Of another node. */
  readonly heard?: true
}

interface Host {
  readonly name: string
  readonly uses: Uses
  /** Logins of the last minute, oldest first. */
  starts: Start[]
  /** Rejected logins of the last ten minutes. */
  failures: { readonly at: number; readonly user: string; readonly key: string }[]
  /** By developer: when the last login began, of those that began one in the last ten minutes. */
  readonly seen: Map<string, number>
  /** By developer, urgent ones first; the developer who was let in last is the last. */
  readonly queue: Map<string, readonly Entrant[]>
  timer: NodeJS.Timeout | null
  /** Logins a minute as an operator has set them: 0 = none at all; null = as configured. */
  pace: number | null
}

function forget(host: Host, at: number): void {
  host.starts = host.starts.filter((start) => start.at > at - minuteMs)
  host.failures = host.failures.filter((failure) => failure.at > at - failureWindowMs)
  for (const [developerId, last] of host.seen) if (last <= at - knownMs) host.seen.delete(developerId)
}

/** When one more of these may begin: `limit` is kept over any 60 s. */
function freeAt(starts: readonly { readonly at: number }[], limit: number, at: number): number {
  const first = starts.at(-limit)
  return first === undefined ? at : Math.max(at, first.at + minuteMs)
}

/** An urgent login need not keep its distance to others. */
function hostStart(host: Host, perMinute: number, at: number, urgent: boolean): number {
  const last = host.starts.at(-1)
  const apart = urgent || last === undefined ? at : last.at + minuteMs / perMinute / rampFactor
  return Math.max(apart, freeAt(host.starts, perMinute, at), partStart(host, perMinute, at))
}

/** `at` where the logins that other nodes may not have heard of yet are less than this node's part. */
function partStart({ starts, uses }: Host, perMinute: number, at: number): number {
  const nodes = uses.nodes()
  if (nodes === 1) return at
  const untold = starts.filter((start) => start.heard === undefined && start.at > at - heardMs)
  const part = Math.max(1, Math.ceil((perMinute - starts.length + untold.length) / nodes))
  const first = untold.at(-part)
  return first === undefined ? at : first.at + heardMs
}

/** Failures that count against this login; 0 while they are within the budgets. */
function rejectionsOf({ failures }: Host, { user, key }: Client): number {
  const all = failures.filter((failure) => failure.user === user)
  const same = all.filter((failure) => failure.key === key).length
  if (same >= failureBudget) return same
  return all.length >= usernameBudget ? all.length : 0
}

/** `at` for everybody who is not slowed. */
function unsuspectedStart(host: Host, client: Client, perMinute: number, at: number): number {
  const last = rejectionsOf(host, client) === 0 ? undefined : host.starts.findLast(({ user }) => user === client.user)
  const distance = minuteMs / Math.max(1, Math.floor(perMinute / slowFactor))
  return last === undefined ? at : Math.max(at, last.at + distance)
}

/** `at` where the developer, and checks, have not had their part. */
function shareStart(host: Host, client: Sharer, perMinute: number, othersWait: boolean, at: number): number {
  const { starts, seen } = host
  const own = starts.filter(({ developerId }) => developerId === client.developerId)
  const ownChecks = own.filter(({ check }) => check)
  const isAlone = seen.keys().every((known) => known === client.developerId)
  const part = client.check || ownChecks.length > 0 ? addingPart : isAlone ? 1 : sharedPart
  const start = freeAt(own, Math.ceil(perMinute * part), at)
  if (!client.check || !othersWait || ownChecks.length < Math.ceil(perMinute * firstChecksPart)) return start
  const checks = starts.filter(({ check }) => check)
  return Math.max(start, freeAt(checks, Math.ceil(perMinute * checksPart), at))
}

interface Next {
  readonly entrant: Entrant
  readonly start: number
  /** Only the host's pace holds it. */
  readonly ready: boolean
  readonly begun: number
}

function goesBefore(one: Next, other: Next): boolean {
  if (one.ready !== other.ready) return one.ready
  return one.ready ? one.begun < other.begun : one.start < other.start
}

/** Who is next. One who must wait because of own failures, or as a check, does not hold up those behind. */
function nextUp(host: Host, perMinute: number, at: number): Next | null {
  const othersWait = host.queue.values().some((line) => line.some(({ check }) => !check))
  const failures = Map.groupBy(host.failures, ({ user }) => user)
  let best: Next | null = null
  for (const [developerId, line] of host.queue) {
    const begun = host.starts.filter((start) => start.developerId === developerId).length
    // Once for the line: it may be long.
    const share = shareStart(host, { developerId, check: false }, perMinute, othersWait, at)
    const checkShare = shareStart(host, { developerId, check: true }, perMinute, othersWait, at)
    for (const entrant of line) {
      const isSuspect = (failures.get(entrant.user)?.length ?? 0) >= failureBudget
      const unsuspected = isSuspect ? unsuspectedStart(host, entrant, perMinute, at) : at
      const own = Math.max(unsuspected, entrant.check ? checkShare : share)
      const start = Math.max(own, hostStart(host, perMinute, at, entrant.urgent))
      const next = { entrant, start, ready: own <= at, begun }
      if (best === null || goesBefore(next, best)) best = next
      if (next.ready) break
    }
  }
  return best
}

/** Takes out who may begin at this time, and answers when the next one may; null = nobody waits. */
function letIn(host: Host, perMinute: number, at: number): { entered: Entrant[]; nextAt: number | null } {
  const entered: Entrant[] = []
  forget(host, at)
  if (host.pace === 0) return { entered, nextAt: null }
  for (;;) {
    const next = nextUp(host, perMinute, at)
    if (next === null || next.start > at) return { entered, nextAt: next?.start ?? null }
    const { entrant } = next
    leave(host, entrant)
    entered.push(entrant)
    host.starts.push({ ...entrant, at })
    host.seen.set(entrant.developerId, at)
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
  const usual = entrant.urgent ? line.findIndex(({ urgent }) => !urgent) : -1
  queue.set(entrant.developerId, line.toSpliced(usual < 0 ? line.length : usual, 0, entrant))
}

/** The delay if nobody else came. */
function delayOf(host: Host, client: Client, perMinute: number, now: number): number {
  const mine: Entrant = { ...client, urgent: true, admit: () => undefined }
  const copy: Host = { ...host, starts: [...host.starts], seen: new Map(host.seen), queue: new Map(host.queue) }
  enqueue(copy, mine)
  if (host.pace === 0) return longestDelayMs
  let at = now
  while (at < now + longestDelayMs) {
    const { entered, nextAt } = letIn(copy, perMinute, at)
    if (entered.includes(mine) || nextAt === null) break
    at = nextAt
  }
  return Math.ceil(at - now)
}

/** Hosts that no longer count are dropped, at most once a minute, and at once where there are too many. */
function createHosts(now: () => number, uses: Uses) {
  const hosts = new Map<string, Host>()
  let swept = now()

  function sweep(at: number): void {
    swept = at
    // Down to half, so that a flood of names does not mean a sweep for each.
    const most = hosts.size > mostHosts ? mostHosts / 2 : mostHosts
    for (const [key, host] of hosts) {
      forget(host, at)
      const isForgotten = host.starts.length === 0 && host.failures.length === 0
      if (host.pace !== null) continue
      if (host.queue.size === 0 && (isForgotten || hosts.size > most)) hosts.delete(key)
    }
  }

  return {
    of(name: string): Host {
      const key = name.toLowerCase()
      const at = now()
      const host = hosts.get(key) ?? {
        name: key,
        uses,
        starts: [],
        failures: [],
        seen: new Map(),
        queue: new Map(),
        timer: null,
        pace: null,
      }
      if (!hosts.has(key) && (at - swept >= minuteMs || hosts.size > mostHosts)) sweep(at)
      hosts.set(key, host)
      return host
    },
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

interface Entering {
  readonly urgent: boolean
  readonly signal: AbortSignal
}

/** Logins of this host wait for their turn: without a limit only where an operator has set one. */
function isLimited(perMinute: number, host: Host | undefined): boolean {
  return perMinute > 0 || (host?.pace ?? null) !== null
}

export type LoginLimiter = ReturnType<typeof createLoginLimiter>

function admitAll({ name, uses }: Host, entered: readonly Entrant[]): void {
  for (const { admit, check, developerId } of entered) {
    uses.tell(check ? 'check' : 'login', `${developerId} ${name}`)
    admit()
  }
}

/** Logins of other nodes count like own ones. */
function hearOthers(uses: Uses, limited: (name: string) => Host | undefined, now: () => number): void {
  for (const kind of ['login', 'check'] as const)
    uses.hear(kind, (name, count) => {
      const [developerId = '', hostName = ''] = name.split(' ')
      const host = limited(hostName)
      if (host === undefined) return
      const at = now()
      forget(host, at)
      const start: Start = { developerId, user: '', key: '', check: kind === 'check', at, heard: true }
      for (let left = count; left > 0; left -= 1) host.starts.push(start)
      host.seen.set(developerId, at)
    })
}

interface LimiterOptions {
  /** 0 = no limit. */
  readonly perMinute: number
  readonly now?: () => number
  readonly uses?: Uses
}

export function createLoginLimiter({ perMinute, now = Date.now, uses = ownUses }: LimiterOptions) {
  const hosts = createHosts(now, uses)
  const clientOf = createFingerprints()
  const limited = (name: string) => (isLimited(perMinute, hosts.known(name)) ? hosts.of(name) : undefined)

  /** Lets in who may, and sets the timer for who may not yet. */
  function advance(host: Host): void {
    if (host.timer) clearTimeout(host.timer)
    const at = now()
    // Without a pace any more: all that wait.
    const { entered, nextAt } = letIn(host, host.pace ?? (perMinute === 0 ? Infinity : perMinute), at)
    host.timer = nextAt === null ? null : setTimeout(() => advance(host), Math.ceil(nextAt - at))
    admitAll(host, entered)
  }

  hearOthers(uses, limited, now)

  function known(login: Login): Host | undefined {
    const host = hosts.known(login.host) && limited(login.host)
    if (host !== undefined) forget(host, now())
    return host
  }

  return {
    /** Resolves when a login to the host may begin. An `urgent` one: an API call waits for it. */
    async enter(login: Login, { urgent, signal }: Entering): Promise<void> {
      signal.throwIfAborted()
      const host = limited(login.host)
      if (host === undefined) return
      const { promise, resolve, reject } = Promise.withResolvers<undefined>()
      const entrant: Entrant = { ...clientOf(login), urgent, admit: () => resolve(undefined) }
      const giveUp = (): void => {
        leave(host, entrant)
        reject(signal.reason as Error)
        advance(host)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      enqueue(host, entrant)
      advance(host)
      await promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
    failed(login: Login): void {
      limited(login.host)?.failures.push({ ...clientOf(login), at: now() })
    },
    /** ms until an urgent login asked for now could begin, behind those who wait now; 0 = at once. */
    delay(login: Login): number {
      const host = known(login)
      return host === undefined ? 0 : delayOf(host, clientOf(login), host.pace ?? perMinute, now())
    },
    /** The number of rejected logins that slow this one; 0 = only the pace of the host does. */
    rejections(login: Login): number {
      const host = known(login)
      return host === undefined ? 0 : rejectionsOf(host, clientOf(login))
    },
    /** Logins a minute at this host from now on: 0 = none; null = as configured. */
    setPace(name: string, pace: number | null): void {
      const host = hosts.of(name)
      host.pace = pace
      advance(host)
    },
    pace: (name: string): number | null => hosts.known(name)?.pace ?? null,
    /** Hosts with a pace of their own. */
    paced: (): string[] => Array.from(hosts.all).flatMap(([name, { pace }]) => (pace === null ? [] : [name])),
    get waiting(): number {
      return hosts.all.values().reduce((sum, { queue }) => sum + [...queue.values()].flat().length, 0)
    },
    get hosts(): number {
      return hosts.all.size
    },
  }
}
