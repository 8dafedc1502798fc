/**
 * Redelivery: of a time all of it, over errors of the store, a pause and a restart; of one callback that waits, at
 * once.
 */
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { suite, test, type TestContext } from 'node:test'
import { AppError } from '../../../engine/errors.ts'
import { outboxId } from '../../../engine/store/ids.ts'
import type { OutboxRecord, WebhookRecord } from '../../../engine/store/records.ts'
import type { Receiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { arrive, developerId, facts } from './fixture.ts'
import { account, freshPath, hook, redelivered, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

const day = 86_400_000
const start = Date.now() - day

/** Its messages are in no index: what is sent again is skipped, which is fast. */
async function webhookWith(count: number, patch: Partial<OutboxRecord> = {}): Promise<WebhookRecord> {
  const webhook = await hook('/redelivery')
  const rows = Array.from({ length: count }, (_, index): OutboxRecord => {
    const createdAt = start + Math.floor(index / 3)
    return {
      id: outboxId(webhook.id, `event:${index}`),
      channelId: webhook.id,
      webhookId: webhook.id,
      developerId,
      userId: user.id,
      accountId: account.id,
      kind: 'message',
      lane: 0,
      seq: index,
      changeId: null,
      messageId: 'f'.repeat(24),
      event: 'received',
      data: {},
      url: null,
      state: 'delivered',
      createdAt,
      dueAt: createdAt,
      attemptCount: 1,
      attempts: [],
      finishedAt: createdAt,
      reason: null,
      ...patch,
    }
  })
  for (let from = 0; from < count; from += 1000) await rig.store.outbox.enqueue(rows.slice(from, from + 1000))
  return webhook
}

const inLog = async (webhook: WebhookRecord, query: { readonly kind?: 'message' | 'failure' } = {}) =>
  rig.store.outbox.list({ webhookId: webhook.id, ...query }, { limit: 20_000, offset: 0 })

/** Sent again: no longer as it was written. */
const touched = async (webhook: WebhookRecord) => (await inLog(webhook)).filter((row) => row.attemptCount === 0)

/** What the call answers: the first batch, or nothing where that took long. */
function assertFirst(answer: number): void {
  assert([0, 200].includes(answer), `${answer} were redelivered`)
}

const redelivery = async (webhook: WebhookRecord) => (await rig.store.webhooks.get(webhook.id))?.redelivery

/** The store takes `batches` batches, and refuses the others until `heal` is called. */
function failAfter(
  context: TestContext,
  batches: number,
): { readonly heal: () => void; readonly refused: () => number } {
  const { outbox } = rig.store
  const requeue = outbox.requeue.bind(outbox)
  let taken = 0
  let refused = 0
  const mocked = context.mock.method(outbox, 'requeue', (...args: Parameters<typeof requeue>) => {
    if (taken < batches) {
      taken += 1
      return requeue(...args)
    }
    refused += 1
    return Promise.reject(new AppError('store_unavailable', 'the test has taken the store away'))
  })
  return { heal: () => mocked.mock.restore(), refused: () => refused }
}

suite('redelivery of a time', () => {
  test('takes all of it: no number is too large', async () => {
    const webhook = await webhookWith(10_250)
    const wanted = { from: start, until: start + day }
    await running.webhooks.redeliver(webhook, wanted)
    const ended = async () => {
      const last = await redelivery(webhook)
      return last?.done === true ? last : null
    }
    const told = await until('done', ended, { withinMs: 60_000, everyMs: 100 })
    assert.deepEqual([told.count, told.reason, told.from, told.until], [10_250, null, wanted.from, wanted.until])
    assert.equal((await touched(webhook)).length, 10_250)
  })

  test('takes the time alone, of messages alone, and with failedOnly those that failed', async () => {
    const webhook = await webhookWith(9)
    const notice = { kind: 'failure', url: 'http://127.0.0.1:9/', id: outboxId('u', webhook.id), webhookId: webhook.id }
    const [row] = await inLog(webhook)
    assert(row)
    const failed: OutboxRecord = { ...row, id: outboxId(webhook.id, 'failed'), state: 'failed', createdAt: start + 1 }
    await rig.store.outbox.enqueue([{ ...row, ...notice, kind: 'failure', createdAt: start + 1 }, failed])
    assert.equal(await redelivered(webhook, { from: start + 1, until: start + 1, failedOnly: true }), 1)
    assert.equal((await rig.store.outbox.get(failed.id))?.attemptCount, 0)
    assert.equal(await redelivered(webhook, { from: start + 2 }), 3)
    assert.equal(await redelivered(webhook, { until: start - 1 }), 0)
    assert.equal((await touched(webhook)).length, 4)
    assert.equal((await inLog(webhook, { kind: 'failure' }))[0]?.attemptCount, 1)
  })

  test('answers before its end when it takes long; the same again joins it, another is a conflict', async (context) => {
    const webhook = await webhookWith(450)
    const { heal } = failAfter(context, 1)
    assertFirst(await running.webhooks.redeliver(webhook, { from: start }))
    await until('the first batch is recorded', async () => (await redelivery(webhook))?.count === 200)
    assert.equal((await redelivery(webhook))?.done, false)
    await assert.rejects(running.webhooks.redeliver(webhook, { from: start + 1 }), { code: 'conflict' })
    const begun = (await redelivery(webhook))?.startedAt
    heal()
    // As many as there are by now, or all.
    assert((await running.webhooks.redeliver(webhook, { from: start })) >= 200)
    await until('done', async () => (await redelivery(webhook))?.done)
    const { count, startedAt } = (await redelivery(webhook)) ?? {}
    assert.deepEqual([count, startedAt], [450, begun])
  })

  test('goes on after a restart where it was', async (context) => {
    const webhook = await webhookWith(450)
    const { heal } = failAfter(context, 1)
    const answer = running.webhooks.redeliver(webhook, { from: start })
    await until('the first batch is recorded', async () => (await redelivery(webhook))?.count === 200)
    await running.stop()
    assertFirst(await answer)
    assert.equal((await touched(webhook)).length, 200)
    heal()
    await startAnew()
    await until('done', async () => (await redelivery(webhook))?.done === true)
    assert.equal((await redelivery(webhook))?.count, 450)
    assert.equal((await touched(webhook)).length, 450)
  })

  test('sends what the store has queued, although its answer was lost', async (context) => {
    const webhook = await webhookWith(3)
    const { outbox } = rig.store
    const requeue = outbox.requeue.bind(outbox)
    const lost = async (...args: Parameters<typeof requeue>): Promise<never> => {
      await requeue(...args)
      throw new AppError('store_unavailable', 'the test has lost the answer')
    }
    context.mock.method(outbox, 'requeue', lost, { times: 1 })
    await running.webhooks.redeliver(webhook, { from: start })
    await until('no backlog', async () => (await outbox.backlog(webhook.id)).pending === 0)
    assert.equal((await touched(webhook)).length, 3)
  })

  test('ends when the webhook is paused: nothing stays behind in its queue', async (context) => {
    const webhook = await webhookWith(450)
    const { heal, refused } = failAfter(context, 1)
    const answer = running.webhooks.redeliver(webhook, { from: start })
    await until('the second batch is refused', () => refused() > 0)
    await running.webhooks.edit(webhook, { active: false })
    heal()
    assertFirst(await answer)
    const told = await until('done', async () => {
      const last = await redelivery(webhook)
      return last?.done === true ? last : null
    })
    assert.deepEqual([told.count, told.reason], [200, 'the webhook was paused'])
    await until('no backlog', async () => (await rig.store.outbox.backlog(webhook.id)).pending === 0)
    await assert.rejects(running.webhooks.redeliver(webhook, { from: start }), { code: 'conflict' })
  })

  test('ends with the webhook', async (context) => {
    const webhook = await webhookWith(450)
    const { refused } = failAfter(context, 1)
    const answer = running.webhooks.redeliver(webhook, { from: start })
    await until('the second batch is refused', () => refused() > 0)
    await running.webhooks.remove(webhook)
    assertFirst(await answer)
    assert.equal((await rig.store.outbox.backlog(webhook.id)).pending, 0)
  })
})

suite('redelivery of a callback that waits', () => {
  const slow = { MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' }
  const rowOf = async (id: string): Promise<OutboxRecord> => {
    const row = await rig.store.outbox.get(id)
    assert(row)
    return row
  }
  /** A webhook with long waits, with the callbacks of `names` in its queue. */
  async function queued(answers: Parameters<Receiver['script']>[1], names: readonly string[]) {
    await running.stop()
    await startAnew(slow)
    const path = freshPath()
    receiver.script(path, answers)
    const webhook = await hook(path)
    const { rows } = await arrive(
      rig.store,
      running.webhooks,
      account,
      names.map((name) => ({ facts: facts(name) })),
    )
    const [first, second] = rows
    assert(first)
    return { path, webhook, first, second: second ?? first }
  }

  for (const [name, answer] of [
    ['refused', { status: 500 }],
    ['of a receiver that was away', 'reset'],
  ] as const) {
    test(`${name}: sent at once, under the same id, and what waits behind follows`, async () => {
      const { path, webhook, first, second } = await queued([answer], ['first', 'second'])
      await until('it waits', async () => (await rowOf(first.id)).attemptCount === 1)
      assert.equal(await running.webhooks.resend(await rowOf(first.id)), 1)
      await until('both', async () => (await rowOf(second.id)).state === 'delivered')
      assert.deepEqual(
        receiver.at(path).map(({ id }) => id),
        [first.id, first.id, second.id],
      )
      const { state, attempts } = await rowOf(first.id)
      assert.deepEqual([state, attempts.length], ['delivered', 2])
      await until('healthy', async () => (await rig.store.webhooks.get(webhook.id))?.health.consecutiveFailures === 0)
    })
  }

  test('that has just failed for the last time is sent again, though the store has not answered yet', async (context) => {
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '10ms' })
    const path = freshPath()
    receiver.script(path, [{ status: 500 }, { status: 500 }])
    await hook(path)
    const { outbox } = rig.store
    const record = outbox.record.bind(outbox)
    const late = async (...args: Parameters<typeof record>) => {
      await record(...args)
      await setTimeout(500)
    }
    context.mock.method(outbox, 'record', late)
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('late') }])
    const id = rows[0]?.id ?? ''
    const failed = await until('failed', async () => {
      const row = await rowOf(id)
      return row.state === 'failed' && row
    })
    assert.equal(await running.webhooks.resend(failed), 1)
    await until('delivered', async () => (await rowOf(id)).state === 'delivered')
    assert.equal(receiver.at(path).length, 3)
  })

  test('refused again: it waits again, and holds up its account as before', async () => {
    const { path, first, second } = await queued([{ status: 500 }, { status: 500 }], ['first', 'second'])
    const waiting = await until('it waits', async () => {
      const row = await rowOf(first.id)
      return row.attemptCount === 1 ? row : null
    })
    assert.equal(await running.webhooks.resend(waiting), 1)
    const again = await until('tried', async () => {
      const row = await rowOf(first.id)
      return row.attempts.length === 2 ? row : null
    })
    assert.equal(again.attemptCount, 1, 'its schedule begins anew')
    await until('nothing under way', async () => (await running.webhooks.resend(again)) === 1)
    await until('both', async () => (await rowOf(second.id)).state === 'delivered')
    assert.deepEqual(
      receiver.at(path).map(({ id }) => id),
      [first.id, first.id, first.id, second.id],
    )
  })

  test('in memory until there is a place: its schedule begins anew all the same', async () => {
    await running.stop()
    await startAnew({ ...slow, MAILROOM_WEBHOOK_CONCURRENCY: '1' })
    const path = freshPath()
    const other = await rig.account(user)
    receiver.decide(path, ({ body }) => {
      const { sources } = body['message_data'] as { sources: { label: string }[] }
      return { status: sources[0]?.label === other.label ? 200 : 500 }
    })
    const webhook = await hook(path)
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('refused') }])
    const [refused] = rows
    assert(refused)
    // The only place is taken until the store has the result.
    const free = Promise.withResolvers<undefined>()
    const record = rig.store.outbox.record.bind(rig.store.outbox)
    await until('it waits', async () => (await rowOf(refused.id)).attemptCount === 1)
    rig.store.outbox.record = async (results) => {
      await free.promise
      return record(results)
    }
    try {
      await arrive(rig.store, running.webhooks, other, [{ facts: facts('slow') }])
      await until('the place is taken', () => receiver.at(path).length === 2)
      // What waits is due now, and is read into memory.
      await running.webhooks.edit(webhook, { active: true })
      await setTimeout(100)
      assert.equal(receiver.at(path).length, 2)
      assert.equal(await running.webhooks.resend(await rowOf(refused.id)), 1)
    } finally {
      free.resolve(undefined)
      rig.store.outbox.record = record
    }
    const tried = await until('tried again', async () => {
      const row = await rowOf(refused.id)
      return row.attempts.length === 2 ? row : null
    })
    assert.deepEqual([tried.state, tried.attemptCount], ['pending', 1])
  })

  test('on its way: not sent a second time beside it', async () => {
    const { path, first } = await queued([{ status: 500 }], ['first'])
    await until('it waits', async () => (await rowOf(first.id)).attemptCount === 1)
    let free: () => void = () => undefined
    const answered = new Promise<void>((resolve) => (free = resolve))
    const enqueued = rig.store.outbox.record.bind(rig.store.outbox)
    rig.store.outbox.record = async (results) => {
      await answered
      return enqueued(results)
    }
    try {
      assert.equal(await running.webhooks.resend(await rowOf(first.id)), 1)
      await until('on its way', () => receiver.at(path).length === 2)
      assert.equal(await running.webhooks.resend(await rowOf(first.id)), 0)
    } finally {
      free()
      rig.store.outbox.record = enqueued
    }
    await until('delivered', async () => (await rowOf(first.id)).state === 'delivered')
    assert.equal(receiver.at(path).length, 2)
  })
})
