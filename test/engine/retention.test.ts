/** What goes by itself, now and then. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { startRetention } from '../../engine/maintenance.ts'
import type { Store } from '../../engine/store/port.ts'
import { outboxRecord, webhookRecord } from '../store/contract/records.ts'
import { accountRecord, epochStart, userRecord } from '../support/records.ts'
import { openTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'

test('accounts without a user and callbacks of webhooks that are gone go; what is young or owned stays', async (t) => {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const [user, gone] = [userRecord('d'.repeat(24)), userRecord('d'.repeat(24))]
  const accounts = [
    accountRecord(user, { createdAt: epochStart }),
    accountRecord(gone, { createdAt: epochStart }),
    accountRecord(gone, { createdAt: Date.now() }),
  ]
  for (const one of [user, gone]) await store.users.create(one)
  for (const account of accounts) await store.accounts.create(account)
  const webhook = webhookRecord('d'.repeat(24))
  await store.outbox.enqueue([outboxRecord(webhook)])
  // as a creation that was cut short leaves it
  const without: Store = {
    ...store,
    users: {
      ...store.users,
      several: async (ids) => (await store.users.several(ids)).filter(({ id }) => id !== gone.id),
    },
  }
  t.mock.timers.enable({ apis: ['setInterval'] })
  const stop = startRetention({ store: without, config: readConfig({}), log: silentLogger })
  t.after(stop)
  t.mock.timers.tick(10 * 60_000)
  await until('the orphan is gone', async () => (await store.accounts.page(null, 10)).length === 2)
  const [owned, , young] = accounts
  const left = (await store.accounts.page(null, 10)).map(({ id }) => id)
  assert.deepEqual(left, [owned?.id, young?.id].sort())
  assert.deepEqual(await store.outbox.channels(), [])
})

test('stopping waits for the step under way, and none begins after it', async (t) => {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const steps: string[] = []
  const step = Promise.withResolvers<number>()
  const noted = (name: string, answer: Promise<number>) => () => {
    steps.push(name)
    return answer
  }
  const slow: Store = {
    ...store,
    changes: { ...store.changes, expire: noted('changes', step.promise) },
    outbox: { ...store.outbox, expire: noted('deliveries', Promise.resolve(0)) },
    tidy: noted('tidy', Promise.resolve(0)),
  }
  t.mock.timers.enable({ apis: ['setInterval'] })
  const stop = startRetention({ store: slow, config: readConfig({}), log: silentLogger })
  t.mock.timers.tick(10 * 60_000)
  await until('a sweep is under way', () => steps.length === 1)
  let stopped = false
  const stopping = Promise.resolve(stop()).then(() => (stopped = true))
  await new Promise(setImmediate)
  assert.equal(stopped, false)
  step.resolve(1000)
  await stopping
  await new Promise(setImmediate)
  t.mock.timers.tick(10 * 60_000)
  assert.deepEqual(steps, ['changes'])
})
