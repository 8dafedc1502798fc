/**
 * Our own writes that change the counts of folders, while they are under way: what the server says of these counts meanwhile may
 * have the write in it or not, and the write adds its part itself.
 */
export interface OwnCounts {
  /** A write begins that changes the counts of these folders; the answer ends it. */
  begin(folderIds: readonly string[]): () => void
  /** Counts the writes that have ended: taken before the server is asked. */
  mark(): number
  /** Whether what the server was asked at this mark is in doubt for the folder. */
  isDoubtful(folderId: string, mark: number): boolean
}

export function createOwnCounts(): OwnCounts {
  /** By folder: writes under way, and the mark at the end of the last one. */
  const folders = new Map<string, { open: number; ended: number }>()
  let ended = 0
  return {
    begin(folderIds) {
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
    mark: () => ended,
    isDoubtful(folderId, mark) {
      const folder = folders.get(folderId)
      return folder !== undefined && (folder.open > 0 || folder.ended > mark)
    },
  }
}
