/** Accounts and sources of 2.0: what is made, shown, edited and removed. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { addSource, v2Mailbox } from './rig.ts'

suite('accounts of 2.0', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig()
  })
  after(async () => {
    await rig.close()
  })

  const body = (email: string, extra: Json = {}): Json => {
    rig.imap.addUser(email)
    return userBody({ host: rig.imap.host, port: rig.imap.port, password: 'secret' }, email, extra)
  }

  test('with only an email have no source', async () => {
    const made = await rig.ok('POST', '/2.0/accounts', { email: 'Bare@mail.example', first_name: 'B' })
    const id = String(made['id'])
    assert.deepEqual(made, { success: true, id, resource_url: `${rig.url}/2.0/accounts/${id}` })
    const view = await rig.ok('GET', `/2.0/accounts/${id}/`)
    const { created, ...rest } = view
    assert(Math.abs(Number(created) - Date.now() / 1000) < 600)
    assert.deepEqual(rest, {
      id,
      username: 'bare@mail.example',
      suspended: 0,
      password_expired: 0,
      first_name: 'B',
      last_name: '',
      email_addresses: ['bare@mail.example'],
      sources: [],
      nb_messages: 0,
      nb_files: 0,
      resource_url: `${rig.url}/2.0/accounts/${id}`,
    })
    assert.deepEqual(await rig.list(`/2.0/accounts/${id}/sources`), [])
  })

  test('without an email are 400 and name it', async () => {
    const answer = await rig.call('POST', '/2.0/accounts', { first_name: 'B' })
    assert.equal(answer.status, 400)
    assert.equal(answer.json['value'], 'email: is required')
  })

  test('with a mailbox have a source, with the options that were asked for', async () => {
    const wanted = { sync_all_folders: 1, expunge_on_deleted_flag: '1', raw_file_list: true, origin_ip: '192.0.2.1' }
    const answer = await rig.call('POST', '/2.0/accounts', body('ann.lee@mail.example', wanted))
    const id = String(answer.json['id'])
    const resource_url = `${rig.url}/2.0/accounts/${id}/sources/ann.lee%3A%3Aimap`
    const source = { label: 'ann.lee::imap', resource_url }
    assert.deepEqual(answer.json, { success: true, id, resource_url: `${rig.url}/2.0/accounts/${id}`, source })
    assert.equal(answer.headers['x-service-email-account-status'], `${resource_url} OK`)
    const [shown] = await rig.list(`/2.0/accounts/${id}/sources?status=OK`)
    assert.deepEqual(shown, {
      server: rig.imap.host,
      label: 'ann.lee::imap',
      username: 'ann.lee@mail.example',
      port: rig.imap.port,
      use_ssl: false,
      type: 'imap',
      authentication_type: 'password',
      status: 'OK',
      status_message: null,
      status_callback_url: null,
      sync_flags: true,
      sync_all_folders: true,
      expunge_on_deleted_flag: true,
      raw_file_list: true,
      callback_url: null,
      resource_url,
    })
    assert.deepEqual((await rig.ok('GET', `/2.0/accounts/${id}`))['sources'], [shown])
    assert.deepEqual(await rig.ok('GET', `/2.0/accounts/${id}/sources/0`), shown)
    assert.deepEqual(await rig.list(`/2.0/accounts/${id}/sources?status_ok=0`), [])
  })

  test('with a wrong password are not created: a soft failure', async () => {
    const made = await rig.ok('POST', '/2.0/accounts', body('wrong@mail.example', { password: 'no' }))
    assert.deepEqual([made['success'], made['feedback_code']], [false, 'invalid_credentials'])
    assert.equal(made['connection_log'], made['connectionLog'])
    assert.deepEqual(await rig.list('/2.0/accounts?email=wrong@mail.example'), [])
  })

  test('are listed by address, with the number of messages and files; edited; removed', async () => {
    const box = await v2Mailbox(rig, 'listed', { subjects: ['one', 'two'] })
    const [view] = await rig.list('/2.0/accounts?email=LISTED@mail.example&status_ok=1&limit=1')
    assert.deepEqual([view?.['id'], view?.['nb_messages'], view?.['nb_files']], [box.userId, 2, 0])
    assert.deepEqual(view, await rig.ok('GET', box.account))
    assert.deepEqual(await rig.list('/2.0/accounts?email=listed@mail.example&status=DISABLED'), [])
    const edited = { success: true, resource_url: rig.url + box.account }
    assert.deepEqual(await rig.ok('POST', box.account, { first_name: 'F' }), edited)
    assert.deepEqual(await rig.ok('PUT', box.account, { last_name: 'L' }), edited)
    const named = await rig.ok('GET', box.account)
    assert.deepEqual([named['first_name'], named['last_name']], ['F', 'L'])
    assert.deepEqual(await rig.ok('DELETE', box.account), { success: true })
    assert.equal((await rig.call('GET', box.account)).status, 404)
  })

  test('that are not there are 404 in the words of 2.0', async () => {
    const box = await v2Mailbox(rig, 'words')
    const nobody = 'f'.repeat(24)
    for (const [path, words] of [
      [`/2.0/accounts/${nobody}`, `account ${nobody} is invalid`],
      [`/2.0/accounts/${nobody}/messages`, `account ${nobody} is invalid`],
      [`${box.account}/sources/none`, 'source none is invalid'],
      [`${box.account}/messages?source=none`, 'source none is invalid'],
      [`${box.account}/messages/none`, 'message none is invalid'],
      [`${box.source}/folders/None`, 'folder None is invalid'],
    ] as const) {
      const answer = await rig.call('GET', path)
      assert.deepEqual([answer.status, answer.json['value']], [404, words], path)
    }
  })

  test('have several sources, each with its mail', async () => {
    const box = await v2Mailbox(rig, 'several', { subjects: ['first'] })
    const second = 'several.second@mail.example'
    const made = await rig.ok('POST', `${box.account}/sources`, body(second, { sync_folders: 'All,Trash' }))
    assert.deepEqual(made, {
      success: true,
      status: 'OK',
      label: 'several.second::imap',
      resource_url: `${rig.url}${box.account}/sources/several.second%3A%3Aimap`,
    })
    const path = `${box.account}/sources/several.second::imap`
    assert.equal((await rig.ok('GET', path))['sync_all_folders'], true)
    assert.equal((await rig.list(`${box.account}/sources`)).length, 2)
    const subjects = async (query: string): Promise<unknown[]> => {
      const found = await until('the list', async () => {
        const answer = await rig.call('GET', `${box.account}/messages${query}`)
        return answer.status === 200 ? (JSON.parse(answer.text) as Json[]) : null
      })
      return found.map((message) => message['subject'])
    }
    assert.deepEqual(await subjects(''), ['first'])
    assert.deepEqual(await subjects('?source=several.second::imap'), [])
    assert.deepEqual(await rig.ok('DELETE', path), { success: true })
    assert.equal((await rig.call('GET', path)).status, 404)
  })

  test('a source is edited: its options, its status, and only what is named', async () => {
    const box = await v2Mailbox(rig, 'edited')
    const answer = await rig.ok('POST', box.source, { sync_all_folders: 1, status: 1, force_status_check: 1 })
    assert.deepEqual(answer, { success: true, status: 'OK', status_message: null, resource_url: rig.url + box.source })
    await rig.ok('POST', box.source, { raw_file_list: 1, callback_url: 'http://127.0.0.1:9/synced' })
    const view = await rig.ok('GET', box.source)
    const options = ['sync_all_folders', 'raw_file_list', 'expunge_on_deleted_flag', 'sync_flags', 'callback_url']
    assert.deepEqual(
      options.map((name) => view[name]),
      [true, true, false, true, 'http://127.0.0.1:9/synced'],
    )
    await rig.ok('POST', box.source, { sync_all_folders: 0, callback_url: '' })
    const after = await rig.ok('GET', box.source)
    assert.deepEqual([after['sync_all_folders'], after['raw_file_list'], after['callback_url']], [false, true, null])
    for (const [name, wrong] of [
      ['callback_url', 'ftp://x'],
      ['callback_url', 'http://user:secret@127.0.0.1:9/'],
      ['status', 0],
      ['sync_all_folders', 'perhaps'],
    ] as const) {
      const refused = await rig.call('POST', box.source, { [name]: wrong })
      assert.equal(refused.status, 400, `${name} ${wrong}`)
      assert.match(String(refused.json['value']), new RegExp(`^${name}: `))
    }
  })

  test('a move between them is done again by a copy of the same size alone, and within one by no place of its own', async () => {
    const box = await v2Mailbox(rig, 'again')
    const other = 'again-2@mail.example'
    rig.imap.addUser(other)
    const { label, accountId: otherId } = await addSource(rig, box, other)
    const path = (id: string): string => `${box.account}/messages/${encodeURIComponent(id)}`
    const idThere = (subject: string): Promise<string> =>
      until(subject, async () => {
        const [found] = await rig.engine.store.messages.list(otherId, { subject }, { limit: 1, offset: 0 })
        return found?.id
      })

    // Without a Message-ID, of one second and subject.
    const run = (text: string): string =>
      `From: cron@x.example\r\nSubject: larger\r\nDate: Mon, 6 May 2024 10:00:00 +0000\r\n\r\n${text}\r\n`
    const id = await box.deliverRaw(run('run'), 'larger')
    rig.imap.append(other, 'Archive', run('a longer run'))
    await idThere('larger')
    await rig.ok('DELETE', path(id))
    const answer = await rig.call('POST', path(id), { dst_source: label, dst_folder: 'Archive', move: 1 })
    assert.equal(answer.status, 404, answer.text)

    // The other source had this mail, and has it no more.
    const date = new Date()
    rig.imap.append(other, 'INBOX', mail({ to: box.email, subject: 'both', date }))
    await rig.ok('DELETE', path(await idThere('both')))
    await rig.ok('POST', path(await box.deliver({ subject: 'both', date })), { dst_folder: 'Archive' })
    const move = { dst_source: box.label, dst_folder: 'Archive', move: 1 }
    await rig.ok('POST', path('<both@sender.example>'), move)
    const copies = (folder: string): number =>
      rig.imap.folder(box.email, folder).messages.filter(({ raw }) => raw.includes('Subject: both\r\n')).length
    assert.deepEqual([copies('INBOX'), copies('Archive')], [0, 1])
  })
})
