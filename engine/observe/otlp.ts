/** Spans by the SDK of OpenTelemetry, sent as OTLP over HTTP, in batches. Loaded when there is an endpoint. */
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { withinTime } from '../waits.ts'
import type { Logger } from './log.ts'
import type { Tracing } from './tracing.ts'

const closeMs = 5000
const traceDigits = 32

export function openTracing(endpoint: string, log: Pick<Logger, 'warn'>): Tracing {
  const ids = createIds()
  const url = `${endpoint.replace(/(?<!\/)\/+$/, '')}/v1/traces`
  const exporter = noticing(new OTLPTraceExporter({ url }), url, log)
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'mailroom' }),
    sampler: new AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('mailroom')
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
      // What was not taken has been told.
      await withinTime(closeMs, provider.shutdown()).catch(() => undefined)
    },
  }
}

/** Says once that traces are not taken, and once that they are again. */
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

/** A change's id has as many digits as a trace's; a span's has half of them. */
function spanOf(changeId: string): string {
  return changeId.slice(0, traceDigits / 2)
}

function messageContext(changeId: string): Context {
  const span = { traceId: changeId, spanId: spanOf(changeId), traceFlags: TraceFlags.SAMPLED, isRemote: true }
  return trace.setSpanContext(ROOT_CONTEXT, span)
}

interface Ids {
  readonly traceId?: string
  readonly spanId?: string
}

/** A tracer asks for ids while it starts a span: those that were given before, or random ones. */
function createIds() {
  const random = new RandomIdGenerator()
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
