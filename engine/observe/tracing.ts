/**
 * Traces from a message to its callbacks, for OpenTelemetry. A trace has the id of the change (of the outbox row, where
 * there is no change), and the span of the message the first half of it: so a callback that is sent days later, by
 * another process, finds its trace, and nothing is stored for it.
 */
import type { Config } from '../config.ts'
import type { ChangeRecord, DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import type { Logger } from './log.ts'

export interface Tracing {
  /** A change was found, and is in the store. Times in ms since 1970. */
  message(change: Pick<ChangeRecord, 'id' | 'accountId' | 'messageId' | 'kind'>, seenAt: number, storedAt: number): void
  callback(row: OutboxRecord, attempt: DeliveryAttempt): void
  /** Sends what is left. Never rejects. */
  close(): Promise<void>
}

const none: Tracing = { message: () => undefined, callback: () => undefined, close: () => Promise.resolve() }

/** The SDK is loaded only where there is somewhere to send traces to. */
export async function createTracing(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>,
  log: Pick<Logger, 'warn'>,
): Promise<Tracing> {
  if (endpoint === null) return none
  const { openTracing } = await import('./otlp.ts')
  return openTracing(endpoint, log)
}
