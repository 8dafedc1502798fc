/** What processes on one database do once for all: the first key, and the redelivery of all callbacks. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { createOperators } from '../../engine/operators.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { newId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import { outboxRecord } from '../store/contract/records.ts'
import { needs } from '../support/require.ts'
import { startService, type Json, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { until } from '../support/until.ts'

const [former, next] = ['the former secret of all processes', 'the next secret of all processes']

suite('processes on one database, once for all', { timeout: 240_000, ...needs('mongodb') }, () => {
  const services: Service[] = []
  let mongoUri = ''

  before(() => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_nodes_${randomBytes(4).toString('hex')}`)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await dropDatabase(mongoUri)
  })
  const logs = () => services.map((one) => one.log()).join('\n')
  const owning = () => until('all own slots', () => services.every(({ log }) => log().includes('slots claimed')))

  test('a first start of three makes one key and one password', async () => {
    const env = { MAILROOM_SECRET: former, MAILROOM_API_KEY: '', MAILROOM_API_SECRET: '' }
    services.push(...(await Promise.all([1, 2, 3].map(() => startService({ mongoUri, env })))))
    const shown = [...logs().matchAll(/"apiKey":"([0-9a-f]+)","shownOnce":"([^"]+)"/g)]
    assert.equal(shown.length, 1, logs())
    const authorization = `Basic ${Buffer.from(`${shown[0]?.[1]}:${shown[0]?.[2]}`).toString('base64')}`
    for (const { url } of services)
      assert.equal((await fetch(`${url}/lite/users`, { headers: { authorization } })).status, 200)
    assert.equal([...logs().matchAll(/password of the console/g)].length, 1)
  })

  test('the secret is replaced in one process after the other, which reach each other meanwhile', async () => {
    const env = { MAILROOM_API_KEY: 'key', MAILROOM_API_SECRET: 'key-secret-0123456789' }
    const [replaced] = services
    for (const service of services) await service.stop()
    for (const service of services) await service.start({ ...env, MAILROOM_SECRET: former, MAILROOM_SECRET_OLD: next })
    await replaced?.stop()
    await replaced?.start({ ...env, MAILROOM_SECRET: next, MAILROOM_SECRET_OLD: former })
    await until('all are read by all', async () => {
      const ids: string[] = []
      for (const { url } of services) ids.push(String(((await call(url, 'POST', '/lite/users')).body as Json)['id']))
      for (const { url } of services)
        for (const id of ids) assert.equal((await call(url, 'GET', `/lite/users/${id}`)).status, 200)
      return true
    })
    assert.ok(!logs().includes('"level":50'), logs())
  })

  async function call(url: string, method: string, path: string, token?: string, body?: Json) {
    const basic = Buffer.from('key:key-secret-0123456789').toString('base64')
    const headers = {
      authorization: token === undefined ? `Basic ${basic}` : `Bearer ${token}`,
      'content-type': 'application/json',
    }
    const answer = await fetch(url + path, {
      method,
      headers,
      ...(method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) }),
    })
    return { status: answer.status, body: await answer.json() }
  }

  test('failed callbacks of all are sent again by a wish at any, and all know how far it is', async (t) => {
    await owning()
    const store: Store = await createMongoStore({ uri: mongoUri, pool: 5, timeoutMs: 10_000, log: silentLogger })
    t.after(() => store.close())
    const { token } = await createOperators({ store, config: readConfig({}) }).createToken('test', ['read', 'act'])
    const rows: string[] = []
    for (const { url } of services) {
      const { id } = (await call(url, 'POST', '/lite/users')).body as Json
      const hook = { callback_url: 'http://127.0.0.1:9/' }
      const made = (await call(url, 'POST', `/lite/users/${String(id)}/webhooks`, undefined, hook)).body as Json
      const webhook = await store.webhooks.get(String(made['webhook_id']))
      assert(webhook !== null, JSON.stringify(made))
      const { userId } = webhook
      const ended = {
        userId,
        state: 'failed',
        finishedAt: Date.now(),
        createdAt: Date.now(),
        dueAt: Date.now(),
      } as const
      const own = [1, 2].map(() => outboxRecord(webhook, { ...ended, accountId: newId(), messageId: newId() }))
      await store.outbox.enqueue(own)
      rows.push(...own.map((row) => row.id))
    }
    const [first, ...others] = services.map(({ url }) => url)
    const wish = (await call(first ?? '', 'POST', '/admin/deliveries/redeliver', token, {})).body as Json
    assert.deepEqual([wish['total'], wish['queued']], [rows.length, rows.length], JSON.stringify(wish))
    for (const url of others) {
      const { resending } = (await call(url, 'GET', '/admin/deliveries?limit=1', token)).body as { resending: Json }
      assert.deepEqual([resending['started'], resending['total']], [wish['started'], rows.length])
    }
    // Their accounts are gone, so that each owner leaves them out.
    await until('each owner has taken its own up', async () => {
      const states = await Promise.all(rows.map(async (id) => (await store.outbox.get(id))?.state))
      return states.every((state) => state !== 'pending' && state !== 'failed')
    })
  })
})
