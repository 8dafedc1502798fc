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

export interface MetricsOptions {
  readonly processMetrics?: boolean
  /** Actors by tag, asked at each scrape. */
  readonly accountTags?: () => ReadonlyMap<string, number>
  readonly webhookTags?: () => ReadonlyMap<string, number>
  /** Asked at each scrape. */
  readonly connections?: ConnectionCounts | undefined
}

/** One registry per process (and per engine in tests). */
export function createMetrics(options: MetricsOptions = {}) {
  const registry = new Registry()
  if (options.processMetrics) collectDefaultMetrics({ register: registry })
  return {
    registry,
    ...apiMetrics(registry),
    ...imapMetrics(registry),
    ...deliveryMetrics(registry),
    ...actorMetrics(registry, options),
    ...connectionMetrics(registry, options.connections),
  }
}

export type Metrics = ReturnType<typeof createMetrics>

function apiMetrics(registry: Registry) {
  const registers = [registry]
  return {
    apiCalls: new Counter({
      name: 'mailroom_api_calls_total',
      help: 'API calls by method, route and status',
      labelNames: ['method', 'route', 'status'],
      registers,
    }),
    apiSeconds: new Histogram({
      name: 'mailroom_api_seconds',
      help: 'Duration of API calls',
      labelNames: ['route'],
      buckets: seconds,
      registers,
    }),
  }
}

function imapMetrics(registry: Registry) {
  const registers = [registry]
  return {
    imapLogins: new Counter({
      name: 'mailroom_imap_logins_total',
      help: 'IMAP logins by outcome',
      labelNames: ['outcome'],
      registers,
    }),
    imapCommands: new Histogram({
      name: 'mailroom_imap_command_seconds',
      help: 'IMAP commands by kind',
      labelNames: ['kind'],
      buckets: seconds,
      registers,
    }),
    messagesIndexed: new Counter({
      name: 'mailroom_messages_indexed_total',
      help: 'Messages written to the index',
      labelNames: ['source'],
      registers,
    }),
    changes: new Counter({
      name: 'mailroom_changes_total',
      help: 'Rows of the change log by kind',
      labelNames: ['kind'],
      registers,
    }),
  }
}

function deliveryMetrics(registry: Registry) {
  const registers = [registry]
  return {
    deliveries: new Counter({
      name: 'mailroom_deliveries_total',
      help: 'Callback attempts by kind and outcome',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    webhookNews: new Counter({
      name: 'mailroom_webhook_news_total',
      help: 'Webhooks that began to fail (failing), have failed for too long (abandoned), were ended by a 410 (gone), recovered',
      labelNames: ['news'],
      registers,
    }),
    deliverySeconds: new Histogram({
      name: 'mailroom_delivery_seconds',
      help: 'Duration of callback attempts',
      buckets: seconds,
      registers,
    }),
  }
}

function actorMetrics(registry: Registry, { accountTags, webhookTags }: MetricsOptions) {
  return {
    accounts: tagGauge(registry, 'mailroom_accounts', 'Account actors by tag', accountTags),
    webhooks: tagGauge(registry, 'mailroom_webhooks', 'Webhook actors by tag', webhookTags),
    loopHeld: new Histogram({
      name: 'mailroom_event_loop_held_seconds',
      help: 'Turns of the event loop that took 0.1 s or more of processor time, by whose work it was',
      labelNames: ['kind'],
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    }),
    actorDeaths: new Counter({
      name: 'mailroom_actor_deaths_total',
      help: 'Root actors that died of a bug',
      labelNames: ['kind'],
      registers: [registry],
    }),
  }
}

function connectionMetrics(registry: Registry, counts: ConnectionCounts | undefined) {
  const registers = [registry]
  return {
    connections: new Gauge({
      name: 'mailroom_connections',
      help: 'Open connections to the API',
      registers,
      collect() {
        this.set(counts?.open ?? 0)
      },
    }),
    connectionsOverLimit: new Counter({
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
    }),
  }
}

function tagGauge(registry: Registry, name: string, help: string, count: MetricsOptions['accountTags']): Gauge {
  return new Gauge({
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
