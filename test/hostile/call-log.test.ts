/** Calls that are made to fill the store by their log: long paths, too many, and those that are refused. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openStage } from '../e2e/stage.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { until } from '../support/until.ts'
import { basicOf, say } from './stranger.ts'

const authorization = basicOf(apiKey, apiSecret)

suite('the call log', () => {
  test('keeps 2 kB of a path, no call that was refused for its number, and so many a day', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage({ env: { MAILROOM_CALL_LOG_PER_DAY: '20' } })
    parts.defer(() => stage.remove())
    const { service } = stage
    const call = async (path: string): Promise<number> =>
      (await say(service.url + path, { headers: { authorization } })).status
    assert.equal(await call(`/lite/users/${'x'.repeat(30_000)}`), 404)
    const kept = () => service.list('/app/logs/calls?limit=100')
    await until('it is logged', async () => (await kept()).some(({ status_code }) => status_code === 404))
    const long = (await kept()).find(({ status_code }) => status_code === 404)
    assert.equal(String(long?.['request_path']).length, 2048)
    assert.match(String(long?.['request_path']), /^\/lite\/users\/x+$/)
    for (let n = 0; n < 25; n += 1) await call('/lite/users')
    await until('the bound of the day is reached', async () => (await kept()).length === 20)
    assert.match(service.log(), /no more calls of this developer are logged today/)

    for (let n = 0; n < 5; n += 1) await call('/lite/users')
    await service.stop()
    await service.start({ MAILROOM_RATE_CALLS_PER_HOUR: '10' })
    assert.equal((await kept()).length, 20, 'later calls are not kept')
    for (let n = 0; n < 14; n += 1) await call('/lite/users?refused=1')
    const { body } = await say(`${service.url}/metrics`)
    assert.match(body, /mailroom_api_calls_total\{method="GET",route="\/lite\/users",status="429"\} 5/)
    await service.stop()
    await service.start({ MAILROOM_RATE_CALLS_PER_HOUR: '0' })
    assert.deepEqual(await service.list('/app/logs/calls?status_code_from=429'), [])
  })
})
