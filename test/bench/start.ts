/**
 * A start with many accounts: when all watch, and what they cost from then on. The mail server is the scripted one, in
 * a process of its own: Dovecot has a process for each connection.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startService, type Service } from '../support/service.ts'
import { createUser, type MailServer } from '../support/users.ts'
import { allWatched } from './lib/metrics.ts'
import { openBenchStore, type BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

const goal = { allSeconds: 15, percentOfCore: 5 }
const patienceMs = 600_000
/** Past the first sync: garbage is collected. */
const restSeconds = 90

export async function start(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 10_000
  const seconds = options.seconds ?? 60
  header('start', { store: options.store, accounts, seconds, restSeconds })
  const parts = new AsyncDisposableStack()
  try {
    const store = openBenchStore(options.store)
    parts.defer(() => store.remove())
    const crowd = fork(join(import.meta.dirname, 'lib/crowd.ts'), [String(accounts)])
    parts.defer(() => crowd.disconnect())
    const [server] = (await once(crowd, 'message')) as [MailServer]
    const service = await startService(store.service)
    parts.defer(() => service.remove())
    await connect(service, server, accounts)
    await service.stop()
    const began = performance.now()
    await service.start()
    const readySeconds = round((performance.now() - began) / 1000)
    const emptyKib = service.rssKib()
    await allWatched(service, accounts, patienceMs)
    const allSeconds = round((performance.now() - began) / 1000)
    const cpuMs = round(cpuNanosOf(service.pid) / 1e6 / accounts)
    await pause(restSeconds * 1000)
    const before = cpuNanosOf(service.pid)
    await pause(seconds * 1000)
    const share = round((cpuNanosOf(service.pid) - before) / (seconds * 1e7))
    const perAccountKib = round((service.rssKib() - emptyKib) / accounts)
    return report(options, { accounts, readySeconds, allSeconds, cpuMs, share, perAccountKib })
  } finally {
    await parts.disposeAsync()
  }
}

async function connect(service: Service, server: MailServer, accounts: number): Promise<void> {
  const names = Array.from({ length: accounts }, (_, index) => `u${index}@bench.example`)
  const began = performance.now()
  await inParallel(names, 16, (name) => createUser(service, server, name))
  await allWatched(service, accounts, patienceMs)
  say(`${accounts} accounts were made in ${round((performance.now() - began) / 1000)} s`)
}

interface Figures {
  readonly accounts: number
  readonly readySeconds: number
  readonly allSeconds: number
  readonly cpuMs: number
  readonly share: number
  readonly perAccountKib: number
}

function report(options: BenchOptions, figures: Figures): boolean {
  const { accounts, readySeconds, allSeconds, cpuMs, share, perAccountKib } = figures
  table(
    [`${accounts} accounts`, 'measured'],
    [
      ['ready after a start, s', readySeconds],
      ['all watch after a start, s', allSeconds],
      ['processor time of each until then, ms', cpuMs],
      ['idle, % of a core', share],
      ['memory for each account, KiB', perAccountKib],
    ],
  )
  const ok = allSeconds <= goal.allSeconds && share <= goal.percentOfCore
  say(`goal: all within ${goal.allSeconds} s, at most ${goal.percentOfCore} % of a core idle: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('start', { store: options.store, ...figures, ok })
  return ok || options.untimed
}
