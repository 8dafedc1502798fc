/** A receiver that is away for long or for good: what is told, what is kept, and how it goes on. */
import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import type { OutboxRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { arrive, developerId, facts } from './fixture.ts'
import { account, freshPath, hook, redelivered, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

/** Abandoned after a tenth of a second, at the third try at the latest, and not tried again for an hour. */
const soonAbandoned = {
  MAILROOM_WEBHOOK_SCHEDULE: '50ms,60ms,1h',
  MAILROOM_WEBHOOK_PROBE: '1h',
  MAILROOM_WEBHOOK_ABANDON: '100ms',
}

// A test starts the webhooks that it wants.
beforeEach(() => running.stop())

async function send(name: string, to = account): Promise<OutboxRecord> {
  const { rows } = await arrive(rig.store, running.webhooks, to, [{ facts: facts(name) }])
  const [row] = rows
  assert.ok(row, 'no row was planned')
  return row
}

async function stored(webhook: WebhookRecord): Promise<WebhookRecord> {
  const found = await rig.store.webhooks.get(webhook.id)
  assert.ok(found)
  return found
}

async function rowOf({ id }: OutboxRecord): Promise<OutboxRecord> {
  const row = await rig.store.outbox.get(id)
  assert.ok(row)
  return row
}

/** Notices stored for a URL, oldest first: those that are delivered and those that are not. */
async function notices(): Promise<OutboxRecord[]> {
  const rows = await rig.store.outbox.list({ developerId, kind: 'failure' }, { limit: 100, offset: 0 })
  return rows.reverse()
}

function subjects(path: string): string[] {
  const bodies = receiver.at(path).map((one) => one.body['message_data'] as { subject: string })
  return bodies.map(({ subject }) => subject.replace('Subject of ', ''))
}

async function news(): Promise<Record<string, number>> {
  const { values } = await running.metrics.webhookNews.get()
  return Object.fromEntries(values.flatMap(({ labels, value }) => (value === 0 ? [] : [[String(labels.news), value]])))
}

suite('a receiver that has failed for too long', () => {
  test('is told so once, keeps what waits and what comes, and gets all in order when it is back', async () => {
    // Time enough for three failures before, on a busy machine too.
    const env = { MAILROOM_WEBHOOK_ABANDON: '6s', MAILROOM_WEBHOOK_PROBE: '150ms' }
    await startAnew(env)
    const [path, notif] = [freshPath(), freshPath()]
    receiver.script(path, [], { status: 503 })
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const rows = [await send('one'), await send('two')]
    const withinMs = 20_000
    await until('abandoned', async () => (await stored(webhook)).health.abandonedAt, { withinMs })
    assert.equal((await stored(webhook)).active, true, '`active` is the developer’s word')
    await until('both notices', () => receiver.at(notif).length === 2, { withinMs })
    assert.match(String(receiver.at(notif)[0]?.body['data']), /^HTTP 503$/)
    assert.match(String(receiver.at(notif)[1]?.body['data']), /^HTTP 503; it has failed since 20.*callbacks wait/)
    assert.deepEqual(await news(), { failing: 1, abandoned: 1 })
    rows.push(await send('three'))
    const tried = receiver.at(path).length
    await until('probes go on', () => receiver.at(path).length >= tried + 3)
    assert.equal(new Set(subjects(path).slice(tried)).size, 1, 'one row at a time')

    await running.stop()
    await startAnew(env)
    const before = receiver.at(path).length
    await until('probes go on after a restart', () => receiver.at(path).length >= before + 2)
    for (const row of rows) assert.equal((await rowOf(row)).state, 'pending')
    receiver.script(path, [])
    const answered = receiver.at(path).length
    await until('all delivered', async () => {
      const states = await Promise.all(rows.map(rowOf))
      return states.every(({ state }) => state === 'delivered')
    })
    assert.deepEqual(subjects(path).slice(-3), ['one', 'two', 'three'])
    assert.ok(receiver.at(path).length - answered >= 3)
    const { health } = await until('recovered', async () => {
      const now = await stored(webhook)
      return now.health.failure ? null : now
    })
    assert.deepEqual([health.abandonedAt, health.failingSince, health.lastError], [null, null, null])
    assert.equal((await notices()).length, 2, 'nothing was told twice')
    assert.deepEqual(await news(), { recovered: 1 })
  })

  test('an edit with active=1 sends at once', async () => {
    await startAnew(soonAbandoned)
    const path = freshPath()
    receiver.script(path, [{ status: 503 }, 'reset'], { status: 503 })
    const webhook = await hook(path)
    const rows = [await send('one'), await send('two')]
    await until('abandoned', async () => (await stored(webhook)).health.abandonedAt)
    receiver.script(path, [])
    await running.webhooks.edit(webhook, { active: true })
    await until('both delivered', async () => {
      const states = await Promise.all(rows.map(rowOf))
      return states.every(({ state }) => state === 'delivered')
    })
    assert.deepEqual(subjects(path).slice(-2), ['one', 'two'])
    assert.equal((await stored(webhook)).health.abandonedAt, null)
  })

  test('the developer’s own active=0 keeps no backlog, here as ever', async () => {
    await startAnew(soonAbandoned)
    const path = freshPath()
    receiver.script(path, [], { status: 503 })
    const webhook = await hook(path)
    const row = await send('one')
    await until('abandoned', async () => (await stored(webhook)).health.abandonedAt)
    await running.webhooks.edit(webhook, { active: false })
    assert.equal((await rowOf(row)).state, 'skipped')
    assert.equal((await arrive(rig.store, running.webhooks, account, [{ facts: facts('two') }])).rows.length, 0)
  })

  test('answers 500 to everything: what is used up before is redelivered, the rest waits', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '20ms', MAILROOM_WEBHOOK_ABANDON: '100ms' })
    const path = freshPath()
    receiver.script(path, [], { status: 500 })
    const webhook = await hook(path)
    const used = await send('used up')
    await until('used up', async () => (await rowOf(used)).state === 'failed')
    const boxes = await Promise.all([rig.account(user), rig.account(user)])
    const rows: OutboxRecord[] = []
    await until('abandoned', async () => {
      for (const box of boxes) rows.push(await send(`row ${rows.length}`, box))
      return (await stored(webhook)).health.abandonedAt
    })
    receiver.script(path, [])
    await until('the others are out', async () => {
      const states = await Promise.all(rows.map(rowOf))
      return states.every(({ state }) => state === 'delivered' || state === 'failed')
    })
    const failed = await rig.store.outbox.list({ webhookId: webhook.id, states: ['failed'] }, { limit: 100, offset: 0 })
    assert.ok(failed.some(({ id }) => id === used.id))
    assert.equal(await redelivered(webhook, { failedOnly: true }), failed.length)
    await until('nothing has failed', async () => {
      const states = await Promise.all([used, ...rows].map(rowOf))
      return states.every(({ state }) => state === 'delivered')
    })
  })

  test('what has waited as long as deliveries are kept ends as failed, all of it in one probe', async () => {
    await startAnew({ MAILROOM_DELIVERY_RETENTION: '1m' })
    const path = freshPath()
    receiver.script(path, [], { status: 503 })
    await hook(path)
    const rows = [await send('one'), await send('two'), await send('three')]
    await until('failing', () => receiver.at(path).length >= 2)
    const dueAt = Date.now() - 120_000
    const long = { attempt: null, state: 'pending', dueAt, finishedAt: null, reason: null } as const
    const left = () => Promise.all(rows.map(rowOf))
    await until('all have ended', async () => {
      const pending = (await left()).filter(({ state, dueAt: due }) => state === 'pending' && due !== dueAt)
      await rig.store.outbox.record(pending.map(({ id }) => ({ id, ...long })))
      return (await left()).every(({ state }) => state === 'failed')
    })
    for (const { reason } of await left()) assert.equal(reason, 'its receiver was away for too long')
  })
})

suite('410', () => {
  test('of a webhook that is failing already is told besides; what waited is redelivered', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '30ms' })
    const [path, notif] = [freshPath(), freshPath()]
    receiver.script(path, [], { status: 503 })
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const rows = [await send('one'), await send('two'), await send('three')]
    await until('the failure is told', () => receiver.at(notif).length === 1)
    receiver.script(path, [], { status: 410 })
    await until('inactive', async () => !(await stored(webhook)).active)
    await until('the end is told', () => receiver.at(notif).length === 2)
    assert.match(String(receiver.at(notif)[1]?.body['data']), /^HTTP 410.*inactive until it is edited with active=1$/)
    assert.deepEqual(await news(), { failing: 1, gone: 1 })
    await until('what waited has failed', async () => {
      const states = await Promise.all(rows.map(rowOf))
      return states.every(({ state, reason }) => state === 'failed' && /410/.test(reason ?? ''))
    })
    await running.stop()
    await startAnew()
    assert.equal((await arrive(rig.store, running.webhooks, account, [{ facts: facts('later') }])).rows.length, 0)
    receiver.script(path, [])
    const edited = await running.webhooks.edit(await stored(webhook), { active: true })
    assert.equal(await redelivered(edited, { failedOnly: true }), 3)
    await until('all delivered', async () => {
      const states = await Promise.all(rows.map(rowOf))
      return states.every(({ state }) => state === 'delivered')
    })
    assert.deepEqual(subjects(path).slice(-3), ['one', 'two', 'three'])
    assert.equal((await notices()).length, 2)
  })

  test('and an edit with active=1 while it is being stored has the last word', async () => {
    await startAnew()
    const path = freshPath()
    receiver.script(path, [{ status: 410 }])
    const webhook = await hook(path)
    const { outbox } = rig.store
    const enqueue = outbox.enqueue.bind(outbox)
    let edited: WebhookRecord | null = null
    // After what waits has ended as failed, and before the webhook is set inactive.
    const during: typeof enqueue = async (rows) => {
      edited ??= await running.webhooks.edit(webhook, { active: true })
      return enqueue(rows)
    }
    Object.assign(outbox, { enqueue: during })
    const first = await send('one')
    await until('the first has failed', async () => (await rowOf(first)).state === 'failed')
    await until('edited', () => edited)
    Object.assign(outbox, { enqueue })
    const second = await send('two')
    await until('new mail goes out', async () => (await rowOf(second)).state === 'delivered')
    const { active, health } = await until('healthy', async () => {
      const now = await stored(webhook)
      return now.health.failure ? null : now
    })
    assert.deepEqual([active, health.failingSince, health.lastError], [true, null, null])
    await running.stop()
    await startAnew()
    assert.equal((await stored(webhook)).active, true, 'also after a restart')
    assert.equal((await arrive(rig.store, running.webhooks, account, [{ facts: facts('three') }])).rows.length, 1)
  })

  test('a crash before it is stored tells it no second time', async () => {
    await startAnew()
    const [path, notif] = [freshPath(), freshPath()]
    receiver.script(path, [], { status: 410 })
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const { webhooks } = rig.store
    const edit = webhooks.edit.bind(webhooks)
    let refused = 0
    const broken: typeof edit = () => {
      refused += 1
      return Promise.reject(new Error('the power fails here'))
    }
    Object.assign(webhooks, { edit: broken })
    await send('one')
    await until('not stored', () => refused > 0)
    await running.stop()
    assert.equal((await notices()).length, 1)
    Object.assign(webhooks, { edit })
    assert.equal((await stored(webhook)).active, true)
    await startAnew()
    await send('two')
    await until('inactive', async () => !(await stored(webhook)).active)
    const [only, ...more] = await notices()
    assert.equal(more.length, 0)
    assert.ok(only)
    await until('recorded', async () => (await rowOf(only)).state === 'delivered')
    assert.deepEqual([...new Set(receiver.at(notif).map(({ id }) => id))], [only.id])
  })
})

suite('probes', () => {
  test('that fail before the row is due are in the log, and use nothing of its schedule up', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '50ms,1h', MAILROOM_WEBHOOK_PROBE: '100ms' })
    const path = freshPath()
    receiver.script(path, [{ status: 503 }], { status: 503, body: 'not now' })
    await hook(path)
    const row = await send('one')
    const tried = await until('five attempts in the log', async () => {
      const now = await rowOf(row)
      return now.attempts.length >= 5 ? now : null
    })
    assert.equal(tried.attemptCount, 2)
    assert.equal(tried.state, 'pending')
    assert.ok((tried.countsAt ?? 0) > Date.now() + 3_000_000, 'its own time has not moved')
    assert.deepEqual([tried.attempts.at(-1)?.status, tried.attempts.at(-1)?.response], [503, 'not now'])
  })

  test('take accounts in turn, so that one bad row does not speak for all', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '30ms,30ms,30ms,30ms,30ms,30ms,30ms,30ms,30ms,1h' })
    const path = freshPath()
    receiver.script(path, [], { status: 503 })
    await hook(path)
    const other = await rig.account(user)
    await send('mine')
    await send('other', other)
    // Before the first failure is known, both may have gone out side by side.
    const first = await until('both', () => {
      const all = subjects(path)
      return all.includes('mine') && all.includes('other') && Math.max(all.indexOf('mine'), all.indexOf('other')) + 1
    })
    await until('six more', () => receiver.at(path).length >= first + 6)
    const probes = subjects(path).slice(first, first + 6)
    for (const [index, one] of probes.entries()) if (index > 0) assert.notEqual(one, probes[index - 1], probes.join())
    assert.equal(new Set(probes).size, 2)
  })

  test('that are the last attempt of a row end it, when the answer speaks of that row alone', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '20ms' })
    const path = freshPath()
    receiver.script(path, [{ status: 503 }, { status: 500 }])
    await hook(path)
    const row = await send('refused')
    const ended = await until('ended', async () => {
      const now = await rowOf(row)
      return now.state === 'pending' ? null : now
    })
    assert.deepEqual(
      [ended.state, ended.attemptCount, ended.reason],
      ['failed', 2, 'given up after 2 attempts: HTTP 500'],
    )
    assert.deepEqual(
      ended.attempts.map(({ status }) => status),
      [503, 500],
    )
    const next = await send('next')
    await until('the next goes out', async () => (await rowOf(next)).state === 'delivered')
  })

  test('of a receiver that is away never give a row up', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '20ms' })
    const path = freshPath()
    receiver.script(path, [], 'reset')
    await hook(path)
    const row = await send('one')
    await until('tried more often than its schedule has waits', () => receiver.at(path).length >= 6)
    assert.equal((await rowOf(row)).state, 'pending')
    receiver.script(path, [])
    await until('delivered', async () => (await rowOf(row)).state === 'delivered')
  })

  test('a callback that was refused is tried again in time, without using its schedule up; others go on', async () => {
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '150ms' })
    const path = freshPath()
    let mended = false
    receiver.decide(path, ({ body }) => {
      const { subject } = body['message_data'] as { subject: string }
      return { status: subject === 'Subject of poison' && !mended ? 500 : 200 }
    })
    await hook(path)
    const poison = await send('poison')
    const behind = await send('behind')
    const other = await send('other', await rig.account(user))
    await until('the other account is served', async () => (await rowOf(other)).state === 'delivered')
    const refused = await until('tried several times', async () => {
      const now = await rowOf(poison)
      return now.attempts.length >= 4 ? now : null
    })
    assert.deepEqual([refused.state, refused.attemptCount], ['pending', 1])
    assert.ok(refused.dueAt <= Date.now() + 150 && (refused.countsAt ?? 0) > Date.now() + 3_000_000)
    assert.equal((await rowOf(behind)).attempts.length, 0)
    mended = true
    await until('both', async () => (await rowOf(behind)).state === 'delivered')
    assert.deepEqual(subjects(path).slice(-2), ['poison', 'behind'])
  })
})
