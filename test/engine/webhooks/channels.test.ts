/** Many webhooks and accounts at once: order, isolation, restarts, bounded memory. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { readConfig } from '../../../engine/config.ts'
import { AppError } from '../../../engine/errors.ts'
import type { AccountRecord, OutboxRecord } from '../../../engine/store/records.ts'
import { newId } from '../../../engine/store/ids.ts'
import { Channel } from '../../../engine/webhooks/channel.ts'
import type { Attempts } from '../../../engine/webhooks/attempts.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import { type Received, createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { arrive, facts } from './fixture.ts'
import { laneRow } from './lane-row.ts'
import { hook, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

function accounts(count: number): Promise<AccountRecord[]> {
  return Promise.all(Array.from({ length: count }, () => rig.account(user)))
}

/** `<account> <sequence>` of each request that was answered well, in order of arrival. */
function sequences(requests: readonly Received[]): Map<string, number[]> {
  const byLabel = new Map<string, number[]>()
  for (const { body } of requests) {
    const data = body['message_data'] as { sources: { label: string }[] }
    const label = data.sources[0]?.label ?? ''
    byLabel.set(label, [...(byLabel.get(label) ?? []), Number(body['sequence'])])
  }
  return byLabel
}

suite('channels', () => {
  test('order per account is kept while receivers fail now and then', async () => {
    const good: Received[] = []
    let count = 0
    receiver.decide('/order', (request) => {
      count += 1
      if (count % 7 === 0) return { status: 500 }
      good.push(request)
      return { status: 200 }
    })
    await hook('/order')
    const boxes = await accounts(5)
    const ids = new Set<string>()
    for (let round = 0; round < 6; round += 1) {
      for (const box of boxes) {
        const { rows } = await arrive(rig.store, running.webhooks, box, [
          { facts: facts(`${box.id}-${round}-a`) },
          { facts: facts(`${box.id}-${round}-b`) },
        ])
        for (const row of rows) ids.add(row.id)
      }
    }
    assert.equal(ids.size, 60)
    await until('all arrived', () => new Set(good.map((one) => one.id)).size === 60)
    for (const [label, seen] of sequences(good)) {
      assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], label)
    }
  })

  test('one hanging, one refusing and one failing receiver among 50 delay nobody', async () => {
    // Longer than every deadline below: had anybody waited for the hanging one, these would not be met.
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_TIMEOUT: '30s' })
    for (let index = 0; index < 47; index += 1) await hook(`/good${index}`)
    receiver.script('/hanging', [], 'hang')
    receiver.script('/failing', [], { status: 500 })
    await hook('/hanging')
    await hook('/failing')
    const dead = await createReceiver()
    await hook('/', { callbackUrl: dead.url('/') })
    await dead.close()
    const boxes = await accounts(3)
    for (let round = 0; round < 3; round += 1) {
      for (const box of boxes) await arrive(rig.store, running.webhooks, box, [{ facts: facts(`${box.id}-${round}`) }])
      const wanted = (round + 1) * boxes.length
      for (let index = 0; index < 47; index += 1) {
        await until(`/good${index}`, () => receiver.at(`/good${index}`).length === wanted, { everyMs: 2 })
      }
    }
    const hanging = receiver.at('/hanging')
    assert.ok(hanging.length > 0 && hanging.length <= boxes.length, `${hanging.length} requests hang`)
  })

  test('a crash loses nothing and repeats nothing under another id', async () => {
    const seen = new Map<string, Set<string>>()
    receiver.decide('/crash', (request) => {
      const name = (request.body['message_data'] as { email_message_id: string }).email_message_id
      seen.set(name, (seen.get(name) ?? new Set()).add(request.id))
      return { status: 200, delayMs: Math.floor(Math.random() * 5) }
    })
    await hook('/crash')
    const boxes = await accounts(4)
    for (let round = 0; round < 10; round += 1) {
      for (const box of boxes) await arrive(rig.store, running.webhooks, box, [{ facts: facts(`${box.id}-${round}`) }])
      if (round % 3 === 2) {
        // The former ones are not stopped: both run for a while, as after a kill -9 with requests still on the wire.
        await startAnew()
      }
    }
    await until('all arrived', () => seen.size === 40)
    await until('all recorded', async () => {
      const rows = await rig.store.outbox.list({ accountId: boxes[0]?.id ?? '' }, { limit: 100, offset: 0 })
      return rows.length === 10 && rows.every((row) => row.state === 'delivered')
    })
    for (const [name, ids] of seen) assert.equal(ids.size, 1, `${name} came under ${ids.size} ids`)
  })

  test('rows that wait at the start go out', async () => {
    receiver.script('/restart', ['reset', 'reset', 'reset', 'reset', 'reset', 'reset', 'reset', 'reset'])
    await hook('/restart')
    const [box] = await accounts(1)
    assert.ok(box)
    await running.stop()
    const { rows } = await arrive(rig.store, running.webhooks, box, [{ facts: facts('one') }, { facts: facts('two') }])
    assert.equal(rows.length, 2)
    receiver.script('/restart', [])
    await startAnew()
    await until('both', () => receiver.at('/restart').length === 2)
    assert.deepEqual(
      receiver.at('/restart').map((one) => one.id),
      rows.map((row) => row.id),
    )
  })

  test('a channel holds a bounded number of rows, however many wait', async () => {
    const total = 5_000
    const waiting = Array.from({ length: total }, (_, seq) => laneRow(`a${seq % 50}`, seq))
    const pending = new Map(waiting.map((row) => [row.id, row]))
    let largest = 0
    const order = new Map<string, number>()
    const attempts: Pick<Attempts, 'handle'> = {
      handle(row) {
        assert.ok(row.seq > (order.get(row.accountId ?? '') ?? -1))
        order.set(row.accountId ?? '', row.seq)
        pending.delete(row.id)
        const attempt = { at: 1, durationMs: 1, status: 200, error: null, response: '' }
        return Promise.resolve({ until: null, attempt, failure: null })
      },
    }
    const channel = new Channel('c', {
      store: {
        outbox: {
          pending: (_channel, except, limit) => {
            largest = Math.max(largest, limit)
            const out: OutboxRecord[] = []
            for (const row of pending.values()) {
              if (!except.includes(row.accountId ?? '')) out.push(row)
              if (out.length === limit) break
            }
            return Promise.resolve(out)
          },
        },
      },
      attempts,
      log: silentLogger,
      now: () => Date.now(),
      random: () => 0.5,
      config: readConfig({ MAILROOM_WEBHOOK_CONCURRENCY: '8', MAILROOM_WEBHOOK_BATCH: '100' }),
      // As the chart does.
      notify: ({ type }) => {
        if (type === 'room') void channel.claim()
      },
    })
    channel.start()
    await until('all sent', () => pending.size === 0)
    channel.stop()
    await channel.settled()
    assert.ok(largest <= 100)
  })

  test('a channel asks for a claim when there may be rows, and says when nothing is due, after every wake anew', async () => {
    const said: string[] = []
    let away = false
    const channel = new Channel('c', {
      store: {
        outbox: { pending: () => (away ? Promise.reject(new Error('the store is away')) : Promise.resolve([])) },
      },
      attempts: { handle: () => assert.fail('there is nothing to send') },
      log: silentLogger,
      now: () => Date.now(),
      random: () => 0.5,
      config: readConfig({ MAILROOM_WEBHOOK_CONCURRENCY: '8', MAILROOM_WEBHOOK_BATCH: '100' }),
      notify: ({ type }) => void said.push(type),
    })
    const news = () => said.splice(0)
    channel.start()
    assert.deepEqual(news(), ['room'])
    await channel.claim()
    channel.wake()
    assert.deepEqual(news(), [], 'the chart does not know yet that the claim is done')
    await nextTurn()
    assert.deepEqual(news(), ['idle'])
    channel.wake()
    assert.deepEqual(news(), ['idle'])
    channel.wake(null)
    assert.deepEqual(news(), ['room'])
    away = true
    await assert.rejects(channel.claim(), /the store is away/)
    channel.stop()
    channel.wake(null)
    assert.deepEqual(news(), [], 'it was stopped')
    away = false
    channel.start()
    await channel.claim()
    channel.stop()
    await nextTurn()
    assert.deepEqual(news(), ['room'], 'stopped before it could say more')
  })

  test('a channel says that nothing is due also when a row that waited for its time is gone by then', async () => {
    const said: string[] = []
    const stored = [[{ ...laneRow('a', 0), dueAt: Date.now() + 1000 }], []]
    const channel = new Channel('c', {
      store: { outbox: { pending: () => Promise.resolve(stored.shift() ?? assert.fail('read once too often')) } },
      attempts: { handle: () => assert.fail('there is nothing to send') },
      log: silentLogger,
      now: () => Date.now(),
      random: () => 0.5,
      config: readConfig({ MAILROOM_WEBHOOK_CONCURRENCY: '8', MAILROOM_WEBHOOK_BATCH: '100' }),
      notify: ({ type }) => {
        said.push(type)
        if (type === 'room') void channel.claim()
      },
    })
    channel.start()
    await until('it has looked again', () => stored.length === 0)
    await nextTurn()
    channel.stop()
    assert.deepEqual(said, ['room', 'idle', 'room', 'idle'])
  })

  test('no file left holds up the whole channel, and is tried with few rows', async (t) => {
    const rows = Array.from({ length: 500 }, (_, index) => laneRow(`account-${index}`, index))
    const [first, others]: [Set<string>, Set<string>] = [new Set(), new Set()]
    let [time, isShort] = [1000, true]
    const channel = new Channel('c', {
      store: {
        outbox: {
          pending: (_, except, limit) =>
            Promise.resolve(rows.filter(({ accountId }) => !except.includes(accountId ?? '')).slice(0, limit)),
        },
      },
      attempts: {
        handle({ id }) {
          if (isShort) first.add(id)
          else others.add(id)
          if (isShort) return Promise.reject(new AppError('busy', 'no file left'))
          return Promise.resolve({ until: time + 60_000, attempt: null, failure: null })
        },
      },
      log: silentLogger,
      now: () => time,
      random: () => 0.5,
      config: readConfig({ MAILROOM_WEBHOOK_CONCURRENCY: '8', MAILROOM_WEBHOOK_BATCH: '100' }),
      notify: ({ type }) => {
        if (type === 'room') void channel.claim()
      },
    })
    t.after(() => channel.stop())
    channel.start()
    await until('it rests', () => !channel.isBusy() && first.size > 0)
    for (let turn = 0; turn < 100; turn += 1) await nextTurn()
    assert.equal(first.size, 8)
    isShort = false
    time += 2000
    await until('all go out', () => others.size === rows.length)
  })

  test('a probe that finds only rows that wait says when the first is due', async () => {
    const rows = [laneRow('a', 0), laneRow('b', 1), laneRow('c', 2)]
    const due = new Map([
      ['a', 9000],
      ['b', 5000],
      ['c', 7000],
    ])
    const handled: string[] = []
    const channel = new Channel('c', {
      store: {
        outbox: {
          pending: (_, except) => Promise.resolve(rows.filter(({ accountId }) => !except.includes(accountId ?? ''))),
        },
      },
      attempts: {
        handle({ accountId }) {
          handled.push(accountId ?? '')
          return Promise.resolve({ until: due.get(accountId ?? '') ?? null, attempt: null, failure: null })
        },
      },
      log: silentLogger,
      now: () => 1000,
      random: () => 0.5,
      config: readConfig({}),
      notify: () => undefined,
    })
    assert.deepEqual(await channel.probe(), { delivered: null, at: 1000, next: 5000 })
    assert.deepEqual(handled, ['a', 'b', 'c'])
  })

  test('a row that goes out early because of a probe keeps its own time; after an edit it begins anew', async () => {
    const failed = { at: Date.now() - 1000, durationMs: 1, status: 503, error: 'HTTP 503', response: '' }
    const held = { ...laneRow('a', 0), attempts: [failed], attemptCount: 1, dueAt: Date.now() + 60_000 }
    const probed = laneRow('b', 1)
    let waiting = [probed, held]
    const handled: OutboxRecord[] = []
    const channel = new Channel('c', {
      store: { outbox: { pending: () => Promise.resolve(waiting) } },
      attempts: {
        handle(row) {
          handled.push(row)
          waiting = waiting.filter(({ id }) => id !== row.id)
          const attempt = { ...failed, at: Date.now(), status: 200, error: null }
          return Promise.resolve({ until: null, attempt, failure: null })
        },
      },
      log: silentLogger,
      now: () => Date.now(),
      random: () => 0.5,
      config: readConfig({}),
      notify: () => undefined,
    })
    const drain = async (): Promise<OutboxRecord | undefined> => {
      channel.start()
      await channel.claim()
      await channel.settled()
      channel.stop()
      return handled.at(-1)
    }
    assert.equal((await channel.probe()).delivered, true)
    const early = await drain()
    assert.deepEqual([early?.id, early?.countsAt], [held.id, held.dueAt])
    assert.ok(early && early.dueAt <= Date.now())
    waiting = [held]
    channel.recovered()
    const anew = await drain()
    assert.deepEqual([handled.length, anew?.id, anew?.countsAt], [3, held.id, undefined])
  })

  test('historical callbacks that hang leave places for live ones', async () => {
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_CONCURRENCY: '4', MAILROOM_WEBHOOK_TIMEOUT: '30s' })
    const boxes = await accounts(8)
    for (const box of boxes) await arrive(rig.store, null, box, [{ facts: facts(`old ${box.id}`) }])
    let hanging = 0
    receiver.decide('/places', ({ body }) => {
      if (body['sequence'] !== undefined) return { status: 200 }
      hanging += 1
      return 'hang'
    })
    await hook('/places', { receiveHistorical: true })
    for (const box of boxes) await running.webhooks.initialSyncDone(box)
    await until('two hang', () => hanging === 2)
    for (const box of [...boxes, ...boxes]) {
      await arrive(rig.store, running.webhooks, box, [{ facts: facts(newId()) }])
    }
    // Those of the two accounts whose historical callback hangs wait for it.
    await until('the others have theirs', () => receiver.at('/places').length === 2 + 2 * (boxes.length - 2))
    assert.equal(hanging, 2)
    // They end with their connections.
    await receiver.close()
    await receiver.open()
  })

  test('a historical callback that is refused holds up no live one', async () => {
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' })
    const [box] = await accounts(1)
    assert.ok(box)
    await arrive(rig.store, null, box, [{ facts: facts('old') }, { facts: facts('older') }])
    // Historical ones have no number.
    receiver.decide('/historical', ({ body }) => ({ status: body['sequence'] === undefined ? 500 : 200 }))
    const webhook = await hook('/historical', { receiveHistorical: true })
    await running.webhooks.initialSyncDone(box)
    const waiting = () => rig.store.outbox.list({ webhookId: webhook.id, states: ['pending'] }, { limit: 9, offset: 0 })
    await until('one refused', async () => (await waiting()).some((row) => row.attemptCount === 1))
    const { rows } = await arrive(rig.store, running.webhooks, box, [
      { facts: facts('live') },
      { facts: facts('more') },
    ])
    await until('live ones are out', async () => {
      const states = await Promise.all(rows.map(({ id }) => rig.store.outbox.get(id)))
      return states.length === 2 && states.every((row) => row?.state === 'delivered')
    })
    assert.deepEqual(
      (await waiting()).map((row) => row.attempts.length).sort(),
      [0, 1],
      'historical ones wait for one another',
    )
  })
})
