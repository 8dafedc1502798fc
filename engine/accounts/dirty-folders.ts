/**
 * Marks of dirty folders: folders that differ from the index, until the watching session, the only reader, has read
 * them. The marks of one folder merge. Folders that API calls wait for are read first, the others in the order of their
 * marks. The mark of a parked folder (absent.ts) stays until its time comes; nothing waits for one that is parked long.
 */
import { isParked, isParkedLong } from './absent.ts'

/** UIDs whose flags are in doubt. */
export type Touched = readonly number[] | 'all'

type Call = PromiseWithResolvers<unknown>

interface Mark {
  readonly path: string
  /** The folder's mail from before this time is in the index. */
  readonly since: number
  readonly mark: number
  /** false = a command of ours changes the folder, and marks it again at its end. */
  isDue: boolean
  /** UIDs that commands have touched. */
  touched: Touched
  /** Calls that wait for a reading that begins after them. */
  readonly calls: Call[]
}

/** `since`: Mark.since of new marks. `ended` is called after each reading. */
function createMarks(since: () => number, ended: () => void) {
  /** By path, in the order of the marks. */
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
    /** Reads the folder. The mark stays when `work` rejects. */
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
    /** The folder is gone: its mark stays only while calls wait for it. */
    forget(path: string): void {
      if (waiting.get(path)?.calls.length === 0) waiting.delete(path)
    },
  }
}

function createEnds() {
  let end = Promise.withResolvers<unknown>()
  return {
    next: (): Promise<unknown> => end.promise,
    end(): void {
      end.resolve(null)
      end = Promise.withResolvers()
    },
  }
}

/** `isNow`: whether the folder is parked, or parked long, now. */
export function createMoved(isNow: (path: string, which: typeof isParked) => boolean) {
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
  const awaited = (): Mark[] => all().filter(({ path }) => !isNow(path, isParkedLong))
  const isSettled = (mark: number): boolean =>
    lookedAt !== Number.NEGATIVE_INFINITY && awaited().every((one) => one.mark > mark)
  return {
    ...marks,
    /** Our command is about to change the folder: a message that leaves another folder may come here. */
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
    /** All folders have been polled in this session, and those marked up to `mark` have been read. */
    isSettled,
    /** Resolves when `isSettled`, or with the first reading that ends after the signal has aborted. */
    async settled(mark: number, signal: AbortSignal): Promise<void> {
      while (!isSettled(mark) && !signal.aborted) await readings.next()
    },
    /** Marks the folders. `begunAt`: they are the result of a poll of all folders that began then. */
    found(paths: readonly string[], begunAt = lookedAt): void {
      for (const path of paths) of(path)
      lookedAt = begunAt
      readings.end()
      wake()
    },
    /** Called when there may be something to read. Only the last registered listener is called. */
    onFound: (listener: () => void): void => void (wake = listener),
    /** A call waits for the folder, or for the list. */
    isCalled: (): boolean => lists.length > 0 || all().some(isCalled),
    firstCalled: (): string | undefined => first(isCalled),
    first: (): string | undefined => first(({ path, isDue }) => isDue && !isNow(path, isParked)),
    /** When the last poll of all folders began, in ms since 1970; -Infinity = this session has polled none. */
    get lookedAt(): number {
      return lookedAt
    },
    /** In ms since 1970: the index has all moves between folders from before this time. */
    get settledAt(): number {
      return Math.min(lookedAt, ...awaited().map(({ since }) => since))
    },
    /** The connections are closed: all calls reject. */
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
