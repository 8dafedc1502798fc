/** Sign-in at a real OpenID provider as a step of the wizard, without a browser: every way that it can end. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
import { de } from '../../api/connect/de.ts'
import { en } from '../../api/connect/en.ts'
import { client, mailScope, signIn } from '../support/oidc.ts'
import { until } from '../support/until.ts'
import { callbackUrl, openSignInStage, type SignInStage } from './sign-in-stage.ts'
import { createVisitor, onwardOf, type Shown } from './visitor.ts'

suite('sign-in in the wizard', () => {
  let stage: SignInStage
  before(async () => {
    stage = await openSignInStage('127.0.0.1')
  })
  beforeEach(
    () => void Object.assign(stage.oidc.mood, { hangs: false, down: false, refreshTokens: true, withheld: [] }),
  )
  after(() => stage.remove())

  function tells({ status, text }: Shown, failure: keyof typeof en.failures): void {
    assert.equal(status, 200)
    assert(text.includes('role="alert"') && text.includes(en.failures[failure]), text)
    assert(text.includes('Sign in with 127.0.0.1'), 'it can be tried again')
    assert.doesNotMatch(text, /<details\s+open/, 'the server settings')
  }

  test('leads to the callback_url: the account has a refresh token, and the mail server took XOAUTH2', async () => {
    const start = await stage.begin()
    const { token, visitor, email } = start
    const page = await visitor.open(`${start.path}/login`)
    assert.match(String(page.headers.get('content-security-policy')), /form-action 'self'(;|$)/)
    assert.match(page.text, /Sign in with 127\.0\.0\.1/)
    assert.match(page.text, /name="password"/, 'a password goes too')
    const before = stage.oidc.asked.length
    const answer = await stage.answerOf(start)
    const done = await visitor.open(answer)
    assert.equal(onwardOf(done), `${callbackUrl}?service_token=${token}`)
    const account = await stage.rig.ok('GET', await stage.accountOf(token))
    assert.deepEqual([account['authentication_type'], account['username']], ['oauth2', email])
    assert(stage.rig.imap.log.some(({ line }) => line.includes('AUTHENTICATE XOAUTH2')))
    assert.deepEqual(stage.oidc.asked.slice(before), ['authorization_code'], 'no refresh token is used up')
    const [code] = /code=[^&]+/.exec(answer) ?? ['']
    assert(code !== '' && !stage.logged().includes(code) && !stage.logged().includes(client.secret))
    assert(!stage.logged().includes(token), 'the link of the end user')
    // The page of the answer, loaded again or by the back button.
    assert.equal((await visitor.ask(answer)).location, `${start.path}/done`)
  })

  test('the language can be changed on the way', async () => {
    const { visitor, path } = await stage.begin()
    const page = await visitor.send(`${path}/sign-in`, {})
    const [, link = ''] = /href="([^"]+)" lang="de"/.exec(page.text) ?? []
    assert.match((await visitor.open(link)).text, /<html lang="de">[^]*name="password"/)
  })

  test('in German', async () => {
    const start = await stage.begin({}, { 'accept-language': 'de' })
    const page = await start.visitor.send(`${start.path}/sign-in`, {})
    assert(page.text.includes(de.leavingText))
    const denied = await start.visitor.open(await stage.answerOf(start, start.email, 'no'))
    assert(denied.text.includes(de.failures.consent_denied), denied.text)
  })

  test('a no is said back, and the next yes counts', async () => {
    const start = await stage.begin()
    tells(await start.visitor.open(await stage.answerOf(start, start.email, 'no')), 'consent_denied')
    assert.notEqual(onwardOf(await start.visitor.open(await stage.answerOf(start))), null)
  })

  test('too little that is granted', async () => {
    stage.oidc.mood.refreshTokens = false
    const start = await stage.begin()
    tells(await start.visitor.open(await stage.answerOf(start)), 'consent_short')
    assert.equal((await stage.view(start.token))['used'], 0)
  })

  test('another address than that of the mailbox', async () => {
    const start = await stage.begin()
    const page = await start.visitor.open(await stage.answerOf(start, 'somebody.else@mail.example'))
    tells(page, 'other_address')
    assert.match(page.text, /somebody\.else@mail\.example/)
    assert.equal((await stage.view(start.token))['used'], 0)
  })

  test('a mail server that does not let the token in', async () => {
    const start = await stage.begin()
    stage.rig.imap.setAccessToken(start.email, null)
    tells(await start.visitor.open(await stage.answerOf(start)), 'token_rejected')
  })

  test('a provider that is down, before and after', async () => {
    const start = await stage.begin()
    const answer = await stage.answerOf(start)
    stage.oidc.mood.hangs = true
    tells(await start.visitor.open(answer), 'provider_down')
    stage.oidc.mood.hangs = false
    tells(await start.visitor.open(answer), 'sign_in_old')
  })

  test('another browser gets nothing, and does not spoil it for the one that began', async () => {
    const start = await stage.begin()
    const answer = await stage.answerOf(start)
    const stranger = createVisitor(stage.rig.url)
    const shown = await stranger.ask(answer)
    assert.equal(shown.status, 403)
    assert(shown.text.includes(en.ends.other_browser.title))
    assert.deepEqual([stranger.cookies.size, shown.text.includes(start.token)], [0, false])
    // A browser that has a session of the same token, and not of this sign-in.
    const second = createVisitor(stage.rig.url)
    await second.open(start.path)
    tells(await second.open(answer), 'sign_in_old')
    assert.equal((await stage.view(start.token))['used'], 0)
    assert.notEqual(onwardOf(await start.visitor.open(answer)), null)
  })

  test('an answer to no question, and one at the page of the other provider', async () => {
    for (const query of ['code=x&state=y', 'code=x', 'error=access_denied', '']) {
      const shown = await createVisitor(stage.rig.url).ask(`/connect/oauth2callback?${query}`)
      assert.equal(shown.status, 400)
      assert(shown.text.includes(en.ends.sign_in_unknown.title))
    }
    const start = await stage.begin()
    const answer = await stage.answerOf(start)
    tells(await start.visitor.open(answer.replace('oauth2callback', 'providerbcallback')), 'sign_in_old')
  })

  test('is offered only where the developer has a provider that serves the mail server', async () => {
    const { token, visitor } = await stage.begin()
    await stage.rig.ok('DELETE', `/lite/oauth_providers/${client.id}`)
    const path = `/connect/${token}`
    try {
      assert.doesNotMatch((await visitor.open(`${path}/login`)).text, /Sign in with/)
      const sent = await visitor.send(`${path}/sign-in`, {})
      assert.deepEqual([sent.status, sent.location], [303, `${path}/login`])
    } finally {
      const type = 'PROVIDER_A_OAUTH2'
      const provider = { provider_consumer_key: client.id, provider_consumer_secret: client.secret }
      await stage.rig.ok('POST', '/lite/oauth_providers', { type, ...provider })
    }
  })

  test('two tabs: the sign-in is for the address that its form was made for', async () => {
    const email = 'two.tabs@mail.example'
    stage.mailbox(email)
    const token = await stage.token()
    const visitor = createVisitor(stage.rig.url)
    const path = `/connect/${token}`
    await visitor.open(path)
    await visitor.send(`${path}/address`, { email })
    const form = /<form[^>]*sign-in"[^]*?<\/form>/.exec((await visitor.open(`${path}/login`)).text)?.[0] ?? ''
    const named = /name="email" value="([^"]+)"/.exec(form)?.[1] ?? ''
    await visitor.open(path)
    await visitor.send(`${path}/address`, { email: 'other@mail.example' })
    await visitor.open(`${path}/login`)
    const page = await visitor.send(`${path}/sign-in`, { email: named })
    const url = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    assert.equal(new URL(url).searchParams.get('login_hint'), email)
    const { pathname, search } = await signIn(url, `${stage.rig.url}/connect/oauth2callback`, email)
    await visitor.open(pathname + search)
    assert.equal((await stage.view(token))['email'], email)
  })

  test('lost consent: DISABLED and told, then a connect token of the account brings it back and that is told too', async () => {
    const status_callback_url = stage.receiver.url
    const first = await stage.begin({ status_callback_url })
    await first.visitor.open(await stage.answerOf(first))
    const account = await stage.accountOf(first.token)
    const status = async (): Promise<unknown> => (await stage.rig.ok('GET', account))['status']
    await until('folders', async () => (await stage.rig.list(`${account}/folders`)).length > 0)
    await stage.revoke(first.email)
    await until('DISABLED', async () => (await status()) === 'DISABLED')
    const { status_message: message } = await stage.rig.ok('GET', account)
    assert.match(String(message), /^consent lost, the end user has to sign in again: .*invalid_grant/)
    await until('the callback', () => stage.statuses().length === 1)

    const token = await stage.token({}, account)
    const again = { token, email: first.email, visitor: createVisitor(stage.rig.url), path: `/connect/${token}` }
    const page = await again.visitor.open(again.path)
    assert.match(page.text, /Sign in with 127\.0\.0\.1/)
    tells(await again.visitor.open(await stage.answerOf(again, 'somebody.else@mail.example')), 'other_address')
    const done = await again.visitor.open(await stage.answerOf(again))
    assert.equal(onwardOf(done), `${callbackUrl}?service_token=${token}`)
    await until('OK', async () => (await status()) === 'OK')
    assert.equal((await stage.rig.ok('GET', account))['status_message'] ?? null, null)
    await until('the second callback', () => stage.statuses().length === 2)
    assert.notEqual((await stage.view(token))['used'], 0)
    assert.deepEqual(
      stage.statuses().map(({ failure }) => failure),
      ['permanent', 'cleared'],
    )
    assert.match(String(stage.statuses()[0]?.['failure_message']), /^consent lost/)
  })

  test('no scope for the mail', async () => {
    const other = await openSignInStage('127.0.0.1', { MAILROOM_OAUTH_PARAMS_A: '' })
    try {
      other.oidc.mood.withheld = [mailScope]
      const start = await other.begin()
      const shown = await start.visitor.open(await other.answerOf(start))
      assert(shown.text.includes(en.failures.consent_partial), shown.text)
    } finally {
      await other.remove()
    }
  })
})
