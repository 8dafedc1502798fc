/** A process on MongoDB that cannot start, or that others have taken for dead. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { slotCount } from '../../engine/store/slots.ts'
import { createProxy } from '../store/mongo-proxy.ts'
import { needs } from '../support/require.ts'
import { startService, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { standstill, until } from '../support/until.ts'

suite('a process on a database', needs('mongodb'), () => {
  const name = `mailroom_e2e_${randomBytes(4).toString('hex')}`
  const env = { MAILROOM_SECRET: 'ab'.repeat(32) }
  let mongoUri = ''
  let client: MongoClient
  const services: Service[] = []

  before(async () => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', name)
    client = await MongoClient.connect(mongoUri)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await client.close()
    await dropDatabase(mongoUri)
  })
  const nodes = () => client.db().collection<{ _id: string; pid: number }>('nodes')

  for (const [when, read] of [
    ['before it takes calls', 'operators'],
    ['when it takes calls', 'settings'],
  ] as const)
    test(`that cannot start, ${when}, is no node any more`, async (t) => {
      const proxy = await createProxy(mongoUri)
      t.after(() => proxy.close())
      proxy.decide = (command) => (command['find'] === read ? 'hang' : 'pass')
      let log = ''
      const starting = startService({
        mongoUri: proxy.uri,
        env: { ...env, MAILROOM_STORE_TIMEOUT: '6s' },
        onLog: (text) => (log += text),
      })
      await assert.rejects(starting, /the service ended/)
      assert.match(log, /mailroom: the database cannot be reached or is too slow/)
      assert.equal(await nodes().countDocuments({ pid: { $exists: true } }), 0)
    })

  test('of the role engine owns slots and is well, and takes no calls of clients', async () => {
    const service = await startService({ mongoUri, env: { ...env, MAILROOM_ROLE: 'engine' } })
    services.push(service)
    for (const path of ['/healthz', '/readyz', '/metrics'])
      assert.equal((await fetch(service.url + path)).status, 200, path)
    const me = await nodes().findOne({ pid: service.pid })
    const owned = client.db().collection('slots').countDocuments({ owner: me?._id })
    assert.equal(await owned, slotCount)
    for (const path of ['/lite/users', '/2.0/accounts', '/app/status_callback_url', '/lite/webhooks'])
      assert.equal((await service.api('GET', path)).status, 404, path)
    const made = await service.api('POST', '/lite/users', { first_name: 'Ada' })
    assert.equal(made.status, 404)
    assert.equal(await client.db().collection('users').countDocuments({}), 0)
    await service.stop()
  })

  test('that others have taken for dead ends at once', async (t) => {
    const service = await startService({ mongoUri, env })
    services.push(service)
    // a call that is not through: nobody waits for it
    const { hostname, port } = new URL(service.url)
    const call = connect(Number(port), hostname)
    call.write('POST /lite/users HTTP/1.1\r\nHost: mailroom\r\nContent-Length: 9\r\n\r\n')
    const cut = new Promise<number>((resolve) => call.on('close', () => resolve(Date.now())))
    call.on('error', () => undefined)
    await service.ok('GET', '/lite/users')
    const still = standstill()
    t.after(still.stop)
    await nodes().deleteMany({ pid: service.pid })
    await until('it has ended', () => {
      try {
        process.kill(service.pid, 0)
        return false
      } catch {
        return true
      }
    })
    const lines = service.log().split('\n')
    const line = lines.find((one) => one.includes('other processes have taken over the work of this one'))
    assert(line !== undefined, service.log())
    const { time } = JSON.parse(line) as { time: string }
    const most = Date.parse(time) + 1900 + still.lost()
    assert(Date.now() < most && (await cut) < most, `it ended at ${Date.now()}, and not before ${most}`)
  })
})
