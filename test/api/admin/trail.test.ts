/** What operators look up: the search, the trail of a message, the delivery log, and failed callbacks sent again. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { outboxRecord } from '../../store/contract/records.ts'
import { accountRecord, userRecord } from '../../support/records.ts'
import { until } from '../../support/until.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

describe('what operators look up', () => {
  let rig: AdminRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  let wanting = ''
  let refusing = ''
  let failing = ''
  const broken = new Set(['/failing', '/paused'])

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_WRONG_KEYS: '0', MAILROOM_WEBHOOK_SCHEDULE: '20ms' } })
    receiver = await startReceiver()
    receiver.behave(({ path }) => (broken.has(path) ? 500 : 200))
    box = await rig.mailbox('walt')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    const hook = async (path: string, filter: Json): Promise<string> => {
      const body = { callback_url: receiver.url + path, ...filter }
      return String((await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, body))['webhook_id'])
    }
    wanting = await hook('/wanting', { filter_subject: 'hello' })
    refusing = await hook('/refusing', { filter_subject: 'invoice' })
    failing = await hook('/failing', { filter_subject: 'hello', retry_schedule: '1s' })
    await box.deliver({ subject: 'hello there', id: 'one', text: 'a private word' })
    await until('one failed', async () => (await log('state=failed')).length === 1)
    await until('one delivered', async () => (await log('state=delivered')).length === 1)
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const get = (path: string) => rig.good('read', 'GET', path)
  const log = async (query: string): Promise<Json[]> =>
    (await get(`/admin/deliveries?${query}`))['deliveries'] as Json[]
  const found = async (q: string): Promise<[unknown, unknown, unknown][]> => {
    const { found: all } = await get(`/admin/search?q=${encodeURIComponent(q)}`)
    return (all as Json[]).map(({ kind, id, exact }) => [kind, id, exact])
  }

  test('the search finds one thing of each kind by what is exactly its own', async () => {
    const [row] = await log('state=delivered')
    const user = await rig.engine.store.users.several([box.userId])
    const developerId = user[0]?.developerId ?? ''
    const message = row?.['message_id']
    const expected: readonly (readonly [string, string, unknown])[] = [
      [box.email, 'account', box.accountId],
      [box.email.toUpperCase(), 'account', box.accountId],
      [box.accountId, 'account', box.accountId],
      [box.userId, 'user', box.userId],
      [developerId, 'developer', developerId],
      [wanting, 'webhook', wanting],
      [`${receiver.url}/wanting`, 'webhook', wanting],
      [String(row?.['delivery_id']), 'callback', row?.['delivery_id']],
      [String(message), 'message', message],
      ['<one@sender.example>', 'message', message],
      [' one@sender.example ', 'message', message],
    ]
    for (const [q, kind, id] of expected)
      assert.deepEqual(
        (await found(q)).filter(([, , exact]) => exact),
        [[kind, id, true]],
        q,
      )
  })

  test('the search shows by kind what is only alike, and nothing of what is unknown', async () => {
    assert.deepEqual(
      (await found('wal')).map(([kind, , exact]) => [kind, exact]),
      [
        ['account', false],
        ['user', false],
      ],
    )
    const { developerId = '' } = (await rig.engine.store.users.several([box.userId]))[0] ?? {}
    await rig.engine.store.users.create(userRecord(developerId, { firstName: 'Wal', lastName: '' }))
    assert.ok(
      (await found('wal')).every(([, , exact]) => exact === false),
      'a first name names many',
    )
    assert.equal((await found(receiver.url)).filter(([kind]) => kind === 'webhook').length, 3)
    assert.deepEqual(await found('nobody@nowhere.example'), [])
    assert.equal((await rig.as(rig.tokens.read, 'GET', '/admin/search?q=')).status, 400)
    await refusesOthers(rig, 'GET', '/admin/search?q=x', 'read')
  })

  const trail = (q?: string) =>
    get(`/admin/accounts/${box.accountId}/trail${q === undefined ? '' : `?q=${encodeURIComponent(q)}`}`)

  test('the trail says of each webhook why or why not, with each attempt and its request', async () => {
    for (const q of ['one@sender.example', '<one@sender.example>', 'ELLO the']) {
      const { messages, events, webhooks, known } = await trail(q)
      assert.equal((messages as Json[])[0]?.['subject'], 'hello there')
      assert.deepEqual((messages as Json[])[0]?.['folders'], ['INBOX'])
      assert.deepEqual(
        (events as Json[]).map(({ kind, folder }) => [kind, folder]),
        [['received', 'INBOX']],
      )
      assert.deepEqual(known, [])
      const of = (id: string) => (webhooks as Json[]).find((one) => one['id'] === id) ?? assert.fail(id)
      assert.deepEqual([of(wanting)['matched'], of(refusing)['matched'], of(failing)['matched']], [true, false, true])
      const refused = (of(refusing)['why'] as Json[]).find(({ matched }) => matched === false) ?? assert.fail()
      assert.equal(refused['filter'], 'filter_subject')
      assert.match(String(refused['why']), /hello there/)
      assert.deepEqual(of(refusing)['callbacks'], [])
      const [sent] = of(failing)['callbacks'] as Json[]
      const attempts = sent?.['attempts'] as Json[]
      assert.deepEqual([sent?.['state'], attempts.map((one) => one['status_code'])], ['failed', [500, 500]])
      const request = sent?.['request'] as Json
      assert.equal(request['url'], `${receiver.url}/failing`)
      assert.match(JSON.stringify(request['body']), /hello there/)
      assert.doesNotMatch(JSON.stringify(webhooks), /a private word/)
    }
  })

  test('its verdicts are those of the filters that are in force', async () => {
    const { webhooks } = await trail('one@sender.example')
    const account = (await rig.engine.store.accounts.get(box.accountId)) ?? assert.fail()
    const message = (await rig.engine.store.messages.find(box.accountId, 'one@sender.example')) ?? assert.fail()
    for (const one of webhooks as Json[]) {
      const webhook = (await rig.engine.store.webhooks.get(String(one['id']))) ?? assert.fail()
      const asking = { signal: AbortSignal.timeout(5000), reads: () => undefined }
      const { verdicts, matched } = await rig.engine.webhooks.explain(webhook, account, message, asking)
      assert.deepEqual([one['why'], one['matched']], [verdicts, matched])
    }
  })

  test('several messages are shown to be chosen from; without a name the newest', async () => {
    await box.deliver({ subject: 'hello again' })
    await until('both', async () => ((await trail('hello'))['messages'] as Json[]).length === 2)
    assert.deepEqual((await trail('hello'))['webhooks'], [])
    assert.equal(((await trail())['messages'] as Json[])[0]?.['subject'], 'hello again')
  })

  test('of a mail that is not in the index it says how account and folders are', async () => {
    const words = async () => ((await trail('unknown@mail.example'))['known'] as string[]).join(' ')
    const before = Math.floor(Date.now() / 1000) * 1000
    await box.deliver({ subject: 'a bargain' }, 'Junk')
    const known = await until('the look at Junk is over', async () => {
      const now = await words()
      const seen = /What came into the other folders before ([^:]*:\d\d:\d\d UTC) is in the index/.exec(now)?.[1] ?? ''
      return Date.parse(seen) >= before && now
    })
    assert.match(known, /It is connected and hears of new mail.*INBOX is caught up, and watched since/)
    const next = /They are looked at again at ([^:]*:\d\d:\d\d UTC) at the latest/.exec(known)?.[1] ?? ''
    assert.ok(Date.parse(next) >= before && Date.parse(next) < before + 300_000, next)
    const read = /Junk was read last at ([^:]*:\d\d:\d\d UTC)/.exec(known)?.[1] ?? ''
    assert.ok(Date.parse(read) >= before, read)
    assert.doesNotMatch(known, /INBOX was/)
    await rig.good('act', 'POST', `/admin/accounts/${box.accountId}/pause`)
    await until('paused', async () =>
      (await words()).includes('An operator has paused it. Nothing, until it is resumed.'),
    )
    assert.match(await words(), /^(?!.*other folders).*INBOX was read last at/)
    await rig.good('act', 'POST', `/admin/accounts/${box.accountId}/resume`)
    assert.equal((await rig.as(rig.tokens.read, 'GET', `/admin/accounts/${'0'.repeat(24)}/trail`)).status, 404)
    await refusesOthers(rig, 'GET', `/admin/accounts/${box.accountId}/trail`, 'read')
  })

  test('the log names subject, mailbox and developer, and filters by each of what it shows', async () => {
    await until('all are finished', async () => (await log('state=pending')).length === 0)
    // With the notice that the receiver of one fails, which nobody asked for.
    const whole = await log('')
    const all = whole.filter(({ kind }) => kind === 'message')
    assert.deepEqual([all.length, whole.length], [4, 5])
    assert.deepEqual([all[0]?.['subject'], all[0]?.['mailbox']], ['hello again', box.email])
    assert.equal(typeof all[0]?.['developer_name'], 'string')
    const size = async (query: string) => (await log(query)).length
    const first = String(all.at(-1)?.['message_id'])
    const counts: Readonly<Record<string, number>> = {
      'state=failed': 2,
      [`account=${box.accountId}`]: 5,
      'account=walt@': 5,
      'account=nobody': 0,
      [`webhook=${wanting}`]: 2,
      'webhook=/failing': 3,
      'webhook=/failing&state=delivered': 0,
      'q=AGAIN': 2,
      'q=nothing': 0,
      [`q=${first}`]: 2,
      'q=one@sender.example': 2,
      [`q=${String(all[0]?.['delivery_id'])}`]: 1,
      'developer=nobody': 0,
      'within=3600': 5,
      'until=1': 0,
      'limit=3&offset=3': 2,
    }
    for (const [query, expected] of Object.entries(counts)) assert.equal(await size(query), expected, query)
    await refusesOthers(rig, 'GET', '/admin/deliveries', 'read')
  })

  test('webhooks of one URL are told apart by their users, and one filter names all of them, and all accounts', async () => {
    const { store } = rig.engine
    const developerId = (await store.developers.first())?.id ?? assert.fail()
    const url = 'https://app.example.com/crowd'
    const names: string[] = []
    const createdAt = Date.now() - 100 * 86_400_000
    for (let n = 0; n < 40; n += 1) {
      const user = userRecord(developerId, { firstName: 'User', lastName: `${n}` })
      names.push(`User ${n}`)
      const account = accountRecord(user, { email: `user${n}@crowd.example`, paused: true })
      await store.users.createWithAccount(user, account)
      const made = await rig.ok('POST', `/lite/users/${user.id}/webhooks`, { callback_url: url })
      const webhook = (await store.webhooks.get(String(made['webhook_id']))) ?? assert.fail()
      const state = n === 39 ? 'failed' : 'delivered'
      await store.outbox.enqueue([
        outboxRecord(webhook, { accountId: account.id, state, createdAt, finishedAt: createdAt + 39 }),
      ])
    }
    await rig.ok('POST', '/lite/webhooks', { callback_url: url })
    const within = `within=${101 * 86_400}&limit=100`
    for (const filter of ['webhook=/crowd', 'account=@crowd.example', `webhook=/crowd&developer=${developerId}`]) {
      const rows = await log(`${filter}&${within}`)
      assert.deepEqual(new Set(rows.map(({ owner }) => owner)), new Set(names), filter)
      assert.ok(rows.every(({ took_ms: took }) => took === 39))
    }
    assert.equal((await log(`webhook=/crowd&account=@crowd.example&state=failed&${within}`)).length, 1)
    assert.deepEqual(await log(`webhook=/crowd&developer=nobody&${within}`), [])
    const { found: hits, more } = await get(`/admin/search?q=${url}`)
    assert.deepEqual(more, { webhook: names.length + 1 - 20 })
    const details = (hits as Json[]).map(({ detail }) => String(detail))
    assert.equal(new Set(details).size, 20)
    assert.ok(details.every((detail) => [...names, 'application-wide'].includes(detail)))
  })

  test('its bars count what matches by time, whatever the page', async () => {
    const sum = (bars: unknown, state: string) => (bars as Json[]).reduce((all, one) => all + Number(one[state]), 0)
    const { bars, failed, step, from } = await get('/admin/deliveries?limit=1')
    assert.deepEqual([sum(bars, 'delivered'), sum(bars, 'failed'), failed], [2, 2, 2])
    assert(
      (bars as Json[]).every(({ at }) => Number(at) % Number(step) === 0 && Number(at) > Number(from) - Number(step)),
    )
    const { bars: few } = await get(`/admin/deliveries?webhook=${failing}`)
    assert.deepEqual([sum(few, 'delivered'), sum(few, 'failed')], [0, 2])
  })

  test('failed ones that match are sent again, once, and leave a record; those of a paused webhook stay', async () => {
    const again = (body: Json) => rig.good('act', 'POST', '/admin/deliveries/redeliver', body)
    await refusesOthers(rig, 'POST', '/admin/deliveries/redeliver', 'act')
    assert.deepEqual((({ total, queued, done }) => [total, queued, done])(await again({ webhook: wanting })), [
      0,
      0,
      true,
    ])
    const seen = receiver.all.filter(({ path }) => path === '/failing').length
    broken.delete('/failing')
    const { total, queued, done, reason } = await again({ q: 'again' })
    assert.deepEqual([total, queued, done, reason], [1, 1, true, null])
    await until('it is delivered', async () => (await log('state=failed')).length === 1)
    assert.equal(receiver.all.filter(({ path }) => path === '/failing').length, seen + 1)
    const { resending } = await get('/admin/deliveries')
    assert.equal((resending as Json)['queued'], 1)
    await rig.ok('POST', `/lite/users/${box.userId}/webhooks/${failing}`, { active: 0 })
    const paused = await again({})
    assert.deepEqual([paused['total'], paused['queued'], paused['done']], [1, 0, true])
    assert.match(String(paused['reason']), /paused/)
    assert.equal((await log('state=failed')).length, 1)
    const audit = await rig.as(rig.tokens.read, 'GET', '/admin/audit')
    const record = (audit.json as unknown as Json[]).find(({ details }) => (details as Json)['q'] === 'again')
    assert.deepEqual([record?.['action'], record?.['outcome']], ['deliveries redeliver', 'done'])
  })
})
