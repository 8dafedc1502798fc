/** What the commands of a session share. */
import type { Line } from './line.ts'
import type { Names } from './names.ts'
import type { Searcher } from './search.ts'
import type { Facts } from './server-state.ts'

export interface Parts {
  readonly line: Line
  readonly facts: Facts
  readonly names: Names
  readonly unparsed: Unparsed
  readonly searcher: Searcher
}

/** FETCH responses that could not be read. */
export interface Unparsed {
  add(line: string): void
  /** Their UIDs since the last call; 0 = one that hides its own. */
  take(): number[]
}

/** More than this is not worth asking again line by line: the whole range is. */
const mostUnparsed = 1000

/** Of FETCH responses that could not be parsed or were left out: their UIDs, until the fetcher asks for them. */
export function createUnparsed(): Unparsed {
  const uids: number[] = []
  return {
    add(line) {
      if (uids.length >= mostUnparsed || !/^\0*\* \d+ FETCH/i.test(line)) return
      uids.push(Number(/[( ]UID (\d{1,10})\b/i.exec(line)?.[1] ?? 0))
    },
    take: () => uids.splice(0),
  }
}
