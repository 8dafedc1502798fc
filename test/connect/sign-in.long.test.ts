/** Sign-in at a real OpenID provider in a real browser: the provider is another site, as it is in the world. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { en } from '../../api/connect/en.ts'
import type { Json } from '../api/lite/rig.ts'
import { artefacts, barriers, complaintsOf, looks, openBrowser, overhang, screenshot } from '../console/browser.ts'
import { signIn as signInAt } from '../support/oidc.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { callbackUrl, openSignInStage, type SignInStage } from './sign-in-stage.ts'

suite('sign-in in a browser', { ...needs('chromium'), timeout: 300_000 }, () => {
  const parts = new AsyncDisposableStack()
  const shots = artefacts()
  let stage: SignInStage
  let browser: Browser
  let count = 0
  before(async () => {
    stage = await openSignInStage('localhost')
    parts.defer(() => stage.remove())
    browser = await openBrowser()
    parts.defer(() => browser.close())
  })
  after(() => parts.disposeAsync())

  interface Visit {
    readonly context: BrowserContext
    readonly page: Page
    readonly email: string
    readonly token: string
    readonly path: string
  }

  /** At the login page of a token for a mailbox of its own. The developer's page is answered here. */
  async function visit(look: keyof typeof looks = 'light', more: Json = {}, extra: Json = {}): Promise<Visit> {
    const email = `browser${(count += 1)}@mail.example`
    stage.mailbox(email)
    const token = await stage.token({ email, ...extra })
    const context = await browser.newContext({ ...looks[look], ...more, baseURL: stage.rig.url })
    await context.route(`${callbackUrl}*`, (route) => route.fulfill({ body: 'back in the application' }))
    const page = await open(context, token)
    return { context, page, email, token, path: `/connect/${token}` }
  }

  async function open(context: BrowserContext, token: string): Promise<Page> {
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    await page.goto(`/connect/${token}`)
    return page
  }

  const toProvider = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: /^Sign in with/ }).click()
    await page.waitForURL(`${stage.oidc.origin}/**`)
  }

  /** Both pages of the provider, up to its answer. */
  async function signIn(page: Page, email: string, says: 'yes' | 'no' = 'yes'): Promise<void> {
    const login = page.getByPlaceholder('Enter any login')
    const consent = page.getByRole('button', { name: 'Continue' })
    await login.or(consent).first().waitFor()
    if (await login.isVisible()) {
      await login.fill(email)
      await page.getByPlaceholder('and password').fill('any')
      await page.getByRole('button', { name: 'Sign-in' }).click()
    }
    await consent.waitFor()
    await (says === 'yes' ? consent : page.getByRole('link', { name: 'Cancel' })).click()
  }

  const back = (page: Page, token: string): Promise<void> => page.waitForURL(`${callbackUrl}?service_token=${token}`)

  async function looksGood(page: Page, name: string): Promise<void> {
    await screenshot(page, shots, name)
    assert.deepEqual(await barriers(page), [], name)
    assert.ok((await overhang(page)) <= 0, `${name} is too wide`)
  }

  for (const look of ['light', 'dark', 'phone'] as const) {
    test(`each page, ${look}: no barrier, nothing that the policy refuses, nothing too wide`, async () => {
      const { context, page, email, path } = await visit(look)
      const complaints = complaintsOf(page)
      await page.getByRole('heading', { level: 1, name: en.loginTitle }).waitFor()
      await looksGood(page, `sign-in-login-${look}`)
      // An answer without content leaves the browser where it is.
      await context.route(`${stage.oidc.origin}/auth*`, (route) => route.fulfill({ status: 204 }))
      await page.getByRole('button', { name: /^Sign in with/ }).click()
      await page.getByRole('heading', { level: 1, name: en.leavingTitle('localhost') }).waitFor()
      await looksGood(page, `sign-in-leaving-${look}`)
      await context.unroute(`${stage.oidc.origin}/auth*`)
      await page.goto(path)
      await toProvider(page)
      await signIn(page, email, 'no')
      await page.getByText(en.failures.consent_denied).waitFor()
      await looksGood(page, `sign-in-denied-${look}`)
      // The provider forgets who was there.
      await context.clearCookies({ domain: 'localhost' })
      await toProvider(page)
      await signIn(page, `other.${email}`)
      await page.getByText(en.failures.other_address).waitFor()
      await looksGood(page, `sign-in-other-address-${look}`)
      const stranger = await (await browser.newContext({ ...looks[look], baseURL: stage.rig.url })).newPage()
      await stranger.goto('/connect/oauth2callback?state=x&code=y')
      await stranger.getByRole('heading', { level: 1, name: en.ends.sign_in_unknown.title }).waitFor()
      await looksGood(stranger, `sign-in-unknown-${look}`)
      assert.deepEqual(complaints, [])
      await stranger.context().close()
      await context.close()
    })
  }

  test('from the link to the application, and the back button leads to the end', async () => {
    const { context, page, email, token } = await visit()
    await toProvider(page)
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: en.loginTitle }).waitFor()
    await toProvider(page)
    await signIn(page, email)
    await back(page, token)
    assert.equal((await stage.view(token))['email_account_id'], email.replace('@mail.example', '::imap'))
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: en.doneTitle }).waitFor()
    await context.close()
  })

  test('without a script', async () => {
    const { context, page, email, token } = await visit('light', { javaScriptEnabled: false })
    await toProvider(page)
    await signIn(page, email)
    await back(page, token)
    await context.close()
  })

  test('two tabs: both sign in, one account is made, both end at the application', async () => {
    const { context, page, email, token } = await visit()
    const second = await open(context, token)
    await toProvider(page)
    await toProvider(second)
    await signIn(page, email)
    await back(page, token)
    await signIn(second, email)
    await second.getByRole('heading', { level: 1, name: en.doneTitle }).waitFor()
    const user = (await stage.view(token))['user'] as Json
    assert.equal((await stage.rig.list(`/lite/users/${String(user['id'])}/email_accounts`)).length, 1)
    await context.close()
  })

  test('the answer of the provider is refused in another browser, and used twice it is no second account', async () => {
    const { context, page, email, token } = await visit()
    await context.route(`${stage.oidc.origin}/auth*`, (route) => route.fulfill({ status: 204 }))
    await page.getByRole('button', { name: /^Sign in with/ }).click()
    const url = await page.getByRole('link', { name: en.leavingGo('localhost') }).getAttribute('href')
    const answer = (await signInAt(url ?? '', `${stage.rig.url}/connect/`, email)).href
    const other = await (await browser.newContext(looks.light)).newPage()
    const refused = await other.goto(answer)
    assert.equal(refused?.status(), 403)
    await other.getByRole('heading', { level: 1, name: en.ends.other_browser.title }).waitFor()
    await looksGood(other, 'sign-in-other-browser-light')
    await page.goto(answer)
    await back(page, token)
    await page.goto(answer)
    await page.getByRole('heading', { level: 1, name: en.doneTitle }).waitFor()
    await other.context().close()
    await context.close()
  })

  test('lost consent, and the way back by a connect token of the account', async () => {
    const { context, page, email, token } = await visit('light', {}, { status_callback_url: stage.receiver.url })
    await toProvider(page)
    await signIn(page, email)
    await back(page, token)
    const account = await stage.accountOf(token)
    const status = async (): Promise<unknown> => (await stage.rig.ok('GET', account))['status']
    await until('folders', async () => (await stage.rig.list(`${account}/folders`)).length > 0)
    await stage.revoke(email)
    await until('DISABLED', async () => (await status()) === 'DISABLED')
    const again = await stage.token({}, account)
    const renewed = await open(context, again)
    await renewed.getByText(en.asksAgain('app.example.com')).waitFor()
    await looksGood(renewed, 'sign-in-again-light')
    await toProvider(renewed)
    await signIn(renewed, email)
    await back(renewed, again)
    await until('OK', async () => (await status()) === 'OK')
    await until('both callbacks', () => stage.statuses().length >= 2)
    assert.deepEqual(
      stage.statuses().map(({ failure }) => failure),
      ['permanent', 'cleared'],
    )
    await context.close()
  })
})
