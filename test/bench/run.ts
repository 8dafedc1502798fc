/** `npm run bench -- NAME [--store sqlite|mongodb] [--count N] [--seconds N] [--accounts N]`; CONTRIBUTING.md: pair */
import { api } from './api.ts'
import { burst } from './burst.ts'
import { consolePages } from './console.ts'
import { faults } from './faults.ts'
import { idle } from './idle.ts'
import { latency } from './latency.ts'
import { benchOptions, type BenchOptions } from './lib/options.ts'
import { say } from './lib/report.ts'
import { memory } from './memory.ts'
import { nodes } from './nodes.ts'
import { pair } from './pair.ts'
import { payloads } from './payloads.ts'
import { recover } from './recover.ts'
import { soak } from './soak.ts'
import { start } from './start.ts'
import { store } from './store.ts'
import { sync } from './sync.ts'

const benches: Readonly<Record<string, (options: BenchOptions) => Promise<boolean>>> = {
  api,
  burst,
  console: consolePages,
  faults,
  idle,
  latency,
  memory,
  nodes,
  pair,
  payloads,
  recover,
  soak,
  start,
  store,
  sync,
}

const [name = '', ...rest] = process.argv.slice(2)
const bench = benches[name]
if (bench === undefined) {
  say(
    `usage: npm run bench -- ${Object.keys(benches).join('|')} [--store sqlite|mongodb] [--count N] [--seconds N] [--accounts N]`,
  )
  process.exitCode = 2
} else {
  try {
    process.exitCode = (await bench(benchOptions(rest))) ? 0 : 1
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error))
    process.exitCode = 2
  }
}
