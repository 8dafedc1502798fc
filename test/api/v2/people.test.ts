/** Contacts, email addresses and the state of the sync of 2.0; connect tokens, discovery and OAuth providers. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { countTurns } from '../../support/loop-turns.ts'
import { mail } from '../../support/mail.ts'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { deskOf } from '../../connect/desk.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { addSource, v2Mailbox, type V2Mailbox } from './rig.ts'

suite('people of 2.0', () => {
  let rig: LiteRig
  before(async () => void (rig = await startLiteRig()))
  after(() => rig.close())

  suite('contacts', () => {
    let box: V2Mailbox
    before(async () => {
      box = await v2Mailbox(rig, 'friends')
      await box.deliver({ from: 'Bob B <bob@x.example>', subject: 'one', date: new Date('2024-05-01') })
      await box.deliver({ from: 'Bob B <bob@x.example>', subject: 'two', date: new Date('2024-05-02') })
      await box.deliver({ from: 'Eve <eve@y.example>', subject: 'three' })
      await box.deliverRaw(mail({ from: box.email, to: 'bob@x.example', subject: 'sent' }), 'sent', 'Sent')
      await until('counted', async () => (await matches())[0]?.['count'] === 3)
    })
    const matches = async (query = ''): Promise<Json[]> =>
      (await rig.ok('GET', `${box.account}/contacts${query}`))['matches'] as Json[]
    const names = async (query: string): Promise<string> =>
      (await matches(query)).map((one) => String(one['email']).split('@')[0]).join(' ')

    test('are matches of a query', async () => {
      const answer = await rig.ok('GET', `${box.account}/contacts?limit=1`)
      assert.deepEqual(answer['query'], { sort_by: 'count', sort_order: 'desc', limit: 1, offset: 0 })
      const [bob = {}] = answer['matches'] as Json[]
      const { contact_id, thumbnail, last_received, ...rest } = bob
      assert.match(String(contact_id), /^[0-9a-f]{24}$/)
      assert.match(String(thumbnail), /^https:\/\//)
      assert(Math.abs(Number(last_received) - Date.now() / 1000) < 600)
      assert.deepEqual(rest, {
        email: 'bob@x.example',
        name: 'Bob B',
        count: 3,
        total_count: 3,
        received_count: 2,
        indirect_count: 2,
        direct_count: 0,
        sent_count: 1,
        service_user_id: box.userId,
        resource_url: `${rig.url}${box.account}/contacts/bob%40x.example`,
      })
      assert.deepEqual(await rig.ok('GET', `${box.account}/contacts/BOB@x.example`), {
        ...bob,
        emails: ['bob@x.example'],
      })
    })

    test('are searched, sorted and paged', async () => {
      for (const [query, expected] of [
        ['', 'bob eve'],
        ['?sort_order=asc', 'eve bob'],
        ['?sort_by=received_count&limit=1', 'bob'],
        ['?offset=1', 'eve'],
        ['?search=EVE', 'eve'],
        ['?search=.example', 'bob eve'],
        ['?search=nobody', ''],
      ] as const)
        assert.equal(await names(query), expected, query)
      const searched = await rig.ok('GET', `${box.account}/contacts?search=b%20b`)
      assert.equal((searched['query'] as Json)['search'], 'b b')
      for (const query of ['sort_by=name', 'sort_by=email', 'sort_by=sent_count', 'limit=101', 'sort_order=up'])
        assert.equal((await rig.call('GET', `${box.account}/contacts?${query}`)).status, 400, query)
      for (const name of ['active_after', 'active_before']) {
        const answer = await rig.call('GET', `${box.account}/contacts?${name}=1`)
        assert.equal(answer.status, 400)
        assert.match(String(answer.json['value']), new RegExp(`^${name}: contacts are not filtered by time`))
        assert.equal((await rig.call('GET', `${box.account}/contacts?${name}=`)).status, 200)
      }
    })

    test('have their messages, files and threads', async () => {
      const one = `${box.account}/contacts/bob@x.example`
      const messages = await rig.list(`${one}/messages?limit=2&include_source=1`)
      assert.deepEqual(
        messages.map((message) => message['subject']),
        ['sent', 'two'],
      )
      assert.equal((messages[0]?.['sources'] as Json[])[0]?.['label'], box.label)
      assert.deepEqual(await rig.list(`${one}/files`), [])
      const threads = (await rig.list(`${one}/threads`)) as unknown as string[]
      assert.equal(threads.length, 3)
      assert.equal((await rig.list(`${one}/threads?subject=two`)).length, 1)
    })

    test('that are not there are 404', async () => {
      for (const part of ['', '/messages', '/files', '/threads']) {
        const answer = await rig.call('GET', `${box.account}/contacts/no@x.example${part}`)
        assert.deepEqual([answer.status, answer.json['value']], [404, 'contact no@x.example is invalid'], part)
      }
    })
  })

  test('accounts are counted in turns', { skip: nodeCount > 1 }, async (t) => {
    for (let n = 0; n < 12; n += 1) await rig.mailbox(`turn${n}`)
    const turnOf = countTurns(t)
    const turns: number[] = []
    t.mock.method(rig.engine.store.messages, 'totals', () => {
      turns.push(turnOf())
      const until = performance.now() + 15
      while (performance.now() < until);
      return Promise.resolve({ messages: 1, attachments: 0 })
    })
    await rig.list('/2.0/accounts')
    assert(turns.length >= 12)
    const most = Math.max(...[...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length))
    assert(most <= turns.length / 2, `${most} of ${turns.length} in one turn`)
  })

  suite('email addresses', () => {
    test('are listed, added, made the first one, and removed', async () => {
      const made = await rig.ok('POST', '/2.0/accounts', { email: 'own@mail.example' })
      const base = `/2.0/accounts/${String(made['id'])}/email_addresses`
      const view = (email: string, primary: 0 | 1) => {
        return { email, primary, resource_url: `${rig.url}${base}/${encodeURIComponent(email)}` }
      }
      const without = ({ validated, ...rest }: Json): Json => {
        assert(Math.abs(Number(validated) - Date.now() / 1000) < 600)
        return rest
      }
      const listed = async (): Promise<Json[]> => (await rig.list(base)).map(without)
      assert.deepEqual(await listed(), [view('own@mail.example', 1)])
      const added = await rig.ok('POST', base, { email_address: 'Second@Mail.Example' })
      assert.deepEqual(without(added), { success: true, ...view('second@mail.example', 0) })
      await rig.ok('POST', base, { email_address: 'second@mail.example' })
      assert.equal((await listed()).length, 2)
      assert.equal((await rig.list('/2.0/accounts?email=second@mail.example')).length, 1)
      const second = `${base}/SECOND%40mail.example`
      assert.deepEqual(without(await rig.ok('GET', second)), view('second@mail.example', 0))
      const edited = { success: true, resource_url: `${rig.url}${base}/second%40mail.example` }
      assert.deepEqual(await rig.ok('POST', second, { primary: 1 }), edited)
      assert.deepEqual(await listed(), [view('second@mail.example', 1), view('own@mail.example', 0)])
      assert.deepEqual((await rig.list(`${base}?limit=1&offset=1`)).map(without), [view('own@mail.example', 0)])
      assert.equal((await rig.ok('GET', base.replace('/email_addresses', '')))['username'], 'second@mail.example')
      assert.deepEqual(await rig.ok('DELETE', second), { success: true })
      assert.deepEqual(await listed(), [view('own@mail.example', 1)])
      const gone = await rig.call('DELETE', second)
      assert.deepEqual([gone.status, gone.json['value']], [404, 'email address SECOND@mail.example is invalid'])
      const bad = await rig.call('POST', base, { email_address: 'nobody' })
      assert.equal(bad.json['value'], 'email_address: expected an email address')
    })

    test('that were removed do not come back with the removal of a source', async () => {
      const box = await v2Mailbox(rig, 'stays')
      rig.imap.addUser('goes@mail.example', {})
      const { label } = await addSource(rig, box, 'goes@mail.example')
      const base = `${box.account}/email_addresses`
      await rig.ok('POST', base, { email_address: 'first-of-all@mail.example' })
      await rig.ok('POST', `${base}/first-of-all@mail.example`, { primary: 1 })
      await rig.ok('DELETE', `${base}/${box.email}`)
      await rig.ok('DELETE', `${box.account}/sources/${encodeURIComponent(label)}`)
      assert.deepEqual(
        (await rig.list(base)).map(({ email }) => email),
        ['first-of-all@mail.example'],
      )
      assert.equal((await rig.list(`/2.0/accounts?email=${box.email}`)).length, 1, 'its source has it')
    })

    test('changed at the same time lose none of the changes', async () => {
      const made = await rig.ok('POST', '/2.0/accounts', { email: 'first@mail.example' })
      const base = `/2.0/accounts/${String(made['id'])}/email_addresses`
      const names = Array.from({ length: 6 }, (_, index) => `many${index}@mail.example`)
      await Promise.all(names.map((name) => rig.ok('POST', base, { email_address: name })))
      const [primary = '', kept = '', ...others] = names
      await Promise.all([
        ...others.map((name) => rig.ok('DELETE', `${base}/${name}`)),
        rig.ok('POST', `${base}/${primary}`, { primary: 1 }),
        rig.ok('POST', base, { email_address: 'late@mail.example' }),
      ])
      const listed = (await rig.list(base)).map(({ email }) => String(email))
      assert.equal(listed[0], primary)
      assert.deepEqual(listed.toSorted(), ['first@mail.example', kept, 'late@mail.example', primary].toSorted())
    })
  })

  suite('the sync', () => {
    test('tells of each folder how far it is read, and looks when it is told to', async () => {
      const box = await v2Mailbox(rig, 'synced', { subjects: ['old'] })
      const state = async (path: string) => (await rig.ok('GET', path)) as Record<string, Record<string, Json>>
      const states = await state(`${box.account}/sync`)
      assert.deepEqual(Object.keys(states), [box.label])
      const inbox = states[box.label]?.['INBOX']
      assert.equal(inbox?.['initial_import_finished'], true)
      for (const time of ['last_sync_start', 'last_sync_stop', 'last_expunge'])
        assert(Math.abs(Number(inbox[time]) - Date.now() / 1000) < 600, time)
      const shown = Object.keys(states[box.label] ?? {})
      assert(shown.includes('Sent') && !shown.includes('Trash') && !shown.includes('Drafts'), shown.join())
      assert.deepEqual(Object.keys((await state(`${box.source}/sync`))[box.label] ?? {}), shown)
      const source = { label: box.label, resource_url: rig.url + box.source }
      for (const path of [box.account, box.source]) {
        const answer = { success: true, synced_sources: [source], resource_url: `${rig.url}${path}/sync` }
        assert.deepEqual(await rig.ok('POST', `${path}/sync`), answer)
      }
      await rig.ok('POST', box.source, { sync_all_folders: 1 })
      assert('Trash' in ((await state(`${box.source}/sync`))[box.label] ?? {}))
    })

    test('has what has come when the look is over', async () => {
      const box = await v2Mailbox(rig, 'looked')
      rig.imap.append(box.email, 'INBOX', mail({ to: box.email, subject: 'just now' }))
      await rig.ok('POST', `${box.source}/sync`)
      assert.equal((await rig.list(`${box.account}/messages`)).length, 1)
    })

    test('of a source whose server refuses is an error, and of the others is done', async () => {
      const box = await v2Mailbox(rig, 'half')
      const second = 'half.second@mail.example'
      rig.imap.addUser(second)
      const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
      const made = await rig.ok('POST', `${box.account}/sources`, userBody(server, second))
      rig.imap.setPassword(second, 'changed')
      const broken = `${box.account}/sources/${String(made['label'])}`
      for (let tries = 0; tries < 3; tries += 1) await rig.ok('POST', broken, { force_status_check: 1 })
      assert.equal((await rig.call('POST', `${broken}/sync`)).status, 503)
      const answer = await rig.ok('POST', `${box.account}/sync`)
      assert.deepEqual(
        (answer['synced_sources'] as Json[]).map(({ label }) => label),
        [box.label],
      )
    })
  })

  suite('connect tokens', () => {
    const callback_url = 'https://app.example.com/done'
    const callback = 'http://127.0.0.1:9/'
    const shown = (view: Json): Json =>
      Object.fromEntries(Object.entries(view).filter(([name]) => name.startsWith('source_')))

    test('of the application have an empty account while unused, and the options of the source', async () => {
      const wanted = {
        source_sync_folders: 'All,Trash',
        source_raw_file_list: 1,
        source_callback_url: 'http://127.0.0.1:9/',
      }
      const made = await rig.ok('POST', '/2.0/connect_tokens', { callback_url, email: 'new@mail.example', ...wanted })
      const token = String(made['token'])
      const resource_url = `${rig.url}/2.0/connect_tokens/${token}`
      assert.match(token, /^[a-z0-9]{16}$/)
      assert.deepEqual([made['success'], made['resource_url']], [true, resource_url])
      const view = await rig.ok('GET', `/2.0/connect_tokens/${token}`)
      const { created, expires, ...rest } = view
      assert.equal(Number(expires) - Number(created), 86_400)
      assert.deepEqual(rest, {
        token,
        used: 0,
        callback_url,
        email: 'new@mail.example',
        first_name: '',
        last_name: '',
        source_callback_url: 'http://127.0.0.1:9/',
        source_sync_all_folders: true,
        source_expunge_on_deleted_flag: false,
        source_raw_file_list: true,
        browser_redirect_url: made['browser_redirect_url'],
        account: [],
        resource_url,
      })
      assert.deepEqual(await rig.ok('GET', `/2.0/accounts/connect_tokens/${token}`), view)
      assert.deepEqual((await rig.list('/2.0/connect_tokens'))[0], view)
      assert.deepEqual(await rig.list('/lite/connect_tokens'), [])
      assert.equal((await rig.call('GET', `/lite/connect_tokens/${token}`)).status, 404)
      assert.deepEqual(await rig.ok('DELETE', `/2.0/accounts/connect_tokens/${token}`), { success: true })
      assert.equal((await rig.call('GET', `/2.0/connect_tokens/${token}`)).status, 404)
    })

    test('of an account and a source are theirs; a used one has the account', async () => {
      const box = await v2Mailbox(rig, 'tokens')
      const forAccount = await rig.ok('POST', `${box.account}/connect_tokens/`, { callback_url, first_name: 'T' })
      const forSource = await rig.ok('POST', `${box.source}/connect_tokens`, { callback_url })
      const tokens = async (path: string) => (await rig.list(`${path}/connect_tokens/`)).map(({ token }) => token)
      assert.deepEqual((await tokens(box.account)).toSorted(), [forAccount['token'], forSource['token']].toSorted())
      assert.deepEqual(await tokens(box.source), [forSource['token']])
      const token = String(forAccount['token'])
      assert.equal((await rig.call('GET', `${box.source}/connect_tokens/${token}`)).status, 404)
      await rig.engine.store.tokens.use(token, Date.now(), box.userId, box.accountId)
      const used = await rig.ok('GET', `${box.account}/connect_tokens/${token}`)
      assert.deepEqual([used['expires'], used['serverLabel'], used['email']], [false, box.label, box.email])
      assert(Number(used['used']) > 0)
      const { nb_messages, nb_files, ...account } = await rig.ok('GET', box.account)
      assert.deepEqual([used['account'], nb_messages, nb_files], [account, 0, 0])
      await rig.ok('DELETE', `${box.account}/connect_tokens/${token}`)
      assert.deepEqual(await tokens(box.account), [forSource['token']])
    })

    test('of a source show its options, and change the named ones alone', async () => {
      const source = { sync_all_folders: 1, expunge_on_deleted_flag: 1, raw_file_list: 1, callback_url: callback }
      const box = await v2Mailbox(rig, 'renewed', { source })
      const options = async () => (await rig.engine.store.accounts.get(box.accountId))?.options
      const before = await options()
      const desk = deskOf(rig)
      const renew = async (named: Json): Promise<Json> => {
        const of = await desk.token(named, box.source)
        const view = await rig.ok('GET', `${box.source}/connect_tokens/${of}`)
        const done = await desk.connect(await desk.enter(of), of, { password: 'secret' })
        assert.match(done.text, /Your mailbox is connected/)
        assert.deepEqual(shown(await rig.ok('GET', `${box.source}/connect_tokens/${of}`)), shown(view))
        return shown(view)
      }
      assert.deepEqual(await renew({}), {
        source_callback_url: callback,
        source_sync_all_folders: true,
        source_expunge_on_deleted_flag: true,
        source_raw_file_list: true,
      })
      assert.deepEqual(await options(), before)
      const named = { source_raw_file_list: 0, source_callback_url: '' }
      assert.deepEqual(await renew(named), {
        source_sync_all_folders: true,
        source_expunge_on_deleted_flag: true,
        source_raw_file_list: false,
      })
      assert.deepEqual(await options(), { ...before, rawFileList: false, callbackUrl: null })
    })

    test('take no URL that we could not call', async () => {
      for (const [name, url] of [
        ['callback_url', 'ftp://x'],
        ['source_callback_url', 'http://user:secret@127.0.0.1:9/'],
        ['status_callback_url', 'x'],
      ] as const) {
        const answer = await rig.call('POST', '/2.0/connect_tokens', { callback_url, [name]: url })
        assert.equal(answer.status, 400, name)
        assert.match(String(answer.json['value']), new RegExp(`^${name}: `))
      }
    })
  })

  test('discovery and OAuth providers are those of lite, under their own addresses', async () => {
    const path = '/2.0/discovery?email=x%40gmail.com'
    const found = await rig.ok('GET', path)
    assert.deepEqual([found['type'], found['resource_url']], ['gmail', rig.url + path])
    assert.equal((await rig.call('GET', '/2.0/discovery?email=x@nowhere.example')).status, 404)
    for (const base of ['/2.0/oauth_providers', '/2.0/oauth_provider']) {
      const body = { type: 'GMAIL_OAUTH2', provider_consumer_key: 'key/1', provider_consumer_secret: 'abcdefghijk' }
      const made = await rig.ok('POST', base, body)
      assert.equal(made['resource_url'], `${rig.url}/2.0/oauth_providers/key%2F1`)
      const [listed] = await rig.list(base)
      assert.equal(listed?.['provider_consumer_secret'], 'abc[...]ijk')
      assert.deepEqual(await rig.ok('GET', `${base}/key%2F1`), listed)
      assert.deepEqual(await rig.ok('DELETE', `${base}/key%2F1`), { success: true })
    }
  })
})
