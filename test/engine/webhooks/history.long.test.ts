/** Historical scans side by side: a dead receiver holds up its own alone, live mail overtakes all. */
import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import type { WebhookRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { arrive, facts } from './fixture.ts'
import { account, hook, rig, startAnew, receiver, running, useScene } from './scene.ts'

useScene()

beforeEach(async () => {
  // A test starts the webhooks that it wants.
  await running.stop()
  await rig.store.accounts.edit(account.id, { resume: { ...account.resume, initialSyncAt: Date.now() } })
})

/** `count` messages that were there before, the last one the newest. */
async function past(count: number): Promise<string[]> {
  const old = Array.from({ length: count }, (_, index) =>
    facts(`old${index}`, { sentAt: 1_600_000_000_000 + index * 60_000 }),
  )
  await arrive(
    rig.store,
    null,
    account,
    old.map((one) => ({ facts: one })),
  )
  return old.map(({ subject }) => subject)
}

function scanning(path: string, retrySchedule: string | null = null): Promise<WebhookRecord> {
  return hook(path, { receiveHistorical: true, retrySchedule })
}

function subjects(path: string): string[] {
  return receiver.at(path).map((one) => (one.body['message_data'] as { subject: string }).subject)
}

async function isDone(webhook: WebhookRecord): Promise<boolean> {
  return (await rig.store.webhooks.scan(webhook.id, account.id))?.done === true
}

suite('historical scans', () => {
  test('with a full backlog delay no other, and go on when their receiver is back, also after a restart', async () => {
    // A late answer would be a try more.
    const env = { MAILROOM_WEBHOOK_BATCH: '60', MAILROOM_WEBHOOK_TIMEOUT: '30s' }
    await startAnew(env)
    const all = await past(250)
    const dead: WebhookRecord[] = []
    // Twice as many as scans go on at once. Only the first is tried again and again: the others cost no time.
    for (let index = 0; index < 8; index += 1) {
      receiver.script(`/dead${index}`, [], { status: 503 })
      dead.push(await scanning(`/dead${index}`, index === 0 ? null : '1h'))
    }
    await until('their backlogs are full', async () => {
      const waiting = await Promise.all(dead.map(({ id }) => rig.store.outbox.backlog(id)))
      return waiting.every(({ pending }) => pending >= 120)
    })
    const well = await scanning('/well')
    await until('the scan of the other is done', () => isDone(well), { withinMs: 40_000 })
    await until('and all is delivered', () => receiver.at('/well').length === 250, { withinMs: 40_000 })
    assert.deepEqual(subjects('/well'), [...all].reverse())
    for (const webhook of dead) assert.equal(await isDone(webhook), false)

    await running.stop()
    const [first] = dead
    assert.ok(first)
    receiver.script('/dead0', [])
    await startAnew(env)
    await until('the first of them goes on to its end', () => isDone(first), { withinMs: 40_000 })
    const accepted = () => [...new Set(subjects('/dead0'))]
    await until('all of it is delivered', () => accepted().length === 250, { withinMs: 40_000 })
    assert.deepEqual(accepted(), [...all].reverse())
  })

  test('give way to live mail, however much of theirs waits', async () => {
    await startAnew({ MAILROOM_WEBHOOK_BATCH: '20' })
    const all = await past(150)
    let open = true
    const accepted: string[] = []
    receiver.decide('/overtaken', ({ body }) => {
      if (!open) return { status: 503 }
      accepted.push((body['message_data'] as { subject: string }).subject)
      return { status: 200 }
    })
    const webhook = await scanning('/overtaken')
    await until('the scan is under way', () => accepted.length >= 5)
    open = false
    await until('the rest waits', async () => {
      const { health } = (await rig.store.webhooks.get(webhook.id)) ?? webhook
      const { pending } = await rig.store.outbox.backlog(webhook.id)
      return health.consecutiveFailures > 0 && pending >= 40
    })
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('live1') }, { facts: facts('live2') }])
    const before = accepted.length
    open = true
    await until('all is delivered', () => new Set(accepted).size === 152)
    // One of the scan may have been on its way.
    const first = accepted.slice(before, before + 3).filter((subject) => subject.includes('live'))
    assert.deepEqual(first, ['Subject of live1', 'Subject of live2'])
    assert.ok(accepted.length - before > 40, 'most of the scan came after them')
    const scanned = [...new Set(accepted)].filter((subject) => !subject.includes('live'))
    assert.deepEqual(scanned, [...all].reverse())
  })
})
