/** What every bench can be told on the command line, and where its store comes from. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { databaseOn, dropDatabase } from '../../support/store-choice.ts'

export type StoreKind = 'sqlite' | 'mongodb'

export interface BenchOptions {
  readonly store: StoreKind
  /** The one that was named, or all: for a bench that looks at each. */
  readonly stores: readonly StoreKind[]
  /** How much of whatever the bench counts; null = its own default. */
  readonly count: number | null
  /** How long it may go on where time is what it spends; null = its own default. */
  readonly seconds: number | null
  /** Times and sizes are printed, but fail nothing. */
  readonly untimed: boolean
  readonly accounts: number | null
  /** burst: rows that wait for a dead receiver; api: messages of its large mailbox. */
  readonly rows: number | null
  /** pair: the commit to compare with; null = that of test/bench/baseline. */
  readonly commit: string | null
  /** pair: a checkout of it that is there already, with its dependencies. */
  readonly beside: string | null
  /** pair, nodes --faults: two minutes in all, so each fault once. */
  readonly short: boolean
  /** nodes: mail while nodes fail at random. */
  readonly faults: boolean
  /** sync: a directory for processor profiles of the service. */
  readonly profile: string | null
  /** pair: fails when a ratio is higher. */
  readonly failOver: number | null
}

/** Throws with one line that names the wrong option. */
export function benchOptions(args: readonly string[]): BenchOptions {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const numbered = { count: text, seconds: text, accounts: text, rows: text, 'fail-over': text }
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { ...numbered, store: text, beside: text, profile: text, untimed: flag, short: flag, faults: flag },
    allowPositionals: true,
  })
  const store = values.store ?? 'sqlite'
  if (store !== 'sqlite' && store !== 'mongodb') throw new Error(`--store: expected sqlite or mongodb, got "${store}"`)
  const whole = (name: 'count' | 'seconds' | 'accounts' | 'rows'): number | null => {
    const value = values[name]
    if (value === undefined) return null
    if (/^\d+$/.test(value)) return Number(value)
    throw new Error(`--${name}: expected a whole number, got "${value}"`)
  }
  const numbers = { count: whole('count'), seconds: whole('seconds'), accounts: whole('accounts'), rows: whole('rows') }
  const stores: readonly StoreKind[] = values.store === undefined ? ['sqlite', 'mongodb'] : [store]
  const [commit = null, ...others] = positionals
  if (others.length > 0) throw new Error(`${others.join(' ')}: expected one commit at most`)
  const failOver = values['fail-over'] === undefined ? null : Number(values['fail-over'])
  if (failOver !== null && !(failOver > 0)) throw new Error(`--fail-over: expected a ratio such as 1.10`)
  const pair = { commit, beside: values.beside ?? null, short: values.short === true, failOver }
  const { profile = null } = values
  const { faults = false } = values
  return { store, stores, ...numbers, ...pair, faults, profile, untimed: values.untimed === true }
}

export interface BenchStore {
  readonly kind: StoreKind
  /** Extra options of startService. */
  readonly service: { readonly mongoUri?: string }
  remove(): Promise<void>
}

/** A fresh store: a data directory of the service's own, or a database of its own on MONGODB_URI or the test server. */
export function openBenchStore(kind: StoreKind): BenchStore {
  if (kind === 'sqlite') return { kind, service: {}, remove: () => Promise.resolve() }
  const given = process.env['MONGODB_URI']
  const server = given ?? mongoScript('start')
  const mongoUri = databaseOn(server, `mailroom_bench_${process.pid}`)
  return {
    kind,
    service: { mongoUri },
    async remove() {
      await dropDatabase(mongoUri)
      if (given === undefined) mongoScript('drop')
    },
  }
}

/** An instance of this process's own: a bench that ends does not take it from another one. */
function mongoScript(verb: 'start' | 'drop'): string {
  const script = join(import.meta.dirname, '../../support/mongo.sh')
  return execFileSync('bash', [script, verb, `bench-${process.pid}`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim()
}
