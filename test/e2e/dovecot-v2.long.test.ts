/**
 * The whole 2.0 API on real Dovecot, row by row: each operation of the OpenAPI document is answered well at least once,
 * and what it changes is looked for on the mail server.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { document } from '../api/core/coverage.ts'
import { raw } from '../api/v2/rig.ts'
import { createVisitor } from '../connect/visitor.ts'
import { part, type Callback } from '../support/callbacks.ts'
import { mail } from '../support/mail.ts'
import { needs } from '../support/require.ts'
import type { Json } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { messageRows } from './dovecot-v2-messages.ts'
import {
  account,
  first,
  folder,
  labels,
  letters,
  names,
  openWorld,
  placesOn,
  second,
  source,
  type World,
} from './dovecot-v2-rig.ts'
import { assertSigned } from './stage.ts'

const callback_url = 'http://localhost/done'

suite(`2.0 on Dovecot, ${chosenStore().kind} store`, needs('dovecot'), () => {
  let world: World
  before(async () => void (world = await openWorld()))
  after(() => world.close())

  test('accounts: made with a mailbox, listed, edited, removed; the mail stays', async () => {
    const { server, stage, mailbox } = world
    const email = 'fresh@mail.example'
    await server.append(email, 'INBOX', mail({ to: email, subject: 'before' }))
    const wrong = await world.ok('POST /2.0/accounts', { body: mailbox(email, { password: 'wrong' }) })
    assert.deepEqual([wrong['success'], wrong['feedback_code']], [false, 'invalid_credentials'])
    const synced = `${stage.receiver.url}/synced`
    const made = await world.ok('POST /2.0/accounts', { body: mailbox(email, { callback_url: synced }) })
    const path = { id: String(made['id']), label: 'fresh::imap' }
    const told = await until('its first sync', () => stage.receiver.accepted().find((one) => one.path === '/synced'))
    assertSigned(told)
    const { server_label, email_account, sync, account_id } = told.body
    assert.deepEqual([account_id, server_label, email_account, sync], [path.id, path.label, email, 'completed'])
    const [listed, ...more] = await world.list('GET /2.0/accounts', { query: { email, status_ok: 1, limit: 5 } })
    assert.deepEqual([listed?.['id'], listed?.['nb_messages'], more], [path.id, 1, []])
    await world.ok(`POST ${account}`, { path, body: { first_name: 'F' } })
    await world.ok(`PUT ${account}`, { path, body: { last_name: 'L' } })
    const { first_name, last_name, email_addresses } = await world.ok(`GET ${account}`, { path })
    assert.deepEqual([first_name, last_name, email_addresses], ['F', 'L', [email]])
    const checked = await world.ok(`POST ${source}`, { path, body: { status: 1, force_status_check: 1 } })
    assert.deepEqual([checked['success'], checked['status']], [true, 'OK'])
    await world.ok(`DELETE ${source}`, { path })
    assert.deepEqual(await world.list(`GET ${account}/sources`, { path }), [])
    await world.ok(`DELETE ${account}`, { path })
    assert.equal((await world.call(`GET ${account}`, { path })).status, 404)
    const box = await server.connect(email)
    assert.deepEqual(await placesOn(box, 'before', ['INBOX']), ['INBOX'])
    await box.close()
  })

  test('sources: one that is refused is not made, each has its own mail', async () => {
    const refused = await world.ok(`POST ${account}/sources`, { body: world.mailbox('x@mail.example', { port: 1 }) })
    assert.deepEqual([refused['success'], refused['feedback_code']], [false, 'connection_refused'])
    const shown = await world.list(`GET ${account}/sources`, { query: { status: 'OK' } })
    assert.deepEqual(names(shown, 'label'), labels)
    assert.deepEqual(await world.ok(`GET ${source}`, { path: { label: labels[1] } }), shown[1])
    const of = (label: string) => world.list(`GET ${account}/messages`, { query: { source: label, limit: 100 } })
    assert.deepEqual(names(await of(labels[1])), ['old'])
    assert.deepEqual(names(await of(labels[0])).sort(), letters.map(([subject]) => subject).sort())
  })

  test('email addresses', async () => {
    const of = `${account}/email_addresses`
    const email = 'alias@mail.example'
    const listed = async () => names(await world.list(`GET ${of}`), 'email')
    await world.ok(`POST ${of}`, { body: { email_address: email } })
    assert.deepEqual(await listed(), [first, second, email])
    const path = { email }
    await world.ok(`POST ${of}/{email}`, { path, body: { primary: 1 } })
    assert.equal((await world.ok(`GET ${of}/{email}`, { path }))['primary'], 1)
    assert.deepEqual(await listed(), [email, first, second])
    await world.ok(`DELETE ${of}/{email}`, { path })
    assert.deepEqual(await listed(), [first, second])
  })

  test('sync: the state of each folder, and a look that brings what has come', async () => {
    const [box] = world.boxes
    const states = (await world.ok(`GET ${account}/sync`)) as Record<string, Record<string, Json>>
    assert.deepEqual(Object.keys(states), labels)
    assert.deepEqual(Object.keys(states[labels[0]] ?? {}).sort(), ['Archive', 'INBOX', 'Junk', 'Sent'])
    assert.equal(states[labels[0]]?.['INBOX']?.['initial_import_finished'], true)
    assert.deepEqual(Object.keys(await world.ok(`GET ${source}/sync`)), [labels[0]])
    for (const [of, synced] of [
      [account, labels],
      [source, [labels[0]]],
    ] as const) {
      const subject = `just now ${synced.length}`
      await box.append('INBOX', [mail({ to: first, subject })])
      const answer = await world.ok(`POST ${of}/sync`)
      assert.deepEqual(names(answer['synced_sources'] as Json[], 'label'), synced)
      await world.idOf(subject)
    }
  })

  messageRows(() => world)

  test('folders: listed with counts, made, emptied of what is deleted, removed', async () => {
    const [box] = world.boxes
    const onServer = async () =>
      (await box.command('LIST "" "Work*"')).map((line) => /"?(Work[^"]*)"?$/.exec(line)?.[1])
    await world.ok(`PUT ${folder}`, { path: { folder: 'Work' } })
    await world.ok(`POST ${folder}`, { path: { folder: 'Work.Über' }, query: { delim: '.' } })
    assert.deepEqual((await onServer()).sort(), ['Work', 'Work/&ANw-ber'])
    assert.equal((await world.call(`POST ${folder}`, { path: { folder: 'Work' } })).status, 409)
    const path = { folder: 'Work/Über' }
    await box.append('Work/&ANw-ber', [mail({ to: first, subject: 'kept' })])
    await box.append('Work/&ANw-ber', [mail({ to: first, subject: 'expunged' })], ['\\Deleted'])
    const counts = async (): Promise<unknown[]> => {
      const shown = await world.ok(`GET ${folder}`, { path, query: { include_extended_counts: 1 } })
      return [shown['name'], shown['nb_messages'], shown['nb_unseen_messages'], shown['delim']]
    }
    // The number of unseen ones follows with the next look at the list of folders.
    await until('two', async () => String((await counts()).slice(1, 3)) === '2,2')
    assert.deepEqual(await counts(), ['Work/Über', 2, 2, '/'])
    assert.deepEqual(await world.ok(`POST ${folder}/expunge`, { path }), { success: true })
    assert.deepEqual(await placesOn(box, 'kept', ['Work/&ANw-ber']), ['Work/&ANw-ber'])
    assert.deepEqual(await placesOn(box, 'expunged', ['Work/&ANw-ber']), [])
    // The folder is open now, and the connection has not heard of this one.
    await box.append('Work/&ANw-ber', [mail({ to: first, subject: 'just now' })], ['\\Deleted'])
    assert.deepEqual(await world.ok(`POST ${folder}/expunge`, { path }), { success: true })
    assert.deepEqual(await placesOn(box, 'just now', ['Work/&ANw-ber']), [])
    await box.append('INBOX', [mail({ to: first, subject: 'moved in' })])
    await world.ok(`POST ${account}/sync`)
    const message = { message_id: await world.idOf('moved in') }
    const one = `${account}/messages/{message_id}`
    await world.ok(`POST ${one}`, { path: message, body: { dst_folder: 'Work/Über', move: 1, flag_deleted: 1 } })
    assert.deepEqual(await world.ok(`POST ${folder}/expunge`, { path }), { success: true })
    assert.equal((await world.call(`GET ${one}`, { path: message })).status, 404)
    const listed = await world.list(`GET ${source}/folders`, { query: { include_extended_counts: 1 } })
    assert.deepEqual(names(listed, 'name').sort(), ['Archive', 'INBOX', 'Junk', 'Sent', 'Work', 'Work/Über'])
    const uses = listed.map(({ name, symbolic_name }) => [name, symbolic_name])
    assert.deepEqual(Object.fromEntries(uses), {
      ...{ INBOX: '\\Inbox', Archive: '\\Archive', Junk: '\\Junk', Sent: '\\Sent', Work: '', 'Work/Über': '' },
    })
    // A removed folder that is selected ends the connection.
    await box.command('SELECT INBOX')
    await world.ok(`DELETE ${folder}`, { path })
    await world.ok(`DELETE ${folder}`, { path: { folder: 'Work' } })
    assert.deepEqual(await onServer(), [])
  })

  test('files: listed, with their content, and as a link', async () => {
    const query = { file_name: '*.pdf', file_size_min: 1, email: 'ada@sender.example', sort_order: 'asc', limit: 5 }
    const [file = {}, ...more] = await world.list(`GET ${account}/files`, { query })
    assert.deepEqual(
      [file['file_name'], file['message_id'], more],
      [...['report_20240506.pdf', await world.idOf('parts')], []],
    )
    const path = { file_id: String(file['file_id']) }
    assert.deepEqual(await world.ok(`GET ${account}/files/{file_id}`, { path }), file)
    const content = await world.call(`GET ${account}/files/{file_id}/content`, { path })
    assert.equal(content.headers.get('content-disposition'), 'attachment; filename="report_20240506.pdf"')
    assert.equal(content.body, '%PDF-')
    const link = await world.text(`GET ${account}/files/{file_id}/content`, { path, query: { as_link: 1 } })
    assert.equal((await world.stage.service.file(link)).toString(), '%PDF-')
    for (const others of ['related', 'revisions'])
      assert.deepEqual(await world.list(`GET ${account}/files/{file_id}/${others}`, { path }), [], others)
  })

  test('threads: by address, with their messages, put into folders, and removed', async () => {
    const [url, ...more] = (await world.list(`GET ${account}/threads`, { query: { subject: 'parts' } })) as unknown[]
    assert.deepEqual([typeof url, more], ['string', []])
    const path = { thread_id: String(url).split('/').at(-1) ?? '' }
    const thread = await world.ok(`GET ${account}/threads/{thread_id}`, { path, query: { include_flags: 1 } })
    assert.deepEqual(names(thread['messages'] as Json[]), ['root', 'parts'])
    assert.equal(thread['resource_url'], url)
    const [box] = world.boxes
    const threadFolders = `${account}/threads/{thread_id}/folders`
    const question = '<question@sender.example>'
    await box.append('INBOX', [mail({ to: first, subject: 'question' })])
    await box.append('INBOX', [mail({ to: first, subject: 'answer', headers: [`In-Reply-To: ${question}`] })])
    const both = ['question', 'answer']
    await world.ok(`POST ${account}/sync`)
    const ids = await Promise.all(both.map((subject) => world.idOf(subject)))
    const message = await world.ok(`GET ${account}/messages/{message_id}/thread`, {
      path: { message_id: ids[0] ?? '' },
    })
    assert.deepEqual(names(message['messages'] as Json[]).sort(), [...both].sort())
    const of = { thread_id: String(message['resource_url']).split('/').at(-1) ?? '' }
    const lie = async (): Promise<string> => {
      const places: string[] = []
      for (const subject of both) places.push(...(await placesOn(box, subject, ['INBOX', 'Archive', 'Sent'])))
      return places.join(' ')
    }
    await world.ok(`POST ${threadFolders}`, { path: of, body: { add: 'Archive', remove: 'INBOX' } })
    assert.equal(await lie(), 'Archive Archive')
    await world.ok(`PUT ${threadFolders}`, { path: of, body: { folders: [{ symbolic_name: '\\Sent' }] } })
    assert.equal(await lie(), 'Sent Sent')
    assert.deepEqual(names(await world.list(`GET ${threadFolders}`, { path: of }), 'name'), ['Sent'])
    await world.ok(`DELETE ${account}/threads/{thread_id}`, { path: of })
    assert.equal(await lie(), '')
  })

  test('contacts: counted from both ways of mail, with their messages, files and threads', async () => {
    const [box] = world.boxes
    await box.append('Sent', [mail({ from: first, to: 'bob@x.example', subject: 'to bob' })])
    const query = { search: 'x.example', sort_by: 'count', limit: 5 }
    const bobs = async () => (await world.ok(`GET ${account}/contacts`, { query }))['matches'] as Json[]
    // `parts` has Bob in To besides.
    await until('counted', async () => (await bobs())[0]?.['sent_count'] === 2)
    const [bob = {}] = await bobs()
    assert.deepEqual([bob['email'], bob['name'], bob['received_count']], ['bob@x.example', 'Bob B', 1])
    const path = { email: 'bob@x.example' }
    const one = await world.ok(`GET ${account}/contacts/{email}`, { path })
    assert.deepEqual(one, { ...bob, emails: ['bob@x.example'] })
    const messages = await world.list(`GET ${account}/contacts/{email}/messages`, { path })
    assert.deepEqual(names(messages).sort(), ['parts', 'root', 'to bob'])
    const files = await world.list(`GET ${account}/contacts/{email}/files`, { path: { email: 'ada@sender.example' } })
    assert.deepEqual(names(files, 'file_name'), ['report_20240506.pdf'])
    assert.equal((await world.list(`GET ${account}/contacts/{email}/threads`, { path })).length, 2)
  })

  for (const [level, base] of [
    ['account', `${account}/webhooks`],
    ['application', '/2.0/webhooks'],
  ] as const)
    test(`webhooks of the ${level}: real callbacks in the shape of 2.0`, async (t) => {
      const [box] = world.boxes
      const hook = {
        callback_url: `${world.stage.receiver.url}/v2`,
        filter_subject: `told ${level}`,
        receive_all_changes: 1,
      }
      const webhook_id = String((await world.ok(`POST ${base}`, { body: hook }))['webhook_id'])
      const path = { webhook_id }
      t.after(() => world.call(`DELETE ${base}/{webhook_id}`, { path }))
      assert.deepEqual(names(await world.list(`GET ${base}`), 'webhook_id'), [webhook_id])
      const told = (): Callback[] => world.sentTo(webhook_id)
      const next = async (count: number): Promise<Json> => {
        await until(`callback ${count}`, () => told().length >= count, { withinMs: 20_000 })
        told().forEach(assertSigned)
        return part(told()[count - 1]?.body ?? {}, 'message_data')
      }
      await box.append('INBOX', [raw(`told ${level}`, first)])
      const data = await next(1)
      assert.deepEqual([told()[0]?.body['account_id'], data['message_type']], [world.id, 'created'])
      const message_id = await world.idOf(`told ${level}`)
      const { message_id: id, folders, sources, files, date } = data
      assert.deepEqual([id, folders, date], [message_id, ['INBOX'], 1_714_989_600])
      assert.deepEqual(part(data, 'addresses')['from'], { email: 'Ada@sender.example', name: 'Ada L.' })
      assert.deepEqual(names(sources as Json[], 'label'), [labels[0]])
      assert.deepEqual(names(files as Json[], 'file_id'), [`${message_id}-2`])
      assert(Number(data['date_indexed']) > 1_700_000_000 && !('flags' in data) && !('date_received' in data))
      await world.ok(`POST ${account}/messages/{message_id}/flags`, { path: { message_id }, body: { seen: 1 } })
      assert.equal((await next(2))['message_type'], 'updated')
      const edited = await world.ok(`POST ${base}/{webhook_id}`, {
        ...{ path, body: { filter_subject: '', filter_folder_removed: 'INBOX' } },
      })
      assert.deepEqual(edited, { success: true, feedbackCode: '' })
      const shown = await world.ok(`GET ${base}/{webhook_id}`, { path })
      assert.deepEqual([shown['filter_folder_removed'], shown['active'], shown['failure']], ['INBOX', true, false])
      const move = { dst_folder: 'Archive', move: 1 }
      await world.ok(`POST ${account}/messages/{message_id}`, { path: { message_id }, body: move })
      assert.deepEqual([(await next(3))['message_id'], told().length], [message_id, 3])
      assert.deepEqual(await world.ok(`DELETE ${base}/{webhook_id}`, { path }), { success: true })
      assert.deepEqual(await world.list(`GET ${base}`), [])
    })

  for (const base of ['/2.0/connect_tokens', `${account}/connect_tokens`, `${source}/connect_tokens`])
    test(`connect tokens: ${base}`, async () => {
      const body = { callback_url, email: 'third@mail.example', source_sync_all_folders: 1 }
      const token = String((await world.ok(`POST ${base}`, { body }))['token'])
      const path = { token }
      assert.deepEqual(names(await world.list(`GET ${base}`), 'token'), [token])
      const shown = await world.ok(`GET ${base}/{token}`, { path })
      assert.deepEqual([shown['used'], shown['account'], shown['source_sync_all_folders']], [0, [], true])
      const plain = '/2.0/accounts/connect_tokens/{token}'
      const removed = base === '/2.0/connect_tokens' ? plain : `${base}/{token}`
      if (removed === plain) assert.deepEqual(await world.ok(`GET ${plain}`, { path }), shown)
      assert.deepEqual(await world.ok(`DELETE ${removed}`, { path }), { success: true })
      assert.equal((await world.call(`DELETE /2.0/connect_tokens/{token}`, { path })).status, 404)
    })

  test('a connect token that an end user follows makes a source on Dovecot', async () => {
    const email = 'third@mail.example'
    const { port, host, password } = world.server
    const made = await world.ok(`POST ${account}/connect_tokens`, { body: { callback_url, email } })
    const at = `/connect/${String(made['token'])}`
    const visitor = createVisitor(world.stage.service.url)
    await visitor.open(at)
    const login = { password, server: host, port: String(port), security: 'starttls', username: email }
    const sent = await visitor.send(`${at}/login`, login)
    assert.equal(sent.status, 303, sent.text)
    const done = await visitor.open(sent.location ?? '')
    assert.match(done.text, /Your mailbox is connected/)
    const path = { token: String(made['token']) }
    const used = await world.ok(`GET ${account}/connect_tokens/{token}`, { path })
    assert.deepEqual([used['expires'], used['serverLabel'], used['email']], [false, 'third::imap', email])
    assert.deepEqual(names(part(used, 'account')['sources'] as Json[], 'label'), [...labels, 'third::imap'])
    const query = { source: 'third::imap' }
    const empty = await until('its mail', async () => {
      const { status, body } = await world.call(`GET ${account}/messages`, { query })
      return status === 200 ? (body as Json[]) : null
    })
    assert.deepEqual(empty, [])
    await world.ok('DELETE /2.0/connect_tokens/{token}', { path })
    await world.ok(`DELETE ${source}`, { path: { label: 'third::imap' } })
  })

  test('discovery', async () => {
    const found = await world.ok('GET /2.0/discovery', { query: { email: 'x@gmail.com' } })
    assert.deepEqual([found['found'], found['type'], part(found, 'imap')['port']], [true, 'gmail', 993])
  })

  for (const base of ['/2.0/oauth_providers', '/2.0/oauth_provider'])
    test(`OAuth providers: ${base}`, async () => {
      const key = 'client/2'
      const body = { type: 'GMAIL_OAUTH2', provider_consumer_key: key, provider_consumer_secret: 'abcdefghijk' }
      await world.ok(`POST ${base}`, { body })
      const [shown] = await world.list(`GET ${base}`)
      assert.deepEqual([shown?.['type'], shown?.['provider_consumer_secret']], ['GMAIL_OAUTH2', 'abc[...]ijk'])
      const path = { key }
      assert.deepEqual(await world.ok(`GET ${base}/{key}`, { path }), shown)
      assert.deepEqual(await world.ok(`DELETE ${base}/{key}`, { path }), { success: true })
      assert.deepEqual(await world.list(`GET ${base}`), [])
    })

  test('migrate_account_id: the same mail, sources and webhooks by lite, and nothing is told again', async () => {
    const { service, receiver } = world.stage
    const hook = { callback_url: `${receiver.url}/moved`, receive_all_changes: 1 }
    const webhook = String((await world.ok(`POST ${account}/webhooks`, { body: hook }))['webhook_id'])
    const lite = `/lite/users/${world.id}`
    const mailOf = async () => names(await service.list(`${lite}/email_accounts/0/messages?limit=100`), 'message_id')
    const changes = async () => (await service.ok('GET', `${lite}/changes?limit=1000`))['changes'] as Json[]
    const [mailBefore, changesBefore] = [await mailOf(), await changes()]
    assert.equal((await service.ok('POST', '/lite/users', { migrate_account_id: world.id }))['id'], world.id)
    assert.deepEqual(names(await service.list(`${lite}/email_accounts`), 'label'), labels)
    assert.deepEqual(await world.list(`GET ${account}/webhooks`), [])
    assert.deepEqual(names(await service.list(`${lite}/webhooks`), 'webhook_id'), [webhook])
    await world.boxes[0].append('INBOX', [mail({ to: first, subject: 'by lite' })])
    await until('the callback', () => world.sentTo(webhook).length > 0, { withinMs: 20_000 })
    const told = world.sentTo(webhook).map(({ body }) => part(body, 'message_data'))
    assert.deepEqual(names(told), ['by lite'])
    assert.match(String(told[0]?.['resource_url']), /\/lite\/users\//)
    const [newest, ...others] = await mailOf()
    assert.deepEqual([newest, others], [told[0]?.['message_id'], mailBefore])
    assert.deepEqual((await changes()).slice(0, changesBefore.length), changesBefore)
    assert.equal((await changes()).length, changesBefore.length + 1)
  })

  test('every operation of 2.0 in the OpenAPI document was answered with 200', () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      path.startsWith('/2.0/') ? Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`) : [],
    )
    assert(operations.length > 70)
    assert.deepEqual(
      operations.filter((operation) => !world.answered.has(operation)),
      [],
    )
    assert.deepEqual(
      [...world.answered].filter((operation) => !operations.includes(operation)),
      [],
    )
  })
})
