/**
 * When a login may begin at a host, so that a restart with a thousand accounts does not look like an attack. A fifth of
 * the minute's number may begin at once, the others at even distances; developers take turns (fair-queue.ts), so that a
 * login waits for few of each other developer. A username whose logins are rejected is tried less often, never not at
 * all; other usernames, and other developers, notice nothing. A new credential does not wait for the failures of the
 * old, up to a number that looks like guessing. The pace is that of all nodes: each hears of the others' logins, and
 * takes no more than its part of what is left until it has heard.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { createFairQueue, type FairQueue } from '../fair-queue.ts'
import { ownUses, type Uses } from '../uses.ts'
import { pause } from '../scheduling.ts'

const minuteMs = 60_000
/** This part of a minute's number may begin at once. */
const burstPart = 1 / 5
/** Failed logins of one username within this time count … */
const failureWindowMs = 600_000
/** … and from this many with one credential on, the username is slowed at this host with that credential … */
const failureBudget = 5
/** … from this many on with whichever … */
const usernameBudget = 15
/** … by this factor. */
const slowFactor = 10
/** By then every node has heard of a login. */
const heardMs = 2_000
/** Callers choose the names of hosts, and usernames: those that were used longest ago are forgotten. */
const mostHosts = 10_000
const mostUsers = 100_000
/** A delay is not reckoned further than this. */
const longestDelayMs = 600_000
/** A change of the pace is seen after this time. */
const lookMs = 1_000

export interface Login {
  readonly host: string
  readonly developerId: string
  readonly username: string
  /** The password or refresh token; nothing of it is kept. */
  readonly secret?: string
}

interface Host {
  readonly queue: FairQueue
  /** Each login counts for one distance: when all that have begun, on all nodes, count no more. */
  countedUntil: number
  /** When the logins began that other nodes may not have heard of yet, oldest first. */
  untold: readonly number[]
}

/** A developer's username at a host whose logins were rejected. */
interface Suspect {
  failures: readonly { readonly at: number; readonly key: string }[]
  /** When its last login began. */
  lastAt: number
}

interface Entering {
  /** An API call waits for the login. */
  readonly urgent: boolean
  readonly signal: AbortSignal
}

interface LimiterOptions {
  /** 0 = no limit. */
  readonly perMinute: number
  readonly now?: () => number
  readonly uses?: Uses
}

export type LoginLimiter = ReturnType<typeof createLoginLimiter>

export function createLoginLimiter({ perMinute, now = Date.now, uses = ownUses }: LimiterOptions) {
  const suspects = createSuspects(now)
  const hosts = createHosts(perMinute === 0 ? Infinity : perMinute, now, uses)
  let waiting = 0

  return {
    /** Resolves when a login to the host may begin. An `urgent` one goes first among its developer's. */
    async enter(login: Login, { urgent, signal }: Entering): Promise<void> {
      signal.throwIfAborted()
      const { host, developerId, username: key } = login
      if (hosts.pace(host) === Infinity) return
      waiting += 1
      const slowedFor = (): number => suspects.wait(login, hosts.pace(host))
      /** Returns whether the login has begun; false = its username was slowed while it waited. */
      const inTurn = async (either: AbortSignal): Promise<boolean> => {
        let isSlowed = false as boolean
        const left = (): number => {
          isSlowed = slowedFor() > 0
          return isSlowed ? 0 : Math.min(hosts.take(host), lookMs)
        }
        await untilDone(left, either)
        if (!isSlowed) suspects.began(login)
        return !isSlowed
      }
      try {
        do await untilDone(slowedFor, signal)
        while (!(await hosts.of(host).queue.run({ developerId, key, urgent }, inTurn, signal)))
      } finally {
        waiting -= 1
      }
    },
    failed(login: Login): void {
      if (hosts.pace(login.host) !== Infinity) suspects.add(login)
    },
    /** ms until an urgent login asked for now could begin, behind those who wait now; 0 = at once. */
    delay(login: Login): number {
      const { host, developerId } = login
      const inTurn = hosts.wait(host, hosts.of(host).queue.ahead({ developerId, urgent: true }))
      return Math.ceil(Math.min(Math.max(suspects.wait(login, hosts.pace(host)), inTurn), longestDelayMs))
    },
    /** The number of rejected logins that slow this one; 0 = only the pace of the host does. */
    rejections: suspects.rejections,
    /** Logins a minute at this host from now on: 0 = none; null = as configured. */
    setPace: hosts.setPace,
    /** As an operator has set it; null = as configured. */
    pace: hosts.ownPace,
    /** Hosts with a pace of their own. */
    paced: hosts.paced,
    get waiting(): number {
      return waiting
    },
  }
}

/** Waits while `left` answers how long, in ms. Rejects with the signal's reason. */
async function untilDone(left: () => number, signal: AbortSignal): Promise<void> {
  for (let ms = left(); ms > 0; ms = left()) {
    await pause(ms, signal)
    signal.throwIfAborted()
  }
}

/** Hosts with the logins that have begun there. `perMinute` Infinity = no limit. */
function createHosts(perMinute: number, now: () => number, uses: Uses) {
  const hosts = new LRUCache<string, Host>({ maxSize: mostHosts, sizeCalculation: () => 1 })
  /** Set by an operator. */
  const paces = new Map<string, number>()
  const ownPace = (name: string): number | null => paces.get(name.toLowerCase()) ?? null
  const pace = (name: string): number => ownPace(name) ?? perMinute

  function of(name: string): Host {
    const key = name.toLowerCase()
    const host = hosts.get(key) ?? { queue: createFairQueue({ places: 1, spare: 0 }), countedUntil: 0, untold: [] }
    hosts.set(key, host)
    return host
  }

  /** ms until a login may begin behind so many others. */
  function wait(name: string, ahead = 0): number {
    const [host, at, most] = [of(name), now(), pace(name)]
    if (most === 0 || most === Infinity) return most === 0 ? Infinity : 0
    const { burst, distance } = spread(most)
    const used = Math.max(0, host.countedUntil - at) / distance
    return Math.floor(Math.max(0, (used + ahead + 1 - burst) * distance, untilHeard(host, burst - used, at)))
  }

  /** ms until the logins that other nodes may not have heard of are less than this node's part of the free ones. */
  function untilHeard(host: Host, free: number, at: number): number {
    const nodes = uses.nodes()
    host.untold = nodes === 1 ? [] : host.untold.filter((one) => one > at - heardMs)
    const first = host.untold.at(-Math.max(1, Math.ceil((free + host.untold.length) / nodes)))
    return first === undefined ? 0 : first + heardMs - at
  }

  function count(host: Host, most: number, logins: number): void {
    if (most > 0 && most < Infinity)
      host.countedUntil = Math.max(now(), host.countedUntil) + logins * spread(most).distance
  }

  uses.hear('login', (name, logins) => count(of(name), pace(name), logins))

  return {
    of,
    wait,
    pace,
    ownPace,
    paced: (): string[] => [...paces.keys()],
    setPace(name: string, most: number | null): void {
      if (most === null) paces.delete(name.toLowerCase())
      else paces.set(name.toLowerCase(), most)
      // Earlier logins were counted at another distance.
      of(name).countedUntil = 0
    },
    /** Returns the ms to wait; 0 = a login begins. */
    take(name: string): number {
      const ms = wait(name)
      if (ms > 0) return ms
      const host = of(name)
      count(host, pace(name), 1)
      host.untold = [...host.untold, now()]
      uses.tell('login', name.toLowerCase())
      return 0
    },
  }
}

/** Never more than `perMinute` logins in any 60 s. `distance` in ms. */
function spread(perMinute: number) {
  const burst = Math.ceil(perMinute * burstPart)
  return { burst, distance: minuteMs / (perMinute - burst + 1) }
}

/** Usernames whose logins were rejected. */
function createSuspects(now: () => number) {
  const suspects = new LRUCache<string, Suspect>({ maxSize: mostUsers, sizeCalculation: () => 1 })
  const salt = randomBytes(32)
  /** Tells credentials apart without keeping them. */
  const fingerprint = ({ secret = '' }: Login): string => createHmac('sha256', salt).update(secret).digest('base64')
  const keyOf = ({ host, developerId, username }: Login): string => `${developerId} ${host} ${username}`.toLowerCase()
  const recent = ({ failures }: Suspect) => failures.filter(({ at }) => at > now() - failureWindowMs)

  /** Failures that count against this login; 0 while they are within the budgets. */
  function rejections(login: Login): number {
    const suspect = suspects.get(keyOf(login))
    if (suspect === undefined || suspect.failures.length < failureBudget) return 0
    const [all, own] = [recent(suspect), fingerprint(login)]
    const same = all.filter(({ key }) => key === own).length
    if (same >= failureBudget) return same
    return all.length >= usernameBudget ? all.length : 0
  }

  /** ms. `perMinute`: of the host. */
  function wait(login: Login, perMinute: number): number {
    if (rejections(login) === 0) return 0
    const distance = minuteMs / Math.max(1, Math.floor(perMinute / slowFactor))
    return Math.max(0, (suspects.get(keyOf(login))?.lastAt ?? 0) + distance - now())
  }

  return {
    rejections,
    wait,
    /** Notes that a login of the username begins. */
    began(login: Login): void {
      const suspect = suspects.get(keyOf(login))
      if (suspect !== undefined) suspect.lastAt = now()
    },
    add(login: Login): void {
      const suspect = suspects.get(keyOf(login)) ?? { failures: [], lastAt: now() }
      suspect.failures = [...recent(suspect), { at: now(), key: fingerprint(login) }]
      suspects.set(keyOf(login), suspect)
    },
  }
}
