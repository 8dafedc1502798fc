/**
 * Counters and histograms of the whole process, in Prometheus' text format at GET /metrics. Labels take few values: a
 * test bounds each (test/engine/metrics.test.ts).
 */
import { Counter, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import { addGauges, type Sources } from './gauges.ts'

export type { ConnectionCounts } from './gauges.ts'

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Of what may wait for others. */
const longSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400]

interface MetricsOptions extends Sources {
  readonly processMetrics?: boolean
}

export type Metrics = ReturnType<typeof createMetrics>

/** One registry per process (and per engine in tests). */
export function createMetrics({ processMetrics = false, ...sources }: MetricsOptions = {}) {
  const registry = new Registry()
  const registers = [registry]
  if (processMetrics) collectDefaultMetrics({ register: registry })
  addGauges(registry, sources, processMetrics)

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
