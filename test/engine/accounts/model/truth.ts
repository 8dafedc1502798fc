/**
 * What the mail server has, and what has happened to each message there since the last quiet point. The changes that
 * the engine told are replayed against it: each change really happened, is told at most as often as it happened, and
 * all of them together lead from the mailbox of the last quiet point to the mailbox of now.
 */
import type { ImapServer } from '../../../support/imap-server/index.ts'
import type { ChangeKind, ChangeRecord } from '../../../../engine/store/records.ts'

export interface Lying {
  readonly uids: number[]
  /** Of the first UID. */
  flags: string
}

/** By subject and path. */
export type Mailbox = Map<string, Map<string, Lying>>

/** An event of a message in a folder. */
interface Events {
  arrivals: number
  departures: number
  flagged: number
  readonly flags: Set<string>
}

export class Violation extends Error {}

const arrivalKinds: ReadonlySet<ChangeKind> = new Set(['received', 'sent', 'draft', 'folder_added'])

export function flagsText(flags: Iterable<string>): string {
  return [...flags].sort().join(' ')
}

export function subjectOf(raw: Buffer): string {
  return /^Subject: (\S+)/m.exec(raw.toString('latin1'))?.[1] ?? '?'
}

function mailboxOf(server: ImapServer): Mailbox {
  const all: Mailbox = new Map()
  for (const folder of server.folders('ann'))
    for (const { raw, uid, flags } of folder.messages) {
      const subject = subjectOf(raw)
      const places = all.get(subject) ?? new Map<string, Lying>()
      all.set(subject, places)
      const lying = places.get(folder.name)
      if (lying === undefined) places.set(folder.name, { uids: [uid], flags: flagsText(flags) })
      else lying.uids.push(uid)
    }
  return all
}

export type Truth = ReturnType<typeof createTruth>

export function createTruth(server: ImapServer) {
  let now: Mailbox = new Map()
  let base: Mailbox = new Map()
  const events = new Map<string, Events>()
  /** By subject: how often the message lay in no folder any more. */
  const vanished = new Map<string, number>()
  /** Until the first quiet point, what lies in the mailbox may be told, or be history. */
  let isFirst = true
  /** Subjects that need not be told as new: they may be the history of a folder that was opened later. */
  const mayBeHistory = new Set<string>()
  /** These must not: they were there before the account was. */
  const history = new Set<string>()
  /** Paths of folders that were numbered anew since the last quiet point. */
  const renumbered = new Set<string>()
  const removedByUs = new Set<string>()
  const placedByThem = new Set<string>()
  const toldAsNew = new Set<string>()
  const idOf = new Map<string, string>()

  function of(subject: string, path: string): Events {
    const key = `${subject} ${path}`
    const known = events.get(key) ?? { arrivals: 0, departures: 0, flagged: 0, flags: new Set<string>() }
    events.set(key, known)
    return known
  }

  function compare(subject: string, path: string, before: Lying | undefined, after: Lying | undefined): void {
    const more = (after?.uids.length ?? 0) - (before?.uids.length ?? 0)
    if (more === 0 && before?.flags === after?.flags) return
    const there = of(subject, path)
    if (more > 0) there.arrivals += more
    else if (more < 0) there.departures -= more
    else there.flagged += 1
    if (after !== undefined) there.flags.add(after.flags)
  }

  /** Sees every change of mail by itself; to be called after changes of folders. */
  function see(): void {
    const next = mailboxOf(server)
    for (const subject of new Set([...now.keys(), ...next.keys()])) {
      const [before, after] = [now.get(subject), next.get(subject)]
      for (const path of new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])]))
        compare(subject, path, before?.get(path), after?.get(path))
      if (before !== undefined && after === undefined) vanished.set(subject, (vanished.get(subject) ?? 0) + 1)
    }
    now = next
    for (const folder of server.folders('ann')) folder.watchers.add(see)
  }

  function replay(
    changes: readonly ChangeRecord[],
    subjects: ReadonlyMap<string, string>,
  ): Map<string, Map<string, string>> {
    const shown = new Map(
      Array.from(base, ([subject, places]) => [subject, new Map(Array.from(places, ([path, at]) => [path, at.flags]))]),
    )
    const told = new Map<string, Events>()
    for (const change of changes) {
      const subject = subjects.get(change.messageId) ?? '?'
      const key = `${subject} ${change.path}`
      const count = told.get(key) ?? { arrivals: 0, departures: 0, flagged: 0, flags: new Set<string>() }
      told.set(key, count)
      const places = shown.get(subject) ?? new Map<string, string>()
      shown.set(subject, places)
      take(change, { subject, places, count, real: of(subject, change.path) })
    }
    return shown
  }

  interface Step {
    readonly subject: string
    readonly places: Map<string, string>
    readonly count: Events
    readonly real: Events
  }

  function take(change: ChangeRecord, { subject, places, count, real }: Step): void {
    const { kind, path } = change
    const flags = flagsText(change.flags)
    const must = (holds: boolean, what: string): void => {
      if (!holds) throw new Violation(`seq ${change.seq}, ${kind} ${subject} ${path} [${flags}]: ${what}`)
    }
    if (arrivalKinds.has(kind)) {
      count.arrivals += 1
      must(change.first === (kind !== 'folder_added'), 'first and kind do not agree')
      if (change.first) {
        must(!history.has(subject) || (isFirst && real.arrivals > 0), 'old mail is told as new')
        must(isFirst || (places.size === 0 && !base.has(subject)), 'known mail is told as new')
      }
      must(count.arrivals <= real.arrivals, `arrived ${real.arrivals} times, told ${count.arrivals} times`)
      must(real.flags.has(flags), 'it never had these flags')
      places.set(path, flags)
    } else if (kind === 'flags_changed') {
      count.flagged += 1
      must(places.has(path) || isFirst, 'it was not told to be there')
      must(places.get(path) !== flags || isFirst, 'it was told with these flags before')
      must(real.flags.has(flags), 'it never had these flags')
      must(count.flagged <= real.flagged + real.arrivals, `flagged ${real.flagged} times, told ${count.flagged} times`)
      places.set(path, flags)
    } else {
      count.departures += 1
      must(places.delete(path) || isFirst, 'it was not told to be there')
      must(count.departures <= real.departures, `left ${real.departures} times, told ${count.departures} times`)
      const isLast = places.size === 0
      // Our removal waits for folders that are known to have changed: a copy by others may not be heard of yet.
      const isUnheard = removedByUs.has(subject) && placedByThem.has(subject)
      must(kind !== 'deleted' || vanished.has(subject) || isUnheard, 'it was somewhere all the time')
      must(
        isLast === (kind === 'deleted') || isFirst || arrivedUntold(subject),
        isLast ? 'it lies nowhere else' : 'it still lies elsewhere',
      )
    }
  }

  function arrivedUntold(subject: string): boolean {
    return [...renumbered].some((path) => (events.get(`${subject} ${path}`)?.arrivals ?? 0) > 0)
  }

  /** null = the changes lead to the mailbox of now. Throws a Violation where no later change can mend it. */
  function check(changes: readonly ChangeRecord[], subjects: ReadonlyMap<string, string>): string | null {
    const shown = replay(changes, subjects)
    if (isFirst) return null
    for (const subject of new Set([...shown.keys(), ...now.keys()])) {
      const places = shown.get(subject) ?? new Map<string, string>()
      const real = now.get(subject) ?? new Map<string, Lying>()
      if (places.size === 0 && mayBeHistory.has(subject) && !base.has(subject)) continue
      // Rule 5: what arrives, or gets other flags, while the folder is numbered anew is known mail in it.
      for (const [path, { flags }] of real) if (renumbered.has(path) && shown.has(subject)) places.set(path, flags)
      const told = [...places.keys()].sort().join(', ')
      const there = [...real.keys()].sort().join(', ')
      if (told !== there) return `${subject} lies in [${there}], told in [${told}]`
      for (const [path, { uids, flags }] of real)
        if (uids.length === 1 && places.get(path) !== flags)
          return `${subject} in ${path} has [${flags}], told [${places.get(path) ?? ''}]`
    }
    return null
  }

  return {
    see,
    check,
    get mailbox(): Mailbox {
      return now
    },
    /** Mail that was there before the account was. */
    begin(): void {
      see()
      for (const subject of now.keys()) history.add(subject)
      base = now
      events.clear()
    },
    renumbered: (path: string): void => void renumbered.add(path),
    removedByUs: (subject: string): void => void removedByUs.add(subject),
    placedByThem: (subject: string): void => void placedByThem.add(subject),
    mayBeHistory: (subject: string): void => void mayBeHistory.add(subject),
    /** A message keeps its id. */
    sameId(subject: string, id: string): void {
      const known = idOf.get(subject) ?? id
      idOf.set(subject, id)
      if (known !== id) throw new Violation(`${subject} had the id ${known}, and has ${id} now`)
    },
    /** What was told up to here is right: from now on it is the past. */
    settle(changes: readonly ChangeRecord[], subjects: ReadonlyMap<string, string>): void {
      for (const { first, messageId } of changes) {
        const subject = subjects.get(messageId) ?? '?'
        if (first && toldAsNew.has(subject)) throw new Violation(`${subject} is told as new for the second time`)
        if (first) toldAsNew.add(subject)
      }
      base = now
      isFirst = false
      events.clear()
      vanished.clear()
      renumbered.clear()
      removedByUs.clear()
      placedByThem.clear()
    },
  }
}
