/** Connect tokens at all three levels: shapes while unused, used and expired, and who finds which. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { deskOf } from '../../connect/desk.ts'
import { apiKey, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const callback_url = 'http://localhost:8080/done?x=1'
const day = 86_400

suite('connect tokens', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('tom', { extra: { first_name: 'Tom', last_name: 'Tester' } })
  })
  after(() => rig.close())

  const create = (base: string, extra: Json = {}): Promise<Json> =>
    rig.ok('POST', `${base}/connect_tokens`, { callback_url, ...extra })

  test('creation answers the token and a public address that carries the developer key', async () => {
    const made = await create('/lite')
    const token = String(made['token'])
    assert.match(token, /^[a-z0-9]{16}$/)
    assert.deepEqual(made, {
      success: true,
      token,
      resource_url: `${rig.url}/lite/connect_tokens/${token}`,
      browser_redirect_url: `${rig.url}/connect/${token}?developer_key=${apiKey}`,
    })
  })

  test('an unused token has no user, used 0 and a time of expiry within a day', async () => {
    const made = await create('/lite', { email: 'new@mail.example', first_name: 'New' })
    const view = await rig.ok('GET', `/lite/connect_tokens/${String(made['token'])}`)
    const created = Number(view['created'])
    assert(Math.abs(created - Date.now() / 1000) < 60)
    assert.deepEqual(view, {
      token: made['token'],
      account_lite: true,
      created,
      used: 0,
      expires: created + day,
      callback_url,
      email: 'new@mail.example',
      first_name: 'New',
      last_name: '',
      browser_redirect_url: made['browser_redirect_url'],
      resource_url: made['resource_url'],
    })
  })

  test('a used token carries user and label, and expires is false', async () => {
    const token = String((await create('/lite'))['token'])
    const at = Date.now()
    assert.notEqual(await rig.engine.store.tokens.use(token, at, box.userId, box.accountId), null)
    const view = await rig.ok('GET', `/lite/connect_tokens/${token}`)
    assert.equal(view['used'], Math.floor(at / 1000))
    assert.equal(view['expires'], false)
    assert.equal(view['email_account_id'], box.label)
    assert.equal(view['serverLabel'], box.label)
    assert.equal(view['email'], box.email)
    assert.deepEqual(view['user'], await rig.ok('GET', `/lite/users/${box.userId}`))
    assert.equal(await rig.engine.store.tokens.use(token, at, box.userId, box.accountId), null, 'once')
  })

  test('a token is good for 24 hours', async () => {
    const token = String((await create('/lite'))['token'])
    const late = Date.now() + day * 1000 + 1000
    assert.equal(await rig.engine.store.tokens.use(token, late, box.userId, box.accountId), null)
    assert.equal((await rig.ok('GET', `/lite/connect_tokens/${token}`))['used'], 0)
  })

  test('each level lists its own, and the application all', async () => {
    const user = `/lite/users/${box.userId}`
    const [ofUser, ofAccount] = [await create(user), await create(box.path)]
    const tokens = async (base: string): Promise<unknown[]> =>
      (await rig.list(`${base}/connect_tokens`)).map(({ token }) => token)
    assert((await tokens(user)).includes(ofUser['token']))
    assert((await tokens(user)).includes(ofAccount['token']), 'an account is its user’s')
    assert((await tokens(box.path)).includes(ofAccount['token']))
    assert(!(await tokens(box.path)).includes(ofUser['token']))
    const all = await tokens('/lite')
    assert(all.includes(ofUser['token']) && all.includes(ofAccount['token']))
    const [newest] = await rig.list(`${box.path}/connect_tokens`)
    assert.deepEqual([newest?.['email'], newest?.['first_name'], newest?.['last_name']], [box.email, 'Tom', 'Tester'])
    assert.equal(newest?.['user'], undefined)
  })

  for (const [users, accounts] of [
    ['/lite/users', 'email_accounts'],
    ['/2.0/accounts', 'sources'],
  ] as const)
    test(`${users}: an empty status_callback_url is none; one that is not named is the user’s by then`, async () => {
      const desk = deskOf(rig)
      const [old, now] = ['http://127.0.0.1:9/old', 'http://127.0.0.1:9/now']
      const id = String((await rig.ok('POST', '/lite/users', { status_callback_url: old }))['id'])
      const shown = async (of: string) =>
        (await rig.ok('GET', `${users}/${id}/connect_tokens/${of}`))['status_callback_url']
      const connected = async (of: string, email: string) => {
        const done = await desk.connect(await desk.enter(of), of, desk.login(email))
        assert.match(done.text, /Your mailbox is connected/)
        const own = await rig.engine.store.accounts.listByUser(id)
        return own.find((one) => one.email === email) ?? assert.fail(email)
      }
      const [silent, told] = [`silent.${accounts}@mail.example`, `told.${accounts}@mail.example`]
      for (const email of [silent, told]) rig.imap.addUser(email, { password: 'secret' })
      const empty = await desk.token({ email: silent, status_callback_url: '' }, `${users}/${id}`)
      const unnamed = await desk.token({ email: told }, `${users}/${id}`)
      assert.deepEqual([await shown(empty), await shown(unnamed)], [undefined, old])
      await rig.ok('PUT', `/lite/users/${id}`, { status_callback_url: now })
      assert.deepEqual([await shown(empty), await shown(unnamed)], [undefined, now])
      assert.equal((await connected(empty, silent)).statusCallbackUrl, null)
      const { label, statusCallbackUrl } = await connected(unnamed, told)
      assert.equal(statusCallbackUrl, now)
      await rig.ok('PUT', `/lite/users/${id}`, { status_callback_url: '' })
      assert.deepEqual([await shown(empty), await shown(unnamed)], [undefined, now])
      const account = `${users}/${id}/${accounts}/${encodeURIComponent(label)}`
      assert.equal((await connected(await desk.token({}, account), told)).statusCallbackUrl, now)
      const taken = await desk.token({ status_callback_url: '' }, account)
      assert.equal((await connected(taken, told)).statusCallbackUrl, null)
    })

  test('deletion works at all levels, and only on tokens of the level', async () => {
    const user = `/lite/users/${box.userId}`
    for (const base of ['/lite', user, box.path]) {
      const token = String((await create(base))['token'])
      assert.equal((await rig.call('GET', `${base}/connect_tokens/${token}`)).status, 200)
      const strange = base === '/lite' ? user : `/lite/users/${String((await rig.ok('POST', '/lite/users', {}))['id'])}`
      assert.equal((await rig.call('DELETE', `${strange}/connect_tokens/${token}`)).status, 404)
      assert.deepEqual(await rig.ok('DELETE', `${base}/connect_tokens/${token}`), { success: true })
      assert.equal((await rig.call('GET', `/lite/connect_tokens/${token}`)).status, 404)
    }
  })

  test('answers about an account carry its status', async () => {
    const answer = await rig.call('GET', `${box.path}/connect_tokens`)
    assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${box.path} OK`)
  })

  for (const [name, body] of [
    ['callback_url', {}],
    ['callback_url', { callback_url: 'javascript:alert(1)' }],
    ['email', { callback_url, email: 'nobody' }],
    ['status_callback_url', { callback_url, status_callback_url: 'ftp://x' }],
  ] as const) {
    test(`a bad ${name} is 400 and named: ${JSON.stringify(body)}`, async () => {
      const answer = await rig.call('POST', '/lite/connect_tokens', body)
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), new RegExp(`^${name}: `))
    })
  }

  test('tokens go with their account', async () => {
    const gone = await rig.mailbox('gone')
    const token = String((await create(gone.path))['token'])
    await rig.ok('DELETE', gone.path)
    assert.equal((await rig.call('GET', `/lite/connect_tokens/${token}`)).status, 404)
  })
})
