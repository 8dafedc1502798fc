/**
 * Our own writes on the server, remembered until their echo has come back, so that the sync does not tell developers about
 * what they did themselves. In memory only: a write whose echo comes after a restart finds the index up to date already.
 */
import type { Placement } from '../store/records.ts'

/** How long an echo may take; the poll of the slowest folders is 5 minutes apart. */
const rememberedMs = 10 * 60_000

export interface OwnWrites {
  /** Before STORE: the flags that the message will have. */
  expectFlags(folderId: string, uid: number, flags: readonly string[]): void
  /** Before MOVE or EXPUNGE: this UID leaves. */
  expectDeparture(folderId: string, uid: number): void
  /** Before MOVE, COPY or APPEND: this message arrives there under a new UID. */
  expectArrival(folderId: string, messageId: string): void
  /** The server refused: forget what was expected. */
  forget(folderId: string, key: number | string): void
  isFlags(folderId: string, uid: number, flags: readonly string[]): boolean
  isDeparture(folderId: string, uid: number): boolean
  isArrival(folderId: string, messageId: string): boolean
}

export function createOwnWrites(now: () => number): OwnWrites {
  const expected = new Map<string, { readonly until: number; readonly flags: readonly string[] | null }>()

  function remember(key: string, flags: readonly string[] | null): void {
    const time = now()
    for (const [old, entry] of expected) {
      if (entry.until > time) break
      expected.delete(old)
    }
    expected.delete(key)
    expected.set(key, { until: time + rememberedMs, flags })
  }

  function find(key: string) {
    const entry = expected.get(key)
    return entry !== undefined && entry.until > now() ? entry : null
  }

  return {
    expectFlags: (folderId, uid, flags) => remember(`f ${folderId} ${uid}`, normalFlags(flags)),
    expectDeparture: (folderId, uid) => remember(`d ${folderId} ${uid}`, null),
    expectArrival: (folderId, messageId) => remember(`a ${folderId} ${messageId}`, null),
    forget(folderId, key) {
      for (const kind of ['f', 'd', 'a']) expected.delete(`${kind} ${folderId} ${key}`)
    },
    isFlags: (folderId, uid, flags) => find(`f ${folderId} ${uid}`)?.flags?.join(' ') === normalFlags(flags).join(' '),
    isDeparture: (folderId, uid) => find(`d ${folderId} ${uid}`) !== null,
    isArrival: (folderId, messageId) => find(`a ${folderId} ${messageId}`) !== null,
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
