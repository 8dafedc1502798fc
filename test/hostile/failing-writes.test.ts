/** A disk that is full, and a database that takes no writes: /readyz says so while it lasts, and not longer. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { createProxy, isWrite, type Proxy } from '../store/mongo-proxy.ts'
import { noPrlimit } from '../support/no-files.ts'
import { needs } from '../support/require.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { startService, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'

/** What anybody sees of it; a write is one that needs no mail server. */
async function assertWrites(service: Service, works: boolean): Promise<void> {
  const explain = (): string => service.log().slice(-2000)
  const ready = async (): Promise<boolean> => (await service.api('GET', '/readyz')).status === (works ? 200 : 503)
  await until(`/readyz to say ${works ? 'ready' : 'not ready'}`, ready, { withinMs: 30_000, explain })
  const { status } = await service.api('POST', '/lite/users', { email: 'jane@mail.example' })
  assert.equal(status, works ? 200 : 503)
  assert.equal(await ready(), true, 'and it stays so')
  assert.equal((await service.api('GET', '/healthz')).status, 200)
}

suite('a full disk', { skip: noPrlimit() }, () => {
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service.remove())

  /** No file of the service can grow beyond this from now on. */
  const limit = (bytes: number | 'unlimited'): void =>
    void execFileSync('prlimit', ['--pid', String(service.pid), `--fsize=${bytes}:`])

  test('is noticed without a write of anybody, and so is its end', async () => {
    await assertWrites(service, true)
    limit(0)
    await assertWrites(service, false)
    assert.equal((await service.api('GET', '/lite/users')).status, 200, 'what needs no write goes on')
    limit('unlimited')
    await assertWrites(service, true)
  })

  test('is noticed by the write that fails, again and again', async () => {
    for (let round = 0; round < 2; round += 1) {
      limit(4096)
      const { status, headers } = await service.api('POST', '/lite/users', { email: 'jane@mail.example' })
      assert.equal(status, 503)
      assert(headers.has('retry-after'))
      assert.equal((await service.api('GET', '/readyz')).status, 503, 'at once')
      limit('unlimited')
      await assertWrites(service, true)
    }
  })
})

suite('a database that answers, and takes no writes', needs('mongodb'), () => {
  const uri = databaseOn(process.env['MONGODB_URI'] ?? 'mongodb://127.0.0.1', `mailroom_writes_${process.pid}`)
  let proxy: Proxy
  let service: Service
  before(async () => {
    proxy = await createProxy(uri)
    service = await startService({ mongoUri: proxy.uri, env: { MAILROOM_STORE_TIMEOUT: '4s' } })
  })
  after(async () => {
    await service.remove()
    await proxy.close()
    await dropDatabase(uri)
  })

  test('is not ready, and ready again when it does', async () => {
    await assertWrites(service, true)
    proxy.decide = (command) => (isWrite(command) ? 'hang' : 'pass')
    assert.equal((await service.api('GET', '/lite/users')).status, 200)
    await assertWrites(service, false)
    proxy.decide = () => 'pass'
    await assertWrites(service, true)
  })

  test('away altogether it is not ready either', async () => {
    proxy.die()
    await assertWrites(service, false)
    proxy.revive()
    await assertWrites(service, true)
  })
})
