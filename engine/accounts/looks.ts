/**
 * Looks at all folders out of turn, where it was noticed that they are not as the index has them. What is noticed until a look
 * begins makes one look, and looks keep a distance: a mailbox in motion costs no more than the polls of a quick setting.
 */
const distanceMs = 5000
/** The same where somebody is waiting for a folder. */
const namedDistanceMs = 2000
/** A slow server is looked at more seldom: a look takes at most a tenth of the time. */
const share = 10

export interface Looks {
  /** When the next look is due, in ms since 1970; Infinity = none is wanted. */
  readonly at: number
  /** A look at the folders, with this one among them that is waited for, in `afterMs` if it may be then. */
  want(afterMs: number, path?: string): void
  /** Begins the look that is due: the paths that were named. null = none is due. */
  begin(): ReadonlySet<string> | null
  end(): void
}

export function createLooks(now: () => number): Looks {
  let paths = new Set<string>()
  let wantedAt = Number.POSITIVE_INFINITY
  let begunAt = 0
  let endedAt = 0
  const dueAt = (): number => {
    const distance = paths.size > 0 ? namedDistanceMs : distanceMs
    return Math.max(wantedAt, endedAt + Math.max(distance, (endedAt - begunAt) * share))
  }
  return {
    get at() {
      return dueAt()
    },
    want(afterMs, path) {
      if (path !== undefined) paths.add(path)
      wantedAt = Math.min(wantedAt, now() + afterMs)
    },
    begin() {
      if (now() < dueAt()) return null
      begunAt = now()
      wantedAt = Number.POSITIVE_INFINITY
      const taken = paths
      paths = new Set()
      return taken
    },
    end() {
      endedAt = now()
    },
  }
}
