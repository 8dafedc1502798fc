/**
 * Folders that are not as the index has them, until they have been read. INBOX is read by the watching session alone:
 * anew for API calls that have changed it, and its old mail page by page. The command connection reads other folders.
 */
import type { Session } from './session-types.ts'
import type { Touched } from './sync.ts'

/** A call that waits for a reading of INBOX, which has not begun. */
type Call = PromiseWithResolvers<unknown> & { readonly touched: Touched; readonly mark: number }

/** A page of INBOX's old mail, which waits for its turn. */
interface Page {
  readonly read: (session: Session) => Promise<void>
  readonly reject: (error: Error) => void
}

/** `ended` is called at the end of each reading; `next` numbers the marks. */
function createInbox(ended: () => void, next: () => number) {
  let calls: Call[] = []
  let pages: Page[] = []
  let reading = Number.POSITIVE_INFINITY
  let wake: () => void = () => undefined
  let closed: Error | null = null
  return {
    /** Resolves when a reading of INBOX that began after this call has ended. */
    async readInbox(touched: Touched = []): Promise<void> {
      if (closed !== null) throw closed
      const call = { ...Promise.withResolvers<unknown>(), touched, mark: next() }
      calls.push(call)
      wake()
      await call.promise
    },
    /** Work of the watching session on old mail of INBOX, when nothing newer waits for it. */
    readOld<T>(work: (session: Session) => Promise<T>): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      if (closed !== null) reject(closed)
      else pages.push({ reject, read: (session) => work(session).then(resolve, reject) })
      wake()
      return promise
    },
    /** The listener is called when a call or a page waits. One listener, the newest. */
    onCall: (listener: () => void): void => void (wake = listener),
    isCalled: (): boolean => calls.length > 0,
    isPageDue: (): boolean => pages.length > 0,
    /** Reads the page that has waited longest. Does not reject: whoever gave the page hears of a failure. */
    readPage: async (session: Session): Promise<void> => pages.shift()?.read(session),
    /** The calls up to this mark are answered. */
    isInboxRead: (mark: number): boolean => reading > mark && calls.every((call) => call.mark > mark),
    /** Reads INBOX for those who wait. */
    async answerCalls(work: (touched: Touched) => Promise<void>): Promise<void> {
      const taken = calls
      calls = []
      reading = Math.min(...taken.map(({ mark }) => mark))
      try {
        const uids = taken.flatMap(({ touched }) => (touched === 'all' ? [] : touched))
        await work(taken.some(({ touched }) => touched === 'all') ? 'all' : uids)
        for (const { resolve } of taken) resolve(null)
      } catch (error) {
        for (const { reject } of taken) reject(error)
        throw error
      } finally {
        reading = Number.POSITIVE_INFINITY
        ended()
      }
    },
    /** The connections are closed: nobody reads any more. */
    end(error: Error): void {
      closed = error
      for (const { reject } of [...calls, ...pages]) reject(error)
      calls = []
      pages = []
      ended()
    },
  }
}

interface Mark {
  /** Mail that came before this time is in the index. */
  readonly since: number
  readonly mark: number
}

export function createMoved() {
  /** By path, in the order in which they were found. */
  const waiting = new Map<string, Mark>()
  const reading = new Set<Mark>()
  let marks = 0
  const next = (): number => (marks += 1)
  let lookedAt = Number.NEGATIVE_INFINITY
  let wake: () => void = () => undefined
  /** Resolves at the end of the next reading. */
  let atEnd = Promise.withResolvers<unknown>()
  const ended = (): void => {
    atEnd.resolve(null)
    atEnd = Promise.withResolvers()
  }
  const inbox = createInbox(ended, next)
  const expect = (path: string): void => {
    if (path !== 'INBOX') waiting.set(path, waiting.get(path) ?? { since: lookedAt, mark: next() })
  }
  const dirty = (): Mark[] => [...waiting.values(), ...reading]
  const isSettled = (mark: number): boolean =>
    lookedAt !== Number.NEGATIVE_INFINITY && inbox.isInboxRead(mark) && dirty().every((one) => one.mark > mark)
  return {
    ...inbox,
    /** Our command is about to change the folder: what leaves another one meanwhile may come here. */
    expect,
    /** The newest mark. */
    mark: (): number => marks,
    /** All folders have been looked at in this session, and those that were marked by then are in the index. */
    isSettled,
    /** Resolves when they are. */
    async settled(mark: number): Promise<void> {
      while (!isSettled(mark)) await atEnd.promise
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
      const mine = waiting.get(path) ?? { since: lookedAt, mark: next() }
      waiting.delete(path)
      reading.add(mine)
      try {
        await work()
      } catch (error) {
        waiting.set(path, mine)
        throw error
      } finally {
        reading.delete(mine)
        ended()
      }
    },
    /** Mail that was moved between folders before this time is in the index at its new place, in ms since 1970. */
    get settledAt(): number {
      return Math.min(lookedAt, ...dirty().map(({ since }) => since))
    },
  }
}
