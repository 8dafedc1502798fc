/** Webhooks and callbacks for operators, on the real app with a real receiver. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { until } from '../../support/until.ts'
import { callRaw } from '../core/raw-call.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

const password = 'a password of an operator'

describe('webhooks for operators', () => {
  let rig: AdminRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  let good = ''
  let bad = ''

  before(async () => {
    rig = await startAdminRig({
      env: {
        MAILROOM_WRONG_KEYS: '0',
        MAILROOM_ADMIN_PASSWORD: password,
        MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,20ms,1h',
      },
    })
    receiver = await startReceiver()
    const answers: Readonly<Record<string, number>> = { '/good': 200, '/odd': 500, '/gone': 410 }
    receiver.behave(({ path }) => answers[path] ?? 503)
    box = await rig.mailbox('walt')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    const hook = async (path: string, subject: string): Promise<string> => {
      const body = { callback_url: receiver.url + path, filter_subject: subject }
      return String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    }
    good = await hook('/good', 'hello')
    bad = await hook('/bad', 'lost')
    await box.deliver({ subject: 'hello', text: 'a private word' })
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
    const { deliveries: rows } = await rig.good('read', 'GET', `/admin/deliveries?webhook=${id}&${query}`)
    return rows as Json[]
  }

  test('the list filters by state, by failing and by developer', async () => {
    const developerId = (await rig.engine.store.webhooks.get(good))?.developerId ?? ''
    assert.deepEqual(new Set(await ids(`developer=${developerId}`)), new Set([good, bad]))
    assert.deepEqual(await ids('developer=nobody'), [])
    assert.deepEqual(await ids('failing=1'), [bad])
    assert.deepEqual(await ids('failing=0'), [good])
    await until('idle', async () => (await ids('state=idle')).join() === good)
    assert.equal((await ids('limit=1')).length, 1)
    assert.equal((await rig.good('read', 'GET', '/admin/webhooks?limit=1'))['total'], 2)
  })

  test('the list says of each what waits, since when, and how long deliveries take', async () => {
    const { webhooks } = await rig.good('read', 'GET', '/admin/webhooks')
    const of = (id: string) => (webhooks as Json[]).find((row) => row['id'] === id)
    assert.deepEqual([of(good)?.['pending'], of(good)?.['oldest'], of(bad)?.['pending']], [0, null, 1])
    assert.ok(Number(of(bad)?.['oldest']) > Date.now() / 1000 - 60)
    const latency = Number(of(good)?.['latency_ms'])
    assert.ok(latency >= 0 && latency < 10_000, String(latency))
    assert.equal(of(bad)?.['latency_ms'], null)
  })

  test('one webhook: how its receiver is, and what waits', async () => {
    // An attempt may begin between the two calls.
    const [json, waits] = await until('both are read while it waits', async () => {
      const seen = await rig.good('read', 'GET', `/admin/webhooks/${bad}`)
      const [row] = await deliveries(bad, 'state=pending')
      const [next, behind] = [seen['next'] as Json, row?.['waits'] as Json]
      return behind['until'] !== null && behind['until'] === next['at'] && ([seen, behind] as const)
    })
    assert.equal(json['callback_url'], `${receiver.url}/bad`)
    assert.ok(Number(json['failures']) >= 3)
    assert.deepEqual([waits['behind'], waits['callback']], ['receiver', null])
    assert.deepEqual([json['pending'], json['active']], [1, true])
    assert.match(String(json['message']), /503/)
    assert.ok((json['active_states'] as string[]).includes('running.health.failed'))
    assert.ok((json['steps'] as Json[]).some(({ event }) => String(event).startsWith('delivery.failed')))
  })

  test('of a callback that waits for its own next attempt the webhook says when that is', async () => {
    const body = { callback_url: `${receiver.url}/odd`, filter_subject: 'odd' }
    const odd = String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    await box.deliver({ subject: 'odd' })
    const newest = { limit: 1, offset: 0 }
    const waiting = async () => (await rig.engine.store.outbox.list({ webhookId: odd, states: ['pending'] }, newest))[0]
    await until('it waits for an hour', async () => (await waiting())?.attemptCount === 5)
    const next = { what: 'sends a callback again', at: Math.floor(((await waiting())?.dueAt ?? 0) / 1000) }
    const one = await until('failing', async () => {
      const now = await rig.good('read', 'GET', `/admin/webhooks/${odd}`)
      return now['state'] === 'failing' && now
    })
    assert.deepEqual(one['next'], next)
    const { webhooks } = await rig.good('read', 'GET', '/admin/webhooks')
    assert.deepEqual((webhooks as Json[]).find(({ id }) => id === odd)?.['next'], next)
    await box.deliver({ subject: 'odd again' })
    const [behind, first] = await until('the second waits', async () => {
      const rows = await deliveries(odd, 'state=pending')
      return (rows[0]?.['waits'] as Json | null)?.['behind'] === 'callback' && rows
    })
    assert.deepEqual(first?.['waits'], { behind: 'schedule', callback: null, until: next.at })
    assert.deepEqual(behind?.['waits'], { behind: 'callback', callback: first['delivery_id'], until: next.at })
    assert.deepEqual([first['attempt_count'], behind['attempt_count']], [5, 0])
    const { late } = await rig.good('read', 'GET', `/admin/developers/${String(one['developer_id'])}`)
    assert.deepEqual((late as Json[]).find(({ id }) => id === odd)?.['next'], next)
    const idle = await rig.good('read', 'GET', `/admin/webhooks/${good}`)
    assert.equal(idle['next'], null)
    await rig.ok('DELETE', `/lite/users/${box.userId}/webhooks/${odd}`)
  })

  test('the overview names the failing webhook and counts what waits', async () => {
    const overview = await rig.good('read', 'GET', '/admin/overview')
    const webhooks = overview['webhooks'] as Json
    assert.deepEqual([webhooks['total'], webhooks['pending']], [2, 1])
    const [first] = overview['attention'] as Json[]
    assert.deepEqual([first?.['kind'], first?.['id']], ['webhook', bad])
    assert.match(String(first?.['what']), /\/bad fails: .*503/)
  })

  test('a webhook that was switched off, or that a 410 has ended, needs nobody now', async () => {
    const hook = async (path: string): Promise<string> => {
      const body = { callback_url: receiver.url + path, filter_subject: 'ended' }
      return String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    }
    const [off, gone] = [await hook('/off'), await hook('/gone')]
    const has = (id: string, tag: string) => rig.engine.webhooks.view(id)?.tags.includes(tag) === true
    await box.deliver({ subject: 'ended' })
    await until('both fail', () => [off, gone].every((id) => has(id, 'failed')))
    await rig.ok('POST', `/lite/users/${box.userId}/webhooks/${off}`, { active: 0 })
    const isActive = async (id: string) => (await rig.good('read', 'GET', `/admin/webhooks/${id}`))['active']
    await until('both are inactive', async () => !(await isActive(off)) && !(await isActive(gone)))
    assert.ok([off, gone].every((id) => has(id, 'failed')))
    const { attention } = await rig.good('read', 'GET', '/admin/overview')
    assert.deepEqual(
      (attention as Json[]).map(({ id }) => id),
      [bad],
    )
    assert.deepEqual(await ids('failing=1'), [bad])
    assert.deepEqual(new Set(await ids('failing=0')), new Set([good, off, gone]))
    for (const id of [off, gone]) await rig.ok('DELETE', `/lite/users/${box.userId}/webhooks/${id}`)
  })

  test('callbacks of a webhook, by state', async () => {
    const [row] = await deliveries(good)
    assert.deepEqual([row?.['state'], row?.['kind'], row?.['webhook_id']], ['delivered', 'message', good])
    assert.deepEqual((await rig.good('read', 'GET', `/admin/webhooks/${good}`))['callbacks'], [row])
    assert.deepEqual(await deliveries(good, 'state=pending'), [])
    assert.equal((await deliveries(bad, 'state=pending')).length, 1)
    const wrong = await rig.as(rig.tokens.read, 'GET', '/admin/deliveries?state=lost')
    assert.equal(wrong.status, 400)
    assert.match(String(wrong.json['value']), /^state: /)
  })

  test('one callback: its attempts and why it matched; and it is sent again', async () => {
    const [row] = await deliveries(good)
    const id = String(row?.['delivery_id'])
    const json = await rig.good('read', 'GET', `/admin/deliveries/${id}`)
    assert.deepEqual([json['state'], json['email_account']], ['delivered', box.accountId])
    assert.equal((json['attempts'] as Json[])[0]?.['status_code'], 200)
    const sent = receiver.all.find(({ path }) => path === '/good') ?? assert.fail()
    const { url, headers, body, why_no_body } = json['request'] as Record<string, Json>
    assert.deepEqual([url, why_no_body], [`${receiver.url}/good`, null])
    assert.equal(headers?.['webhook-id'], sent.headers['webhook-id'])
    assert.doesNotMatch(JSON.stringify(json['request']), /v1,[^*]|a private word/)
    const { timestamp, token, signature, ...unsigned } = sent.body
    assert.ok(timestamp && token && signature)
    assert.deepEqual(body, unsigned)
    const subject = (json['why'] as Json[]).find(({ filter }) => filter === 'filter_subject')
    assert.equal(subject?.['matched'], true)
    const before = receiver.all.filter(({ path }) => path === '/good').length
    assert.deepEqual(await rig.good('act', 'POST', `/admin/deliveries/${id}/redeliver`), {
      success: true,
      redelivered: 1,
    })
    await until('sent again', () => receiver.all.filter(({ path }) => path === '/good').length > before)
  })

  test('a developer: its users and accounts, and which of its callbacks are late, to bare URLs too', async () => {
    const { store } = rig.engine
    const { developerId, userId } = (await store.accounts.get(box.accountId)) ?? assert.fail()
    await store.accounts.edit(box.accountId, { statusCallbackUrl: `${receiver.url}/status` })
    const account = (await store.accounts.get(box.accountId)) ?? assert.fail()
    const news = { status: 'DISABLED', message: 'no', version: 1 } as const
    const rows = await rig.engine.webhooks.planStatus(account, news)
    const [row = assert.fail('no row')] = await store.outbox.enqueue(rows)
    rig.engine.webhooks.stored(account.id, [row], [])
    await until('it was tried', async () => ((await store.outbox.get(row.id))?.attempts.length ?? 0) > 0)
    const { webhooks } = await rig.good('read', 'GET', '/admin/overview')
    assert.equal((webhooks as Json)['total'], 2, 'a bare URL is no webhook')
    const json = await rig.good('read', 'GET', `/admin/developers/${developerId}`)
    const late = json['late'] as Json[]
    assert.deepEqual(new Set(late.map(({ id }) => id)), new Set([bad, row.channelId]))
    const bare = late.find(({ id }) => id === row.channelId)
    assert.deepEqual([bare?.['callback_url'], bare?.['pending']], [`${receiver.url}/status`, 1])
    assert.match(String(late.find(({ id }) => id === bad)?.['message']), /503/)
    const [user] = json['page'] as { id: string; accounts: Json[] }[]
    assert.deepEqual([user?.id, user?.accounts.map(({ id }) => id)], [userId, [box.accountId]])
    assert.equal((await rig.as(rig.tokens.read, 'GET', '/admin/developers/nobody')).status, 404)
    const channel = await rig.good('read', 'GET', `/admin/webhooks/${row.channelId}`)
    assert.deepEqual([channel['callback_url'], channel['pending']], [`${receiver.url}/status`, 1])
    const waiting = channel['callbacks'] as Json[]
    assert.deepEqual(
      waiting.map(({ delivery_id, kind }) => [delivery_id, kind]),
      [[row.id, 'status']],
    )
    assert.equal((await rig.as(rig.tokens.read, 'GET', `/admin/webhooks/u${'0'.repeat(24)}`)).status, 404)
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const entered = await callRaw(rig.port, 'POST', '/console/login', { headers: form, body: `password=${password}` })
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    for (const [path, words] of [
      [`/console/developers/${developerId}`, `/console/webhooks/${row.channelId}`],
      [`/console/developers/${developerId}`, `/console/accounts/${box.accountId}`],
      [`/console/webhooks/${row.channelId}`, `/console/deliveries/${row.id}`],
      [`/console/webhooks/${row.channelId}`, '/console/deliveries?developer='],
      [`/console/deliveries/${row.id}`, `/console/webhooks/${row.channelId}`],
      [`/console/deliveries/${row.id}`, `webhook-id: ${row.id}`],
      ['/console/developers', `/console/developers/${developerId}`],
      ['/console/webhooks', `/console/webhooks/${bad}`],
      ['/console/webhooks', `<small>${String((await deliveries(good))[0]?.['owner'])} <code>${good}</code>`],
      ['/console/deliveries', `<a href="/console/webhooks/${good}">${receiver.url}/good</a>`],
      ['/console/deliveries', `<small>${String((await deliveries(good))[0]?.['owner'])} <code>${good}</code>`],
    ] as const) {
      const { status, text } = await callRaw(rig.port, 'GET', path, { headers: { cookie } })
      assert.equal(status, 200, `${path}: ${text}`)
      assert.ok(text.includes(words), `${path} lacks ${words}`)
    }
  })

  test('routes are for operators of their scope', async () => {
    const [row] = await deliveries(good)
    const delivery = `/admin/deliveries/${String(row?.['delivery_id'])}`
    const paths = ['/admin/webhooks', `/admin/webhooks/${good}`, delivery]
    for (const path of paths) await refusesOthers(rig, 'GET', path, 'read')
    await refusesOthers(rig, 'POST', `${delivery}/redeliver`, 'act')
  })

  test('an unknown id is a 404', async () => {
    for (const path of ['/admin/webhooks/nobody', '/admin/deliveries/nobody']) {
      const answer = await rig.as(rig.tokens.read, 'GET', path)
      assert.equal(answer.status, 404, path)
      assert.match(String(answer.json['value']), /^(webhook|delivery) nobody is invalid$/)
    }
    assert.equal((await rig.as(rig.tokens.act, 'POST', '/admin/deliveries/nobody/redeliver')).status, 404)
  })
})

test('of very many webhooks that fail, the overview names the URLs that do for longest, each once', async () => {
  const rig = await startAdminRig({ env: { MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,1h' } })
  const receiver = await startReceiver()
  try {
    receiver.behave(() => 503)
    const box = await rig.mailbox('wilma')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    const hook = async (subject: string, path = subject): Promise<string> => {
      const body = { callback_url: `${receiver.url}/${path}`, filter_subject: subject }
      return String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    }
    const others: string[] = []
    for (let n = 0; n < 50; n += 1) others.push(await hook('later', `later${n}`))
    const longest = [await hook('first'), await hook('first'), await hook('first')]
    const failing = (id: string) => rig.engine.webhooks.view(id)?.tags.includes('failed') === true
    await box.deliver({ subject: 'first' })
    await until('the first fail', () => longest.every(failing))
    const second = Math.floor(Date.now() / 1000)
    await until('a later second', () => Date.now() / 1000 >= second + 1)
    await box.deliver({ subject: 'later' })
    await until('all fail', () => others.every(failing))
    const { attention } = await rig.good('read', 'GET', '/admin/overview')
    const [first, ...rest] = attention as Json[]
    assert.deepEqual([first?.['kind'], first?.['id']], ['receiver', `${receiver.url}/first`])
    assert.match(String(first?.['what']), /^3 webhooks fail: .*\/first: .*503/)
    assert.equal(rest.length, 19)
    assert.ok(rest.every(({ kind, id }) => kind === 'webhook' && others.includes(String(id))))
  } finally {
    await rig.close()
    await receiver.close()
  }
})
