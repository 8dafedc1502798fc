/** Webhooks and callbacks for operators, on the real app with a real receiver. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { until } from '../../support/until.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

describe('webhooks for operators', () => {
  let rig: AdminRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  let good = ''
  let bad = ''

  before(async () => {
    rig = await startAdminRig({
      env: { MAILROOM_WRONG_KEYS: '0', MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,20ms,1h' },
    })
    receiver = await startReceiver()
    receiver.behave(({ path }) => (path === '/bad' ? 503 : 200))
    box = await rig.mailbox('walt')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    const hook = async (path: string, subject: string): Promise<string> => {
      const body = { callback_url: receiver.url + path, filter_subject: subject }
      return String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    }
    good = await hook('/good', 'hello')
    bad = await hook('/bad', 'lost')
    await box.deliver({ subject: 'hello' })
    await box.deliver({ subject: 'lost' })
    await until('one fails', () => rig.engine.webhooks.view(bad)?.tags.includes('failed'))
    const delivered = () =>
      rig.engine.store.outbox.list({ webhookId: good, states: ['delivered'] }, { limit: 9, offset: 0 })
    await until('one is delivered', async () => (await delivered()).length === 1)
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const ids = async (query: string): Promise<unknown[]> => {
    const { webhooks } = await rig.good('read', 'GET', `/admin/webhooks?${query}`)
    return (webhooks as Json[]).map(({ id }) => id)
  }
  const deliveries = async (id: string, query = ''): Promise<Json[]> => {
    const answer = await rig.as(rig.tokens.read, 'GET', `/admin/webhooks/${id}/deliveries?${query}`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json as unknown as Json[]
  }

  test('the list filters by state, by failing and by developer', async () => {
    const developerId = (await rig.engine.store.webhooks.get(good))?.developerId ?? ''
    assert.deepEqual(new Set(await ids(`developer=${developerId}`)), new Set([good, bad]))
    assert.deepEqual(await ids('developer=nobody'), [])
    assert.deepEqual(await ids('failing=1'), [bad])
    assert.deepEqual(await ids('failing=0'), [good])
    assert.deepEqual(await ids('state=idle'), [good])
    assert.equal((await ids('limit=1')).length, 1)
    assert.equal((await rig.good('read', 'GET', '/admin/webhooks?limit=1'))['total'], 2)
  })

  test('one webhook: how its receiver is, and what waits', async () => {
    const json = await rig.good('read', 'GET', `/admin/webhooks/${bad}`)
    assert.equal(json['callback_url'], `${receiver.url}/bad`)
    assert.ok(Number(json['failures']) >= 3)
    assert.deepEqual([json['pending'], json['active']], [1, true])
    assert.match(String(json['message']), /503/)
    assert.ok((json['active_states'] as string[]).includes('running.health.failed'))
    assert.ok((json['steps'] as Json[]).some(({ event }) => String(event).startsWith('delivery.failed')))
  })

  test('the overview names the failing webhook and counts what waits', async () => {
    const overview = await rig.good('read', 'GET', '/admin/overview')
    const webhooks = overview['webhooks'] as Json
    assert.deepEqual([webhooks['total'], webhooks['pending']], [2, 1])
    const [first] = overview['attention'] as Json[]
    assert.deepEqual([first?.['kind'], first?.['id']], ['webhook', bad])
    assert.match(String(first?.['what']), /\/bad fails: .*503/)
  })

  test('callbacks of a webhook, by state', async () => {
    const [row] = await deliveries(good)
    assert.deepEqual([row?.['state'], row?.['kind'], row?.['webhook_id']], ['delivered', 'message', good])
    assert.deepEqual(await deliveries(good, 'state=pending'), [])
    assert.equal((await deliveries(bad, 'state=pending')).length, 1)
    const wrong = await rig.as(rig.tokens.read, 'GET', `/admin/webhooks/${good}/deliveries?state=lost`)
    assert.equal(wrong.status, 400)
    assert.match(String(wrong.json['value']), /^state: /)
  })

  test('one callback: its attempts and why it matched; and it is sent again', async () => {
    const [row] = await deliveries(good)
    const id = String(row?.['delivery_id'])
    const json = await rig.good('read', 'GET', `/admin/deliveries/${id}`)
    assert.deepEqual([json['state'], json['email_account']], ['delivered', box.accountId])
    assert.equal((json['attempts'] as Json[])[0]?.['status_code'], 200)
    const subject = (json['why'] as Json[]).find(({ filter }) => filter === 'filter_subject')
    assert.equal(subject?.['matched'], true)
    const before = receiver.all.filter(({ path }) => path === '/good').length
    assert.deepEqual(await rig.good('act', 'POST', `/admin/deliveries/${id}/redeliver`), {
      success: true,
      redelivered: 1,
    })
    await until('sent again', () => receiver.all.filter(({ path }) => path === '/good').length > before)
  })

  test('routes are for operators of their scope', async () => {
    const [row] = await deliveries(good)
    const delivery = `/admin/deliveries/${String(row?.['delivery_id'])}`
    const paths = ['/admin/webhooks', `/admin/webhooks/${good}`, `/admin/webhooks/${good}/deliveries`, delivery]
    for (const path of paths) await refusesOthers(rig, 'GET', path, 'read')
    await refusesOthers(rig, 'POST', `${delivery}/redeliver`, 'act')
  })

  test('an unknown id is a 404', async () => {
    for (const path of ['/admin/webhooks/nobody', '/admin/webhooks/nobody/deliveries', '/admin/deliveries/nobody']) {
      const answer = await rig.as(rig.tokens.read, 'GET', path)
      assert.equal(answer.status, 404, path)
      assert.match(String(answer.json['value']), /^(webhook|delivery) nobody is invalid$/)
    }
    assert.equal((await rig.as(rig.tokens.act, 'POST', '/admin/deliveries/nobody/redeliver')).status, 404)
  })
})
