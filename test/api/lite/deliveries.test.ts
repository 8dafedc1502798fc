/** What was sent to a webhook and may be sent again, failure notifications too, and the dry run over what it covers. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('deliveries and the dry run over the API', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,1h' } })
    receiver = await startReceiver()
    box = await rig.mailbox('walt')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const hook = async (path: string, extra: Json = {}, base = `/lite/users/${box.userId}/webhooks`): Promise<string> => {
    const made = await rig.ok('POST', base, { callback_url: receiver.url + path, ...extra })
    return `${base}/${String(made['webhook_id'])}`
  }
  const accountPath = (userId: string, label: string): string =>
    `/lite/users/${userId}/email_accounts/${encodeURIComponent(label)}`
  /** Another mailbox of a user; answers its label once it is watched. */
  const secondAccount = async (userId: string, email: string): Promise<string> => {
    rig.imap.addUser(email)
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const made = await rig.ok('POST', `/lite/users/${userId}/email_accounts`, userBody(server, email))
    assert.equal(made['success'], true, JSON.stringify(made))
    const label = String(made['label'])
    const account = (await rig.engine.store.accounts.listByUser(userId)).find((one) => one.label === label)
    assert(account !== undefined)
    await until('watched', () => rig.engine.accounts.view(account.id)?.tags.includes('watching'))
    return label
  }
  /** Of a stretch of time: how many were sent again, when all are. */
  const redelivered = async (path: string, body?: Json): Promise<unknown> => {
    // The end of the one before may be stored before the engine is through with it.
    const answer = await until('taken', () => rig.ok('POST', `${path}/redeliver`, body))
    const order = await until('done', async () => {
      const told = await rig.ok('GET', `${path}/redeliver`)
      return told['done'] === true && told
    })
    if (answer['done'] === true) assert.equal(answer['redelivered'], order['redelivered'])
    return order['redelivered']
  }
  const idOf = (path: string): string => path.split('/').at(-1) ?? ''
  const at = (path: string) => receiver.all.filter((callback) => callback.path === path)

  test('the delivery log has state, attempts and answers, and is filtered', async () => {
    receiver.behave(({ path, count }) => (path === '/log' && count % 2 === 0 ? 503 : 200))
    const path = await hook('/log', { filter_subject: 'for the log' })
    const messages: string[] = []
    for (const subject of ['for the log 1', 'for the log 2']) messages.push(await box.deliver({ subject }))
    const log = (query = ''): Promise<Json[]> => rig.list(`${path}/deliveries?${query}`)
    await until('both delivered', async () => (await log('state=delivered')).length === 2)
    const [newest] = await log()
    assert(newest !== undefined)
    assert.equal(newest['message_id'], messages[1])
    assert.deepEqual(
      [newest['webhook_id'], newest['kind'], newest['event'], newest['account_id'], newest['due']],
      [idOf(path), 'message', 'received', box.userId, null],
    )
    const attempts = newest['attempts'] as Json[]
    assert.equal(attempts.length, newest['attempt_count'])
    assert.equal(attempts.at(-1)?.['status_code'], 200)
    assert.deepEqual(
      (await log(`message_id=${String(messages[0])}`)).map((row) => row['message_id']),
      [messages[0]],
    )
    assert.deepEqual(await log('state=failed'), [])
    assert.deepEqual(await log('kind=failure'), [])
    assert.equal((await log('kind=message&limit=1&offset=1'))[0]?.['message_id'], messages[0])
    const now = Math.floor(Date.now() / 1000)
    assert.deepEqual(await log(`timestamp_before=${now - 3600}`), [])
    assert.equal((await log(`timestamp_after=${now - 3600}`)).length, 2)
    for (const query of ['state=lost', 'kind=x', 'limit=0']) {
      assert.equal((await rig.call('GET', `${path}/deliveries?${query}`)).status, 400, query)
    }
    receiver.behave(() => 200)
    await rig.ok('DELETE', path)
  })

  test('one delivery, those of a time, and the failed ones are sent again under the same id', async () => {
    receiver.behave(({ path }) => (path === '/again' ? 410 : 200))
    const path = await hook('/again', { filter_subject: 'again' })
    const unused = { redelivered: 0, done: true, reason: null, from: null, to: null, failed_only: false, started: null }
    assert.deepEqual(await rig.ok('GET', `${path}/redeliver`), unused)
    await box.deliver({ subject: 'again' })
    const first = await until('the first', () => at('/again')[0])
    const row = await until('failed', async () => (await rig.list(`${path}/deliveries?state=failed`))[0])
    receiver.behave(() => 200)
    await rig.ok('POST', path, { active: 1 })
    const count = (): number => at('/again').length
    const one = `${path}/deliveries/${String(row['delivery_id'])}/redeliver`
    const other = await hook('/not-its-own')
    assert.equal((await rig.call('POST', one.replace(path, other))).status, 404, 'it is of another webhook')
    await rig.ok('DELETE', other)
    await until('sent again', async () => (await rig.ok('POST', one))['redelivered'] === 1)
    await until('one', () => count() === 2)
    await until('delivered', async () => (await rig.list(`${path}/deliveries?state=delivered`)).length === 1)
    assert.equal(await redelivered(path), 0)
    const now = Math.floor(Date.now() / 1000)
    assert.equal(await redelivered(path, { from: now - 600, to: now }), 1)
    const told = await rig.ok('GET', `${path}/redeliver`)
    assert.deepEqual(
      [told['redelivered'], told['done'], told['reason'], told['from'], told['to'], told['failed_only']],
      [1, true, null, now - 600, now, false],
    )
    await until('the time', () => count() === 3)
    assert.equal(await redelivered(path, { from: 1, to: 2 }), 0)
    assert.deepEqual(
      [...new Set(at('/again').map(({ headers }) => headers['webhook-id']))],
      [first.headers['webhook-id']],
    )
    await rig.ok('POST', path, { active: 0 })
    assert.equal((await rig.call('POST', `${path}/redeliver`, { from: 1 })).status, 409)
    assert.equal((await rig.call('POST', `${path}/deliveries/${'0'.repeat(32)}/redeliver`)).status, 404)
    await rig.ok('DELETE', path)
  })

  test('each attempt says where it went, also after the callback_url was changed', async () => {
    receiver.behave(({ path }) => (path === '/before' ? 500 : 200))
    const path = await hook('/before', { filter_subject: 'moving' })
    await box.deliver({ subject: 'moving' })
    const urls = async (): Promise<unknown[]> => {
      const [row] = await rig.list(`${path}/deliveries?kind=message`)
      const attempts = (row?.['attempts'] ?? []) as Json[]
      return [row?.['state'], row?.['url'], ...new Set(attempts.map((attempt) => attempt['url']))]
    }
    const [old, fresh] = [`${receiver.url}/before`, `${receiver.url}/after`]
    // Nothing is on its way then: the fifth attempt would be an hour off.
    await until('tried', async () => (await rig.list(`${path}/deliveries?kind=message`))[0]?.['attempt_count'] === 4)
    assert.deepEqual(await urls(), ['pending', old, old])
    await rig.ok('POST', path, { callback_url: fresh })
    await until('delivered', async () => (await urls())[0] === 'delivered')
    assert.deepEqual(await urls(), ['delivered', fresh, old, fresh])
    receiver.behave(() => 200)
    await rig.ok('DELETE', path)
  })

  test('a callback that has not been tried says where it will go', async () => {
    const path = await hook('/untried', { filter_subject: 'untried', active: 0 })
    const [id, now] = [idOf(path), Date.now()]
    const webhook = await rig.engine.store.webhooks.get(id)
    assert(webhook !== null)
    const { developerId } = webhook
    const row = { id: `${id}00000000`, channelId: id, webhookId: id, developerId, userId: box.userId } as const
    const state = { state: 'skipped', finishedAt: now, reason: 'paused', attemptCount: 0, attempts: [] } as const
    const about = { kind: 'message', messageId: 'f'.repeat(24), changeId: null, event: 'received', data: {} } as const
    const when = { createdAt: now, dueAt: now, lane: 0, seq: 1 } as const
    await rig.engine.store.outbox.enqueue([
      { ...row, ...state, ...about, ...when, accountId: box.accountId, url: null },
    ])
    for (const list of [`${path}/deliveries`, `/app/logs/webhooks?webhook_id=${id}`]) {
      assert.deepEqual(
        (await rig.list(list)).map(({ url: to }) => to),
        [`${receiver.url}/untried`],
      )
    }
    await rig.ok('DELETE', path)
    assert.equal((await rig.list(`/app/logs/webhooks?webhook_id=${id}`))[0]?.['url'], null)
    assert.equal((await rig.call('POST', `/app/logs/webhooks/${row.id}/redeliver`)).status, 404)
  })

  for (const [level, base] of [
    ['user', () => `/lite/users/${box.userId}/webhooks`],
    ['application', () => '/lite/webhooks'],
  ] as const) {
    test(`failure notifications are in the log and can be sent again, ${level} level`, async () => {
      receiver.behave(({ path }) => (path === '/lost' ? 500 : 200))
      const notices = () => at(`/notice/${level}`)
      const subject = `lost at ${level} level`
      const wishes = { filter_subject: subject, failure_notif_url: `${receiver.url}/notice/${level}` }
      const path = await hook('/lost', wishes, base())
      await box.deliver({ subject })
      const first = await until('told', () => notices()[0])
      const log = (query: string): Promise<Json[]> => rig.list(`${path}/deliveries?${query}`)
      const row = await until('in the log', async () => (await log('kind=failure&state=delivered'))[0])
      assert.deepEqual(
        [row['webhook_id'], row['kind'], row['message_id'], row['url'], row['event']],
        [idOf(path), 'failure', null, wishes.failure_notif_url, null],
      )
      const attempts = row['attempts'] as Json[]
      assert.deepEqual(
        attempts.map(({ url: to, status_code }) => [to, status_code]),
        [[wishes.failure_notif_url, 200]],
      )
      assert.deepEqual((await log('')).map(({ kind }) => kind).sort(), ['failure', 'message'])
      const inApp = await rig.list(`/app/logs/webhooks?kind=failure&account_id=${box.userId}&webhook_id=${idOf(path)}`)
      assert.deepEqual(
        inApp.map(({ delivery_id }) => delivery_id),
        [row['delivery_id']],
      )
      // It has a channel of its own: a paused webhook does not hold it back.
      await rig.ok('POST', path, { active: 0 })
      const again = `${path}/deliveries/${String(row['delivery_id'])}/redeliver`
      await until('sent again', async () => (await rig.ok('POST', again))['redelivered'] === 1)
      const second = await until('told again', () => notices()[1])
      const { data, webhook_id } = first.body
      assert.deepEqual([second.body['data'], second.body['webhook_id']], [data, webhook_id])
      assert.equal(second.headers['webhook-id'], first.headers['webhook-id'])
      receiver.behave(() => 200)
      await rig.ok('POST', path, { active: 1 })
      assert.equal(await redelivered(path, { from: 1 }), 1, 'the message alone')
      assert.equal(notices().length, 2)
      await rig.ok('DELETE', path)
    })
  }

  test('a failure that nobody is told of is in the log, and goes nowhere when it is sent again', async () => {
    receiver.behave(({ path }) => (path === '/mute' ? 410 : 200))
    const path = await hook('/mute', { filter_subject: 'mute' })
    await box.deliver({ subject: 'mute' })
    const query = `webhook_id=${idOf(path)}&kind=failure`
    const row = await until('in the log', async () => (await rig.list(`/app/logs/webhooks?${query}`))[0])
    assert.deepEqual(
      [row['state'], row['reason'], row['url'], row['attempt_count']],
      ['skipped', 'no failure_notif_url', null, 0],
    )
    const again = `${path}/deliveries/${String(row['delivery_id'])}/redeliver`
    await rig.ok('POST', again)
    await until('ended', async () => (await rig.list(`${path}/deliveries?kind=failure&state=skipped`)).length === 1)
    receiver.behave(() => 200)
    await rig.ok('DELETE', path)
  })

  test('the callbacks of one message are found by its id and by its Message-ID, at both levels', async () => {
    const other = await rig.mailbox('twin')
    await until('watching', () => rig.engine.accounts.view(other.accountId)?.tags.includes('watching'))
    const own = await hook('/named', { filter_subject: 'named' })
    const app = await hook('/named', { filter_subject: 'named' }, '/lite/webhooks')
    const twin = { subject: 'named', id: 'both/of@us', date: new Date() }
    const id = await box.deliver(twin)
    await other.deliver(twin)
    await box.deliver({ subject: 'named too' })
    await until('all delivered', () => at('/named').length === 5, {
      explain: () =>
        at('/named')
          .map(({ raw }) => raw)
          .join('\n'),
    })
    const of = async (path: string, message: string, more = '') =>
      (await rig.list(`${path}/deliveries?message_id=${encodeURIComponent(message)}${more}`)).map(
        (row) => row['account_id'],
      )
    assert.deepEqual(await of(own, id), [box.userId])
    const messageId = String(
      (await rig.list(`${own}/dry_run?limit=20`)).find((row) => row['message_id'] === id)?.['email_message_id'],
    )
    assert.match(messageId, /^<.*>$/)
    const callback = at('/named').find(({ body }) => (body['message_data'] as Json)['message_id'] === id)
    assert.equal((callback?.body['message_data'] as Json)['email_message_id'], messageId)
    for (const name of [messageId, messageId.slice(1, -1)]) {
      assert.deepEqual(await of(own, name), [box.userId])
      assert.deepEqual((await of(app, name)).sort(), [box.userId, other.userId].sort())
      assert.equal((await of(app, name, '&limit=1&offset=1')).length, 1)
      assert.deepEqual(await of(app, name, '&state=failed'), [])
    }
    assert.deepEqual(await of(app, '<nobody@nowhere.example>'), [])
    await rig.ok('DELETE', own)
    await rig.ok('DELETE', app)
  })

  test('one Message-ID of two messages: callbacks of both, explained through the folder of each', async () => {
    const path = await hook('/copies', { filter_subject: 'own copy' })
    const copies = [
      ['INBOX', await box.deliver({ subject: 'own copy here', id: 'own-copy' })],
      ['Archive', await box.deliver({ subject: 'own copy there', id: 'own-copy' }, 'Archive')],
    ] as const
    await until('both delivered', () => at('/copies').length === 2)
    const rows = await rig.list(`${path}/deliveries?message_id=own-copy@sender.example`)
    assert.deepEqual(rows.map((row) => row['message_id']).sort(), copies.map(([, id]) => id).sort())
    for (const [folder, id] of copies) {
      const message = `${box.path}/folders/${folder}/messages/own-copy@sender.example`
      const said = await rig.ok('GET', `${message}/explain?webhook_id=${idOf(path)}`)
      assert.deepEqual([said['message_id'], said['matched']], [id, true], folder)
    }
    const elsewhere = `${box.path}/folders/Trash/messages/own-copy@sender.example/explain?webhook_id=${idOf(path)}`
    assert.equal((await rig.call('GET', elsewhere)).status, 404)
    await rig.ok('DELETE', path)
  })

  test('the dry run says of the last messages which match, filter by filter', async () => {
    const later = new Date(Date.now() + 60_000)
    await box.deliver({ subject: 'dry one', from: 'Boss <boss@big.example>', date: later })
    await box.deliver({ subject: 'dry two', from: 'clerk@big.example', date: new Date(later.getTime() + 60_000) })
    const path = await hook('/dry', { filter_subject: 'dry', filter_from: 'boss@*' })
    const rows = await rig.list(`${path}/dry_run?limit=2`)
    assert.deepEqual(
      rows.map(({ subject, matched }) => [subject, matched]),
      [
        ['dry two', false],
        ['dry one', true],
      ],
    )
    const said = new Map((rows[0]?.['filters'] as Json[]).map(({ filter, matched }) => [filter, matched]))
    assert.equal(said.get('filter_from'), false)
    assert.equal(said.get('filter_subject'), true)
    assert.equal(at('/dry').length, 0)
    const app = await hook('/dry', { filter_subject: 'dry one' }, '/lite/webhooks')
    const ofUser = await rig.list(`${app}/dry_run?user_id=${box.userId}&label=${encodeURIComponent(box.label)}&limit=5`)
    assert.equal(ofUser.filter(({ matched }) => matched).length, 1)
    assert.equal((await rig.call('GET', `${app}/dry_run?user_id=${'f'.repeat(24)}`)).status, 404)
    await rig.ok('DELETE', app)
    await rig.ok('DELETE', path)
  })

  test('the dry run covers every email account of the webhook, newest first, and says whose each message is', async () => {
    const soon = Date.now() + 600_000
    const late = (minutes: number): Date => new Date(soon + minutes * 60_000)
    const other = await rig.mailbox('wanda')
    const label = await secondAccount(box.userId, 'walt.second@mail.example')
    const second = async (subject: string, minutes: number): Promise<void> => {
      const raw = mail({ to: 'walt.second@mail.example', subject, date: late(minutes) })
      rig.imap.append('walt.second@mail.example', 'INBOX', raw)
      await until(subject, async () =>
        (await rig.list(`${accountPath(box.userId, label)}/messages`)).some((one) => one['subject'] === subject),
      )
    }
    await box.deliver({ subject: 'cover 1', date: late(1) })
    await second('cover 2', 2)
    await other.deliver({ subject: 'cover 3', date: late(3) })
    await box.deliver({ subject: 'cover 4', date: late(4) })
    await second('cover 5', 5)
    const own = await hook('/cover', { filter_subject: 'cover' })
    const app = await hook('/cover', { filter_subject: 'cover' }, '/lite/webhooks')
    const rows = async (path: string, query = ''): Promise<unknown[]> =>
      (await rig.list(`${path}/dry_run?limit=5${query}`))
        .filter(({ matched }) => matched)
        .map((row) => [row['subject'], row['account_id'], row['label']])
    const [first, two] = [
      [box.userId, box.label],
      [box.userId, label],
    ]
    const three = [other.userId, other.label]
    const ofUser = [
      ['cover 5', ...two],
      ['cover 4', ...first],
      ['cover 2', ...two],
      ['cover 1', ...first],
    ]
    const ofAll = [...ofUser.slice(0, 2), ['cover 3', ...three], ...ofUser.slice(2)]
    assert.deepEqual(await rows(own), ofUser)
    assert.deepEqual(await rows(app), ofAll)
    assert.deepEqual(await rows(own, '&limit=3'), ofUser.slice(0, 3))
    assert.deepEqual(await rows(app, '&limit=2'), ofAll.slice(0, 2))
    assert.deepEqual(await rows(app, `&user_id=${box.userId}`), ofUser)
    assert.deepEqual(await rows(own, `&label=${encodeURIComponent(label)}`), [ofUser[0], ofUser[2]])
    assert.deepEqual(await rows(own, '&label=0'), [ofUser[1], ofUser[3]])
    assert.deepEqual(await rows(app, `&user_id=${other.userId}&label=0`), [ofAll[2]])
    for (const [path, query, status] of [
      [app, 'label=0', 400],
      [own, `user_id=${other.userId}`, 404],
      [own, 'label=nobody', 404],
    ] as const) {
      assert.equal((await rig.call('GET', `${path}/dry_run?${query}`)).status, status, query)
    }
    await rig.ok('DELETE', app)
    await rig.ok('DELETE', own)
  })

  test('the dry run of a webhook that covers no email account is empty', async () => {
    const nobody = String((await rig.ok('POST', '/lite/users', {}))['id'])
    const path = await hook('/x', {}, `/lite/users/${nobody}/webhooks`)
    assert.deepEqual(await rig.list(`${path}/dry_run`), [])
    await rig.ok('DELETE', path)
  })
})
