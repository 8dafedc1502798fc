/** Counters and histograms of the whole process, in Prometheus' text format at GET /metrics. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

type ByLimit = Readonly<Record<'all' | 'address', number>>

/** Connections to the API: open now; and since the start those that were refused, or closed to make room. */
export interface ConnectionCounts {
  readonly open: number
  readonly refused: ByLimit
  readonly closed: ByLimit
}

type Tags = () => ReadonlyMap<string, number>

/** All but the first are asked at each scrape. */
interface MetricsOptions {
  readonly processMetrics?: boolean
  /** Actors by tag. */
  readonly accountTags?: Tags
  readonly webhookTags?: Tags
  readonly connections?: ConnectionCounts | undefined
}

export type Metrics = ReturnType<typeof createMetrics>

/** One registry per process (and per engine in tests). */
export function createMetrics({ processMetrics = false, accountTags, webhookTags, connections }: MetricsOptions = {}) {
  const registry = new Registry()
  const registers = [registry]
  if (processMetrics) collectDefaultMetrics({ register: registry })
  tagGauge(registry, 'mailroom_accounts', 'Account actors by tag', accountTags)
  tagGauge(registry, 'mailroom_webhooks', 'Webhook actors by tag', webhookTags)
  connectionMetrics(registry, connections)

  const counter = <TLabel extends string>(name: string, help: string, ...labelNames: TLabel[]) =>
    new Counter({ name: `mailroom_${name}_total`, help, labelNames, registers })
  const histogram = <TLabel extends string>(name: string, help: string, labelNames: TLabel[], buckets = seconds) =>
    new Histogram({ name: `mailroom_${name}_seconds`, help, labelNames, buckets, registers })

  const news = 'began to fail (failing), have failed for too long (abandoned), were ended by a 410 (gone), recovered'
  const held = 'Turns of the event loop that took 0.1 s or more of processor time, by whose work it was'
  return {
    registry,
    apiCalls: counter('api_calls', 'API calls by method, route and status', 'method', 'route', 'status'),
    apiSeconds: histogram('api', 'Duration of API calls', ['route']),
    imapLogins: counter('imap_logins', 'IMAP logins by outcome', 'outcome'),
    imapCommands: histogram('imap_command', 'IMAP commands by kind', ['kind']),
    messagesIndexed: counter('messages_indexed', 'Messages written to the index', 'source'),
    changes: counter('changes', 'Rows of the change log by kind', 'kind'),
    deliveries: counter('deliveries', 'Callback attempts by kind and outcome', 'kind', 'outcome'),
    webhookNews: counter('webhook_news', `Webhooks that ${news}`, 'news'),
    deliverySeconds: histogram('delivery', 'Duration of callback attempts', []),
    loopHeld: histogram('event_loop_held', held, ['kind'], [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
    actorDeaths: counter('actor_deaths', 'Root actors that died of a bug', 'kind'),
  }
}

function connectionMetrics(registry: Registry, counts: ConnectionCounts | undefined): void {
  const registers = [registry]
  new Gauge({
    name: 'mailroom_connections',
    help: 'Open connections to the API',
    registers,
    collect() {
      this.set(counts?.open ?? 0)
    },
  })
  new Counter({
    name: 'mailroom_connections_over_limit_total',
    help: 'Connections to the API that were refused, or closed to make room, by the limit that was reached',
    labelNames: ['limit', 'outcome'],
    registers,
    collect() {
      this.reset()
      for (const limit of ['all', 'address'] as const) {
        this.inc({ limit, outcome: 'refused' }, counts?.refused[limit] ?? 0)
        this.inc({ limit, outcome: 'closed' }, counts?.closed[limit] ?? 0)
      }
    },
  })
}

function tagGauge(registry: Registry, name: string, help: string, count: Tags | undefined): void {
  new Gauge({
    name,
    help,
    labelNames: ['tag'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [tag, value] of count?.() ?? []) this.set({ tag }, value)
    },
  })
}
