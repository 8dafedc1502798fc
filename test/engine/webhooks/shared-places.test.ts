/** A channel whose webhook other nodes send for too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { readConfig } from '../../../engine/config.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import { Channel } from '../../../engine/webhooks/channel.ts'
import { until } from '../../support/until.ts'
import { laneRow } from './lane-row.ts'

test('other nodes leave it some places, none for a time, and their turn to try a receiver', async (t) => {
  let [time, places, isTurn] = [1000, 0, false]
  const rows = [laneRow('a', 0), laneRow('b', 1), laneRow('c', 2)]
  const handled: string[] = []
  const held = Promise.withResolvers<undefined>()
  const channel = new Channel('c', {
    store: {
      outbox: {
        pending: (_, except) => Promise.resolve(rows.filter(({ accountId }) => !except.includes(accountId ?? ''))),
      },
    },
    attempts: {
      async handle({ accountId }) {
        handled.push(accountId ?? '')
        await held.promise
        return { until: time + 60_000, attempt: null, failure: null }
      },
    },
    log: silentLogger,
    now: () => time,
    random: () => 0.5,
    config: readConfig({}),
    notify: ({ type }) => {
      if (type === 'room') void channel.claim()
    },
    shared: { places: () => places, takeTurn: () => Promise.resolve(isTurn) },
  })
  t.after(() => channel.stop())
  assert.deepEqual(await channel.probe(), { delivered: null, at: 1000, next: Infinity })
  assert.deepEqual(handled, [], 'another node tries it')
  channel.start()
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  assert.deepEqual(handled, [])
  ;[time, places, isTurn] = [time + 1000, 2, true]
  await until('it looks again by itself', () => handled.length > 0)
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  assert.deepEqual(handled, ['a', 'b'])
  channel.stop()
  const probed = channel.probe()
  await until('it tries', () => handled.length > 2)
  held.resolve(undefined)
  await probed
  assert.equal(handled[2], 'c')
})

test('renewed in the middle of a read it reads again, though the chart takes no news until the read is over', async (t) => {
  const first = Promise.withResolvers<OutboxRecord[]>()
  const reads = [first.promise, Promise.resolve([laneRow('a', 0)])]
  const handled: string[] = []
  let isClaiming = false
  const channel = new Channel('c', {
    store: { outbox: { pending: () => reads.shift() ?? Promise.resolve([]) } },
    attempts: {
      handle({ accountId }) {
        handled.push(accountId ?? '')
        return Promise.resolve({ until: null, attempt: null, failure: null })
      },
    },
    log: silentLogger,
    now: () => 1000,
    random: () => 0.5,
    config: readConfig({}),
    notify: ({ type }) => {
      if (type !== 'room' || isClaiming) return
      isClaiming = true
      void channel.claim().finally(() => (isClaiming = false))
    },
  })
  t.after(() => channel.stop())
  channel.start()
  await channel.renew(() => false)
  first.resolve([])
  await until('what waits is sent', () => handled.length > 0, { withinMs: 5000 })
})
