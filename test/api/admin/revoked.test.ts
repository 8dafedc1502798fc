/** What is open in the name of a key, a token or a session ends with it; callbacks of a revoked key wait. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { callRaw } from '../core/raw-call.ts'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { openEventStream, type EventStream } from '../../support/event-stream.ts'
import { until } from '../../support/until.ts'
import { basic, type TestMailbox } from '../lite/rig.ts'
import { startAdminRig, type AdminRig } from './rig.ts'

const password = 'a password of an operator'
/** Sooner than any heartbeat, and than the next look of a console's page. */
const atOnce = { withinMs: 700 }

describe('a revocation', () => {
  let rig: AdminRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  let developerId = ''

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_WRONG_KEYS: '0', MAILROOM_ADMIN_PASSWORD: password } })
    receiver = await startReceiver()
    box = await rig.mailbox('rita')
    developerId = (await rig.engine.store.accounts.get(box.accountId))?.developerId ?? ''
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const tail = (token: string): Promise<EventStream> =>
    openEventStream(`${rig.url}/admin/accounts/${box.accountId}/events`, { authorization: `Bearer ${token}` })
  const revokeKey = (words: 'revoke' | 'restore') =>
    rig.good('keys', 'POST', `/admin/developers/${developerId}/${words}`)

  test('of an admin token ends its event streams at once, and no others', async () => {
    const { record, token } = await rig.engine.operators.createToken('tail', ['read'])
    const [own, other] = [await tail(token), await tail(rig.tokens.read)]
    assert.deepEqual([own.status, own.ended], [200, false])
    await rig.good('keys', 'DELETE', `/admin/tokens/${record.id}`)
    await until('its stream has ended', () => own.ended, atOnce)
    assert.equal(other.ended, false)
    other.close()
  })

  test('of a token by itself is answered', async () => {
    const { record, token } = await rig.engine.operators.createToken('self', ['keys'])
    assert.equal((await rig.as(token, 'DELETE', `/admin/tokens/${record.id}`)).status, 200)
    assert.equal((await rig.as(token, 'DELETE', `/admin/tokens/${record.id}`)).status, 401)
  })

  test('of a developer ends the streams of its users at once', async () => {
    const { secret, developer } = await rig.engine.developers.create('another')
    const key = `Basic ${Buffer.from(`${developer.apiKey}:${secret}`).toString('base64')}`
    const changes = `${rig.url}/lite/users/${box.userId}/changes?since=now`
    const stranger = await openEventStream(changes, { authorization: key })
    assert.equal(stranger.status, 404)
    const own = await openEventStream(changes, { authorization: basic })
    assert.deepEqual([own.status, own.ended], [200, false])
    await rig.engine.developers.setRevoked(developer.id, true)
    assert.equal(own.ended, false)
    await revokeKey('revoke')
    await until('its stream has ended', () => own.ended, atOnce)
    await revokeKey('restore')
    const again = await openEventStream(changes, { authorization: basic })
    assert.equal(again.status, 200)
    again.close()
  })

  test('logout ends what a console’s page listens to', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const entered = await callRaw(rig.port, 'POST', '/console/login', { headers: form, body: `password=${password}` })
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const stream = await openEventStream(`${rig.url}/console/events?page=/console/tokens`, { cookie })
    await until('the page is sent', () => stream.text.includes('data: ') || stream.text.includes('retry'))
    assert.deepEqual([stream.status, stream.ended], [200, false])
    await rig.engine.operators.logout(/=(.*)/.exec(cookie)?.[1] ?? '')
    await until('its stream has ended', () => stream.ended, atOnce)
  })

  test('a console’s page is told nothing more when the time of its session is over', async (t) => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const entered = await callRaw(rig.port, 'POST', '/console/login', { headers: form, body: `password=${password}` })
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const stream = await openEventStream(`${rig.url}/console/events?page=/console/tokens`, { cookie })
    await until('the page is sent', () => stream.text.includes('retry'))
    assert.deepEqual([stream.status, stream.ended], [200, false])
    for (const { operators } of rig.engines) t.mock.method(operators, 'session', () => null)
    await until('its stream has ended', () => stream.ended, { withinMs: 5000 })
  })

  test('callbacks of a revoked key wait, untried, and go out when it is in force again', async () => {
    const callback_url = `${receiver.url}/held`
    const { webhook_id } = await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, { callback_url })
    const sent = () => receiver.all.length
    const rows = (states: ['pending'] | ['delivered']) =>
      rig.engine.store.outbox.list({ webhookId: String(webhook_id), states }, { limit: 9, offset: 0 })
    await box.deliver({ subject: 'before' })
    await until('delivered', async () => (await rows(['delivered'])).length === 1)
    await revokeKey('revoke')
    await box.deliver({ subject: 'first' })
    await box.deliver({ subject: 'second' })
    await until('both wait', async () => (await rows(['pending'])).length === 2)
    await until('idle', () => rig.engine.webhooks.view(String(webhook_id))?.state === 'idle')
    assert.equal(sent(), 1)
    for (const { attempts, attemptCount } of await rows(['pending']))
      assert.deepEqual([attempts.length, attemptCount], [0, 0])
    await revokeKey('restore')
    await until('both are delivered', async () => (await rows(['delivered'])).length === 3)
    assert.equal(sent(), 3)
  })
})
