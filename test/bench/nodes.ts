/**
 * Several nodes on one MongoDB: what an idle cluster asks of the database, how long a takeover and a rolling restart
 * take, what a call through another node costs, and what an event costs with one, two and three nodes. `--faults`: mail
 * while nodes fail at random; see nodes/faults.ts.
 */
import { evenlyWatched, startCluster, type Cluster } from './nodes/cluster.ts'
import { nodeFaults } from './nodes/faults.ts'
import {
  burst,
  hops,
  idle,
  latencyDuring,
  rollingRestart,
  takeover,
  type Burst,
  type Hop,
  type Idle,
  type Latency,
  type Spread,
} from './nodes/measures.ts'
import type { BenchOptions } from './lib/options.ts'
import { header, jsonLine, say, table } from './lib/report.ts'

/** `growth`: of the processor time of an event beyond the idle cost, with more nodes. */
const goal = { takeoverMs: 30_000, handoverMs: 5000, growth: 1.15 }
const mostNodes = 3

interface Figures {
  readonly idles: readonly Idle[]
  readonly bursts: readonly Burst[]
  readonly calls: readonly Hop[]
  readonly latencies: Readonly<Record<'quiet' | 'rolling restart', Latency>>
  readonly takeovers: Readonly<Record<'killed' | 'silent', Spread>>
}

export async function nodes(options: BenchOptions): Promise<boolean> {
  if (options.faults) return nodeFaults(options)
  const accounts = options.accounts ?? 100
  const seconds = options.seconds ?? 15
  const count = options.count ?? 1500
  header('nodes', { accounts, secondsIdle: seconds, messagesPerNode: count })
  const cluster = await startCluster(accounts)
  try {
    if (cluster.dovecot.warning !== null) say(`warning: ${cluster.dovecot.warning}`)
    return report(options, await measure(cluster, { accounts, seconds, count }))
  } finally {
    await cluster.remove()
  }
}

interface Sizes {
  readonly accounts: number
  readonly seconds: number
  readonly count: number
}

async function measure(cluster: Cluster, { accounts, seconds, count }: Sizes): Promise<Figures> {
  const idles: Idle[] = []
  const bursts: Burst[] = []
  for (let many = 1; many <= mostNodes; many += 1) {
    const { service } = await cluster.start()
    if (many > 1) await evenlyWatched(cluster, cluster.nodes)
    // Another node with the same accounts, then more accounts on the same nodes.
    idles.push(await idle(cluster, seconds))
    // As much for each of them, however many there are: mail that comes together is cheaper.
    await cluster.connect(service, Math.ceil(accounts / mostNodes))
    await evenlyWatched(cluster, cluster.nodes)
    // The code and the connections of each process warm up by its own work.
    await burst(cluster, `warm${many}`, many * count)
    const rest = await idle(cluster, seconds)
    idles.push(rest)
    bursts.push(await burst(cluster, `burst${many}`, many * count, rest))
  }
  const calls = await hops(cluster, 100)
  const quiet = await latencyDuring(cluster, 'quiet', () => new Promise((resolve) => setTimeout(resolve, 10_000)))
  const rolling = await latencyDuring(cluster, 'rolling', () => rollingRestart(cluster))
  await evenlyWatched(cluster, cluster.nodes)
  const killed = await takeover(cluster, 3, ({ service }) => service.kill9())
  const silent = await takeover(cluster, 1, ({ service }) => void process.kill(service.pid, 'SIGSTOP'))
  const latencies = { quiet, 'rolling restart': rolling }
  return { idles, bursts, calls, latencies, takeovers: { killed, silent } }
}

function report(options: BenchOptions, figures: Figures): boolean {
  const { idles, bursts, calls, latencies, takeovers } = figures
  table(
    ['idle: nodes', 'accounts', 'operations/s', 'processor (% of a core)'],
    idles.map((row) => [row.nodes, row.accounts, row.operationsPerSecond, row.cpuPercent]),
  )
  table(
    ['burst: nodes', 'events/s', 'processor (ms/event)', 'beyond idle (ms/event)', 'operations/event'],
    bursts.map((row) => [row.nodes, row.eventsPerSecond, row.cpuMsPerEvent, row.beyondIdle, row.operationsPerEvent]),
  )
  table(
    ['call (ms)', 'at the owner p50', 'p99', 'through another node p50', 'p99', 'operations'],
    calls.map(({ call, atOwner, throughOther, operationsPerCall }) => [
      call,
      ...[atOwner.p50, atOwner.p99, throughOther.p50, throughOther.p99, operationsPerCall],
    ]),
  )
  const spreads = {
    'mail to callback, quiet': latencies.quiet,
    'during a rolling restart': latencies['rolling restart'],
  }
  table(
    ['ms', 'p50', 'p99'],
    Object.entries({
      ...spreads,
      'watched again after kill -9': takeovers.killed,
      'watched again after SIGSTOP': takeovers.silent,
    }).map(([name, { p50, p99 }]) => [name, p50, p99]),
  )
  say(`operations of an event, mail by mail: ${latencies.quiet.operationsPerEvent}`)
  const [alone = Number.NaN, ...more] = bursts.map(({ beyondIdle }) => beyondIdle)
  const growth = Math.round((Math.max(...more) / alone) * 100) / 100
  const slowest = Math.max(takeovers.killed.p99, takeovers.silent.p99)
  const gap = latencies['rolling restart'].p99
  const ok = growth <= goal.growth && slowest <= goal.takeoverMs && gap <= goal.handoverMs
  const words = `watched again within ${goal.takeoverMs / 1000} s, mail told within ${goal.handoverMs / 1000} s of a rolling restart (p99)`
  say(
    `goal: ${words}, work per event beyond the idle cost at most ${goal.growth} of one node's (${growth}): ${ok ? 'met' : 'MISSED'}`,
  )
  jsonLine('nodes', { ...figures, growth, ok })
  return ok || options.untimed
}
