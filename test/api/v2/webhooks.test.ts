/** Webhooks of 2.0 at both levels, what they send, the callback of a source's first sync, and the way over to lite. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AppError } from '../../../engine/errors.ts'
import {
  bodySignatureFits,
  part,
  startReceiver,
  type Callback,
  type CallbackReceiver,
} from '../../support/callbacks.ts'
import { mail } from '../../support/mail.ts'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { apiSecret } from '../core/raw-call.ts'
import { allRead, everyFilter, startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { v2Mailbox, type V2Mailbox } from './rig.ts'

const everything = {
  callback_url: 'http://127.0.0.1:9/hook',
  failure_notif_url: 'http://127.0.0.1:9/failed',
  ...everyFilter,
}
const wishes = { include_body: 1, receive_all_changes: '1', receive_drafts: true }

const withFiles = (to: string): string =>
  [
    'From: Ada <ada@sender.example>',
    `To: ${to}`,
    'Subject: files',
    'Message-ID: <files@sender.example>',
    'References: <root@sender.example>',
    'Date: Mon, 06 May 2024 10:00:00 +0000',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Hello',
    '--b',
    'Content-Type: application/ms-tnef; name=winmail.dat',
    'Content-Disposition: attachment; filename=winmail.dat',
    '',
    'x',
    '--b',
    'Content-Type: application/pdf; name="report_20240506.pdf"',
    'Content-Disposition: attachment; filename="report_20240506.pdf"',
    '',
    'y',
    '--b--',
    '',
  ].join('\r\n')

suite('webhooks of 2.0', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: V2Mailbox
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,1h' } })
    receiver = await startReceiver()
    box = await v2Mailbox(rig, 'walt')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const isOwn = (id: string) => (callback: Callback) => callback.body['webhook_id'] === id
  const sentTo = (id: string): Callback[] => receiver.accepted().filter(isOwn(id))
  const dataOf = (callback: Callback | undefined): Json => part(callback?.body ?? {}, 'message_data')

  for (const level of ['account', 'application'] as const) {
    test(`at ${level} level: created, shown, edited, cancelled; lite knows them too`, async () => {
      const base = level === 'account' ? `${box.account}/webhooks` : '/2.0/webhooks'
      const lite = level === 'account' ? `/lite/users/${box.userId}/webhooks` : '/lite/webhooks'
      const made = await rig.ok('POST', base, { ...everything, ...wishes })
      const id = String(made['webhook_id'])
      assert.deepEqual(made, { success: true, webhook_id: id, resource_url: `${rig.url}${base}/${id}` })
      const shown = {
        webhook_id: id,
        ...everything,
        active: true,
        failure: false,
        include_body: true,
        include_header: false,
        receive_all_changes: true,
        receive_drafts: true,
        receive_historical: false,
      }
      assert.deepEqual(await rig.ok('GET', `${base}/${id}`), shown)
      assert.deepEqual(await rig.list(base), [shown])
      const url = 'http://127.0.0.1:9/other'
      const change = { callback_url: url, active: 0, filter_folder_removed: '' }
      assert.deepEqual(await rig.ok('POST', `${base}/${id}`, change), { success: true, feedbackCode: '' })
      const { filter_folder_removed: removed, ...others } = shown
      assert.equal(removed, 'Archive/2024')
      assert.deepEqual(await rig.ok('GET', `${base}/${id}`), { ...others, callback_url: url, active: false })
      const seen = await rig.ok('GET', `${lite}/${id}`)
      assert.equal(seen['version'], '2.0')
      assert.deepEqual(await rig.list(`${lite}/${id}/deliveries`), [])
      const ofLite = String((await rig.ok('POST', lite, { callback_url: url }))['webhook_id'])
      assert.equal((await rig.call('GET', `${base}/${ofLite}`)).status, 404, 'one of lite is none of 2.0')
      assert.deepEqual((await rig.list(base)).length, 1)
      assert.equal((await rig.call('POST', base, { ...everything, filter_from: '/(/' })).json['type'], 'error')
      assert.match(String((await rig.call('POST', base, {})).json['value']), /^callback_url: /)
      assert.deepEqual(await rig.ok('DELETE', `${base}/${id}`), { success: true })
      assert.equal((await rig.call('GET', `${base}/${id}`)).status, 404)
      await rig.ok('DELETE', `${lite}/${ofLite}`)
    })
  }

  test('message_data has the fields of 2.0, and no file that the source hides', async () => {
    const hook = { callback_url: `${receiver.url}/v2`, receive_all_changes: 1 }
    const id = String((await rig.ok('POST', `${box.account}/webhooks`, hook))['webhook_id'])
    const message = await box.deliverRaw(withFiles(box.email), 'files')
    const first = await until('the callback', () => sentTo(id)[0])
    assert(bodySignatureFits(first, apiSecret))
    assert.equal(first.body['account_id'], box.userId)
    const { date_indexed: indexed, files, ...data } = dataOf(first)
    assert(Math.abs(Number(indexed) - Date.now() / 1000) < 600)
    assert.deepEqual(data, {
      message_id: message,
      email_message_id: '<files@sender.example>',
      person_info: data['person_info'],
      references: ['<root@sender.example>'],
      subject: 'files',
      folders: ['INBOX'],
      addresses: { from: { email: 'ada@sender.example', name: 'Ada' }, to: [{ email: box.email }] },
      date: 1_714_989_600,
      sources: [{ label: box.label, folder: 'INBOX', uid: 1, resource_url: `${rig.url}${box.source}` }],
      message_type: 'created',
      resource_url: `${rig.url}${box.account}/messages/${message}`,
    })
    assert.deepEqual(files, [
      {
        size: 1,
        type: 'application/pdf',
        file_name: 'report_20240506.pdf',
        file_name_structure: [
          ['report', 'main'],
          ['_', 'boundary'],
          ['20240506', 'date'],
          ['.pdf', 'ext'],
        ],
        main_file_name: 'report.pdf',
        body_section: '3',
        file_id: `${message}-1`,
        attachment_id: 1,
        is_embedded: false,
        content_disposition: 'attachment',
        content_id: null,
      },
    ])
    await rig.ok('POST', `${box.account}/messages/${message}/flags`, { seen: 1 })
    const second = await until('the change', () => sentTo(id)[1])
    assert.equal(dataOf(second)['message_type'], 'updated')
    const explained = await rig.ok('GET', `${box.path}/messages/${message}/explain?webhook_id=${id}`)
    assert.equal(explained['matched'], true)
    await rig.ok('DELETE', `${box.account}/webhooks/${id}`)
  })

  test('filter_folder_removed: a move out of the folder is told, the move into it is not', async () => {
    const hook = { callback_url: `${receiver.url}/out`, filter_folder_removed: 'Archive', receive_all_changes: 1 }
    const id = String((await rig.ok('POST', `${box.account}/webhooks`, hook))['webhook_id'])
    const message = `${box.account}/messages/${await box.deliver({ subject: 'there and back' })}`
    await rig.ok('POST', message, { dst_folder: 'Archive', move: 1 })
    await rig.ok('POST', message, { dst_folder: 'INBOX', move: 1 })
    const told = await until('the callback', () => sentTo(id)[0])
    assert.deepEqual(dataOf(told)['folders'], ['INBOX'])
    await rig.ok('POST', message, { dst_folder: 'Archive', move: 1 })
    await rig.ok('POST', message, { dst_folder: 'Sent', move: 1 })
    await until('the second', () => sentTo(id).length === 2)
    await rig.ok('DELETE', `${box.account}/webhooks/${id}`)
  })

  test('failure and failure_notif_url, and sent again by lite', async () => {
    receiver.behave(({ path }) => (path === '/down' ? 500 : 200))
    const hook = { callback_url: `${receiver.url}/down`, failure_notif_url: `${receiver.url}/failed` }
    const base = `${box.account}/webhooks`
    const id = String((await rig.ok('POST', base, hook))['webhook_id'])
    await box.deliver({ subject: 'not taken' })
    await until('failure', async () => (await rig.ok('GET', `${base}/${id}`))['failure'] === true)
    const notice = await until('the notice', () => receiver.accepted().find(({ path }) => path === '/failed'))
    assert.equal(notice.body['webhook_id'], id)
    receiver.behave(() => 200)
    const lite = `/lite/users/${box.userId}/webhooks/${id}`
    const [delivery] = await rig.list(`${lite}/deliveries?kind=message`)
    const again = `${lite}/deliveries/${String(delivery?.['delivery_id'])}/redeliver`
    await until('sent again', async () => (await rig.ok('POST', again))['redelivered'] === 1)
    await until('it is taken', () => sentTo(id).some(({ path }) => path === '/down'))
    await until('well again', async () => (await rig.ok('GET', `${base}/${id}`))['failure'] === false)
    await rig.ok('DELETE', `${base}/${id}`)
  })

  test('callback_url of a source: once, signed, when its first sync is complete', async () => {
    const email = 'fresh@mail.example'
    rig.imap.addUser(email)
    rig.imap.append(email, 'INBOX', mail({ to: email, subject: 'before' }))
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const extra = { callback_url: `${receiver.url}/synced` }
    const made = await rig.ok('POST', '/2.0/accounts', userBody(server, email, extra))
    const account = `/2.0/accounts/${String(made['id'])}`
    const synced = (): Callback[] => receiver.accepted().filter(({ path }) => path === '/synced')
    const callback = await until('the callback', () => synced()[0])
    assert(bodySignatureFits(callback, apiSecret))
    const body = Object.fromEntries(
      Object.entries(callback.body).filter(([name]) => !['timestamp', 'token', 'signature'].includes(name)),
    )
    const { label } = made['source'] as Json
    const user = { account_id: made['id'], user_id: made['id'] }
    assert.deepEqual(body, { ...user, server_label: label, email_account: email, sync: 'completed' })
    assert.equal((await rig.list(`${account}/messages`)).length, 1, 'then all of it is there')
    const [stored] = await rig.engine.store.accounts.listByUser(String(made['id']))
    rig.engine.accounts.wake(stored?.id ?? '')
    rig.imap.append(email, 'INBOX', mail({ to: email, subject: 'behind' }))
    await until('the next one', async () => (await rig.list(`${account}/messages`)).length === 2)
    assert.equal(synced().length, 1)
  })

  test('mail of folders that are refused for hours in the first sync is no loss for receive_historical', async () => {
    const email = 'refused@mail.example'
    rig.imap.addUser(email, { folders: { INBOX: [], Barred: [], Half: [] } })
    const dayAgo = new Date(Date.now() - 86_400_000)
    const subjects = ['INBOX 1', 'Barred 1', 'Barred 2', 'Half 1', 'Half 2']
    for (const subject of subjects)
      rig.imap.append(email, subject.split(' ')[0] ?? '', mail({ to: email, subject }), [], dayAgo)
    const isRefused = /SELECT "?Barred/
    rig.imap.hooks = {
      command: ({ name, text, folder }) =>
        isRefused.test(text) || (name === 'UID SEARCH' && folder?.name === 'Half')
          ? { tagged: 'NO [INUSE] later' }
          : undefined,
    }
    const hook = { callback_url: `${receiver.url}/history`, receive_historical: 1 }
    const id = String((await rig.ok('POST', '/2.0/webhooks', hook))['webhook_id'])
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const made = await rig.ok('POST', '/2.0/accounts', userBody(server, email))
    const { store } = rig.engine
    const accountId = (await store.accounts.listByUser(String(made['id'])))[0]?.id ?? ''
    const refused = async () => (await store.folders.list(accountId)).filter(({ failures }) => failures > 0)
    await until('refused', async () => (await refused()).length === 2)
    const park = async (until: number): Promise<void> => {
      for (const folder of await refused()) await store.folders.setParked(folder.id, 3, until)
      rig.imap.dropConnections(email)
    }
    const told = () => sentTo(id).map((callback) => String(dataOf(callback)['subject']))
    await park(Date.now() + 3_600_000)
    await allRead(rig.engine, accountId)
    await until('the scan is done', async () => (await store.webhooks.scan(id, accountId))?.done)
    await until('the first', () => told().length > 0)
    // A new session tries a folder that was never opened, parked or not.
    await until('tried anew', async () => (await store.folders.byPath(accountId, 'Barred'))?.failures !== 3)
    assert.deepEqual(told(), ['INBOX 1'])
    rig.imap.hooks = {}
    await park(0)
    await until('the others', () => told().length >= subjects.length, { explain: () => told().join() })
    rig.imap.append(email, 'Half', mail({ to: email, subject: 'live' }))
    await until('what comes later', () => told().includes('live'))
    assert.deepEqual(told().sort(), [...subjects, 'live'].sort())
    await rig.ok('DELETE', `/2.0/webhooks/${id}`)
  })

  // The store of one engine is made to fail.
  const alone = { skip: nodeCount > 1 }
  test(
    'a store that does not take the callback of the first sync is asked again: it goes out, once',
    alone,
    async () => {
      const email = 'late-callback@mail.example'
      rig.imap.addUser(email)
      const { outbox } = rig.engine.store
      const enqueue = outbox.enqueue.bind(outbox)
      // The first ends the session, the second does not.
      const refusals = [
        new AppError('store_unavailable', 'not now'),
        new AppError('busy', 'nor now', { retryAfterMs: 10 }),
      ]
      const failing: typeof enqueue = async (rows) => {
        const refusal = rows.some(({ kind }) => kind === 'sync') ? refusals.shift() : undefined
        if (refusal !== undefined) throw refusal
        return enqueue(rows)
      }
      Object.assign(outbox, { enqueue: failing })
      const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
      const extra = { callback_url: `${receiver.url}/synced-late` }
      const made = await rig.ok('POST', '/2.0/accounts', userBody(server, email, extra))
      const [account] = await rig.engine.store.accounts.listByUser(String(made['id']))
      await allRead(rig.engine, account?.id ?? '')
      assert.equal(refusals.length, 0)
      const synced = (): Callback[] => receiver.accepted().filter(({ path }) => path === '/synced-late')
      await until('the callback', () => synced().length > 0)
      Object.assign(outbox, { enqueue })
      const stored = await outbox.list({ accountId: account?.id ?? '' }, { limit: 10, offset: 0 })
      assert.deepEqual([synced().length, stored.length], [1, 1])
    },
  )

  test('migrate_account_id: mail, sources and webhooks stay; nothing is read or told again', async () => {
    const moved = await v2Mailbox(rig, 'mover', { subjects: ['one', 'two'] })
    const hook = { callback_url: `${receiver.url}/moved`, receive_all_changes: 1, receive_historical: 1 }
    const id = String((await rig.ok('POST', `${moved.account}/webhooks`, hook))['webhook_id'])
    await moved.deliver({ subject: 'three' })
    await until('all before', () => sentTo(id).length === 3)
    // A callback whose result is not stored yet would go out again, under its own id.
    await until('their results', async () => (await rig.engine.store.outbox.backlog(id)).pending === 0)
    const [before] = await rig.engine.store.accounts.listByUser(moved.userId)
    const [mark, stored] = [rig.imap.log.length, await rig.engine.store.webhooks.get(id)]
    const answer = await rig.ok('POST', '/lite/users', { migrate_account_id: moved.userId })
    assert.equal(answer['id'], moved.userId)
    assert.deepEqual(answer['email_account'], { label: moved.label, resource_url: `${rig.url}${moved.path}` })
    assert.deepEqual((await rig.list(`${moved.path}/messages`)).map((one) => one['subject']).sort(), [
      'one',
      'three',
      'two',
    ])
    assert.deepEqual(await rig.list(`${moved.account}/webhooks`), [])
    const [webhook, ...more] = await rig.list(`/lite/users/${moved.userId}/webhooks`)
    assert.deepEqual([webhook?.['webhook_id'], webhook?.['version'], more], [id, undefined, []])
    const after = await rig.engine.store.webhooks.get(id)
    assert.deepEqual(after, { ...stored, version: 'lite', health: after?.health })
    const [account] = await rig.engine.store.accounts.listByUser(moved.userId)
    assert.equal(account?.resume.initialSyncAt, before?.resume.initialSyncAt)
    assert.equal(account?.epoch, before?.epoch)
    await moved.deliver({ subject: 'four' })
    const fourth = await until('the fourth', () => sentTo(id)[3])
    assert.equal(dataOf(fourth)['subject'], 'four')
    assert.match(String(dataOf(fourth)['resource_url']), /\/lite\/users\//)
    assert.equal(new Set(sentTo(id).map(({ headers }) => headers['webhook-id'])).size, 4)
    assert.equal(sentTo(id).length, 4)
    const own = new Set(rig.imap.connections.filter(({ user }) => user === moved.email).map((one) => one.id))
    const said = rig.imap.log.slice(mark).filter(({ connection }) => own.has(connection))
    assert(said.length > 0)
    assert.deepEqual(
      said.map(({ line }) => line).filter((line) => /^C: .*(?:LOGIN|AUTHENTICATE|UID FETCH [12]\b.*BODY)/.test(line)),
      [],
      'no second sync',
    )
    assert.equal((await rig.call('POST', '/lite/users', { migrate_account_id: 'nobody' })).status, 404)
    await allRead(rig.engine, moved.accountId)
  })
})
