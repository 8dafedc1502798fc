/**
 * When a login may begin at one host, by the logins of the last minute there and by the failures of the last ten. No
 * clock and no queue.
 */

/** Failed logins of one username within this time count … */
const failureWindowMs = 600_000
/** … and from this many with one credential on, the username is slowed at this host with that credential … */
const failureBudget = 5
/** … from this many on with whichever … */
const usernameBudget = 15
/** … by this factor. */
const slowFactor = 10
export const minuteMs = 60_000
/**
 * The ramp: logins of a host are this many times closer together than an even spread, until the minute's number is
 * used.
 */
const rampFactor = 4
/** What one developer may take of a minute's number where others have logged in lately too … */
const sharedPart = 9 / 10
const knownMs = 600_000
/** … and one who adds accounts, whose first logins count as well: another developer may come. */
const addingPart = 3 / 4
/** Checks of all developers take no more while other logins wait … */
const checksPart = 1 / 2
/** … except the first ones of each. */
const firstChecksPart = 1 / 10

/** Who logs in: a developer's username, and the fingerprint of the credential. */
export interface Client {
  readonly developerId: string
  readonly user: string
  readonly key: string
  /** The check of an account: of a new one, of new settings, or one that was asked for. */
  readonly check: boolean
}

/** A username that failed lately: when its logins began, and when they failed; oldest first. */
interface Suspect {
  starts: number[]
  failures: { readonly at: number; readonly key: string }[]
}

/** What a developer used in the last minute; oldest first. */
interface Share {
  starts: number[]
  checks: number[]
  lastAt: number
}

export interface Gate {
  /** Times of the logins of the last minute, oldest first; those of checks are in both. */
  starts: number[]
  checks: number[]
  /** By developer. */
  readonly shares: Map<string, Share>
  readonly suspects: Map<string, Suspect>
}

export function createGate(): Gate {
  return { starts: [], checks: [], shares: new Map(), suspects: new Map() }
}

/** When one more may start, after `ahead` others: the minute's number is kept over any 60 s. */
function freeAt(starts: readonly number[], limit: number, ahead: number, at: number): number {
  const first = starts[starts.length - limit + (ahead % limit)]
  return Math.max(at, first === undefined ? at : first + minuteMs) + Math.floor(ahead / limit) * minuteMs
}

/** The same, and two keep their distance. */
function nextStart(starts: readonly number[], limit: number, distance: number, at: number): number {
  const last = starts.at(-1)
  return Math.max(freeAt(starts, limit, 0, at), last === undefined ? at : last + distance)
}

function distanceOf(perMinute: number): number {
  return minuteMs / perMinute / rampFactor
}

/** An urgent login need not keep its distance to others. */
export function hostStart({ starts }: Gate, perMinute: number, at: number, urgent: boolean): number {
  return nextStart(starts, perMinute, urgent ? 0 : distanceOf(perMinute), at)
}

/** When the host lets an urgent login in that has others ahead of it, some of which keep their distance. */
export function hostStartBehind(
  { starts }: Gate,
  perMinute: number,
  at: number,
  ahead: { readonly all: number; readonly usual: number },
): number {
  const free = freeAt(starts, perMinute, ahead.all, at)
  return Math.max(free, at + ahead.usual * distanceOf(perMinute))
}

/** How many logins a developer has begun in the last minute. */
export function begunBy({ shares }: Gate, developerId: string): number {
  return shares.get(developerId)?.starts.length ?? 0
}

/** Failures that count against this login; 0 while they are within the budgets. */
export function rejectionsOf({ suspects }: Gate, { user, key }: Client): number {
  const failures = suspects.get(user)?.failures ?? []
  const same = failures.filter((failure) => failure.key === key).length
  if (same >= failureBudget) return same
  return failures.length >= usernameBudget ? failures.length : 0
}

/** `at` for everybody who is not slowed. */
function unsuspectedStart(gate: Gate, who: Client, perMinute: number, at: number): number {
  const suspect = gate.suspects.get(who.user)
  if (suspect === undefined || rejectionsOf(gate, who) === 0) return at
  const limit = Math.max(1, Math.floor(perMinute / slowFactor))
  return nextStart(suspect.starts, limit, minuteMs / limit, at)
}

/** What may hold one login besides the host's pace. */
export interface Holding {
  readonly perMinute: number
  /** Others than checks wait for the host. */
  readonly othersWait: boolean
  /** What goes before: of the same developer, and checks of all developers. Absent: nothing does. */
  readonly ahead?: { readonly own: number; readonly checks: number }
}

/** How many logins of one developer may begin within a minute. */
function mostOf({ shares }: Gate, { developerId, check }: Client, perMinute: number): number {
  const adds = check || (shares.get(developerId)?.checks.length ?? 0) > 0
  if (adds) return Math.ceil(perMinute * addingPart)
  const isAlone = shares.keys().every((known) => known === developerId)
  return isAlone ? perMinute : Math.ceil(perMinute * sharedPart)
}

/** `at` where the developer has not had its part. */
function shareStart(gate: Gate, who: Client, { perMinute, othersWait, ahead }: Holding, at: number): number {
  const { starts = [], checks = [] } = gate.shares.get(who.developerId) ?? {}
  const start = freeAt(starts, mostOf(gate, who, perMinute), ahead?.own ?? 0, at)
  if (!who.check || !othersWait || checks.length < Math.ceil(perMinute * firstChecksPart)) return start
  return Math.max(start, freeAt(gate.checks, Math.ceil(perMinute * checksPart), ahead?.checks ?? 0, at))
}

/** When nothing but the host's pace holds this login. */
export function ownStart(gate: Gate, who: Client, holding: Holding, at: number): number {
  return Math.max(unsuspectedStart(gate, who, holding.perMinute, at), shareStart(gate, who, holding, at))
}

export function begin(gate: Gate, { developerId, user, check }: Client, at: number): void {
  const share = gate.shares.get(developerId) ?? { starts: [], checks: [], lastAt: at }
  gate.shares.set(developerId, share)
  share.lastAt = at
  for (const times of [gate.starts, share.starts]) times.push(at)
  if (check) for (const times of [gate.checks, share.checks]) times.push(at)
  gate.suspects.get(user)?.starts.push(at)
}

export function fail({ suspects, starts }: Gate, { user, key }: Client, at: number): void {
  const suspect = suspects.get(user) ?? { starts: starts.slice(-1), failures: [] }
  suspect.failures.push({ at, key })
  suspects.set(user, suspect)
}

/** What is too old to count. */
export function forget(gate: Gate, at: number): void {
  const since = (times: readonly number[]): number[] => times.filter((time) => time > at - minuteMs)
  gate.starts = since(gate.starts)
  gate.checks = since(gate.checks)
  for (const [developerId, share] of gate.shares) {
    share.starts = since(share.starts)
    share.checks = since(share.checks)
    if (share.lastAt <= at - knownMs) gate.shares.delete(developerId)
  }
  for (const [user, suspect] of gate.suspects) {
    suspect.starts = since(suspect.starts)
    suspect.failures = suspect.failures.filter((failure) => failure.at > at - failureWindowMs)
    if (suspect.failures.length === 0) gate.suspects.delete(user)
  }
}

export function isForgotten({ starts, suspects }: Gate): boolean {
  return starts.length === 0 && suspects.size === 0
}
