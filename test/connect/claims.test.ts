/**
 * What a process leaves that ends between the claim of a token and its use, seen by the next one that looks; who races
 * for a token; a store that goes away; addresses and limits that the wizard keeps.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test, type TestContext } from 'node:test'
import { createSessions } from '../../api/connect/visit.ts'
import { openBrand } from '../../engine/connect/brand.ts'
import { AppError, newId, readConfig } from '../../engine/index.ts'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { type Desk, deskOf } from './desk.ts'
import { createVisitor, onwardOf } from './visitor.ts'

type Owner = Parameters<ReturnType<typeof createSessions>['open']>[0]

suite('a claim of a connect token that was left over', () => {
  let rig: LiteRig
  let desk: Desk
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_RATE_CONNECT_PER_MINUTE: '0' } })
    desk = deskOf(rig)
  })
  after(() => rig.close())

  test('with its account there, makes the token used, at the time of the claim', async () => {
    const [box, of] = [await rig.mailbox('ann'), await desk.token()]
    const claim = { userId: box.userId, accountId: box.accountId, at: Date.now() - 5000 }
    assert(await rig.engine.store.tokens.claim(of, claim))
    const view = await desk.view(of)
    assert.equal(view['used'], Math.floor(claim.at / 1000))
    assert.equal(view['expires'], false)
    assert.equal(view['email_account_id'], box.label)
    const listed = (await rig.list('/lite/connect_tokens')).find(({ token }) => token === of)
    assert.deepEqual(listed, view)
    const page = await createVisitor(rig.url).open(desk.at(of))
    assert.equal(page.status, 410)
  })

  test('is seen by the wizard first, too', async () => {
    const [box, of] = [await rig.mailbox('ben'), await desk.token()]
    await rig.engine.store.tokens.claim(of, { userId: box.userId, accountId: box.accountId, at: Date.now() })
    assert.equal((await createVisitor(rig.url).open(desk.at(of))).status, 410)
    assert.notEqual((await rig.engine.store.tokens.find(of))?.usedAt, null)
  })

  test('without an account, or without its user, frees the token: the link works again', async () => {
    rig.imap.addUser('cid@mail.example', { password: 'secret' })
    const box = await rig.mailbox('cyd')
    for (const ids of [
      { userId: newId(), accountId: newId() },
      { userId: newId(), accountId: box.accountId },
      { userId: box.userId, accountId: newId() },
    ]) {
      const of = await desk.token({ email: 'cid@mail.example' })
      await rig.engine.store.tokens.claim(of, { ...ids, at: Date.now() })
      assert.equal((await desk.view(of))['used'], 0)
      await rig.engine.store.tokens.claim(of, { ...ids, at: Date.now() })
      const done = await desk.connect(await desk.enter(of), of, desk.login('cid@mail.example'))
      assert.match(done.text, /Your mailbox is connected/)
      assert.equal((await desk.view(of))['expires'], false)
    }
  })

  test('of a token of an email account frees it: its credentials may be given once more', async () => {
    const box = await rig.mailbox('dan')
    const of = await desk.token({}, box.path)
    await rig.engine.store.tokens.claim(of, { userId: box.userId, accountId: box.accountId, at: Date.now() })
    assert.equal((await desk.view(of))['used'], 0)
    const done = await desk.connect(await desk.enter(of), of, { password: 'secret' })
    assert.match(done.text, /Your mailbox is connected/)
  })

  test('a token that another process uses during the login makes nothing here', async () => {
    rig.imap.addUser('eli@mail.example', { password: 'secret' })
    const [box, of] = [await rig.mailbox('els'), await desk.token({ email: 'eli@mail.example' })]
    const visitor = await desk.enter(of)
    rig.imap.hooks = {
      send: async (response, call) => {
        if (call?.name === 'LIST') await rig.engine.store.tokens.use(of, Date.now(), box.userId, box.accountId)
        return response
      },
    }
    const page = await desk.connect(visitor, of, desk.login('eli@mail.example'))
    rig.imap.hooks = {}
    assert.equal(page.status, 410)
    assert.match(page.text, /has been used/)
    assert.equal((await rig.list('/lite/users?email=eli@mail.example')).length, 0)
    assert.equal((await desk.view(of))['email_account_id'], box.label)
  })

  test('a token that two browsers use at once makes one account', async () => {
    rig.imap.addUser('duo@mail.example', { password: 'secret' })
    const of = await desk.token({ email: 'duo@mail.example' })
    const visitors = [await desk.enter(of), await desk.enter(of)]
    await Promise.all(visitors.map((one) => desk.connect(one, of, desk.login('duo@mail.example'))))
    assert.equal((await rig.list('/lite/users?email=duo@mail.example')).length, 1)
    const accounts = await rig.engine.store.accounts.page(null, 100)
    assert.equal(accounts.filter(({ email }) => email === 'duo@mail.example').length, 1)
    assert.equal((await rig.engine.store.tokens.find(of))?.tries, 1, 'the second joins the first')
  })

  test('a token that is removed during the login, or whose user is, makes nothing', async () => {
    rig.imap.addUser('fay@mail.example', { password: 'secret' })
    const user = String((await rig.ok('POST', '/lite/users', { email: 'fay@mail.example' }))['id'])
    for (const [base, remove] of [
      ['/lite', (of: string) => rig.ok('DELETE', `/lite/connect_tokens/${of}`)],
      [`/lite/users/${user}`, () => rig.ok('DELETE', `/lite/users/${user}`)],
    ] as const) {
      const of = await desk.token({ email: 'fay@mail.example' }, base)
      const visitor = await desk.enter(of)
      let removed = false
      rig.imap.hooks = {
        send: async (response, call) => {
          if (call?.name === 'LIST' && !removed) {
            removed = true
            await remove(of)
          }
          return response
        },
      }
      const page = await desk.connect(visitor, of, desk.login('fay@mail.example'))
      rig.imap.hooks = {}
      assert.equal(page.status, 404)
      assert.match(page.text, /not known/)
      const found = (await rig.list('/lite/users?email=fay@mail.example')).filter(({ id }) => id !== user)
      assert.deepEqual(found, [])
    }
  })

  test('a creation that the store refuses frees the token, and the next try works', async (t) => {
    rig.imap.addUser('gil@mail.example', { password: 'secret' })
    const of = await desk.token({ email: 'gil@mail.example' })
    const visitor = await desk.enter(of)
    const { users } = rig.engine.store
    const refused = t.mock.method(users, 'createWithAccount', () => Promise.reject(new Error('the disk is full')))
    const page = await desk.connect(visitor, of, desk.login('gil@mail.example'))
    assert.match(page.text, /went wrong on our side/)
    assert.equal(refused.mock.callCount(), 1)
    refused.mock.restore()
    assert.equal((await rig.engine.store.tokens.find(of))?.claim, null)
    const done = await desk.connect(visitor, of, desk.login('gil@mail.example'))
    assert.match(done.text, /Your mailbox is connected/)
  })

  test('a creation whose outcome is not known is taken back, and the token is free', async (t) => {
    rig.imap.addUser('gus@mail.example', { password: 'secret' })
    const of = await desk.token({ email: 'gus@mail.example' })
    const visitor = await desk.enter(of)
    const { users } = rig.engine.store
    const create = users.createWithAccount.bind(users)
    const unsure = t.mock.method(users, 'createWithAccount', async (...given: Parameters<typeof create>) => {
      await create(...given)
      throw new AppError('store_unavailable', 'no answer')
    })
    assert.match((await desk.connect(visitor, of, desk.login('gus@mail.example'))).text, /went wrong on our side/)
    unsure.mock.restore()
    assert.equal((await desk.view(of))['used'], 0)
    assert.equal((await rig.list('/lite/users?email=gus@mail.example')).length, 0)
    const done = await desk.connect(visitor, of, desk.login('gus@mail.example'))
    assert.match(done.text, /Your mailbox is connected/)
    assert.equal((await rig.list('/lite/users?email=gus@mail.example')).length, 1)
  })

  test('a use that the store loses is made up for by the next look', async (t) => {
    rig.imap.addUser('hew@mail.example', { password: 'secret' })
    const of = await desk.token({ email: 'hew@mail.example' })
    const visitor = await desk.enter(of)
    const lost = t.mock.method(rig.engine.store.tokens, 'use', () => Promise.reject(new Error('away')), { times: 1 })
    const done = await desk.connect(visitor, of, desk.login('hew@mail.example'))
    assert(lost.mock.callCount() >= 1)
    assert.match(done.text, /Your mailbox is connected/)
    assert.equal((await desk.view(of))['expires'], false)
    assert.equal((await rig.list('/lite/users?email=hew@mail.example')).length, 1)
  })
})

suite('what the wizard refuses', () => {
  test('servers that are not public, as the API does; forms over the limit of one address', async (t) => {
    const rig = await startLiteRig({
      env: { MAILROOM_ALLOW_PRIVATE: '0', MAILROOM_RATE_CONNECT_PER_MINUTE: '5' },
    })
    t.after(() => rig.close())
    const desk = deskOf(rig)
    const of = await desk.token({ email: 'ian@mail.example' })
    const visitor = await desk.enter(of)
    for (const server of [rig.imap.host, '169.254.169.254', '[::1]', 'localhost']) {
      const page = await desk.connect(visitor, of, { ...desk.login('ian@mail.example'), server })
      assert.match(page.text, /not on the public internet/, server)
    }
    assert.equal(rig.imap.accepted, 0)
    await desk.connect(visitor, of, { password: '' })
    const busy = await visitor.send(desk.at(of, 'login'), desk.login('ian@mail.example'))
    assert.equal(busy.status, 429)
    assert.equal(busy.headers.get('retry-after'), '60')
    assert.match(busy.text, /Very many forms/)
    assert.equal((await visitor.open(desk.at(of))).status, 200, 'pages are shown')
  })

  test('a callback URL that is private by now: no fault of the mail server, and its host is not shown', async (t) => {
    const rig = await startLiteRig({ env: { MAILROOM_ALLOW_PRIVATE: '0' } })
    t.after(() => rig.close())
    const desk = deskOf(rig)
    const stored = await rig.engine.store.tokens.find(await desk.token({ email: 'ida@mail.example' }))
    assert(stored)
    const of = newId()
    await rig.engine.store.tokens.create({ ...stored, token: of, statusCallbackUrl: 'http://10.0.0.7/status' })
    const page = await desk.connect(await desk.enter(of), of, desk.login('ida@mail.example'))
    assert.match(page.text, /cannot be connected in this way/)
    assert.doesNotMatch(page.text, /not on the public internet|10\.0\.0\.7/)
  })

  test('a value in JSON that is no text, by the name of its field; numbers and flags are texts', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    const desk = deskOf(rig)
    const email = 'joe@mail.example'
    rig.imap.addUser(email, { password: 'secret' })
    const of = await desk.token({ email })
    const visitor = await desk.enter(of)
    const csrf = /name="csrf" value="([^"]+)"/.exec((await visitor.ask(desk.at(of, 'login'))).text)?.[1]
    const send = (values: object) =>
      visitor.ask(desk.at(of, 'login'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ csrf, ...desk.login(email), ...values }),
      })
    for (const [name, value] of Object.entries({
      password: ['secret'],
      server: { name: 'imap.example.com' },
      csrf: [],
    })) {
      const { status, text } = await send({ [name]: value })
      assert.deepEqual([status, text], [400, `{"type":"error","value":"${name}: expected text"}`])
    }
    const sent = await send({ port: rig.imap.port, email: null })
    assert.deepEqual([sent.status, sent.location], [303, desk.at(of, 'connecting')])
  })

  test('links of a developer whose key is revoked', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    const desk = deskOf(rig)
    const { developer } = await rig.engine.developers.create('Short')
    const of = await desk.token()
    const stored = await rig.engine.store.tokens.find(of)
    assert(stored)
    const token = `${of.slice(0, 15)}${of.endsWith('0') ? '1' : '0'}`
    await rig.engine.store.tokens.create({ ...stored, token, developerId: developer.id })
    assert.equal((await createVisitor(rig.url).open(desk.at(token))).status, 200)
    await rig.engine.developers.setRevoked(developer.id, true)
    assert.equal((await createVisitor(rig.url).open(desk.at(token))).status, 404)
  })
})

suite('what was typed in the wizard', () => {
  const hour = 3_600_000

  /** Of sessions: it can be set ahead. */
  function clock(t: TestContext) {
    const now = performance.now.bind(performance)
    let lead = 0
    t.mock.method(performance, 'now', () => now() + lead)
    return { ahead: (ms: number) => void (lead = ms) }
  }

  test('is gone two hours after the browser came, whoever came since', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    const { ahead } = clock(t)
    const desk = deskOf(rig)
    const of = await desk.token()
    const visitor = createVisitor(rig.url)
    await visitor.open(desk.at(of))
    await visitor.send(desk.at(of, 'address'), { email: 'kim@mail.example' })
    ahead(1.5 * hour)
    assert.match((await visitor.open(desk.at(of, 'login'))).text, /kim@mail\.example/)
    await createVisitor(rig.url).open(desk.at(of))
    ahead(2 * hour)
    assert.equal((await visitor.ask(desk.at(of, 'login'))).location, desk.at(of))
    assert.doesNotMatch((await visitor.open(desk.at(of))).text, /kim@mail\.example/)
  })

  test('leaves memory then, also when nobody asks for it again', (t) => {
    const { ahead } = clock(t)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sessions = createSessions()
    const [one, two] = ['one', 'two'].map((token) => ({ developerId: 'd', token })) as [Owner, Owner]
    const first = sessions.open(one)
    ahead(1.5 * hour)
    t.mock.timers.tick(1.5 * hour)
    const second = sessions.open(one)
    assert.deepEqual([sessions.find(one, first.id), sessions.find(two, first.id)], [first, undefined])
    ahead(2 * hour)
    t.mock.timers.tick(0.5 * hour + 10)
    assert.equal(sessions.count(), 1)
    assert.equal(sessions.find(one, second.id), second)
    ahead(3.5 * hour)
    t.mock.timers.tick(1.5 * hour)
    assert.equal(sessions.count(), 0)
  })
})

suite('the wizard behind a proxy', () => {
  test('keeps to the path of MAILROOM_PUBLIC_URL, and to https', async (t) => {
    const rig = await startLiteRig({ env: { MAILROOM_PUBLIC_URL: 'https://mail.example/base/' } })
    t.after(() => rig.close())
    const desk = deskOf(rig)
    const made = await rig.ok('POST', '/lite/connect_tokens', { callback_url: 'https://app.example.com/' })
    const of = String(made['token'])
    assert.match(String(made['browser_redirect_url']), new RegExp(`^https://mail\\.example/base/connect/${of}\\?`))
    const page = await createVisitor(rig.url).ask(desk.at(of))
    assert.match(page.headers.get('set-cookie') ?? '', /; Path=\/base\/connect; Max-Age=7200; Secure$/)
    assert.match(page.text, new RegExp(`action="/base/connect/${of}/address"`))
    assert.match(page.text, new RegExp(`href="/base/connect/${of}\\?lang=de"`))
  })
})

suite('the look of the wizard', () => {
  test('name and token parameter are as configured; the name is text', async (t) => {
    const rig = await startLiteRig({
      env: { MAILROOM_WIZARD_NAME: 'Eye & <b>Ear</b>', MAILROOM_TOKEN_PARAM: 'contact_token' },
    })
    t.after(() => rig.close())
    rig.imap.addUser('lou@mail.example', { password: 'secret' })
    const desk = deskOf(rig)
    const of = await desk.token({ email: 'lou@mail.example' })
    const done = await desk.connect(await desk.enter(of), of, desk.login('lou@mail.example'))
    assert.match(done.text, /Back to Eye &amp; &lt;b&gt;Ear&lt;\/b&gt;/)
    assert.equal(onwardOf(done), `https://app.example.com/done?x=1&y=%20&contact_token=${of}#part`)
  })

  const brand = (env: Record<string, string>) => openBrand(readConfig({ MAILROOM_DATA_DIR: '/tmp', ...env }))

  test('text on the colour is black or white, whichever is read better', () => {
    for (const [color, ink] of [
      ['#ffffff', '#000000'],
      ['#000000', '#ffffff'],
      ['#ffd400', '#000000'],
      ['#2457d6', '#ffffff'],
      ['#c2410c', '#ffffff'],
    ] as const) {
      assert.equal(brand({ MAILROOM_WIZARD_COLOR: color }).ink, ink, color)
    }
    assert.throws(() => brand({ MAILROOM_WIZARD_COLOR: 'red}body{' }), /MAILROOM_WIZARD_COLOR: expected a colour/)
  })

  test('a logo is a file or a data: URL, of a picture', (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'mailroom-logo-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const at = (name: string, bytes: string): string => {
      writeFileSync(join(directory, name), bytes)
      return join(directory, name)
    }
    const of = (logo: string) => brand({ MAILROOM_WIZARD_LOGO: logo }).logo
    assert.equal(of(at('logo.PNG', 'png')), 'data:image/png;base64,cG5n')
    assert.equal(of('data:image/svg+xml,%3Csvg/%3E'), 'data:image/svg+xml,%3Csvg/%3E')
    assert.throws(() => of(at('logo.html', 'x')), /MAILROOM_WIZARD_LOGO: .* is no png/)
    assert.throws(() => of(join(directory, 'none.png')), /cannot be read/)
    assert.throws(() => of(at('large.png', 'x'.repeat(100_001))), /larger than 100 KB/)
    assert.throws(() => of('data:text/html,x'), /expected a data: URL of a picture/)
    assert.throws(() => of('https://cdn.example/logo.gif'), /cannot be read/)
  })
})
