/** Users: creation in every form, filters, pages, edits, migration, removal. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { userBody } from '../../support/users.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig } from './rig.ts'

suite('users', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig()
  })
  after(() => rig.close())

  const body = (email: string, extra: Json = {}): Json =>
    userBody({ host: rig.imap.host, port: rig.imap.port, password: 'secret' }, email, extra)
  const ids = async (query: string): Promise<unknown[]> => (await rig.list(`/lite/users?${query}`)).map(({ id }) => id)

  test('may have no account and no address at all', async () => {
    const made = await rig.ok('POST', '/lite/users', {})
    const id = String(made['id'])
    assert.match(id, /^[0-9a-f]{24}$/)
    assert.deepEqual(made, { success: true, id, resource_url: `${rig.url}/lite/users/${id}` })
    const view = await rig.ok('GET', `/lite/users/${id}`)
    assert(Math.abs(Number(view['created']) - Date.now() / 1000) < 60)
    assert.deepEqual(
      { ...view, created: 0 },
      {
        id,
        username: id,
        created: 0,
        suspended: 0,
        password_expired: 0,
        first_name: '',
        last_name: '',
        email_addresses: [],
        email_accounts: [],
        resource_url: `${rig.url}/lite/users/${id}`,
      },
    )
  })

  test('may have only an address and names, in a form, multipart, JSON or the query', async () => {
    const authorization = `Basic ${btoa('frame-key:frame secret & more')}`
    const form = new URLSearchParams({ email: 'Form@Mail.example', first_name: 'Ünal' })
    const multipart = new FormData()
    multipart.set('email', 'multi@mail.example')
    multipart.set('first_name', 'Ünal')
    const requests: [string, RequestInit][] = [
      ['/lite/users', { body: form }],
      ['/lite/users/', { body: multipart }],
      ['/lite/users?email=query@mail.example&first_name=%C3%9Cnal', {}],
    ]
    for (const [path, init] of requests) {
      const answer = await fetch(rig.url + path, { method: 'POST', headers: { authorization }, ...init })
      assert.equal(answer.headers.get('content-type'), 'application/json')
      const made = (await answer.json()) as Json
      const view = await rig.ok('GET', `/lite/users/${String(made['id'])}`)
      assert.equal(view['first_name'], 'Ünal')
      assert.match(String((view['email_addresses'] as string[])[0]), /^(form|multi|query)@mail\.example$/)
    }
  })

  test('with an account answer it under both names, and carry the status header', async () => {
    rig.imap.addUser('ann.lee@mail.example')
    const answer = await rig.call('POST', '/lite/users', body('ann.lee@mail.example', { first_name: 'Ann' }))
    const made = answer.json
    const id = String(made['id'])
    const label = 'ann.lee::imap'
    const account_url = `${rig.url}/lite/users/${id}/email_accounts/${encodeURIComponent(label)}`
    const reference = { label, resource_url: account_url }
    assert.deepEqual(made, {
      success: true,
      id,
      resource_url: `${rig.url}/lite/users/${id}`,
      source: reference,
      email_account: reference,
    })
    assert.equal(answer.headers['x-service-email-account-status'], `${account_url} OK`)
    const view = await rig.ok('GET', `/lite/users/${id}`)
    assert.equal(view['username'], 'ann.lee@mail.example')
    assert.deepEqual(view['email_accounts'], [await rig.ok('GET', `/lite/users/${id}/email_accounts/0`)])
  })

  test('with a wrong password are not created: a soft failure with the masked log', async () => {
    rig.imap.addUser('wrong@mail.example')
    const before = (await ids('limit=100')).length
    const made = await rig.ok('POST', '/lite/users', body('wrong@mail.example', { password: 'not-the-password' }))
    assert.deepEqual([made['success'], made['feedback_code']], [false, 'invalid_credentials'])
    assert.equal(made['connection_log'], made['connectionLog'])
    const log = String(made['connection_log'])
    assert.match(log, /LOGIN|AUTHENTICATE/)
    const secrets = ['not-the-password', Buffer.from('\0wrong@mail.example\0not-the-password').toString('base64')]
    for (const secret of secrets) assert(!log.includes(secret), log)
    assert.equal((await ids('limit=100')).length, before)
  })

  for (const [name, changed] of [
    ['email', { email: 'nobody' }],
    ['use_ssl', { use_ssl: undefined }],
    ['provider_consumer_key', { provider_refresh_token: 'x' }],
    ['provider_refresh_token', { provider_consumer_key: 'x' }],
    ['type', { type: 'pop' }],
    ['server', { server: '' }],
    ['first_name', { first_name: 'half \ud800' }],
    ['last_name', { last_name: 'a\0b' }],
    ['email', { email: 'a\0@mail.example' }],
  ] as const) {
    test(`${JSON.stringify(changed)} is 400 and names ${name}`, async () => {
      const answer = await rig.call('POST', '/lite/users', body('x@mail.example', changed))
      assert.equal(answer.status, 400, answer.text)
      assert.match(String(answer.json['value']), new RegExp(`^${name}: `))
    })
  }

  for (const half of [
    { port: 993, use_ssl: 1, type: 'imap' },
    { port: 993 },
    { use_ssl: 1 },
    { type: 'imap' },
    { provider_consumer_key: 'key' },
    { username: 'x' },
  ]) {
    test(`half a mailbox is 400 and makes nobody: ${JSON.stringify(half)}`, async () => {
      const answer = await rig.call('POST', '/lite/users', { email: 'half@mail.example', ...half })
      assert.equal(answer.status, 400, answer.text)
      assert.match(String(answer.json['value']), /^server: /)
      assert.deepEqual(await ids('email=half@mail.example'), [])
    })
  }

  test('keep a status callback URL for the email accounts that come later', async () => {
    const url = 'http://127.0.0.1:9/status'
    const [first, second, third, fourth] = ['one', 'two', 'three', 'four'].map((name) => `later.${name}@mail.example`)
    const made = await rig.ok('POST', '/lite/users', { email: first, status_callback_url: url })
    assert.equal(made['success'], true)
    const path = `/lite/users/${String(made['id'])}`
    assert.equal((await rig.ok('GET', path))['status_callback_url'], url)
    const token = await rig.ok('POST', `${path}/connect_tokens`, { callback_url: 'https://app.example.com/' })
    const shown = await rig.ok('GET', `/lite/connect_tokens/${String(token['token'])}`)
    assert.equal(shown['status_callback_url'], url)
    const urls = async (): Promise<unknown[]> =>
      (await rig.list(`${path}/email_accounts`)).map((account) => account['status_callback_url'])
    const add = async (where: string, email = '', extra: Json = {}): Promise<void> => {
      rig.imap.addUser(email)
      assert.equal((await rig.ok('POST', `${path}/email_accounts${where}`, body(email, extra)))['success'], true)
    }
    await add('', first)
    await add('/0.new', second)
    await add('', third, { status_callback_url: `${url}/own` })
    assert.deepEqual(await urls(), [url, url, `${url}/own`])
    // those that are there keep theirs
    await rig.ok('PUT', path, { status_callback_url: '' })
    assert.equal('status_callback_url' in (await rig.ok('GET', path)), false)
    await add('', fourth)
    assert.deepEqual(await urls(), [url, url, `${url}/own`, null])
    await rig.ok('POST', path, { status_callback_url: url })
    await add('', 'later.five@mail.example', { status_callback_url: '' })
    assert.deepEqual((await urls()).at(-1), null)
  })

  test('take no status callback URL that cannot be called', async () => {
    const path = `/lite/users/${String((await rig.ok('POST', '/lite/users', {}))['id'])}`
    for (const url of ['ftp://x', 'http://user:secret@127.0.0.1:9/', 'x'])
      for (const [method, where] of [
        ['POST', '/lite/users'],
        ['PUT', path],
      ] as const) {
        const answer = await rig.call(method, where, { email: 'urls@mail.example', status_callback_url: url })
        assert.equal(answer.status, 400, url)
        assert.match(String(answer.json['value']), /^status_callback_url: /)
      }
    assert.deepEqual(await ids('email=urls@mail.example'), [])
  })

  test('are edited by POST and PUT: only what is named', async () => {
    const path = `/lite/users/${String((await rig.ok('POST', '/lite/users', { first_name: 'A', last_name: 'B' }))['id'])}`
    const names = async (): Promise<unknown[]> => {
      const view = await rig.ok('GET', path)
      return [view['first_name'], view['last_name']]
    }
    assert.deepEqual(await rig.ok('POST', path, { first_name: 'C' }), { success: true, resource_url: rig.url + path })
    assert.deepEqual(await names(), ['C', 'B'])
    await rig.ok('PUT', `${path}/`, { last_name: '' })
    assert.deepEqual(await names(), ['C', ''])
  })

  test('are listed by address, theirs or an account’s, in any case', async () => {
    const box = await rig.mailbox('listed')
    const second = 'listed.second@other.example'
    rig.imap.addUser(second)
    await rig.ok('POST', `/lite/users/${box.userId}/email_accounts`, body(second))
    for (const email of ['listed@mail.example', 'LISTED@MAIL.example', second]) {
      assert.deepEqual(await ids(`email=${encodeURIComponent(email)}`), [box.userId], email)
    }
    assert.deepEqual(await ids('email=listed'), [])
    const view = await rig.ok('GET', `/lite/users/${box.userId}`)
    assert.deepEqual(view['email_addresses'], ['listed@mail.example', second])
    assert.equal((view['email_accounts'] as Json[]).length, 2)
  })

  test('are listed by status of any of their accounts', async () => {
    const box = await rig.mailbox('sick')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    rig.imap.setPassword(box.email, 'changed')
    for (let tries = 0; tries < 3; tries += 1) await rig.ok('POST', box.path, { force_status_check: 1 })
    for (const query of ['status=DISABLED', 'status=disabled', 'status_ok=0', 'status_ok=False']) {
      assert.deepEqual(await ids(query), [box.userId], query)
      assert.deepEqual((await rig.list(`/lite/users/${box.userId}/email_accounts?${query}`)).length, 1)
    }
    for (const query of ['status=OK', 'status_ok=1', 'status_ok=true']) {
      const healthy = await ids(`${query}&limit=100`)
      assert(healthy.length > 0 && !healthy.includes(box.userId), query)
      assert.deepEqual(await rig.list(`/lite/users/${box.userId}/email_accounts?${query}`), [])
    }
    for (const query of ['status=BAD', 'status_ok=2'])
      assert.equal((await rig.call('GET', `/lite/users?${query}`)).status, 400)
  })

  test('come in pages whose union is the whole, also while users are added', async () => {
    const whole = await ids('limit=100')
    const seen: unknown[] = []
    for (let offset = 0; offset < whole.length; offset += 3) {
      seen.push(...(await ids(`limit=3&offset=${offset}`)))
      await rig.ok('POST', '/lite/users', {})
    }
    assert.deepEqual(seen.slice(0, whole.length), whole)
    for (const query of ['limit=0', 'limit=101', 'offset=-1', 'limit=x']) {
      assert.equal((await rig.call('GET', `/lite/users?${query}`)).status, 400, query)
    }
  })

  test('migrate_account_id is all that a migration needs', async () => {
    const box = await rig.mailbox('migrant')
    const made = await rig.ok('POST', '/lite/users', { migrate_account_id: box.userId })
    const reference = { label: box.label, resource_url: rig.url + box.path }
    assert.deepEqual(made, {
      success: true,
      id: box.userId,
      resource_url: `${rig.url}/lite/users/${box.userId}`,
      source: reference,
      email_account: reference,
    })
    const unknown = await rig.call('POST', '/lite/users', { migrate_account_id: 'f'.repeat(24) })
    assert.equal(unknown.status, 404)
  })

  test('a migration takes names and a status callback URL along', async () => {
    const box = await rig.mailbox('mover', { extra: { first_name: 'Old', last_name: 'Name' } })
    const wanted = {
      migrate_account_id: box.userId,
      first_name: 'New',
      status_callback_url: 'http://127.0.0.1:9/moved',
    }
    assert.equal((await rig.ok('POST', '/lite/users', wanted))['id'], box.userId)
    const view = await rig.ok('GET', `/lite/users/${box.userId}`)
    assert.deepEqual([view['first_name'], view['last_name']], ['New', 'Name'])
    assert.equal((await rig.ok('GET', box.path))['status_callback_url'], wanted.status_callback_url)
    const bad = await rig.call('POST', '/lite/users', {
      ...wanted,
      first_name: 'Newer',
      status_callback_url: 'ftp://x',
    })
    assert.equal(bad.status, 400)
    assert.equal((await rig.ok('GET', `/lite/users/${box.userId}`))['first_name'], 'New')
    const alone = String((await rig.ok('POST', '/lite/users', {}))['id'])
    await rig.ok('POST', '/lite/users', { ...wanted, migrate_account_id: alone })
    const moved = await rig.ok('GET', `/lite/users/${alone}`)
    assert.deepEqual([moved['first_name'], moved['status_callback_url']], ['New', wanted.status_callback_url])
  })

  test('are removed with their accounts, mail, webhooks and connections', async () => {
    const box = await rig.mailbox('leaver', { subjects: ['old'] })
    const hook = await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, { callback_url: 'http://127.0.0.1:9/' })
    assert.deepEqual(await rig.ok('DELETE', `/lite/users/${box.userId}`), { success: true })
    for (const path of ['', '/email_accounts', '/contacts', '/changes', `/webhooks/${String(hook['webhook_id'])}`]) {
      assert.equal((await rig.call('GET', `/lite/users/${box.userId}${path}`)).status, 404, path)
    }
    assert.equal((await rig.call('GET', `${box.path}/messages`)).status, 404)
    const { store } = rig.engine
    assert.equal(await store.accounts.get(box.accountId), null)
    assert.equal(await store.messages.count(box.accountId), 0)
    await until('no connection', () => rig.imap.connections.every(({ user }) => user !== box.email))
    assert.equal((await rig.call('DELETE', `/lite/users/${box.userId}`)).status, 404)
  })

  test('of another developer are not there', async () => {
    const { engine } = rig
    const id = 'e'.repeat(24)
    const developer = {
      id,
      apiKey: 'other',
      sealedSecret: engine.sealer.seal('other-secret', id),
      statusCallbackUrl: null,
    }
    await engine.store.developers.create({ ...developer, createdAt: Date.now() })
    const headers = { authorization: `Basic ${btoa('other:other-secret')}` }
    const box = await rig.mailbox('mine')
    assert.equal((await rig.call('GET', '/lite/users', undefined, { headers })).text, '[]')
    const [lite, v2] = [`/lite/users/${box.userId}`, `/2.0/accounts/${box.userId}`]
    for (const path of [
      ...['', '/changes', '/contacts', '/webhooks', '/connect_tokens', '/email_accounts'].map((end) => lite + end),
      ...['', '/messages', '/folders', '/connect_tokens'].map((end) => box.path + end),
      ...['', '/messages', '/threads', '/contacts', '/sources', '/email_addresses'].map((end) => v2 + end),
    ]) {
      assert.equal((await rig.call('GET', path, undefined, { headers })).status, 404, path)
    }
    for (const path of [lite, box.path, v2])
      assert.equal((await rig.call('DELETE', path, undefined, { headers })).status, 404, path)
    await rig.ok('GET', box.path)
  })
})
