/**
 * A link by which an end user gives the login of an email account once more: whoever has the API key may edit that
 * account to a server of his own meanwhile. What the end user gives goes to the server that the link has shown, or to
 * none.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openSignInStage, type SignInStage } from '../connect/sign-in-stage.ts'
import { createVisitor } from '../connect/visitor.ts'
import { startLiteRig } from '../api/lite/rig.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { granted, startTokenEndpoint } from '../support/token-endpoint.ts'
import { userBody } from '../support/users.ts'

const email = 'user1@mail.example'
/** The attacker knows this password: it works at his own server. */
const known = 'known to the attacker'

suite('links of email accounts that are edited meanwhile', () => {
  let stage: SignInStage
  /** A mail server of the attacker. */
  let trap: ImapServer
  /** The credential of each login there. */
  const given: string[] = []
  const parts = new AsyncDisposableStack()
  before(async () => {
    stage = await openSignInStage('127.0.0.1')
    parts.defer(() => stage.remove())
    const accessToken = (token: string): Promise<boolean> => {
      given.push(token)
      return Promise.resolve(true)
    }
    // The server asks for passwords by LOGIN.
    const capabilities = ['IMAP4rev1', 'AUTH=XOAUTH2']
    trap = await createImapServer({ users: { [email]: { password: known, accessToken } }, capabilities })
    parts.defer(() => trap.close())
    trap.hooks = {
      command: ({ name, text }) => {
        if (name === 'LOGIN') given.push(text)
        return undefined
      },
    }
  })
  after(() => parts.disposeAsync())

  const divert = (account: string) =>
    stage.rig.ok('POST', account, { server: 'localhost', port: trap.port, password: known })

  const givesNothingElse = (): void => {
    assert.ok(given.some((one) => one.includes(known)))
    assert.deepEqual(
      given.filter((one) => !one.includes(known)),
      [],
    )
  }

  test('a password that is typed after the edit goes nowhere, and the page shows the other server', async () => {
    stage.rig.imap.addUser(email, { password: 'secret' })
    const made = await stage.rig.ok('POST', '/lite/users', userBody({ ...stage.rig.imap, password: 'secret' }, email))
    const account = `/lite/users/${String(made['id'])}/email_accounts/0`
    const token = await stage.token({}, account)
    const path = `/connect/${token}`
    const visitor = createVisitor(stage.rig.url)
    const page = await visitor.open(path)
    assert.ok(page.text.includes(`IMAP server: 127.0.0.1:${stage.rig.imap.port}`), page.text)
    assert.equal((await divert(account))['success'], true)

    const sent = await visitor.send(`${path}/login`, { password: 'typed by the end user' })
    const answer = await visitor.open(String(sent.location))
    givesNothingElse()
    assert.match(answer.text, /This mailbox cannot be connected in this way/)
    assert.ok(answer.text.includes(`IMAP server: localhost:${trap.port}`), answer.text)
  })

  test('nor does an access token of a sign-in that was under way', async () => {
    stage.mailbox(email)
    const first = await leave(await stage.token({ email }))
    await first.visitor.open(first.answer)
    const account = await stage.accountOf(first.token)
    const again = await leave(await stage.token({}, account))
    assert.equal((await divert(account))['success'], true)
    const page = await again.visitor.open(again.answer)
    assert.match(page.text, /This mailbox cannot be connected in this way/)
    assert.doesNotMatch(page.text, /Sign in with/)
    givesNothingElse()
    assert.equal((await stage.view(again.token))['used'], 0)
  })

  test('at a server that is not the provider’s no sign-in is offered, whatever provider the account has', async () => {
    const endpoint = await startTokenEndpoint()
    parts.defer(() => endpoint.close())
    endpoint.answer(() => granted('access-olga'))
    const rig = await startLiteRig({ env: { MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url } })
    parts.defer(() => rig.close())
    const key = { provider_consumer_key: 'client' }
    const secret = { provider_consumer_secret: 'a-long-enough-secret' }
    await rig.ok('POST', '/lite/oauth_providers', { type: 'PROVIDER_A_OAUTH2', ...key, ...secret })
    const grant = { ...key, provider_refresh_token: 'refresh-of-the-attacker' }
    const made = await rig.ok('POST', '/lite/users', userBody({ ...trap, password: 'ignored' }, email, grant))
    assert.equal(made['success'], true, JSON.stringify(made))
    const account = `/lite/users/${String(made['id'])}/email_accounts/0`
    const link = await rig.ok('POST', `${account}/connect_tokens`, { callback_url: 'https://app.example.com/done' })
    const path = `/connect/${String(link['token'])}`
    const visitor = createVisitor(rig.url)
    assert.doesNotMatch((await visitor.open(path)).text, /Sign in with/)
    assert.equal((await visitor.send(`${path}/sign-in`, {})).location, `${path}/login`)
  })

  /** As far as the provider: what is left is the way back. */
  async function leave(token: string) {
    const start = { token, email, visitor: createVisitor(stage.rig.url), path: `/connect/${token}` }
    await start.visitor.open(start.path)
    return { ...start, answer: await stage.answerOf(start) }
  }
})
