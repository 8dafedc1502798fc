/** Two services on one database: one works, the other stands by and takes over. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { createProxy } from '../store/mongo-proxy.ts'
import { needs } from '../support/require.ts'
import { startService, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { standstill, until } from '../support/until.ts'

suite('two services on one database', needs('mongodb'), () => {
  const name = `mailroom_e2e_${randomBytes(4).toString('hex')}`
  const env = { MAILROOM_SECRET: 'ab'.repeat(32) }
  let mongoUri = ''
  const services: Service[] = []

  before(() => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', name)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await dropDatabase(mongoUri)
  })

  async function start(onLog?: (text: string) => void): Promise<Service> {
    const service = await startService({ mongoUri, env, ...(onLog && { onLog }) })
    services.push(service)
    return service
  }

  for (const [when, read] of [
    ['before it takes calls', 'operators'],
    ['when it takes calls', 'settings'],
  ] as const)
    test(`one that cannot start, ${when}, gives its place back`, async (t) => {
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
      const client = await MongoClient.connect(mongoUri)
      t.after(() => client.close())
      const meta = client.db().collection<{ _id: string; owner: string }>('meta')
      await until('it is given back', async () => (await meta.findOne({ _id: 'lead' }))?.owner === '')
    })

  test('the second serves when the first has ended, whichever way, and one that lost its place ends at once', async (t) => {
    const first = await start()
    let served = false
    let heard = ''
    const second = start((text) => (heard += text)).then((service) => {
      served = true
      return service
    })
    const client = await MongoClient.connect(mongoUri)
    t.after(() => client.close())
    const meta = client
      .db()
      .collection<{ _id: string; owner: string; place: string; pid: number; beat: number }>('meta')
    const holder = () => meta.findOne({ _id: 'lead' })
    await until('the first shows that it lives', async () => ((await holder())?.beat ?? 0) >= 2)
    await until('the second stands by', () => heard.includes('another process serves this database'))
    assert.equal(served, false)
    const url = /"url":"([^"]+)","msg":"listening"/.exec(heard)?.[1] ?? heard
    assert.match(await (await fetch(`${url}/metrics`)).text(), /^mailroom_ready 0$/m)
    await first.ok('GET', '/lite/users')
    await first.kill9()
    const next = await second
    assert.equal((await holder())?.pid, next.pid)
    await next.ok('GET', '/lite/users')
    // a call that is not through: nobody waits for it
    const { hostname, port } = new URL(next.url)
    const call = connect(Number(port), hostname)
    call.write('POST /lite/users HTTP/1.1\r\nHost: mailroom\r\nContent-Length: 9\r\n\r\n')
    const cut = new Promise<number>((resolve) => call.on('close', () => resolve(Date.now())))
    call.on('error', () => undefined)
    await next.ok('GET', '/lite/users')
    const still = standstill()
    t.after(still.stop)
    // what an other one does that has not heard of it for long enough
    await meta.updateOne({ _id: 'lead' }, { $set: { owner: 'other', place: 'elsewhere', beat: 0 } })
    await until('it has ended', () => {
      try {
        process.kill(next.pid, 0)
        return false
      } catch {
        return true
      }
    })
    const line = next
      .log()
      .split('\n')
      .find((one) => one.includes('another process has taken the database over'))
    assert(line !== undefined, next.log())
    const { time } = JSON.parse(line) as { time: string }
    const most = Date.parse(time) + 1900 + still.lost()
    assert(Date.now() < most && (await cut) < most, `it ended at ${Date.now()}, and not before ${most}`)
  })
})
