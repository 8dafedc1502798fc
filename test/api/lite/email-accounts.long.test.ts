/** Email accounts: several per user, labels, settings and credentials, and DISABLED healed by hand. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { mail } from '../../support/mail.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { startLiteRig, type Json, type LiteRig } from './rig.ts'

suite('email accounts', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig()
  })
  after(() => rig.close())

  const body = (email: string, extra: Json = {}): Json =>
    userBody({ host: rig.imap.host, port: rig.imap.port, password: 'secret' }, email, extra)

  test('have every field', async () => {
    const box = await rig.mailbox('eva.long', { extra: { status_callback_url: 'http://127.0.0.1:9/status' } })
    assert.deepEqual(await rig.ok('GET', box.path), {
      server: '127.0.0.1',
      label: 'eva.long::imap',
      username: box.email,
      port: rig.imap.port,
      use_ssl: false,
      type: 'imap',
      authentication_type: 'password',
      status: 'OK',
      status_message: null,
      status_callback_url: 'http://127.0.0.1:9/status',
      resource_url: rig.url + box.path,
    })
  })

  test('a user has several, each with its label: the same one twice gets a number', async () => {
    const box = await rig.mailbox('many')
    const base = `/lite/users/${box.userId}/email_accounts`
    const labels: string[] = []
    for (const email of ['many@mail.example', 'many@mail.example', 'other@mail.example']) {
      rig.imap.addUser(email)
      const made = await rig.ok('POST', base, body(email))
      assert.deepEqual([made['success'], made['status']], [true, 'OK'])
      assert.equal(made['resource_url'], `${rig.url}${base}/${encodeURIComponent(String(made['label']))}`)
      labels.push(String(made['label']))
    }
    assert.deepEqual(labels, ['many::imap::2', 'many::imap::3', 'other::imap'])
    assert.deepEqual(
      (await rig.list(base)).map(({ label }) => label),
      ['many::imap', ...labels],
    )
  })

  test('are reached by raw and encoded labels, in any case, and 0 is the first', async () => {
    const box = await rig.mailbox('Label')
    const base = `/lite/users/${box.userId}/email_accounts`
    const view = await rig.ok('GET', box.path)
    for (const label of ['label::imap', 'label%3A%3Aimap', 'LABEL::imap', '0', '0/', 'label::imap/']) {
      const answer = await rig.call('GET', `${base}/${label}`)
      assert.deepEqual(answer.json, view, label)
      assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${box.path} OK`)
    }
    for (const label of ['1', 'label', 'label::imap::2']) {
      const answer = await rig.call('GET', `${base}/${label}`)
      assert.equal(answer.status, 404)
      assert.equal(answer.json['value'], `email account ${label} is invalid`)
    }
  })

  test('one is removed without the others; the next becomes 0', async () => {
    const box = await rig.mailbox('two.accounts')
    rig.imap.addUser('two.next@mail.example')
    await rig.ok('POST', `/lite/users/${box.userId}/email_accounts`, body('two.next@mail.example'))
    assert.deepEqual(await rig.ok('DELETE', box.path), { success: true })
    assert.equal((await rig.call('GET', box.path)).status, 404)
    assert.equal((await rig.ok('GET', `/lite/users/${box.userId}/email_accounts/0`))['label'], 'two.next::imap')
    await until('no connection', () => rig.imap.connections.every(({ user }) => user !== box.email))
  })

  test('the address of one that is removed goes with it, but for the user’s own and those of others', async () => {
    const box = await rig.mailbox('address')
    const user = `/lite/users/${box.userId}`
    const addresses = async (): Promise<unknown> => (await rig.ok('GET', user))['email_addresses']
    const labels: string[] = []
    for (const email of ['more@mail.example', 'more@mail.example', box.email]) {
      rig.imap.addUser(email)
      labels.push(String((await rig.ok('POST', `${user}/email_accounts`, body(email)))['label']))
    }
    const [first = '', second = '', own = ''] = labels
    const remove = (label: string) => rig.ok('DELETE', `${user}/email_accounts/${label}`)
    await remove(first)
    assert.deepEqual(await addresses(), [box.email, 'more@mail.example'], 'another account has it')
    await remove(second)
    assert.deepEqual(await addresses(), [box.email])
    assert.deepEqual(await rig.list('/lite/users?email=more@mail.example'), [])
    await remove(own)
    await remove('0')
    assert.deepEqual(await addresses(), [box.email], 'the user’s own')
  })

  test('are made by POST under a label of one’s own choice, when all parameters are there', async () => {
    const box = await rig.mailbox('chooser')
    const base = `/lite/users/${box.userId}/email_accounts`
    const email = 'chosen@mail.example'
    rig.imap.addUser(email)
    const path = `${base}/${encodeURIComponent('my own::label')}`
    for (const missing of ['email', 'server', 'username', 'use_ssl', 'port', 'password']) {
      const answer = await rig.call('POST', path, body(email, { [missing]: undefined }))
      assert.equal(answer.status, 404, missing)
      assert.equal(answer.json['value'], 'email account my own::label is invalid')
    }
    const wrong = await rig.ok('POST', path, body(email, { password: 'wrong' }))
    assert.deepEqual([wrong['success'], wrong['feedback_code']], [false, 'invalid_credentials'])
    assert.equal((await rig.call('GET', path)).status, 404)
    const answer = await rig.call('POST', path, body(email))
    assert.deepEqual(answer.json, {
      success: true,
      status: 'OK',
      label: 'my own::label',
      resource_url: rig.url + path,
    })
    assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${path} OK`)
    assert.equal((await rig.ok('GET', path))['username'], email)
    // From now on the same call is an edit.
    assert.equal((await rig.ok('POST', path, body(email)))['label'], undefined)
    assert.equal((await rig.list(base)).length, 2)
    for (const label of ['x%0ay', 'x'.repeat(400)]) {
      const bad = await rig.call('POST', `${base}/${label}`, body(email))
      assert.equal(bad.status, 400)
      assert.match(String(bad.json['value']), /^label: /)
    }
    assert.equal((await rig.call('POST', `/lite/users/${'f'.repeat(24)}/email_accounts/x`, body(email))).status, 404)
  })

  test('0 makes the first one of a user without any', async () => {
    const id = String((await rig.ok('POST', '/lite/users', {}))['id'])
    const path = `/lite/users/${id}/email_accounts/0`
    rig.imap.addUser('first@mail.example')
    assert.equal((await rig.call('POST', path, { status_callback_url: '' })).status, 404)
    assert.equal((await rig.ok('POST', path, body('first@mail.example')))['label'], 'first::imap')
    assert.equal((await rig.ok('GET', path))['label'], 'first::imap')
  })

  test('the status callback URL is set, checked and removed', async () => {
    const box = await rig.mailbox('callback')
    const shown = async (): Promise<unknown> => (await rig.ok('GET', box.path))['status_callback_url']
    const edited = await rig.ok('POST', box.path, { status_callback_url: 'http://127.0.0.1:9/x', label: 'ignored' })
    assert.deepEqual(edited, { success: true, status: 'OK', status_message: null, resource_url: rig.url + box.path })
    assert.equal(await shown(), 'http://127.0.0.1:9/x')
    assert.equal((await rig.call('POST', box.path, { status_callback_url: 'gopher://x' })).status, 400)
    assert.equal(await shown(), 'http://127.0.0.1:9/x')
    await rig.ok('POST', box.path, { status_callback_url: '' })
    assert.equal(await shown(), null)
  })

  test('the address is edited, and the user is found by it; label and mail stay', async () => {
    const box = await rig.mailbox('renamed', { subjects: ['kept'] })
    const second = 'renamed.second@mail.example'
    rig.imap.addUser(second)
    const base = `/lite/users/${box.userId}`
    const made = await rig.ok('POST', `${base}/email_accounts`, body(second))
    const path = `${base}/email_accounts/${encodeURIComponent(String(made['label']))}`
    const addresses = async (): Promise<unknown> => (await rig.ok('GET', base))['email_addresses']
    const found = async (email: string) => (await rig.list(`/lite/users?email=${email}`)).map(({ id }) => id)

    assert.equal((await rig.ok('POST', path, { email: 'Renamed.New@mail.example' }))['success'], true)
    assert.deepEqual(await addresses(), [box.email, 'renamed.new@mail.example'])
    assert.deepEqual([await found('renamed.new@mail.example'), await found(second)], [[box.userId], []])
    assert.equal((await rig.ok('GET', path))['username'], second)
    // the user's own first address stays beside
    await rig.ok('POST', box.path, { email: 'renamed.third@mail.example' })
    assert.deepEqual(await addresses(), [box.email, 'renamed.new@mail.example', 'renamed.third@mail.example'])
    assert.deepEqual(
      (await rig.list(`${box.path}/messages`)).map(({ subject }) => subject),
      ['kept'],
    )
    // with settings that fail it stays as well, and so it does when it is bad
    assert.equal((await rig.ok('POST', path, { email: 'x@mail.example', password: 'wrong' }))['success'], false)
    assert.equal((await rig.call('POST', path, { email: 'nobody' })).status, 400)
    assert.deepEqual(await addresses(), [box.email, 'renamed.new@mail.example', 'renamed.third@mail.example'])
    // the same one, in another case, changes nothing
    await rig.ok('POST', path, { email: 'RENAMED.new@MAIL.example' })
    assert.deepEqual(await addresses(), [box.email, 'renamed.new@mail.example', 'renamed.third@mail.example'])
  })

  test('new settings are tried first: a failure leaves everything as it was', async () => {
    const box = await rig.mailbox('careful')
    const before = await rig.ok('GET', box.path)
    for (const change of [
      { password: 'wrong' },
      { username: 'nobody@mail.example', password: 'secret' },
      { port: 1, password: 'secret' },
    ]) {
      const answer = await rig.ok('POST', box.path, change)
      assert.equal(answer['success'], false, JSON.stringify(change))
      assert.match(String(answer['feedback_code']), /^(invalid_credentials|connection_refused)$/)
      assert.equal(typeof answer['connection_log'], 'string')
    }
    assert.deepEqual(await rig.ok('GET', box.path), before)
    assert.equal((await rig.call('POST', box.path, { status: 0 })).status, 400)
  })

  test('a new password is used from then on', async () => {
    const box = await rig.mailbox('renewed')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    rig.imap.setPassword(box.email, 'second')
    rig.imap.dropConnections(box.email)
    await until('the rejection', async () => (await rig.ok('GET', box.path))['status_message'] !== null)
    const edited = await rig.ok('POST', box.path, { password: 'second' })
    assert.equal(edited['success'], true, JSON.stringify(edited))
    await until('connected', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    await box.deliver({ subject: 'after the change' })
    assert.deepEqual([(await rig.ok('GET', box.path))['status_message']], [null])
  })
})

suite('email accounts on Dovecot', needs('dovecot'), () => {
  let rig: LiteRig
  let dovecot: Dovecot
  const email = 'dora@mail.example'
  let path = ''
  let accountId = ''
  before(async () => {
    dovecot = await startDovecot()
    await dovecot.append(email, 'INBOX', mail({ to: email, subject: 'hello' }))
    rig = await startLiteRig()
    const made = await rig.ok('POST', '/lite/users', userBody(dovecot, email))
    path = `/lite/users/${String(made['id'])}/email_accounts/0`
    const [account] = await rig.engine.store.accounts.listByUser(String(made['id']))
    accountId = String(account?.id)
    await until('watching', () => rig.engine.accounts.view(accountId)?.tags.includes('watching'))
  })
  after(async () => {
    await rig.close()
    await dovecot.remove()
  })
  const check = (extra: Json = {}): Promise<Json> => rig.ok('POST', path, { force_status_check: 1, ...extra })
  const status = async (): Promise<unknown> => (await rig.ok('GET', path))['status']
  const header = async (): Promise<string> =>
    String((await rig.call('GET', path)).headers['x-service-email-account-status'])
      .split(' ')
      .at(-1) ?? ''

  test('force_status_check says OK while the password is right', async () => {
    const checked = await check()
    assert.deepEqual([checked['success'], checked['status'], checked['status_message']], [true, 'OK', null])
  })

  test('with a wrong password it is DISABLED, says why and when the next try is; calls to the server are 503 then', async () => {
    await dovecot.setPassword('the-new-one')
    const first = await check()
    assert.match(String(first['status_message']), /reject|auth/i)
    assert.deepEqual([first['success'], first['feedback_code']], [false, 'invalid_credentials'])
    assert.equal(first['status'], 'DISABLED')
    assert.equal(first['connection_log'], first['connectionLog'])
    assert.equal(await status(), 'DISABLED')
    assert.equal(await header(), 'DISABLED')
    const view = await rig.ok('GET', path)
    assert.match(String(view['status_message']), /login: .*\. Next try at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$/)
    assert.deepEqual(first['status_message'], view['status_message'])
    const create = await rig.call('POST', `${path}/folders/New`)
    assert.equal(create.status, 503)
    assert.match(String(create.json['value']), /DISABLED/)
    assert(Number(create.headers['retry-after']) > 0)
  })

  test('status=1 alone does not heal it; the right password does, and the header says so', async () => {
    const reset = await rig.ok('POST', path, { status: 1 })
    assert.deepEqual([reset['success'], reset['status']], [true, 'DISABLED'])
    assert.match(String(reset['status_message']), /reject|auth/i)
    const checked = await check()
    assert.deepEqual([checked['success'], checked['status']], [false, 'DISABLED'])
    const wrong = await rig.ok('POST', path, { password: 'still wrong' })
    assert.deepEqual([wrong['success'], wrong['feedback_code']], [false, 'invalid_credentials'])
    const right = await check({ password: 'the-new-one', status: 1 })
    assert.deepEqual([right['success'], right['status'], right['status_message']], [true, 'OK', null])
    assert.equal(await header(), 'OK')
    await until('watching', () => rig.engine.accounts.view(accountId)?.tags.includes('watching'))
    assert.equal((await rig.call('POST', `${path}/folders/New`)).status, 200)
  })

  test('a password that is right again on the server is found by force_status_check', async () => {
    await dovecot.setPassword('third')
    for (let tries = 0; tries < 3; tries += 1) await check()
    assert.equal(await status(), 'DISABLED')
    await dovecot.setPassword('the-new-one')
    const healed = await check()
    assert.deepEqual([healed['success'], healed['status']], [true, 'OK'])
    await until('watching', () => rig.engine.accounts.view(accountId)?.tags.includes('watching'))
  })

  test('status=1 answers the status after the reset', async () => {
    await dovecot.setPassword('fourth')
    for (let tries = 0; tries < 3; tries += 1) await check()
    assert.equal(await status(), 'DISABLED')
    await dovecot.setPassword('the-new-one')
    const reset = await rig.call('POST', path, { status: 1 })
    assert.deepEqual([reset.json['success'], reset.json['status'], reset.json['status_message']], [true, 'OK', null])
    assert.match(String(reset.headers['x-service-email-account-status']), / OK$/)
    await until('watching', () => rig.engine.accounts.view(accountId)?.tags.includes('watching'))
  })

  test('a server that is away is no reason for DISABLED: the check answers what is known, and why', async () => {
    await dovecot.stop()
    const checked = await until('a check that says why', async () => {
      const one = await check()
      return typeof one['status_message'] === 'string' ? one : null
    })
    assert.deepEqual(
      [checked['success'], checked['feedback_code'], checked['status']],
      [false, 'connection_refused', 'OK'],
    )
    await dovecot.start()
    await until('OK without a message', async () => (await rig.ok('GET', path))['status_message'] === null)
  })
})

suite('a status check of a server that hangs', () => {
  test('ends, and says so: nothing is known against the account', async () => {
    const rig = await startLiteRig({ env: { MAILROOM_CREATE_TIMEOUT: '5s', MAILROOM_REQUEST_TIMEOUT: '20s' } })
    try {
      const box = await rig.mailbox('hangs')
      rig.imap.hooks = { command: ({ name }) => (/LOGIN|AUTHENTICATE/.test(name) ? {} : undefined) }
      const watched = await rig.ok('POST', box.path, { force_status_check: 1 })
      assert.deepEqual([watched['success'], watched['feedback_code'], watched['status']], [false, 'timeout', 'OK'])
      // Now the account's own login hangs too.
      rig.imap.dropConnections(box.email)
      await until('connecting', () => rig.engine.accounts.view(box.accountId)?.tags.includes('connecting'))
      const checked = await rig.ok('POST', box.path, { force_status_check: 1 })
      assert.deepEqual([checked['success'], checked['feedback_code'], checked['status']], [false, 'timeout', 'OK'])
    } finally {
      await rig.close()
    }
  })
})
