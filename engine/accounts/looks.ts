/**
 * Looks: polls out of turn, when a folder turns out to differ from the index. Reasons that come before a look begins
 * are merged into it, and looks keep a distance.
 */

/** Delay of a look: messages that have left a folder may have been moved. */
const delayMs = 1000
const distanceMs = 5000
/** A look may take a tenth of the time: a slow server has fewer looks. */
const share = 10

export function createLooks(now: () => number) {
  let wantedAt = Infinity
  let begunAt = 0
  let endedAt = 0
  return {
    /** When the next look is due, in ms since 1970; Infinity = no look is wanted. */
    get at(): number {
      return Math.max(wantedAt, endedAt + Math.max(distanceMs, (endedAt - begunAt) * share))
    },
    /** Asks for a look, one for a burst of wishes. */
    want: (): void => void (wantedAt = Math.min(wantedAt, now() + delayMs)),
    /** Begins the look when it is due; else returns false. */
    begin(): boolean {
      if (now() < this.at) return false
      begunAt = now()
      wantedAt = Infinity
      return true
    },
    end(): void {
      endedAt = now()
    },
  }
}
