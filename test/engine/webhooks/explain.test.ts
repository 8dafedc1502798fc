/** Explain tells what happened when a message came, whatever the webhook and the mailbox have become since. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { changeId } from '../../../engine/store/ids.ts'
import type { AccountRecord, MessageRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { activeAt, dated } from '../../../engine/webhooks/targets.ts'
import type { WebhookInput } from '../../../engine/webhooks/admin.ts'
import type { Circumstance } from '../../../engine/webhooks/match.ts'
import { emptyBatch } from '../../store/contract/mailbox.ts'
import { until } from '../../support/until.ts'
import { type Rig, type Running, arrive, changeOf, facts, freely } from './fixture.ts'
import { account, hook, rig, receiver, running, useScene } from './scene.ts'

useScene()

suite('explain', () => {
  const explained = async (input: WebhookInput = {}): Promise<WebhookRecord> => {
    const webhook = await hook('/explained', input)
    await later()
    return webhook
  }

  /** What comes next has a later time. */
  const later = async (): Promise<void> => {
    const since = Date.now()
    await until('another millisecond', () => Date.now() > since)
  }

  const come = async (name: string, seen = true): Promise<MessageRecord> => {
    const { messages } = await arrive(rig.store, seen ? running.webhooks : null, account, [{ facts: facts(name) }])
    const [message] = messages
    assert.ok(message)
    await later()
    return message
  }

  const ended = (webhook: WebhookRecord) =>
    until('all rows have ended', async () => {
      const rows = await rig.store.outbox.list({ webhookId: webhook.id }, { limit: 10, offset: 0 })
      return rows.length > 0 && rows.every(({ state }) => state !== 'pending')
    })

  const told = async (webhook: WebhookRecord, message: MessageRecord) => {
    const current = (await rig.store.webhooks.get(webhook.id)) ?? webhook
    const { matched, verdicts } = await running.webhooks.explain(current, account, message, freely)
    const why = (filter: Circumstance) => verdicts.find((one) => one.filter === filter)?.why ?? ''
    const refusals = verdicts.filter((one) => !one.matched).map(({ filter }) => filter)
    return { matched, why, refusals }
  }

  test('a webhook that was made after the event', async () => {
    const message = await come('early')
    const webhook = await explained()
    const { matched, why, refusals } = await told(webhook, message)
    assert.deepEqual([matched, refusals], [false, ['created']])
    assert.match(why('created'), /^the webhook was made at 20\S+Z, after the event of 20\S+Z$/)
  })

  test('a webhook that was paused when the message came, and is active now', async () => {
    const webhook = await explained()
    await running.webhooks.edit(webhook, { active: false })
    await later()
    const missed = await come('missed')
    await running.webhooks.edit(webhook, { active: true })
    await later()
    const heard = await come('heard')
    await running.webhooks.edit(webhook, { active: false })
    const none = await told(webhook, missed)
    assert.deepEqual([none.matched, none.refusals], [false, ['active']])
    assert.match(none.why('active'), /^the webhook was paused at 20/)
    const one = await told(webhook, heard)
    assert.deepEqual([one.matched, one.refusals], [true, []])
  })

  test('a webhook that a 410 ended: what came before and after', async () => {
    receiver.script('/explained', [{ status: 410 }])
    const webhook = await explained()
    const first = await come('first')
    await until('paused', async () => (await rig.store.webhooks.get(webhook.id))?.active === false)
    await later()
    const second = await come('second')
    assert.equal((await told(webhook, first)).matched, true)
    const { matched, refusals } = await told(webhook, second)
    assert.deepEqual([matched, refusals], [false, ['active']])
  })

  test('filters that were edited since: a queued callback has the last word, and none says no', async () => {
    const webhook = await explained({ filters: { subject: 'yes' } })
    const yes = await come('yes')
    const no = await come('no')
    await ended(webhook)
    await running.webhooks.edit(webhook, { filters: { subject: 'no' } })
    const sent = await told(webhook, yes)
    assert.equal(sent.matched, true)
    assert.match(sent.why('delivery'), /^a callback was queued at 20/)
    assert.match(
      sent.why('edited'),
      /^the filters were edited at 20\S+Z, after the event of 20\S+Z: these are today's$/,
    )
    const not = await told(webhook, no)
    assert.deepEqual([not.matched, not.refusals], [false, ['edited']])
  })

  test('an edit that touches no filter says nothing of them', async () => {
    const webhook = await explained({ filters: { subject: 'yes' } })
    const no = await come('no')
    await running.webhooks.edit(webhook, { includeBody: true, filters: { subject: 'yes' } })
    const { matched, refusals } = await told(webhook, no)
    assert.deepEqual([matched, refusals], [false, ['filter_subject']])
  })

  test('a message that was there before its account', async () => {
    const webhook = await explained()
    const { matched, why, refusals } = await told(webhook, await come('before', false))
    assert.deepEqual([matched, refusals], [false, ['event']])
    assert.match(why('event'), /^no event was seen: the message was there before/)
  })

  test('a body that was searched and is gone since; one that did not have the words', async () => {
    const webhook = await explained({ filters: { bodySearch: 'gold' } })
    const bodies = { rich: 'gold', poor: 'sand' }
    const messages: MessageRecord[] = []
    for (const [name, body] of Object.entries(bodies)) {
      rig.mail.broken = null
      const message = facts(name)
      const { messages: stored } = await arrive(rig.store, null, account, [{ facts: message }])
      const [record] = stored
      assert.ok(record)
      rig.mail.bodies.set(record.id, { '1': body })
      const id = changeId(account.id, name, '1', 1, 'added', 0)
      const change = changeOf(account, record, { facts: message }, id)
      await tell(rig, running, account, change, record)
      messages.push(record)
    }
    await ended(webhook)
    rig.mail.bodies.clear()
    const [rich, poor] = messages
    assert.ok(rich && poor)
    const found = await told(webhook, rich)
    assert.deepEqual([found.matched, found.refusals], [true, []])
    const not = await told(webhook, poor)
    assert.equal(not.matched, false)
    assert.match(
      not.why('delivery'),
      /^the callback was dropped at 20\S+Z: body_search: none of 1 text parts matches gold$/,
    )
  })
})

async function tell(
  rig: Rig,
  running: Running,
  account: AccountRecord,
  change: ReturnType<typeof changeOf>,
  message: MessageRecord,
): Promise<void> {
  const folder = await rig.store.folders.byPath(account.id, 'INBOX')
  assert.ok(folder?.cursor)
  const outbox = await running.webhooks.plan(account, [{ change, message }], (path) => path)
  const { changes } = await rig.store.sync.apply({
    ...emptyBatch(account, folder.id, folder.cursor),
    changes: [change],
    outbox,
  })
  running.webhooks.stored(account.id, outbox, changes)
}

suite('the switches of a webhook', () => {
  const made = { active: true, filters: {}, receiveAllChanges: false, receiveDrafts: false } as const
  const record = (more: Partial<WebhookRecord>) => ({ ...made, ...more }) as WebhookRecord

  test('say what it was at any time, as far as they are kept', () => {
    let webhook = record({})
    assert.equal(activeAt(webhook, 5), true)
    assert.equal(activeAt(record({ active: false }), 5), false, 'made paused')
    for (let at = 10; at <= 40; at += 10) {
      const patch = { active: !webhook.active }
      webhook = { ...webhook, ...patch, ...dated(webhook, patch, at) }
    }
    assert.deepEqual(
      [9, 10, 19, 20, 35, 40, 99].map((at) => activeAt(webhook, at)),
      [true, false, false, true, false, true, true],
    )
    for (let at = 100; at < 150; at += 1) {
      const patch = { active: !webhook.active }
      webhook = { ...webhook, ...patch, ...dated(webhook, patch, at) }
    }
    assert.equal(webhook.switches?.length, 20)
    assert.equal(activeAt(webhook, 5), null, 'forgotten')
    assert.equal(activeAt(webhook, 200), webhook.active)
  })

  test('are not written by an edit that changes nothing', () => {
    assert.deepEqual(dated(record({ filters: { to: 'x' } }), { active: true, filters: { to: 'x' } }, 7), {})
    assert.deepEqual(dated(record({}), { filters: { to: 'x' } }, 7), { editedAt: 7 })
  })
})
