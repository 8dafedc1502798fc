/** The parts that the commands of a session share. */
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

/** As many responses are kept as a batch may have messages. */
const mostUnparsed = 1000

type Unparsed = ReturnType<typeof createUnparsed>

/** The UIDs of FETCH responses that could not be parsed or were left out. */
export function createUnparsed() {
  const uids: number[] = []
  return {
    add: (line: string): void => {
      if (uids.length >= mostUnparsed || !/^\0*\* \d+ FETCH/i.test(line)) return
      uids.push(Number(/[( ]UID (\d{1,10})\b/i.exec(line)?.[1] ?? 0))
    },
    /** The UIDs since the last call; 0 = the response does not show its UID. */
    take: (): number[] => uids.splice(0),
  }
}
