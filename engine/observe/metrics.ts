/**
 * Counters, histograms and gauges of the process, in Prometheus' text format at GET /metrics. Labels take few values:
 * test/engine/metrics.test.ts bounds each. Below them: the samples of the last hour for operators, one in ten seconds.
 */
import { statfs } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Backlog, OutboxStore } from '../store/port.ts'
import type { Logger } from './log.ts'
import type { Held } from './loop.ts'

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Buckets for work that may wait. */
const longSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400]

export type Metrics = ReturnType<typeof createMetrics>

/** Makes a registry and its metrics: one per process, and one per engine in tests. */
export function createMetrics(sources: Sources = {}) {
  const registry = new Registry()
  const registers = [registry]
  if (sources.ownsProcess === true)
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: delayEveryMs })
  addGauges(registry, sources)

  const counter = <TLabel extends string>(name: string, help: string, ...labelNames: TLabel[]) =>
    new Counter({ name: `mailroom_${name}_total`, help, labelNames, registers })
  const histogram = <TLabel extends string>(name: string, help: string, labelNames: TLabel[], buckets = seconds) =>
    new Histogram({ name: `mailroom_${name}_seconds`, help, labelNames, buckets, registers })

  const news = 'began to fail (failing), have failed for too long (abandoned), were ended by a 410 (gone), recovered'
  const held = 'Turns of the event loop that took 0.1 s or more of processor time, by whose work it was'
  const lag = 'From the arrival of new mail at its mail server, by that server’s clock in whole seconds, to the index'
  return {
    registry,
    apiCalls: counter('api_calls', 'API calls by method, route and status', 'method', 'route', 'status'),
    apiSeconds: histogram('api', 'Duration of API calls', ['route']),
    imapLogins: counter('imap_logins', 'IMAP logins by outcome', 'outcome'),
    imapCommands: histogram('imap_command', 'IMAP commands by kind', ['kind']),
    messagesIndexed: counter('messages_indexed', 'Messages written to the index', 'source'),
    syncLag: histogram('sync_lag', lag, [], longSeconds),
    changes: counter('changes', 'Rows of the change log by kind', 'kind'),
    deliveries: counter('deliveries', 'Callback attempts by kind and outcome', 'kind', 'outcome'),
    webhookNews: counter('webhook_news', `Webhooks that ${news}`, 'news'),
    deliverySeconds: histogram('delivery', 'Duration of callback attempts', []),
    callbackLatency: histogram('callback_latency', 'From the event to the delivered callback', [], longSeconds),
    storeSeconds: histogram('store', 'Steps of the store, by what they do', ['kind']),
    loopHeld: histogram('event_loop_held', held, ['kind'], [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
    actorDeaths: counter('actor_deaths', 'Root actors that died of a bug', 'kind'),
  }
}

type MetricValues = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** The metrics of several processes as one text; each series has its process' address as label `node`. */
export async function metricsOfAll(
  all: readonly { readonly address: string | null; readonly answer: MetricValues }[],
  silent: readonly string[],
): Promise<string> {
  const registry = new Registry()
  const help = '1 = this process answers the one that was asked'
  const up = new Gauge({ name: 'mailroom_node_up', help, labelNames: ['node'], registers: [registry] })
  for (const { address } of all) up.set({ node: address ?? 'local' }, 1)
  for (const address of silent) up.set({ node: address }, 0)
  const labelled = all.map(({ address, answer }) =>
    answer.map((metric) => {
      const values = metric.values.map((one) => ({ ...one, labels: { ...one.labels, node: address ?? 'local' } }))
      // `node` makes all series different, so nothing is summed.
      return { ...metric, aggregator: 'sum' as const, values }
    }),
  )
  return AggregatorRegistry.aggregate([...labelled, await registry.getMetricsAsJSON()]).metrics()
}

type ByLimit = Readonly<Record<'all' | 'address', number>>

/** Connections to the API: open now; refused calls and closed connections since the start, by the limit. */
export interface ConnectionCounts {
  readonly open: number
  readonly refused: ByLimit
  readonly closed: ByLimit
}

type Counts = ReadonlyMap<string, number>

/** Sources of the gauges, read at each scrape. A source that is absent or fails leaves out its own gauge only. */
interface Sources {
  /** true = the process and its event loop are measured. */
  readonly ownsProcess?: boolean
  /** Tag → number of actors. */
  readonly accountTags?: () => Counts
  readonly webhookTags?: () => Counts
  /** Mail servers, with the states of their accounts. */
  readonly hosts?: () => Promise<readonly HostStates[]>
  /** false = all mail servers are counted as `other`. */
  readonly hostNames?: boolean
  readonly connections?: ConnectionCounts | undefined
  /** Work that waits in memory, by queue. */
  readonly queues?: () => Readonly<Record<'logins' | 'backfill', number>>
  readonly outbox?: () => Promise<Backlog>
  readonly ready?: () => Promise<boolean>
  /** A directory on the disk to measure. */
  readonly directory?: string
  /** When the newest backup was made, in ms since 1970; null = there is none. */
  readonly lastBackupAt?: () => Promise<number | null>
}

interface HostStates {
  readonly host: string
  readonly states: readonly string[]
}

type Labelled<TLabel extends string> = readonly [labels: Readonly<Record<TLabel, string>>, value: number]

/** The hosts with most accounts have their own series; the others are counted as `other`. */
const mostHosts = 20

function addGauges(registry: Registry, sources: Sources): void {
  const { connections, outbox, directory, lastBackupAt } = sources
  const gauge = <TLabel extends string>(
    name: string,
    help: string,
    labelNames: TLabel[],
    read: () => readonly Labelled<TLabel>[] | Promise<readonly Labelled<TLabel>[]>,
  ) =>
    new Gauge<TLabel>({
      name: `mailroom_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const samples = await Promise.resolve()
          .then(read)
          .catch(() => [])
        this.reset()
        for (const [labels, value] of samples) this.set(labels, value)
      },
    })
  gauge('accounts', 'Account actors by tag', ['tag'], () => byTag(sources.accountTags?.()))
  gauge('webhooks', 'Webhook actors by tag', ['tag'], () => byTag(sources.webhookTags?.()))
  gauge('host_accounts', `Accounts by mail server (the ${mostHosts} largest) and state`, ['host', 'state'], async () =>
    hostSamples((await sources.hosts?.()) ?? [], sources.hostNames === false ? 0 : mostHosts),
  )
  gauge('connections', 'Open connections to the API', [], () => [[{}, connections?.open ?? 0]])
  addOverLimit(registry, connections)
  const delay = sources.ownsProcess === true ? createLoopDelay() : () => []
  gauge('event_loop_delay_seconds', 'Delay of the event loop since the last scrape', ['quantile'], delay)
  gauge('queue_waiting', 'What waits, by queue', ['queue'], async () => {
    const waiting = { outbox: (await outbox?.())?.pending ?? 0, logins: 0, backfill: 0, ...sources.queues?.() }
    return Object.entries(waiting).map(([queue, value]) => [{ queue }, value] as const)
  })
  gauge('outbox_oldest_seconds', 'Age of the oldest callback that waits; 0 = none does', [], async () => {
    const now = Date.now()
    return [[{}, Math.max(0, (now - ((await outbox?.())?.oldestAt ?? now)) / 1000)]]
  })
  gauge('ready', '1 = the store takes writes, the actors are started and the process is not ending', [], async () => [
    [{}, (await sources.ready?.()) === true ? 1 : 0],
  ])
  gauge('data_free_bytes', 'Free space of the disk that the data directory lies on', [], async () => {
    if (directory === undefined) return []
    const { bavail, bsize } = await statfs(directory)
    return [[{}, bavail * bsize]]
  })
  gauge('last_backup_timestamp_seconds', 'When the newest backup was made; 0 = never', [], async () =>
    lastBackupAt === undefined ? [] : [[{}, ((await lastBackupAt()) ?? 0) / 1000]],
  )
}

function byTag(counts: Counts = new Map()): readonly Labelled<'tag'>[] {
  return Array.from(counts, ([tag, value]) => [{ tag }, value] as const)
}

/**
 * Interval of the event loop's measurement, which wakes the process: most work of an idle process. Shorter holds are
 * seen now and then; those of 100 ms are reported by loop.ts.
 */
const delayEveryMs = 250

/** Seconds by which the event loop was late, from the nanoseconds of a histogram with interval `delayEveryMs`. */
function delayOf(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - delayEveryMs / 1000) : 0
}

/** Returns a function for the percentiles since its last call. */
function createLoopDelay(): () => readonly Labelled<'quantile'>[] {
  const delays = monitorEventLoopDelay({ resolution: delayEveryMs })
  delays.enable()
  return () => {
    const samples = [
      [{ quantile: '0.5' }, delayOf(delays.percentile(50))],
      [{ quantile: '0.99' }, delayOf(delays.percentile(99))],
      [{ quantile: '1' }, delayOf(delays.max)],
    ] as const
    delays.reset()
    return samples
  }
}

function hostSamples(hosts: readonly HostStates[], named: number): readonly Labelled<'host' | 'state'>[] {
  const largest = hosts.toSorted((one, other) => other.states.length - one.states.length)
  const others = { host: 'other', states: largest.slice(named).flatMap(({ states }) => states) }
  return [...largest.slice(0, named), others].flatMap(({ host, states }) =>
    Array.from(Map.groupBy(states, String), ([state, all]) => [{ host, state }, all.length] as const),
  )
}

function addOverLimit(registry: Registry, counts: ConnectionCounts | undefined): void {
  new Counter({
    name: 'mailroom_connections_over_limit_total',
    help: 'Calls to the API that were refused, and connections that were closed, by the limit that was reached',
    labelNames: ['limit', 'outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const limit of ['all', 'address'] as const) {
        this.inc({ limit, outcome: 'refused' }, counts?.refused[limit] ?? 0)
        this.inc({ limit, outcome: 'closed' }, counts?.closed[limit] ?? 0)
      }
    },
  })
}

/** The count may take a while, so its result is kept for this time. */
const backlogKeptMs = 5000

/** Counts the waiting callbacks of all channels. */
export function createBacklog(outbox: Pick<OutboxStore, 'backlog'>): () => Promise<Backlog> {
  let asked: { readonly at: number; readonly answer: Promise<Backlog> } | null = null
  return () => {
    const at = performance.now()
    if (asked === null || at - asked.at > backlogKeptMs) asked = { at, answer: outbox.backlog(null) }
    return asked.answer
  }
}

/** State of an account without an actor: its record is new, or the service is starting or ending. */
export const noActor = 'stopped'

export interface Sample {
  readonly at: number
  readonly eventsPerSecond: number
  readonly deliveriesPerSecond: number
  /** Mean duration of an attempt, and mean time from the event to the delivered callback; 0 = there was none. */
  readonly attemptMs: number
  readonly latencyMs: number
  readonly memoryMib: number
  /** The longest delay. */
  readonly loopDelayMs: number
}

export const sampleMs = 10_000
const mostSamples = 360

export type History = ReturnType<typeof createHistory>

interface HistoryDeps {
  readonly metrics: Metrics
  readonly now?: () => number
  readonly everyMs?: number
}

export function createHistory({ metrics, now = Date.now, everyMs = sampleMs }: HistoryDeps) {
  const samples: Sample[] = []
  return {
    /** Oldest first. */
    samples: (): readonly Sample[] => samples,
    /** Takes samples until the returned function is called. */
    start(): () => void {
      const delay = monitorEventLoopDelay({ resolution: delayEveryMs })
      delay.enable()
      let last: Totals | null = null
      const take = async (): Promise<void> => {
        const at = now()
        const totals = { at, ...(await totalsOf(metrics)) }
        const loopDelayMs = 1000 * delayOf(delay.max)
        delay.reset()
        if (last !== null) {
          const memoryMib = memoryUsed() ?? samples.at(-1)?.memoryMib ?? 0
          samples.push({ at, ...rates(last, totals), memoryMib, loopDelayMs })
          if (samples.length > mostSamples) samples.shift()
        }
        last = totals
      }
      void take()
      const timer = setInterval(() => void take(), everyMs).unref()
      return () => {
        clearInterval(timer)
        delay.disable()
      }
    },
  }
}

/** In MiB. null = unknown: Linux has the figure in a file, and no file can be opened now. */
function memoryUsed(): number | null {
  try {
    return process.memoryUsage.rss() / 1_048_576
  } catch {
    return null
  }
}

type Totals = { readonly at: number } & Awaited<ReturnType<typeof totalsOf>>

async function totalsOf({ changes, deliveries, deliverySeconds, callbackLatency }: Metrics) {
  const [events, outcomes] = await Promise.all([changes.get(), deliveries.get()])
  const delivered = outcomes.values.filter(({ labels }) => labels.outcome === 'delivered')
  return {
    events: events.values.reduce((total, { value }) => total + value, 0),
    deliveries: delivered.reduce((total, { value }) => total + value, 0),
    attempts: await spentOf(deliverySeconds),
    latency: await spentOf(callbackLatency),
  }
}

async function spentOf(histogram: Metrics['callbackLatency']) {
  const { values } = await histogram.get()
  const sum = (name: string): number =>
    values.reduce((total, value) => (value.metricName?.endsWith(name) ? total + value.value : total), 0)
  return { count: sum('_count'), seconds: sum('_sum') }
}

function rates(from: Totals, to: Totals) {
  const seconds = Math.max((to.at - from.at) / 1000, 0.001)
  return {
    eventsPerSecond: (to.events - from.events) / seconds,
    deliveriesPerSecond: (to.deliveries - from.deliveries) / seconds,
    attemptMs: meanMs(from.attempts, to.attempts),
    latencyMs: meanMs(from.latency, to.latency),
  }
}

function meanMs(from: Totals['latency'], to: Totals['latency']): number {
  return to.count === from.count ? 0 : ((to.seconds - from.seconds) * 1000) / (to.count - from.count)
}

/** Delivered callbacks since the start, by their time from the event to the delivery. */
export async function latencies({ callbackLatency }: Metrics) {
  const { values } = await callbackLatency.get()
  const buckets = values.filter(({ metricName }) => metricName?.endsWith('_bucket'))
  return buckets.map(({ labels, value }, index) => {
    const { le } = labels as Readonly<Record<string, string | number>>
    /** `seconds`: the bucket's upper bound; null = no bound. */
    return { seconds: le === '+Inf' ? null : Number(le), callbacks: value - (buckets[index - 1]?.value ?? 0) }
  })
}

/** Logs and counts each piece of work that held the event loop, with its owner. */
export function createLoopReport({ log, metrics }: { log: Pick<Logger, 'warn'>; metrics: Pick<Metrics, 'loopHeld'> }) {
  return ({ owner, ms }: Held): void => {
    const { kind, id } = owner ?? { kind: 'none', id: null }
    metrics.loopHeld.observe({ kind }, ms / 1000)
    log.warn({ kind, id, ms: Math.round(ms) }, 'held the event loop')
  }
}
