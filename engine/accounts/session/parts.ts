/** The parts that the commands of a session share. */
import type { Line } from './line.ts'
import type { Names } from './names.ts'
import type { Searcher } from './search.ts'
import type { Facts } from './server-state.ts'

export interface Parts {
  readonly line: Line
  readonly facts: Facts
  readonly names: Names
  readonly searcher: Searcher
}
