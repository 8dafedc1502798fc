/** Redelivery of a time: all of it, however much it is, over errors of the store, a pause and a restart. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, suite, test, type TestContext } from 'node:test'
import { AppError } from '../../../engine/errors.ts'
import { outboxId } from '../../../engine/store/ids.ts'
import type { AccountRecord, OutboxRecord, UserRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { type Receiver, createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type House, type Wing, createHouse, developerId } from './fixture.ts'

let receiver: Receiver
let house: House
let wing: Wing
let user: UserRecord
let account: AccountRecord

before(async () => {
  receiver = await createReceiver()
})
after(() => receiver.close())
beforeEach(async () => {
  house = await createHouse()
  wing = await house.wing()
  user = await house.user()
  account = await house.account(user)
})
afterEach(() => house.close())

const day = 86_400_000
const start = Date.now() - day

/** Its messages are in no index: what is sent again is skipped, which is fast. */
async function webhookWith(count: number, patch: Partial<OutboxRecord> = {}): Promise<WebhookRecord> {
  const owner = { developerId, userId: user.id, version: 'lite' } as const
  const webhook = await wing.webhooks.create(owner, { callbackUrl: receiver.url('/redelivery') })
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
  for (let from = 0; from < count; from += 1000) await house.store.outbox.enqueue(rows.slice(from, from + 1000))
  return webhook
}

const inLog = async (webhook: WebhookRecord, query: { readonly kind?: 'message' | 'failure' } = {}) =>
  house.store.outbox.list({ webhookId: webhook.id, ...query }, { limit: 20_000, offset: 0 })

/** Sent again: no longer as it was written. */
const touched = async (webhook: WebhookRecord) => (await inLog(webhook)).filter((row) => row.attemptCount === 0)

const redelivery = async (webhook: WebhookRecord) => (await house.store.webhooks.get(webhook.id))?.redelivery

/** The store takes `batches` batches, and refuses the others until `heal` is called. */
function failAfter(
  context: TestContext,
  batches: number,
): { readonly heal: () => void; readonly refused: () => number } {
  const { outbox } = house.store
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
    const answered = await wing.webhooks.redeliver(webhook, wanted)
    assert(answered > 0)
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
    await house.store.outbox.enqueue([{ ...row, ...notice, kind: 'failure', createdAt: start + 1 }, failed])
    assert.equal(await wing.webhooks.redeliver(webhook, { from: start + 1, until: start + 1, failedOnly: true }), 1)
    assert.equal((await house.store.outbox.get(failed.id))?.attemptCount, 0)
    assert.equal(await wing.webhooks.redeliver(webhook, { from: start + 2 }), 3)
    assert.equal(await wing.webhooks.redeliver(webhook, { until: start - 1 }), 0)
    assert.equal((await touched(webhook)).length, 4)
    assert.equal((await inLog(webhook, { kind: 'failure' }))[0]?.attemptCount, 1)
  })

  test('answers before its end when it takes long; the same again joins it, another is a conflict', async (context) => {
    const webhook = await webhookWith(450)
    const { heal } = failAfter(context, 1)
    assert.equal(await wing.webhooks.redeliver(webhook, { from: start }), 200)
    assert.equal((await redelivery(webhook))?.done, false)
    await assert.rejects(wing.webhooks.redeliver(webhook, { from: start + 1 }), { code: 'conflict' })
    heal()
    assert.equal(await wing.webhooks.redeliver(webhook, { from: start }), 450)
    assert.equal((await redelivery(webhook))?.done, true)
  })

  test('goes on after a restart where it was', async (context) => {
    const webhook = await webhookWith(450)
    const { heal } = failAfter(context, 1)
    const answer = wing.webhooks.redeliver(webhook, { from: start })
    await until('the first batch is recorded', async () => (await redelivery(webhook))?.count === 200)
    await wing.stop()
    assert.equal(await answer, 200)
    assert.equal((await touched(webhook)).length, 200)
    heal()
    wing = await house.wing()
    await until('done', async () => (await redelivery(webhook))?.done === true)
    assert.equal((await redelivery(webhook))?.count, 450)
    assert.equal((await touched(webhook)).length, 450)
  })

  test('ends when the webhook is paused: nothing stays behind in its queue', async (context) => {
    const webhook = await webhookWith(450)
    const { heal, refused } = failAfter(context, 1)
    const answer = wing.webhooks.redeliver(webhook, { from: start })
    await until('the second batch is refused', () => refused() > 0)
    await wing.webhooks.edit(webhook, { active: false })
    heal()
    assert.equal(await answer, 200)
    const told = await until('done', async () => {
      const last = await redelivery(webhook)
      return last?.done === true ? last : null
    })
    assert.deepEqual([told.count, told.reason], [200, 'the webhook was paused'])
    await until('no backlog', async () => (await house.store.outbox.backlog(webhook.id)).pending === 0)
    await assert.rejects(wing.webhooks.redeliver(webhook, { from: start }), { code: 'conflict' })
  })

  test('ends with the webhook', async (context) => {
    const webhook = await webhookWith(450)
    const { refused } = failAfter(context, 1)
    const answer = wing.webhooks.redeliver(webhook, { from: start })
    await until('the second batch is refused', () => refused() > 0)
    await wing.webhooks.remove(webhook)
    assert.equal(await answer, 200)
    assert.equal((await house.store.outbox.backlog(webhook.id)).pending, 0)
  })
})
