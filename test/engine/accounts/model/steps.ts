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
/** For so long no process runs. */
const crash = record({ do: is('crash'), downMs: fc.constantFrom(0, 0, 2000, 60_000) })
const renumber = record({ do: is('renumber'), folder, keeps: is('all', 'some', 'none') })
const reuse = record({ do: is('reuse'), folder })
/** Mail arrives, and the server leaves it out of its answers for so long. */
const hide = record({ do: is('hide'), folder, forMs: fc.constantFrom(1000, 100_000) })

const pass = record({ do: is('pass'), ms: fc.constantFrom<number>(300, 1000, 5000, 30_000, 100_000, 600_000) })
const moment = record({ do: is('pass'), ms: fc.constantFrom<number>(20, 100, 700) })
const quiet = record({ do: is('quiet') })

/** At the server, at the network, at our process. */
const harm = fc.oneof(
  { weight: 2, arbitrary: cut },
  { weight: 4, arbitrary: lose },
  { weight: 2, arbitrary: lag },
  { weight: 2, arbitrary: deafen },
  { weight: 2, arbitrary: crash },
  { weight: 1, arbitrary: renumber },
  { weight: 1, arbitrary: reuse },
  { weight: 1, arbitrary: hide },
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

/** What others do, and what breaks, while our work goes on; in few folders, of few messages. */
const them = is('them')
const sudden = fc.oneof(
  { weight: 2, arbitrary: record({ do: is('append'), by: them, folder, flags }) },
  { weight: 3, arbitrary: record({ do: is('remove'), by: them, pick }) },
  { weight: 3, arbitrary: record({ do: is('move'), by: them, pick, folder }) },
  { weight: 3, arbitrary: crash },
  { weight: 2, arbitrary: renumber },
  { weight: 4, arbitrary: reuse },
)

/** Folders are numbered anew, and mail leaves them while they are read. */
const anew = fc.oneof(
  { weight: 4, arbitrary: renumber },
  { weight: 4, arbitrary: sudden },
  { weight: 3, arbitrary: record({ do: is('pass'), ms: fc.constantFrom<number>(20, 5000, 60_000) }) },
  { weight: 1, arbitrary: hide },
)

const now = fc.constant(null)
/** After so many answers of the mail server, or so many writes of the store. */
const later = fc.oneof(record({ of: is('answers'), count: fc.nat(40) }), record({ of: is('writes'), count: fc.nat(3) }))

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never
export type Step = Of<typeof anything>

/** `wait`: for what the step sets off, until only time can bring news. */
const at = (step: fc.Arbitrary<Step>, after: fc.Arbitrary<Of<typeof later> | null>) =>
  record({ step, after, wait: fc.boolean() })

/** One sudden step comes to so many others. */
const many = (step: fc.Arbitrary<Step>, weight: number) =>
  fc.array(fc.oneof({ weight, arbitrary: at(step, now) }, { weight: 1, arbitrary: at(sudden, later) }), {
    maxLength: 16,
  })

/** A mailbox as it is at first, and the steps that follow. */
export const scenarios = record({
  server: is('all', 'gmail', 'notify', 'no uidplus', 'idle', 'plain'),
  inbox: fc.nat(4),
  archive: fc.nat(3),
  /** Folders are read at once, in pages, or in pages with a long pause after each. */
  reading: is('at once', 'paged', 'slow'),
  /** The first sync ends before the first step. */
  synced: fc.boolean(),
  steps: fc.oneof(
    { weight: 3, arbitrary: many(anything, 4) },
    { weight: 2, arbitrary: many(atOnce, 2) },
    { weight: 2, arbitrary: many(anew, 1) },
  ),
})

export type Scenario = Of<typeof scenarios>
