/** A new MAILROOM_SECRET on the real service, killed while it seals everything anew. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createOperators } from '../../engine/operators.ts'
import { readConfig } from '../../engine/config.ts'
import { startService, type Service } from '../support/service.ts'
import { addAccounts, storeOf } from '../support/stopped-service.ts'
import { chosenStore } from '../support/store-choice.ts'

const [former, next] = ['the former secret of the service', 'the next secret of the service']
const choice = chosenStore()
/** As many as take longer than the time to the kill. */
const accounts = choice.kind === 'mongodb' ? 500 : 1500

suite('a new secret', () => {
  let service: Service
  let token = ''
  before(async () => {
    service = await startService({ env: { ...choice.env, MAILROOM_SECRET: former } })
    await service.stop()
    await using store = await storeOf(service, choice)
    await addAccounts(store, former, accounts)
    const operators = createOperators({ store, config: readConfig({}) })
    token = (await operators.createToken('test', ['keys'])).token
  })
  after(async () => {
    await service.remove()
    await choice.remove()
  })

  interface Answer {
    readonly resealed: number
    readonly done: boolean
    readonly keys: Readonly<Record<string, number>>
  }

  async function reseal(): Promise<Answer> {
    const headers = { Authorization: `Bearer ${token}` }
    const answer = await fetch(`${service.url}/admin/reseal`, { method: 'POST', headers })
    assert.equal(answer.status, 200, await answer.clone().text())
    return (await answer.json()) as Answer
  }

  test('without the former one the service does not start, and says why', async () => {
    await assert.rejects(
      service.start({ MAILROOM_SECRET: next }),
      /MAILROOM_SECRET: not the one this store was sealed with/,
    )
  })

  test('killed in the middle, it goes on where it was; then the former key may go', async () => {
    const both = { MAILROOM_SECRET: next, MAILROOM_SECRET_OLD: former }
    await service.start(both)
    const first = reseal().catch(() => null)
    await pause(150)
    await service.kill9()
    assert.equal(await first, null, 'it was done before it was killed: make it longer')
    await service.start(both)
    let answer = await reseal()
    const left = answer.resealed
    while (!answer.done) answer = await reseal()
    assert(left > 0 && left <= accounts + 1)
    assert.deepEqual(Object.values(answer.keys), [accounts + 1])
    await service.stop()
    await service.start({ MAILROOM_SECRET: next })
    assert.equal((await service.list('/lite/users?limit=1')).length, 1)
    assert.equal((await reseal()).done, true)
  })

  test('the key is lost: the service starts when it is told so, and the first developer calls it as before', async () => {
    await service.stop()
    const third = { MAILROOM_SECRET: 'the third secret of the service' }
    await assert.rejects(service.start(third), /MAILROOM_SECRET: not the one this store was sealed with/)
    await service.start({ ...third, MAILROOM_SECRET_LOST: '1' })
    assert.equal((await service.list('/lite/users?limit=1')).length, 1)
    await service.stop()
    await assert.rejects(service.start(third), new RegExp(`${accounts} sealed with the key`))
  })
})
