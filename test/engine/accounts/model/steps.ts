/** Steps of a scenario: actions of other mail programs and of our API, faults, and time. */
import fc from 'fast-check'

const flagSets = [[], ['\\Seen'], ['\\Flagged'], ['work'], ['\\Seen', 'work']] as const

/** Which message in which folder, which folder: of those that are there. */
const pick = fc.nat(30)
const folder = fc.nat(5)
const flags = fc.constantFrom(...flagSets)
const name = fc.constantFrom('Work', 'Play', 'Work/Old')
/** Shown without its prototype where a scenario fails. */
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true })
const is = <const T extends string>(...names: T[]) => fc.constantFrom(...names)

/** An action of another mail program, or ours: `by` says whose. */
const by = is('them', 'them', 'us')

const deed = fc.oneof(
  { weight: 6, arbitrary: record({ do: is('append'), by, folder, flags }) },
  { weight: 4, arbitrary: record({ do: is('flag'), by, pick, flags }) },
  { weight: 3, arbitrary: record({ do: is('remove'), by, pick }) },
  { weight: 5, arbitrary: record({ do: is('move', 'move', 'copy'), by, pick, folder }) },
  { weight: 2, arbitrary: record({ do: is('create'), by, name }) },
  { weight: 1, arbitrary: record({ do: is('drop'), by, folder }) },
  { weight: 1, arbitrary: record({ do: is('rename'), folder, name }) },
)

const which = is('all', 'odd', 'even')
const lag = record({ do: is('lag'), which, byMs: fc.constantFrom(50, 400, 3000) })
const deafen = record({ do: is('deafen'), which })
const cut = record({ do: is('cut') })
const lose = record({ do: is('lose'), loss: is('before', 'after', 'never'), after: fc.nat(12) })
const crash = record({ do: is('crash'), after: fc.nat(60) })
const renumber = record({ do: is('renumber'), folder })
const reuse = record({ do: is('reuse'), folder })

const pass = record({ do: is('pass'), ms: fc.constantFrom<number>(300, 1000, 5000, 30_000, 100_000, 600_000) })
const moment = record({ do: is('pass'), ms: fc.constantFrom<number>(20, 100, 700) })
const quiet = record({ do: is('quiet') })

/** At the server, at the network, at our process. */
const harm = fc.oneof(
  { weight: 2, arbitrary: cut },
  { weight: 4, arbitrary: lose },
  { weight: 2, arbitrary: lag },
  { weight: 2, arbitrary: deafen },
  { weight: 4, arbitrary: crash },
  { weight: 1, arbitrary: renumber },
  { weight: 1, arbitrary: reuse },
)

const anything = fc.oneof(
  { weight: 14, arbitrary: deed },
  { weight: 4, arbitrary: harm },
  { weight: 4, arbitrary: pass },
  { weight: 1, arbitrary: quiet },
)

/** Both do the same to a few messages, and see each other late. */
const few = fc.nat(1)
const atOnce = fc.oneof(
  { weight: 6, arbitrary: record({ do: is('flag'), by: is('us', 'us', 'them'), pick: few, flags }) },
  { weight: 3, arbitrary: record({ do: is('move', 'copy'), by: is('us', 'us', 'them'), pick: few, folder }) },
  { weight: 2, arbitrary: record({ do: is('append'), by: is('us'), folder, flags }) },
  { weight: 1, arbitrary: record({ do: is('remove'), by: is('us'), pick: few }) },
  { weight: 4, arbitrary: lag },
  { weight: 1, arbitrary: deafen },
  { weight: 6, arbitrary: moment },
)

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never
export type Step = Of<typeof anything>

const many = (step: fc.Arbitrary<Step>) => fc.array(record({ step, wait: fc.boolean() }), { maxLength: 16 })

/** A mailbox as it is at first, and the steps that follow. */
export const scenarios = record({
  server: is('all', 'all', 'notify', 'no uidplus', 'idle', 'plain'),
  inbox: fc.nat(4),
  archive: fc.nat(3),
  /** The first sync ends before the first step. */
  synced: fc.boolean(),
  /** `wait`: for what the step sets off, until only time can bring news. */
  steps: fc.oneof({ weight: 2, arbitrary: many(anything) }, { weight: 1, arbitrary: many(atOnce) }),
})

export type Scenario = Of<typeof scenarios>
