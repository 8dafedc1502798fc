/**
 * Folders that are not as the index has them, until the watching session has read them: it alone reads. The marks of
 * one folder merge. What an API call waits for is read first, the others in the order in which they were found. The
 * mark of a folder that is left alone (absent.ts) stays until its time comes; of a folder that is set aside the mark
 * is not waited for.
 */
import { isLeftAlone, isSetAside } from './absent.ts'

/** UIDs whose flags are in doubt. */
export type Touched = readonly number[] | 'all'

type Call = PromiseWithResolvers<unknown>

interface Mark {
  readonly path: string
  /** Mail that came before this time is in the index. */
  readonly since: number
  readonly mark: number
  /** false = a command of ours is at work in the folder, and marks it once more at its end. */
  isDue: boolean
  /** UIDs that commands have touched. */
  touched: Touched
  /** Calls that wait for a reading that begins after them. */
  readonly calls: Call[]
}

/** `since`: see Mark, of marks that are made now. */
function createMarks(since: () => number, ended: () => void) {
  /** By path, in the order in which they were found. */
  const waiting = new Map<string, Mark>()
  const reading = new Set<Mark>()
  let newest = 0
  const of = (path: string): Mark => {
    const fresh = { path, since: since(), isDue: true, touched: [], calls: [] }
    const mark = waiting.get(path) ?? { ...fresh, mark: (newest += 1) }
    waiting.set(path, mark)
    return mark
  }
  return {
    of,
    /** The newest mark. */
    mark: (): number => newest,
    all: (): Mark[] => [...waiting.values(), ...reading],
    first: (which: (mark: Mark) => boolean): string | undefined => waiting.values().find(which)?.path,
    /** Reads the folder. Where that fails the mark stays. */
    async reading(path: string, work: (touched: Touched) => Promise<void>): Promise<void> {
      const mine = of(path)
      waiting.delete(path)
      reading.add(mine)
      try {
        await answer(mine.calls, () => work(mine.touched))
      } catch (error) {
        waiting.set(path, { ...mine, calls: waiting.get(path)?.calls ?? [] })
        throw error
      } finally {
        reading.delete(mine)
        ended()
      }
    },
    isMarked: (path: string): boolean => waiting.has(path),
    /** There is no such folder: the mark stays only for calls that have come since. */
    forget(path: string): void {
      if (waiting.get(path)?.calls.length === 0) waiting.delete(path)
    },
  }
}

function createEnds() {
  let end = Promise.withResolvers<unknown>()
  return {
    /** Resolves at the next end. */
    next: (): Promise<unknown> => end.promise,
    end(): void {
      end.resolve(null)
      end = Promise.withResolvers()
    },
  }
}

/** `isNow`: whether the folder is left alone, or set aside, now. */
export function createMoved(isNow: (path: string, which: typeof isLeftAlone) => boolean) {
  let lists: Call[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  let closed: Error | null = null
  let wake: () => void = () => undefined
  const readings = createEnds()
  const { of, all, first, ...marks } = createMarks(() => lookedAt, readings.end)
  const isCalled = ({ calls }: Mark): boolean => calls.length > 0
  const called = async (calls: Call[]): Promise<void> => {
    const call = Promise.withResolvers<unknown>()
    if (closed === null) calls.push(call)
    else call.reject(closed)
    wake()
    await call.promise
  }
  const awaited = (): Mark[] => all().filter(({ path }) => !isNow(path, isSetAside))
  const isSettled = (mark: number): boolean =>
    lookedAt !== Number.NEGATIVE_INFINITY && awaited().every((one) => one.mark > mark)
  return {
    ...marks,
    /** Our command is about to change the folder: what leaves another one meanwhile may come here. */
    expect: (path: string): void => void Object.assign(of(path), { isDue: isCalled(of(path)) }),
    /** Resolves when a reading of the folder that begins after this call has ended. Rejects as the reading does. */
    read(path: string, touched: Touched = []): Promise<void> {
      const mark = of(path)
      mark.isDue = true
      mark.touched = mark.touched === 'all' || touched === 'all' ? 'all' : [...mark.touched, ...touched]
      return called(mark.calls)
    },
    /** Resolves when a list of folders that is asked for after this call is stored. */
    relist: (): Promise<void> => called(lists),
    /** `work` asks for the list and stores it. */
    async answerLists(work: () => Promise<void>): Promise<void> {
      const taken = lists
      lists = []
      if (taken.length > 0) await answer(taken, work)
    },
    /** All folders have been looked at in this session, and those that were marked by then are in the index. */
    isSettled,
    /** Resolves when they are. */
    async settled(mark: number): Promise<void> {
      while (!isSettled(mark)) await readings.next()
    },
    /** `begunAt`: found by a look at all folders that began then. */
    found(paths: readonly string[], begunAt = lookedAt): void {
      for (const path of paths) of(path)
      lookedAt = begunAt
      readings.end()
      wake()
    },
    /** The listener is called when there may be something to read. One listener, the newest. */
    onFound: (listener: () => void): void => void (wake = listener),
    /** A call waits for the folder, or for the list. */
    isCalled: (): boolean => lists.length > 0 || all().some(isCalled),
    firstCalled: (): string | undefined => first(isCalled),
    first: (): string | undefined => first(({ path, isDue }) => isDue && !isNow(path, isLeftAlone)),
    /** When the last look at all folders began, in ms since 1970; -Infinity = there was none in this session. */
    get lookedAt(): number {
      return lookedAt
    },
    /** Mail that was moved between folders before this time is in the index at its new place, in ms since 1970. */
    get settledAt(): number {
      return Math.min(lookedAt, ...awaited().map(({ since }) => since))
    },
    /** The connections are closed: nobody reads any more. */
    end(error: Error): void {
      closed = error
      for (const { reject } of [...lists, ...all().flatMap(({ calls }) => calls)]) reject(error)
      readings.end()
    },
  }
}

async function answer(calls: readonly Call[], work: () => Promise<void>): Promise<void> {
  try {
    await work()
    for (const { resolve } of calls) resolve(null)
  } catch (error) {
    for (const { reject } of calls) reject(error)
    throw error
  }
}
