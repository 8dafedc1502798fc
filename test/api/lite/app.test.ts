/** /app: the application-wide status callback URL, and the logs of callbacks and calls. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('the application', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  let other: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    receiver = await startReceiver()
    box = await rig.mailbox('ada')
    other = await rig.mailbox('bea')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  test('sets, shows and removes the status callback URL', async () => {
    const path = '/app/status_callback_url'
    const resource_url = `${rig.url}${path}`
    assert.deepEqual(await rig.ok('GET', path), { status_callback_url: '', resource_url })
    const url = 'http://127.0.0.1:9/status?x=1'
    assert.equal((await rig.ok('POST', path, { status_callback_url: url }))['success'], true)
    assert.deepEqual(await rig.ok('GET', path), { status_callback_url: url, resource_url })
    assert.deepEqual(await rig.ok('DELETE', path), { success: true })
    assert.deepEqual(await rig.ok('GET', path), { status_callback_url: '', resource_url })
    for (const body of [{}, { status_callback_url: '' }, { status_callback_url: 'mailto:x' }]) {
      assert.equal((await rig.call('POST', path, body)).status, 400)
    }
  })

  test('the status callback URL is called for accounts that have none of their own', async () => {
    await rig.ok('POST', '/app/status_callback_url', { status_callback_url: `${receiver.url}/status` })
    const lost = await rig.mailbox('lost')
    await until('connected', () => rig.engine.accounts.view(lost.accountId)?.tags.includes('watching'))
    rig.imap.setPassword(lost.email, 'another')
    for (let tries = 0; tries < 3; tries += 1) await rig.ok('POST', lost.path, { force_status_check: 1 })
    assert.equal((await rig.ok('GET', lost.path))['status'], 'DISABLED')
    const callback = await until('the callback', () => receiver.accepted().find(({ path }) => path === '/status'))
    assert.deepEqual(
      [callback.body['user_id'], callback.body['server_label'], callback.body['failure']],
      [lost.userId, lost.label, 'permanent'],
    )
    const row = await until('the attempt in the log', async () => {
      const [one] = await rig.list(`/app/logs/webhooks?account_id=${lost.userId}`)
      return one?.['status_code'] === 200 ? one : null
    })
    assert.deepEqual([row['kind'], row['webhook_id'], row['url']], ['status', null, `${receiver.url}/status`])
    assert.deepEqual((row['attempts'] as Json[])[0]?.['url'], row['url'])
    await rig.ok('DELETE', '/app/status_callback_url')
    const log = (query: string): Promise<Json[]> => rig.list(`/app/logs/webhooks?${query}`)
    const ofAccount = `account_id=${lost.userId}&label=${encodeURIComponent(lost.label)}`
    assert.deepEqual(await log(`${ofAccount}&kind=status`), [row])
    assert.deepEqual(await log(`kind=status&state=delivered`), [row])
    assert.deepEqual(await log(`${ofAccount}&kind=status&state=failed`), [])
    assert.deepEqual(await log(`${ofAccount}&kind=message`), [])
    for (const [query, status] of [
      ['label=0', 400],
      ['kind=x', 400],
      [`account_id=${lost.userId}&label=nobody`, 404],
    ] as const) {
      assert.equal((await rig.call('GET', `/app/logs/webhooks?${query}`)).status, status, query)
    }
    const again = `/app/logs/webhooks/${String(row['delivery_id'])}/redeliver`
    await until('sent again', async () => (await rig.ok('POST', again))['redelivered'] === 1)
    const second = await until('again', () => receiver.accepted().filter(({ path }) => path === '/status')[1])
    assert.equal(second.headers['webhook-id'], callback.headers['webhook-id'])
    assert.deepEqual([second.body['failure'], second.body['server_label']], ['permanent', lost.label])
    assert.equal((await rig.call('POST', `/app/logs/webhooks/${'0'.repeat(32)}/redeliver`)).status, 404)
  })

  test('a callback is sent again only by the developer who owns it', async () => {
    const made = await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, { callback_url: `${receiver.url}/owned` })
    const webhookId = String(made['webhook_id'])
    await box.deliver({ subject: 'owned', id: 'owned-1' })
    const row = await until('delivered', async () => {
      const [one] = await rig.list(`/app/logs/webhooks?webhook_id=${webhookId}`)
      return one?.['state'] === 'delivered' ? one : null
    })
    const { developer, secret } = await rig.engine.developers.create('Stranger')
    const authorization = `Basic ${Buffer.from(`${developer.apiKey}:${secret}`).toString('base64')}`
    const again = `/app/logs/webhooks/${String(row['delivery_id'])}/redeliver`
    const answer = await rig.call('POST', again, {}, { headers: { authorization } })
    assert.equal(answer.status, 404, answer.text)
    const kept = await rig.engine.store.outbox.get(String(row['delivery_id']))
    assert.deepEqual([kept?.state, kept?.attemptCount], ['delivered', 1])
    assert.equal((await rig.ok('POST', again))['redelivered'], 1)
    await rig.ok('DELETE', `/lite/users/${box.userId}/webhooks/${webhookId}`)
  })

  test('the log of callbacks is filtered by webhook, user, time and status', async () => {
    const hook = async (mailbox: TestMailbox, url: string): Promise<string> => {
      const made = await rig.ok('POST', `/lite/users/${mailbox.userId}/webhooks`, { callback_url: url })
      return String(made['webhook_id'])
    }
    receiver.behave(({ path }) => (path === '/no' ? 500 : 200))
    const [good, bad] = [await hook(box, `${receiver.url}/yes`), await hook(other, `${receiver.url}/no`)]
    await box.deliver({ subject: 'to ada', id: 'log-1' })
    await other.deliver({ subject: 'to bea', id: 'log-2' })
    // The third failure is told of with a row of its own.
    const log = (query = ''): Promise<Json[]> => rig.list(`/app/logs/webhooks?limit=100&kind=message${query}`)
    const ids = async (query: string): Promise<unknown[]> => (await log(query)).map((row) => row['webhook_id'])
    await until('one delivered', async () => (await log(`&webhook_id=${good}`))[0]?.['state'] === 'delivered')
    await until('one tried', async () => (await log(`&webhook_id=${bad}`))[0]?.['status_code'] === 500)

    assert.deepEqual(await ids(`&webhook_id=${good}`), [good])
    assert.deepEqual(await ids(`&account_id=${other.userId}`), [bad])
    assert.deepEqual(await ids(`&account_id=${'e'.repeat(24)}`), [])
    assert.deepEqual(await ids(`&webhook_id=${bad}&account_id=${box.userId}`), [])
    assert(!(await ids('&status_code_from=200&status_code_to=299')).includes(bad))
    assert.deepEqual(await ids('&status_code_from=500&status_code_to=599'), [bad])
    const now = Math.floor(Date.now() / 1000)
    assert.deepEqual(await ids(`&timestamp_before=${now - 3600}`), [])
    assert((await ids(`&timestamp_after=${now - 3600}&timestamp_before=${now + 10}`)).includes(good))

    const [row] = await log(`&webhook_id=${good}`)
    assert.equal(row?.['account_id'], box.userId)
    assert.equal(row['request_method'], 'POST')
    assert.equal((row['attempts'] as Json[])[0]?.['status_code'], 200)
  })

  test('the log of callbacks of a user with several accounts is one log', async (t) => {
    const second = 'ada.second@mail.example'
    rig.imap.addUser(second)
    const made = await rig.ok('POST', `/lite/users/${box.userId}/email_accounts`, {
      email: second,
      server: rig.imap.host,
      port: rig.imap.port,
      use_ssl: 0,
      username: second,
      password: 'secret',
      type: 'imap',
    })
    assert.equal(made['success'], true, JSON.stringify(made))
    const before = (await rig.list(`/app/logs/webhooks?account_id=${box.userId}`)).length
    const path = `/lite/users/${box.userId}/email_accounts/${String(made['label'])}`
    // INBOX has been read once: what comes from here on is new.
    await until('folders', async () => (await rig.list(`${path}/folders`)).length > 0)
    const accounts = await rig.engine.store.accounts.listByUser(box.userId)
    await until('watched', () => accounts.every(({ id }) => rig.engine.accounts.view(id)?.tags.includes('watching')))
    for (let count = 0; count < 3; count += 1) {
      rig.imap.append(second, 'INBOX', `From: a@b.example\nSubject: s${count}\nMessage-ID: <s${count}@b.example>\n\nx`)
      await box.deliver({ subject: `f${count}`, id: `f${count}` })
    }
    const all = (): Promise<Json[]> => rig.list(`/app/logs/webhooks?account_id=${box.userId}&limit=100`)
    await until('all in the log', async () => (await all()).length === before + 6)
    const whole = (await all()).map((row) => row['delivery_id'])
    const pages = await Promise.all(
      [0, 2, 4, 6].map((offset) => rig.list(`/app/logs/webhooks?account_id=${box.userId}&limit=2&offset=${offset}`)),
    )
    assert.deepEqual(
      pages.flat().map((row) => row['delivery_id']),
      whole.slice(0, 8),
    )
    const asked = t.mock.method(rig.engine.store.outbox, 'list')
    assert.deepEqual(await rig.list(`/app/logs/webhooks?account_id=${box.userId}&limit=2&offset=1000000`), [])
    if (nodeCount === 1)
      assert.deepEqual(
        asked.mock.calls.map((one) => one.arguments[1].limit),
        [2],
        'no more than the page is read',
      )
    const created = (await all()).map((row) => Number(row['created']))
    assert.deepEqual(
      created,
      created.toSorted((a, b) => b - a),
      'newest first',
    )
  })

  test('the log of calls is filtered by user, time, status, method and path', async () => {
    await rig.call('GET', `/lite/users/${'f'.repeat(24)}`)
    await rig.call('DELETE', '/lite/users')
    const log = (query = ''): Promise<Json[]> => rig.list(`/app/logs/calls?limit=100${query}`)
    const missing = `/lite/users/${'f'.repeat(24)}`
    await until('the calls', async () => (await log(`&request_path=${missing}`)).length === 1)
    const [row] = await log(`&request_path=${missing}&request_method=get&status_code_from=404&status_code_to=404`)
    assert.deepEqual(Object.keys(row ?? {}).sort(), [
      'account_id',
      'duration_ms',
      'id',
      'request_method',
      'request_path',
      'status_code',
      'timestamp',
    ])
    assert.deepEqual([row?.['request_method'], row?.['status_code'], row?.['account_id']], ['GET', 404, null])
    assert.deepEqual(await log(`&request_path=${missing}&request_method=POST`), [])
    assert.deepEqual(await log('&status_code_from=599'), [])
    assert.deepEqual(await log(`&timestamp_before=${Math.floor(Date.now() / 1000) - 3600}`), [])
    const ofUser = await log(`&account_id=${box.userId}`)
    assert(ofUser.length > 0 && ofUser.every((one) => one['account_id'] === box.userId))
    assert.equal((await rig.list('/app/logs/calls?limit=2&offset=1')).length, 2)
  })

  test('the log of calls is searched by a regular expression over the path', async () => {
    const [a, b] = ['regex-a', 'Regex-B'].map((name) => `/lite/users/${name}`)
    for (const path of [a, b, a]) {
      await rig.call('GET', path ?? '')
      // Calls of one millisecond have no order.
      await sleep(2)
    }
    const log = async (expression: string, query = ''): Promise<unknown[]> =>
      (await rig.list(`/app/logs/calls?limit=100&request_path=${encodeURIComponent(expression)}${query}`)).map(
        (row) => row['request_path'],
      )
    await until('the calls', async () => (await log('/regex-[ab]$/')).length === 3)
    // newest first, without case, anywhere in the path
    assert.deepEqual(await log('/regex-[ab]$/'), [a, b, a])
    assert.deepEqual(await log('/^/lite/users/REGEX-b$/'), [b])
    assert.deepEqual(await log('/regex-[ab]$/', '&offset=1&limit=1'), [b])
    assert.deepEqual(await log('/regex-[ab]$/', '&request_method=post'), [])
    assert.deepEqual(await log('/^lite/'), [])
    assert.deepEqual(await log(a ?? ''), [a, a])
    for (const expression of ['/(/', '/a{1001}/', '//', `/${'x'.repeat(2000)}/`]) {
      const answer = await rig.call('GET', `/app/logs/calls?request_path=${encodeURIComponent(expression)}`)
      assert.equal(answer.status, 400, expression)
      assert.match(String(answer.json['value']), /^request_path: /)
    }
  })

  for (const path of [
    '/app/logs/calls?status_code_from=x',
    '/app/logs/calls?limit=101',
    '/app/logs/webhooks?timestamp_after=yesterday',
    '/app/logs/webhooks?status_code_to=1000',
  ]) {
    test(`${path} is 400`, async () => assert.equal((await rig.call('GET', path)).status, 400))
  }
})
