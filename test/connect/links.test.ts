/** What a link is good for: one mailbox, of one address. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { deskOf, type Desk } from './desk.ts'
import { createVisitor } from './visitor.ts'

suite('links of the connect wizard', () => {
  let rig: LiteRig
  let desk: Desk
  before(async () => {
    rig = await startLiteRig()
    desk = deskOf(rig)
  })
  after(() => rig.close())

  test('a second tab with another address is told which mailbox the link has connected', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    rig.imap.addUser('una@mail.example', { password: 'secret' })
    await visitor.send(desk.at(of, 'address'), { email: 'una@mail.example' })
    await visitor.open(desk.at(of, 'login'))
    const login = (email: string) => ({ ...desk.login(email), email })
    const done = await desk.connect(visitor, of, login('una@mail.example'))
    assert.match(done.text, /Your mailbox is connected/)
    for (const [step, values] of [
      ['login', login('due@mail.example')],
      ['address', { email: 'due@mail.example' }],
    ] as const) {
      const form = await visitor.send(desk.at(of, step), values)
      assert.equal(form.status, 409, step)
      assert.match(form.text, /chosen una@mail\.example\. due@mail\.example is not connected/)
    }
    const shown = await visitor.open(desk.at(of, 'done'))
    assert.match(shown.text, /una@<wbr \/>mail\.example/)
    assert.doesNotMatch(shown.text, /due@/)
  })

  test('a near miss of a large provider is asked about, and taken when it is sent again', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    for (const [typed, meant] of [
      ['anna@gmial.com', 'anna@gmail.com'],
      ['anna@hotmial.com', 'anna@hotmail.com'],
      ['anna@yaho.com', 'anna@yahoo.com'],
      ['anna@gmail.con', 'anna@gmail.com'],
      ['anna@gmail', 'anna@gmail.com'],
    ] as const) {
      const asked = await visitor.send(desk.at(of, 'address'), { email: typed })
      assert.equal(asked.status, 400, typed)
      assert.match(asked.text, new RegExp(`Please check the address[^]*Did you mean ${meant}\\?`))
      assert.match(asked.text, new RegExp(`name="email" value="${meant}"[^]*name="kept" value="${typed}"`))
    }
    for (const email of ['anna@mail.com', 'anna@ymail.com', 'anna@gmx.at', 'anna@example.com'])
      assert.equal((await visitor.send(desk.at(of, 'address'), { email })).location, desk.at(of, 'login'), email)
    const other = await visitor.send(desk.at(of, 'address'), { email: 'anna@gmial.com', kept: 'ben@gmial.com' })
    assert.equal(other.status, 400)
    for (const email of ['anna@gmial.com', 'anna@intranet']) {
      const kept = await visitor.send(desk.at(of, 'address'), { email, kept: email })
      assert.equal(kept.location, desk.at(of, 'login'))
      assert.match((await visitor.open(desk.at(of, 'login'))).text, new RegExp(`anna@<wbr />${email.slice(5)}`))
    }
  })

  test('the login page says what the provider asks for: IMAP turned on, or an app password', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    for (const [email, words, page] of [
      ['anna@gmx.de', 'Turn IMAP on first', 'https://hilfe.gmx.net/pop-imap/einschalten.html'],
      ['anna@web.de', 'Turn IMAP on first', 'https://hilfe.web.de/pop-imap/einschalten.html'],
      ['anna@icloud.com', 'Apple needs an app password', 'https://support.apple.com/en-us/102654'],
    ] as const) {
      await visitor.send(desk.at(of, 'address'), { email })
      const { text } = await visitor.open(desk.at(of, 'login'))
      assert.ok(text.includes(words) && text.includes(`href="${page}"`), email)
    }
  })

  /** An OAuth provider of Google, and one of Microsoft. */
  const register = async ({ ok }: LiteRig): Promise<void> => {
    for (const type of ['PROVIDER_A_OAUTH2', 'PROVIDER_B_CONNECT'])
      await ok('POST', '/lite/oauth_providers', {
        type,
        provider_consumer_key: `key-${type}`,
        provider_consumer_secret: 'secret-of-it',
      })
  }

  /** The login page of an address, of a new visitor. */
  async function loginOf({ at, token, enter }: Desk, base: string, email: string) {
    const of = await token()
    const visitor = await enter(of, createVisitor(base))
    await visitor.send(at(of, 'address'), { email })
    return { of, visitor, text: (await visitor.open(at(of, 'login'))).text }
  }

  test('Google and Microsoft without a sign-in: the form says what they need', async () => {
    const google = await loginOf(desk, rig.url, 'anna@gmail.com')
    assert.match(google.text, /Google needs an app password[^]*href="https:\/\/myaccount.google.com\/apppasswords"/)
    assert.match(google.text, /two-step verification[^]*name="password"/)
    const microsoft = await loginOf(desk, rig.url, 'anna@hotmail.com')
    assert.match(microsoft.text, /Microsoft does not accept passwords here[^]*Ask app\.example\.com for it/)
    assert.doesNotMatch(microsoft.text, /name="password"/)
  })

  for (const allowed of ['0', '1']) {
    test(`Google and Microsoft with a sign-in, MAILROOM_WIZARD_PASSWORDS=${allowed}`, async (t) => {
      const own = await startLiteRig({ env: { MAILROOM_WIZARD_PASSWORDS: allowed } })
      t.after(() => own.close())
      await register(own)
      const ours = deskOf(own)
      for (const email of ['anna@gmail.com', 'anna@hotmail.com']) {
        const { of, visitor, text } = await loginOf(ours, own.url, email)
        assert.match(text, /Sign in with/)
        assert.equal(/or with a password[^]*name="password"/.test(text), allowed === '1')
        assert.doesNotMatch(text, /does not accept passwords/)
        if (allowed === '1') continue
        assert.doesNotMatch(text, /name="password"|with a password|app password|Your password/)
        assert.match(text, /take this permission back/)
        const sent = await visitor.send(ours.at(of, 'login'), { password: 'secret', server: own.imap.host })
        assert.deepEqual([sent.status, sent.location], [303, ours.at(of, 'login')])
        assert.equal((await own.engine.store.tokens.find(of))?.tries ?? 0, 0)
      }
      assert.match((await loginOf(ours, own.url, 'anna@icloud.com')).text, /name="password"/)
    })
  }

  test('an address without a whole domain is caught; each page leads back to the application', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    const sent = await visitor.send(desk.at(of, 'address'), { email: 'anna@intranet' })
    assert.equal(sent.status, 400)
    assert.match(sent.text, /end of this address seems to be missing/)
    await visitor.send(desk.at(of, 'address'), { email: 'anna@mail.example' })
    const login = await visitor.open(desk.at(of, 'login'))
    const outdated = await visitor.send(desk.at(of, 'login'), { csrf: 'x' })
    assert.match(outdated.text, new RegExp(`service_token=${of}[^"]*">Back to app`))
    const held = Promise.withResolvers<undefined>()
    rig.imap.addUser('anna@mail.example', { password: 'secret' })
    rig.imap.hooks = {
      send: async (response, call) => (call?.name === 'LIST' ? (await held.promise, response) : response),
    }
    await visitor.open(desk.at(of, 'login'))
    await visitor.send(desk.at(of, 'login'), { ...desk.login('anna@mail.example'), password: 'secret' })
    const connecting = await visitor.ask(desk.at(of, 'connecting'))
    assert.match(connecting.text, /Connecting/)
    const other = await visitor.send(desk.at(of, 'address'), { email: 'ben@mail.example' })
    assert.equal(other.status, 409)
    for (const { text } of [sent, login, connecting, other])
      assert.match(
        text,
        new RegExp(`href="https://app.example.com/done[^"]*service_token=${of}[^"]*">Cancel, back to app`),
      )
    assert.equal((await desk.view(of))['used'], 0)
    rig.imap.hooks = {}
    held.resolve(undefined)
    assert.match((await visitor.open(desk.at(of, 'connecting'))).text, /Your mailbox is connected/)
  })
})
