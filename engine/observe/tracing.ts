/**
 * Traces from a message to its callbacks, for OpenTelemetry: spans by its SDK, sent in batches as OTLP over HTTP. A
 * trace has the id of the change, or of the outbox row without a change; the message's span has the first half of it. A
 * callback that another process sends days later finds its trace by these ids, and nothing is stored.
 */
import type { Context } from '@opentelemetry/api'
import type { IdGenerator, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Config } from '../config.ts'
import type { ChangeRecord, DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import { withinTime } from '../scheduling.ts'
import type { Logger } from './log.ts'

export interface Tracing {
  /** A change is stored. Times in ms since 1970. */
  message(change: Pick<ChangeRecord, 'id' | 'accountId' | 'messageId' | 'kind'>, seenAt: number, storedAt: number): void
  callback(row: OutboxRecord, attempt: DeliveryAttempt): void
  /** Sends the remaining spans. Never rejects. */
  close(): Promise<void>
}

const none: Tracing = { message: () => undefined, callback: () => undefined, close: () => Promise.resolve() }

const closeMs = 5000
const traceDigits = 32

/** The SDK is loaded only with an endpoint for traces. */
async function loadSdk() {
  return {
    ...(await import('@opentelemetry/api')),
    ...(await import('@opentelemetry/exporter-trace-otlp-http')),
    ...(await import('@opentelemetry/resources')),
    ...(await import('@opentelemetry/sdk-trace')),
  }
}

export async function createTracing(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>,
  log: Pick<Logger, 'warn'>,
): Promise<Tracing> {
  if (endpoint === null) return none
  const sdk = await loadSdk()
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } = sdk
  const ids = createIds(new sdk.RandomIdGenerator())
  const url = `${endpoint}/v1/traces`
  const exporter = noticing(new sdk.OTLPTraceExporter({ url }), url, log)
  const provider = new sdk.TracerProvider({
    resource: sdk.resourceFromAttributes({ 'service.name': 'mailroom' }),
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('mailroom')
  const messageContext = (changeId: string): Context => {
    const span = { traceId: changeId, spanId: spanOf(changeId), traceFlags: TraceFlags.SAMPLED, isRemote: true }
    return trace.setSpanContext(ROOT_CONTEXT, span)
  }
  return {
    message({ id, accountId, messageId, kind }, startTime, storedAt) {
      ids.give({ traceId: id, spanId: spanOf(id) })
      const attributes = { 'mailroom.account_id': accountId, 'mailroom.message_id': messageId, 'mailroom.event': kind }
      tracer.startSpan('message', { startTime, attributes }, ROOT_CONTEXT).end(storedAt)
    },
    callback(row, { at, durationMs, status, url = '', error }) {
      if (row.changeId === null) ids.give({ traceId: row.id.padStart(traceDigits, '0') })
      const attributes = {
        'mailroom.channel_id': row.channelId,
        'mailroom.outbox_id': row.id,
        'mailroom.kind': row.kind,
        'mailroom.attempt': row.attemptCount + 1,
        ...(row.accountId === null ? {} : { 'mailroom.account_id': row.accountId }),
        ...(status === null ? {} : { 'http.response.status_code': status }),
        ...(URL.canParse(url) ? { 'server.address': new URL(url).hostname } : {}),
      }
      const parent = row.changeId === null ? ROOT_CONTEXT : messageContext(row.changeId)
      const span = tracer.startSpan('callback', { kind: SpanKind.CLIENT, startTime: at, attributes }, parent)
      if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
      span.end(at + durationMs)
    },
    async close() {
      // `noticing` has logged the failure.
      await withinTime(closeMs, provider.shutdown()).catch(() => undefined)
    },
  }
}

/** Logs the first failure of the exporter, and its recovery. */
function noticing(exporter: SpanExporter, url: string, log: Pick<Logger, 'warn'>): SpanExporter {
  let wasTaken = true
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const isTaken = result.error === undefined
        if (isTaken !== wasTaken)
          log.warn(
            isTaken ? { url } : { url, err: result.error },
            isTaken ? 'traces are taken again' : 'traces are not taken, and lost',
          )
        wasTaken = isTaken
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}

/** The id of a message's span: a change's id has 32 digits, as a trace's id; a span's id has half. */
function spanOf(changeId: string): string {
  return changeId.slice(0, traceDigits / 2)
}

interface Ids {
  readonly traceId?: string
  readonly spanId?: string
}

/** A tracer takes the ids of a span when it starts it: the ids of the last `give`, or random ids. */
function createIds(random: IdGenerator) {
  let given: Ids = {}
  const take = (name: keyof Ids): string | undefined => {
    const { [name]: id, ...rest } = given
    given = rest
    return id
  }
  return {
    give: (ids: Ids): void => void (given = ids),
    generateTraceId: (): string => take('traceId') ?? random.generateTraceId(),
    generateSpanId: (): string => take('spanId') ?? random.generateSpanId(),
  }
}
