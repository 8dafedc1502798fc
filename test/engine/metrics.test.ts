/**
 * Every metric, and how many values each of its labels may take, whatever callers, mail servers and receivers do. What
 * is not in the table fails: a metric without a bound is a leak.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { errorCodes } from '../../engine/errors.ts'
import { createMetrics } from '../../engine/observe/metrics.ts'
import { kindOf } from '../../engine/readiness.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import { startReceiver, type CallbackReceiver } from '../support/callbacks.ts'
import { until } from '../support/until.ts'

const accountStates = 'stopped paused throttled waiting queued connecting syncing watching disabled dead'.split(' ')
const accountTags = [...accountStates, 'ok', 'held']
const webhookTags =
  'active paused healthy retrying failed abandoned draining idle waiting probing resting recovering stopped dead'.split(
    ' ',
  )
const commands =
  'NOOP LOGOUT SELECT UNSELECT STATUS LIST CREATE DELETE SUBSCRIBE EXPUNGE APPEND FETCH UID_FETCH UID_STORE UID_SEARCH UID_EXPUNGE UID_MOVE UID_COPY'
    .split(' ')
    .map((name) => name.replace('_', ' '))

/** Values, or how many of them at most. */
const bounds: Readonly<Record<string, Readonly<Record<string, readonly string[] | number>>>> = {
  mailroom_accounts: { tag: accountTags },
  mailroom_webhooks: { tag: webhookTags },
  mailroom_host_accounts: { host: 21, state: accountStates },
  mailroom_connections: {},
  mailroom_connections_over_limit_total: { limit: ['all', 'address'], outcome: ['refused', 'closed'] },
  mailroom_event_loop_delay_seconds: { quantile: ['0.5', '0.99', '1'] },
  mailroom_queue_waiting: { queue: ['outbox', 'logins', 'backfill'] },
  mailroom_outbox_oldest_seconds: {},
  mailroom_ready: {},
  mailroom_data_free_bytes: {},
  mailroom_last_backup_timestamp_seconds: {},
  mailroom_api_calls_total: {
    method: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'other'],
    route: 200,
    status: 60,
  },
  mailroom_api_seconds: { route: 200 },
  mailroom_imap_logins_total: { outcome: ['ok', ...Object.keys(errorCodes)] },
  mailroom_imap_command_seconds: { kind: commands },
  mailroom_messages_indexed_total: { source: ['live', 'backfill', 'ours'] },
  mailroom_sync_lag_seconds: {},
  mailroom_changes_total: { kind: 'received sent draft folder_added folder_removed flags_changed deleted'.split(' ') },
  mailroom_deliveries_total: {
    kind: ['message', 'status', 'failure', 'sync', 'test'],
    outcome: ['delivered', 'failed', 'skipped'],
  },
  mailroom_webhook_news_total: { news: 4 },
  mailroom_delivery_seconds: {},
  mailroom_callback_latency_seconds: {},
  mailroom_store_seconds: { kind: ['read', 'write'] },
  mailroom_event_loop_held_seconds: { kind: ['account', 'webhook', 'call', 'none'] },
  mailroom_actor_deaths_total: { kind: ['account', 'webhook'] },
}

interface Told {
  readonly name: string
  readonly values: readonly { readonly value: number; readonly metricName?: string; readonly labels: object }[]
}

suite('metrics', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  before(async () => {
    receiver = await startReceiver()
    rig = await startLiteRig({ env: { MAILROOM_METRICS_TOKEN: 'measure this service' } })
    box = await rig.mailbox('mona', { subjects: ['old'] })
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.state === 'watching')
    await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, { callback_url: `${receiver.url}/new` })
    for (const subject of ['one', 'two']) await box.deliver({ subject })
    await until('called back', () => receiver.accepted().length === 2)
    await rig.call('GET', '/no/such/path')
    await rig.call('BREW', '/lite/users')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const told = async (): Promise<readonly Told[]> => await rig.engine.metrics.registry.getMetricsAsJSON()
  const valuesOf = async (name: string, metricName = name): Promise<[object, number][]> => {
    const values = (await told()).find((metric) => metric.name === name)?.values ?? []
    return values.filter((one) => (one.metricName ?? name) === metricName).map(({ labels, value }) => [labels, value])
  }

  test('each has its bound, and each label the values that the bound allows', async () => {
    const metrics = await told()
    assert.deepEqual(metrics.map(({ name }) => name).sort(), Object.keys(bounds).sort())
    for (const { name, values } of metrics) {
      const bound = bounds[name] ?? {}
      const { labelNames } = rig.engine.metrics.registry.getSingleMetric(name) as unknown as { labelNames: string[] }
      assert.deepEqual([...labelNames].sort(), Object.keys(bound).sort(), name)
      for (const [label, allowed] of Object.entries(bound)) {
        const seen = new Set(values.map(({ labels }) => String((labels as Record<string, unknown>)[label])))
        if (typeof allowed === 'number') assert(seen.size <= allowed, `${name} ${label}: ${seen.size} values`)
        else
          assert.deepEqual(
            [...seen].filter((value) => !allowed.includes(value)),
            [],
            `${name} ${label}`,
          )
      }
    }
  })

  test('the way of a message is measured: commands, lag, store, callback', async () => {
    await until('all counted', async () => (await count('mailroom_callback_latency_seconds')) === 2)
    assert.equal(await count('mailroom_sync_lag_seconds'), 2, 'old mail does not count')
    assert.equal(await count('mailroom_delivery_seconds'), 2)
    const kinds = (await valuesOf('mailroom_imap_command_seconds', 'mailroom_imap_command_seconds_count')).map(
      ([labels]) => (labels as { kind: string }).kind,
    )
    for (const kind of ['UID FETCH', 'SELECT']) assert(kinds.includes(kind), kinds.join())
    const steps = await valuesOf('mailroom_store_seconds', 'mailroom_store_seconds_count')
    assert(steps.length === 2 && steps.every(([, value]) => value > 0), JSON.stringify(steps))
  })

  test('what an alarm counts is there before its first event, or the alarm asks for new series too', async () => {
    const rules = readFileSync(join(import.meta.dirname, '../../docs/prometheus-rules.yml'), 'utf8')
    const counted = [...rules.matchAll(/^ +expr: (.*increase\((\w+)(?:\{(\w+)="(\w+)"\})?\[.*)$/gm)]
    assert(counted.length > 3)
    for (const [, expr = '', name = '', label = '', value] of counted) {
      if (expr.includes(` unless ${name}`)) continue
      const series = await valuesOf(name)
      const found = series.filter(([labels]) => label === '' || (labels as Record<string, unknown>)[label] === value)
      assert(found.length > 0, expr)
      for (const [labels, seen] of found) assert.equal(seen, 0, JSON.stringify(labels))
    }
  })

  const count = async (name: string): Promise<number> => (await valuesOf(name, `${name}_count`))[0]?.[1] ?? 0

  test('what is, is asked at each scrape: hosts, queues, readiness, disk', async () => {
    assert.deepEqual(await valuesOf('mailroom_host_accounts'), [[{ host: rig.imap.host, state: 'watching' }, 1]])
    assert.equal((await valuesOf('mailroom_queue_waiting')).length, 3)
    assert.deepEqual(await valuesOf('mailroom_ready'), [[{}, 1]])
    if (rig.engine.store.kind === 'sqlite') assert(((await valuesOf('mailroom_data_free_bytes'))[0]?.[1] ?? 0) > 0)
  })

  test('what the receiver does not take waits, and is told with its age', async () => {
    receiver.behave(() => 503)
    await box.deliver({ subject: 'three' })
    const pending = async (): Promise<number> =>
      (await valuesOf('mailroom_queue_waiting')).find(
        ([labels]) => 'queue' in labels && labels.queue === 'outbox',
      )?.[1] ?? 0
    await until('one waits', async () => (await pending()) === 1, { withinMs: 20_000 })
    assert(((await valuesOf('mailroom_outbox_oldest_seconds'))[0]?.[1] ?? 0) > 0)
    receiver.behave(() => 200)
  })

  test('twenty hosts are told by name, the rest together; a source that fails hides nothing else', async () => {
    const hosts = Array.from({ length: 25 }, (_, n) => ({
      host: `h${n}`,
      states: Array<string>(n + 1).fill('watching'),
    }))
    const { registry } = createMetrics({
      hosts: () => Promise.resolve(hosts),
      outbox: () => Promise.reject(new Error('away')),
    })
    const metrics = (await registry.getMetricsAsJSON()) as Told[]
    const values = metrics.find(({ name }) => name === 'mailroom_host_accounts')?.values ?? []
    assert.equal(values.length, 21)
    assert.deepEqual(values.at(-1), { labels: { host: 'other', state: 'watching' }, value: 1 + 2 + 3 + 4 + 5 })
    assert.deepEqual(metrics.find(({ name }) => name === 'mailroom_queue_waiting')?.values, [])
  })

  test('without a token the hosts of accounts have no names', async () => {
    const open = await startLiteRig()
    try {
      await open.mailbox('ann')
      const { text } = await open.call('GET', '/metrics')
      assert.match(text, /mailroom_host_accounts\{host="other",state="\w+"\} 1\n/)
      assert.ok(!text.includes(open.imap.host), 'a host is named')
    } finally {
      await open.close()
    }
  })

  test('every step of the store is known as one that reads or one that writes', () => {
    const { store } = rig.engine
    const names = Object.entries(store).flatMap(([part, methods]: readonly [string, unknown]) =>
      typeof methods === 'object' && methods !== null && part !== 'nodes'
        ? Object.keys(methods).map((name) => [part, name] as const)
        : [],
    )
    const ofKind = (kind: string) => names.flatMap(([part, name]) => (kindOf(name) === kind ? [`${part}.${name}`] : []))
    const [reads, writes] = [ofKind('read'), ofKind('write')]
    const writing = new RegExp(
      '^sealed|\\.(create|undoCreate|put|edit|add|append|remove|use|record|save|claim|release|tried|transition|set|' +
        'reconcile|apply|forget|replace|expire|enqueue|requeue|skipPending|remember)',
    )
    const isWriting = (name: string) => writing.test(name)
    assert.deepEqual(reads.filter(isWriting), [])
    assert.deepEqual(
      writes.filter((name) => !isWriting(name)),
      [],
    )
    assert(reads.includes('messages.list') && reads.includes('outbox.backlog') && reads.includes('accounts.places'))
  })
})
