/**
 * Our own writes on the server, as far as the sync has to know of them while they are under way. What they changed is told like
 * anybody's change (own-changes.ts). In memory only: what a crash cuts short the sync finds, and tells.
 */

/** No word of the server is under way for longer than this. */
const rememberedMs = 10 * 60_000

export interface OwnWrites {
  /**
   * Before MOVE or EXPUNGE: this UID is about to leave. Until the answer ends it, its \Deleted is not news, and neither is that it
   * is gone: the write itself will tell where to.
   */
  leave(folderId: string, uid: number): () => void
  isLeaving(folderId: string, uid: number): boolean
  /** The answer to our STORE goes into the index. */
  wrote(folderId: string, uid: number): void
  /** Counts the writes of flags: what was asked of the server before a write says nothing about what came of it. */
  mark(): number
  isWrittenSince(folderId: string, uid: number, mark: number): boolean
}

export function createOwnWrites(now: () => number): OwnWrites {
  const leaving = new Set<string>()
  /** Oldest first. */
  const written = new Map<string, { readonly mark: number; readonly until: number }>()
  let count = 0
  const keyOf = (folderId: string, uid: number): string => `${folderId} ${uid}`
  return {
    leave(folderId, uid) {
      const key = keyOf(folderId, uid)
      leaving.add(key)
      return () => void leaving.delete(key)
    },
    isLeaving: (folderId, uid) => leaving.has(keyOf(folderId, uid)),
    wrote(folderId, uid) {
      const key = keyOf(folderId, uid)
      for (const [old, { until }] of written) {
        if (until > now()) break
        written.delete(old)
      }
      written.delete(key)
      count += 1
      written.set(key, { mark: count, until: now() + rememberedMs })
    },
    mark: () => count,
    isWrittenSince: (folderId, uid, mark) => (written.get(keyOf(folderId, uid))?.mark ?? 0) > mark,
  }
}

/** Flags as the index keeps them: without \Recent, sorted, each once. */
export function normalFlags(flags: readonly string[]): string[] {
  return [...new Set(flags)].filter((flag) => flag !== '\\Recent').sort()
}
