/** How far the first reading of the folders is, and how fast it goes. */
import type { FolderRecord } from '../store/records.ts'

export interface Progress {
  /** Messages in the index. */
  readonly read: number
  /** Messages on the server. */
  readonly total: number
  /** Messages a second, in two digits; null = nothing was read lately. */
  readonly perSecond: number | null
  /** null = not known. */
  readonly secondsLeft: number | null
}

/** After a longer pause the pace is measured anew. */
const pauseMs = 60_000
/** Between two lines of the log about one account. */
const logEveryMs = 60_000

/** Measures the pace of an account over the pages of old mail that come without a long pause. */
export function createPace(now: () => number) {
  let [from, to, messages, loggedAt] = [0, 0, 0, now()]
  return {
    /** Counts a page that was read since `begun`, in ms since 1970. Returns whether a line of the log is due. */
    page(begun: number, more: number): boolean {
      if (begun > to + pauseMs) [from, messages] = [begun, 0]
      messages += more
      to = now()
      const isDue = to - loggedAt >= logEveryMs
      if (isDue) loggedAt = to
      return isDue
    },
    /** Messages a second; null = nothing was read lately. */
    perSecond: (): number | null =>
      messages === 0 || now() > to + pauseMs ? null : (messages * 1000) / Math.max(1, now() - from),
  }
}

/** Messages of a folder on the server, as far as they are known. */
export function totalOf({ completeAt, counts, messages, cursor }: FolderRecord): number {
  return completeAt === null ? Math.max(messages, cursor?.exists ?? 0) : counts.messages
}

/** The progress of these folders together. `pace`: messages a second of their account; null = not known. */
export function progressOf(folders: readonly FolderRecord[], pace: number | null): Progress {
  let [read, total] = [0, 0]
  for (const folder of folders.filter(({ selectable }) => selectable)) {
    total += totalOf(folder)
    read += Math.min(folder.counts.messages, totalOf(folder))
  }
  if (pace === null) return { read, total, perSecond: null, secondsLeft: null }
  return { read, total, perSecond: Number(pace.toPrecision(2)), secondsLeft: Math.ceil((total - read) / pace) }
}

/** '1,200 of 5,000 messages read, 950 a second, 4 s left'. `of`: the folder's name; absent = all folders together. */
export function progressWords({ read, total, perSecond, secondsLeft }: Progress, of?: string): string {
  const done = `${grouped(read)} of ${grouped(total)} messages${of === undefined ? '' : ` of ${of}`} read`
  if (perSecond === null || secondsLeft === null) return done
  return `${done}, ${grouped(perSecond)} a second, ${durationOf(secondsLeft)} left`
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

function durationOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
