/**
 * Folders that are not as the index has them, until they have been read. INBOX is read by the watching session, and
 * read anew for API calls that have changed it; the other folders are read over the command connection.
 */
import type { Touched } from './sync.ts'

/** Who waits for a reading of INBOX that has not begun. */
type Call = PromiseWithResolvers<unknown> & { readonly touched: Touched }

/** `ended` is called at the end of each reading. */
function createInbox(ended: () => void) {
  let calls: Call[] = []
  let reading = false
  let wake: () => void = () => undefined
  let closed: Error | null = null
  return {
    /** Resolves when a reading of INBOX that began after this call has ended. */
    async readInbox(touched: Touched = []): Promise<void> {
      if (closed !== null) throw closed
      const call = { ...Promise.withResolvers<unknown>(), touched }
      calls.push(call)
      wake()
      await call.promise
    },
    /** The listener is called for that. One listener, the newest. */
    onCall: (listener: () => void): void => void (wake = listener),
    isCalled: (): boolean => calls.length > 0,
    isInboxRead: (): boolean => calls.length === 0 && !reading,
    /** Reads INBOX for those who wait. */
    async answerCalls(work: (touched: Touched) => Promise<void>): Promise<void> {
      const taken = calls
      calls = []
      reading = true
      try {
        const uids = taken.flatMap(({ touched }) => (touched === 'all' ? [] : touched))
        await work(taken.some(({ touched }) => touched === 'all') ? 'all' : uids)
        for (const { resolve } of taken) resolve(null)
      } catch (error) {
        for (const { reject } of taken) reject(error)
        throw error
      } finally {
        reading = false
        ended()
      }
    },
    /** The connections are closed: nobody reads any more. */
    end(error: Error): void {
      closed = error
      for (const { reject } of calls) reject(error)
      calls = []
      ended()
    },
  }
}

export function createMoved() {
  /** By path: what came before this time is in the index. In the order in which they were found. */
  const waiting = new Map<string, number>()
  const reading = new Set<{ readonly since: number }>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let wake: () => void = () => undefined
  /** Who waits for the end of a reading. */
  let atEnd = Promise.withResolvers<unknown>()
  const ended = (): void => {
    atEnd.resolve(null)
    atEnd = Promise.withResolvers()
  }
  const inbox = createInbox(ended)
  const expect = (path: string): void => {
    if (path !== 'INBOX') waiting.set(path, waiting.get(path) ?? lookedAt)
  }
  const isSettled = (): boolean =>
    waiting.size + reading.size === 0 && lookedAt !== Number.NEGATIVE_INFINITY && inbox.isInboxRead()
  return {
    ...inbox,
    /** Our command is about to change the folder: what leaves another one meanwhile may come here. */
    expect,
    /** All folders have been looked at in this session, and all that is known to have moved is in the index. */
    isSettled,
    /** Resolves when it is. */
    async settled(): Promise<void> {
      while (!isSettled()) await atEnd.promise
    },
    /**
     * Perhaps none: folders to be opened or back-filled are looked for too (background.ts). `begunAt`: found by a look
     * at all folders that began then.
     */
    found(paths: readonly string[], begunAt = lookedAt): void {
      for (const path of paths) expect(path)
      lookedAt = begunAt
      ended()
      wake()
    },
    /** The listener is called for that. One listener, the newest. */
    onFound: (listener: () => void): void => void (wake = listener),
    get first(): string | undefined {
      return waiting.keys().next().value
    },
    /** Catches up with one. Where that fails it waits on. */
    async catchUp(path: string, work: () => Promise<void>): Promise<void> {
      const mine = { since: waiting.get(path) ?? lookedAt }
      waiting.delete(path)
      reading.add(mine)
      try {
        await work()
      } catch (error) {
        waiting.set(path, mine.since)
        throw error
      } finally {
        reading.delete(mine)
        ended()
      }
    },
    /** What was moved between folders before this time is in the index at its new place, in ms since 1970. */
    get settledAt(): number {
      return Math.min(lookedAt, ...Array.from(reading, ({ since }) => since), ...waiting.values())
    },
  }
}
