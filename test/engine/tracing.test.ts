/** Traces of messages and their callbacks, as a receiver of OTLP gets them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createTracing } from '../../engine/observe/tracing.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import { startReceiver, type CallbackReceiver } from '../support/callbacks.ts'
import { createReceiver, type Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code?: number; readonly message?: string }
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Span['attributes'] }
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

const attribute = (span: Pick<Span, 'attributes'>, key: string): unknown =>
  Object.values(span.attributes.find((one) => one.key === key)?.value ?? {})[0]

suite('traces of a message and its callbacks', () => {
  let rig: LiteRig
  let collector: Receiver
  let receiver: CallbackReceiver
  let box: TestMailbox
  let spans: readonly Span[] = []
  let exported: Export | undefined
  let rows: Json[] = []

  before(async () => {
    collector = await createReceiver()
    receiver = await startReceiver()
    rig = await startLiteRig({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url('')}/` } })
    box = await rig.mailbox('otto', { subjects: ['old'] })
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.state === 'watching')
    const hook = await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, {
      callback_url: `${receiver.url}/hook?key=hidden`,
    })
    receiver.behave(({ count }) => (count === 0 ? 500 : 200))
    await box.deliver({ subject: 'traced' })
    await until('delivered at the second try', () => receiver.accepted().length === 1)
    const path = `/lite/users/${box.userId}/webhooks/${String(hook['webhook_id'])}/deliveries?state=delivered`
    rows = await until('recorded', async () => {
      const found = await rig.list(path)
      return found.length === 1 && found
    })
    await rig.close()
    const exports = collector.at('/v1/traces').map(({ body }) => body as unknown as Export)
    exported = exports[0]
    spans = exports.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    )
  })
  after(async () => {
    await receiver.close()
    await collector.close()
  })

  test('what is left is sent at the end, as JSON, in the name of the service', () => {
    assert.equal(attribute(exported?.resourceSpans[0]?.resource ?? { attributes: [] }, 'service.name'), 'mailroom')
    assert.deepEqual(spans.map(({ name }) => name).sort(), ['callback', 'callback', 'message'], 'old mail makes none')
  })

  test('the message is the root, from seen to stored, under the id of its change', () => {
    const message = spans.find(({ name }) => name === 'message')
    assert(message !== undefined)
    const { traceId, spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano } = message
    assert.match(traceId, /^[0-9a-f]{32}$/)
    assert.deepEqual([spanId, parentSpanId], [traceId.slice(0, 16), undefined])
    assert(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano))
    assert.equal(attribute(message, 'mailroom.account_id'), box.accountId)
    assert.equal(attribute(message, 'mailroom.event'), 'received')
  })

  test('each attempt of the callback hangs under it, and tells its outcome without the secrets of its URL', () => {
    const message = spans.find(({ name }) => name === 'message')
    const attempts = spans.filter(({ name }) => name === 'callback')
    for (const { traceId, parentSpanId, kind } of attempts)
      assert.deepEqual([traceId, parentSpanId, kind], [message?.traceId, message?.spanId, 3])
    assert.deepEqual(
      attempts.map((span) => [
        ...[attribute(span, 'mailroom.attempt'), attribute(span, 'http.response.status_code')],
        ...[span.status.code ?? 0, span.status.message],
      ]),
      [
        [1, 500, 2, 'HTTP 500'],
        [2, 200, 0, undefined],
      ],
    )
    for (const span of attempts)
      assert.equal(attribute(span, 'mailroom.outbox_id'), rows[0]?.['id'] ?? rows[0]?.['delivery_id'])
    assert(!JSON.stringify(spans).includes('hidden'))
  })

  test('traces that are not taken are said once', async () => {
    collector.script('/v1/traces', [], { status: 400 })
    const told: unknown[] = []
    const warn = (_facts: unknown, words?: unknown): void => void told.push(words)
    const config = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('') }
    const tracing = await createTracing(config, { warn })
    const id = 'ab'.repeat(16)
    tracing.message({ id, accountId: 'a', messageId: 'm', kind: 'received' }, 1, 2)
    await tracing.close()
    assert.deepEqual(told, ['traces are not taken, and lost'])
  })

  test('the SDK is loaded where there is an endpoint, and nowhere else', () => {
    const loadedWith = (endpoint: string): number => {
      const code = `
        import { registerHooks } from 'node:module'
        let loaded = 0
        registerHooks({
          resolve(name, context, next) {
            if (name.startsWith('@opentelemetry/')) loaded += 1
            return next(name, context)
          },
        })
        const { createTracing } = await import('./engine/observe/tracing.ts')
        const { close } = await createTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: ${endpoint} }, { warn() {} })
        await close()
        process.stdout.write(String(loaded))`
      const cwd = join(import.meta.dirname, '../..')
      return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd }))
    }
    assert.equal(loadedWith('null'), 0)
    assert(loadedWith(`'http://127.0.0.1:4318'`) > 0)
  })
})
