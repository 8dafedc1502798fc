/**
 * Our own writes on the server, as far as the sync has to know of them while they are under way. commands/writing.ts
 * stores what they changed and tells it like any other change. In memory only: the sync finds what a crash cuts short,
 * and tells it.
 */

/** No answer of the server is under way for longer than this. */
const rememberedMs = 10 * 60_000

export function createOwnWrites(now: () => number) {
  const leaving = new Set<string>()
  /** Oldest first. */
  const written = new Map<string, { readonly mark: number; readonly until: number }>()
  let count = 0
  const keyOf = (folderId: string, uid: number): string => `${folderId} ${uid}`
  return {
    /**
     * Before MOVE or EXPUNGE: this UID is about to leave. Until the returned function is called, neither its \Deleted
     * nor its absence is news: the write itself will tell where to.
     */
    leave(folderId: string, uid: number): () => void {
      const key = keyOf(folderId, uid)
      leaving.add(key)
      return () => void leaving.delete(key)
    },
    isLeaving: (folderId: string, uid: number): boolean => leaving.has(keyOf(folderId, uid)),
    /** The answer to our STORE goes into the index. */
    wrote(folderId: string, uid: number): void {
      const key = keyOf(folderId, uid)
      for (const [old, { until }] of written) {
        if (until > now()) break
        written.delete(old)
      }
      written.delete(key)
      count += 1
      written.set(key, { mark: count, until: now() + rememberedMs })
    },
    mark: (): number => count,
    isWrittenSince: (folderId: string, uid: number, mark: number): boolean =>
      (written.get(keyOf(folderId, uid))?.mark ?? 0) > mark,
  }
}

/** Our own writes that change counts. What the server says of these meanwhile may have the write in it or not. */
export function createOwnCounts() {
  /** By folder: writes under way, and the mark at the end of the last one. */
  const folders = new Map<string, { open: number; ended: number }>()
  let ended = 0
  return {
    /** A write begins that changes the counts of these folders. Answers the function that ends it. */
    begin(folderIds: readonly string[]): () => void {
      const begun = [...new Set(folderIds)].map((id) => {
        const folder = folders.get(id) ?? { open: 0, ended: 0 }
        folders.set(id, folder)
        folder.open += 1
        return folder
      })
      return () => {
        ended += 1
        for (const folder of begun) {
          folder.open -= 1
          folder.ended = ended
        }
      }
    },
    /** Counts the writes that have ended: read before the server is asked. */
    mark: (): number => ended,
    /** Whether what the server was asked at this mark is in doubt for the folder. */
    isDoubtful(folderId: string, mark: number): boolean {
      const folder = folders.get(folderId)
      return folder !== undefined && (folder.open > 0 || folder.ended > mark)
    },
  }
}

/** Flags as the index keeps them: without \Recent, sorted, each once. */
export function normalFlags(flags: readonly string[]): string[] {
  return [...new Set(flags)].filter((flag) => flag !== '\\Recent').sort()
}
