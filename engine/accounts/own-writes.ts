/**
 * Our own writes on the server, remembered until their echo has come back, so that the sync does not tell developers about
 * what they did themselves. In memory only: a write whose echo comes after a restart finds the index up to date already.
 * An expectation stands for one write: what others do to the same message afterwards is told.
 */
import type { Placement } from '../store/records.ts'
import { sameFlags } from './session/flags.ts'

/** How long an echo may take; the poll of the slowest folders is 5 minutes apart. */
const rememberedMs = 10 * 60_000

export interface OwnWrites {
  /** Before STORE: the flags that the message will have. */
  expectFlags(folderId: string, uid: number, flags: readonly string[]): void
  /** The index has the flags of our STORE: the same flags by another hand are news again. */
  settleFlags(folderId: string, uid: number): void
  /** Before MOVE or EXPUNGE: this UID leaves. */
  expectDeparture(folderId: string, uid: number): void
  /** Before MOVE, COPY or APPEND: this message arrives there under a new UID. */
  expectArrival(folderId: string, messageId: string): void
  /** After it: our own message is there. */
  expectAt(folderId: string, uid: number): void
  /** The server refused: forget what was expected. */
  forget(folderId: string, key: number | string): void
  isFlags(folderId: string, uid: number, flags: readonly string[]): boolean
  isDeparture(folderId: string, uid: number): boolean
  /** The first UID that is asked about takes the expectation. */
  isArrival(folderId: string, messageId: string, uid: number): boolean
  /** Counts the writes of flags: what was asked of the server before a write says nothing about what came of it. */
  mark(): number
  isWrittenSince(folderId: string, uid: number, mark: number): boolean
}

interface Expected {
  readonly until: number
  readonly mark: number
  readonly flags: readonly string[] | null
  /** Of an arrival: the UID that took it. */
  uid: number | null
}

export function createOwnWrites(now: () => number): OwnWrites {
  const expected = new Map<string, Expected>()
  let written = 0

  function remember(key: string, flags: readonly string[] | null): void {
    const time = now()
    for (const [old, entry] of expected) {
      if (entry.until > time) break
      expected.delete(old)
    }
    expected.delete(key)
    written += 1
    expected.set(key, { until: time + rememberedMs, mark: written, flags, uid: null })
  }

  function find(key: string): Expected | null {
    const entry = expected.get(key)
    return entry !== undefined && entry.until > now() ? entry : null
  }

  function takes(key: string, uid: number): boolean {
    const entry = find(key)
    if (entry === null) return false
    entry.uid ??= uid
    return entry.uid === uid
  }

  return {
    expectFlags: (folderId, uid, flags) => remember(`f ${folderId} ${uid}`, normalFlags(flags)),
    settleFlags: (folderId, uid) => remember(`f ${folderId} ${uid}`, null),
    expectDeparture: (folderId, uid) => remember(`d ${folderId} ${uid}`, null),
    expectArrival: (folderId, messageId) => remember(`a ${folderId} ${messageId}`, null),
    expectAt: (folderId, uid) => remember(`u ${folderId} ${uid}`, null),
    forget(folderId, key) {
      for (const kind of ['f', 'd', 'a', 'u']) expected.delete(`${kind} ${folderId} ${key}`)
    },
    isFlags: (folderId, uid, flags) => sameFlags(find(`f ${folderId} ${uid}`)?.flags ?? null, flags),
    isDeparture: (folderId, uid) => find(`d ${folderId} ${uid}`) !== null,
    isArrival: (folderId, messageId, uid) =>
      find(`u ${folderId} ${uid}`) !== null || takes(`a ${folderId} ${messageId}`, uid),
    mark: () => written,
    isWrittenSince: (folderId, uid, mark) => (find(`f ${folderId} ${uid}`)?.mark ?? 0) > mark,
  }
}

/** Flags as the index keeps them: without \Recent, sorted, each once. */
export function normalFlags(flags: readonly string[]): string[] {
  return [...new Set(flags)].filter((flag) => flag !== '\\Recent').sort()
}

/** The flags after a change, as the server will answer. */
export function changedFlags(
  placement: Pick<Placement, 'flags'>,
  change: { readonly add: readonly string[]; readonly remove: readonly string[] },
): string[] {
  const removed = new Set(change.remove.map((flag) => flag.toLowerCase()))
  return normalFlags([...placement.flags.filter((flag) => !removed.has(flag.toLowerCase())), ...change.add])
}
