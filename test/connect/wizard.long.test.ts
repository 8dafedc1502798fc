/** The connect wizard in a browser, against Dovecot: every page looked at, and every way through it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { de } from '../../api/connect/de.ts'
import { en } from '../../api/connect/en.ts'
import { startLiteRig, type Json, type LiteRig } from '../api/lite/rig.ts'
import { artefacts, barriers, complaintsOf, looks, openBrowser, overhang, screenshot } from '../console/browser.ts'
import { type Dovecot, startDovecot } from '../support/dovecot.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { deskOf } from './desk.ts'

const logo = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle cx="20" cy="20" r="19" fill="#c2410c"/></svg>')}`

/** The developer's own page that the browser comes back to. */
async function startApplication() {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<title>Back</title><h1>Back in the application</h1><p>${request.url ?? ''}</p>`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/connected?keep=1`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url, close }
}

/** What mail.example publishes for mail programs. */
function autoconfig({ host, port }: Dovecot): string {
  return `<clientConfig version="1.1"><emailProvider id="mail.example"><domain>mail.example</domain>
    <incomingServer type="imap"><hostname>${host}</hostname><port>${port}</port><socketType>STARTTLS</socketType>
    <username>%EMAILADDRESS%</username><authentication>password-cleartext</authentication></incomingServer>
    <documentation url="https://help.mail.example/app-passwords"><descr lang="en">Make an app password</descr></documentation>
    </emailProvider></clientConfig>`
}

suite('the connect wizard in a browser', { ...needs('chromium', 'dovecot'), timeout: 600_000 }, () => {
  const parts = new AsyncDisposableStack()
  const shots = artefacts()
  let rig: LiteRig
  let dovecot: Dovecot
  let browser: Browser
  let application: Awaited<ReturnType<typeof startApplication>>

  before(async () => {
    dovecot = await startDovecot()
    parts.defer(() => dovecot.remove())
    application = await startApplication()
    parts.defer(() => application.close())
    rig = await startLiteRig({
      env: {
        MAILROOM_RATE_CONNECT_PER_MINUTE: '0',
        MAILROOM_WIZARD_NAME: 'Orange Invoices',
        MAILROOM_WIZARD_COLOR: '#c2410c',
        MAILROOM_WIZARD_LOGO: logo,
      },
      lookUps: {
        http: {
          get: (url) => {
            const known = url.includes('mail.example')
            return Promise.resolve({ status: known ? 200 : 404, headers: {}, body: known ? autoconfig(dovecot) : '' })
          },
        },
      },
    })
    parts.defer(() => rig.close())
    browser = await openBrowser()
    parts.defer(() => browser.close())
  })
  after(() => parts.disposeAsync())

  const token = async (extra: Json = {}): Promise<string> =>
    String((await rig.ok('POST', '/lite/connect_tokens', { callback_url: application.url, ...extra }))['token'])
  const at = (of: string, step = ''): string => `/connect/${of}${step && `/${step}`}`
  const usersOf = async (email: string): Promise<number> => (await rig.list(`/lite/users?email=${email}`)).length
  const isUsed = async (of: string): Promise<boolean> =>
    (await rig.ok('GET', `/lite/connect_tokens/${of}`))['expires'] === false

  async function open(options: BrowserContextOptions = looks.light): Promise<Page> {
    const context = await browser.newContext({ locale: 'en-GB', baseURL: rig.url, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    return page
  }
  async function fill(page: Page, password = dovecot.password): Promise<void> {
    await page.getByLabel('Password of the mailbox').fill(password)
    await page.getByRole('button', { name: 'Connect' }).click()
  }
  async function back(page: Page, of: string): Promise<void> {
    await page.getByRole('heading', { name: 'Back in the application' }).waitFor()
    const { searchParams } = new URL(page.url())
    assert.deepEqual(
      [...searchParams],
      [
        ['keep', '1'],
        ['service_token', of],
      ],
    )
    assert(await isUsed(of))
  }
  const focused = (page: Page): Promise<string> =>
    page.evaluate(`document.activeElement.className || document.activeElement.id`)

  for (const look of ['light', 'dark', 'phone'] as const) {
    test(`each page, ${look}: no barrier, nothing that the policy refuses, nothing too wide`, async () => {
      const page = await open(looks[look])
      const complaints = complaintsOf(page)
      const see = async (name: string, heading: string | RegExp): Promise<void> => {
        await page.getByRole('heading', { level: 1, name: heading }).waitFor()
        await screenshot(page, shots, `wizard-${name}-${look}`)
        assert.deepEqual(await barriers(page, look), [], name)
        assert.ok((await overhang(page)) <= 0, `${name} is too wide`)
      }
      const of = await token()
      await page.goto(at(of))
      await see('address', 'Connect your mailbox')
      await page.getByLabel('Email address').fill('nobody')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('alert').waitFor()
      await see('address-wrong', 'Connect your mailbox')
      await page.getByLabel('Email address').fill(`${look}@unknown.test`)
      await page.getByRole('button', { name: 'Continue' }).click()
      await see('login-unknown', 'Log in to your mailbox')
      await page.getByRole('link', { name: 'another address' }).click()
      await page.getByLabel('Email address').fill(`${look}.a.rather.long.name.of.somebody@mail.example`)
      await page.getByRole('button', { name: 'Continue' }).click()
      await see('login', 'Log in to your mailbox')
      await fill(page, 'wrong-password')
      await page.getByText('did not accept').waitFor()
      await page.getByText('Details').click()
      await see('login-failed', 'Log in to your mailbox')
      await page.evaluate(`document.querySelector('[data-shows]').click()`)
      const held = Promise.withResolvers<undefined>()
      rig.imap.addUser('slow', { password: 'secret' })
      rig.imap.hooks = {
        send: async (response, call) => {
          if (call?.name === 'LIST') await held.promise
          return response
        },
      }
      await page.evaluate(`document.querySelector('details:has(#server)').open = true`)
      await page.getByLabel('IMAP server').fill(rig.imap.host)
      await page.getByLabel('Port').fill(String(rig.imap.port))
      await page.getByLabel('User name').fill('slow')
      await fill(page, 'secret')
      await page.locator('li.now', { hasText: 'Looking into the mailbox' }).waitFor()
      await see('connecting', 'Connecting')
      rig.imap.hooks = {}
      held.resolve(undefined)
      await back(page, of)
      await page.goBack()
      await see('done', 'Your mailbox is connected')
      await page.context().clearCookies()
      await page.goto(at(of))
      await see('used', 'This link has been used')
      await page.goto(at('unknown'))
      await see('unknown', 'This link is not known')
      const other = await token()
      await page.goto(at(other))
      await page.context().clearCookies()
      await page.getByLabel('Email address').fill('x@mail.example')
      await page.getByRole('button', { name: 'Continue' }).click()
      await see('outdated', 'This page is out of date')
      await page.getByRole('link', { name: 'Begin again' }).click()
      await page.getByLabel('Email address').waitFor()
      assert.deepEqual(complaints, [])
      await page.context().close()
    })
  }

  test('address, password, progress, and back in the application; the back button does not send on again', async () => {
    const of = await token()
    const page = await open()
    await page.goto(at(of))
    await page.getByLabel('Email address').fill('anna@mail.example')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('link', { name: 'Make an app password' }).waitFor()
    await fill(page)
    await back(page, of)
    assert.equal(await usersOf('anna@mail.example'), 1)
    await page.goBack()
    await page.getByRole('heading', { name: 'Your mailbox is connected' }).waitFor()
    await page.waitForTimeout(1500)
    assert.equal(new URL(page.url()).pathname, at(of, 'done'))
    await page.getByRole('link', { name: 'Back to Orange Invoices' }).click()
    await back(page, of)
    await page.context().close()
  })

  test('a wrong password: the focus is on the error, what was typed can be shown, and the right one works', async () => {
    const of = await token({ email: 'bert@mail.example' })
    const page = await open()
    await page.goto(at(of))
    await fill(page, 'not-the-password')
    await page.getByRole('alert').getByText('did not accept').waitFor()
    await until('the focus is on it', async () => (await focused(page)) === 'problem')
    assert.match(await page.title(), /^That did not work: /)
    assert.equal(await page.getByRole('link', { name: 'another address' }).count(), 0, 'the token names the address')
    const password = page.getByLabel('Password of the mailbox')
    assert.equal(await password.inputValue(), '')
    await password.fill('seen')
    await page.getByRole('button', { name: 'Show' }).click()
    assert.equal(await password.getAttribute('type'), 'text')
    await page.getByRole('button', { name: 'Hide' }).click()
    assert.equal(await password.getAttribute('type'), 'password')
    await fill(page)
    await back(page, of)
    await page.context().close()
  })

  test('discovery finds nothing: the settings are there, with a guess, and can be typed', async () => {
    const of = await token()
    const page = await open()
    await page.goto(at(of))
    await page.getByLabel('Email address').fill('carl@unknown.test')
    await page.getByRole('button', { name: 'Continue' }).click()
    assert.equal(await page.getByLabel('IMAP server').inputValue(), 'imap.unknown.test')
    assert.equal(await page.getByLabel('Port').inputValue(), '993')
    assert.equal(await page.getByLabel('User name').inputValue(), 'carl@unknown.test')
    await page.getByLabel('IMAP server').fill(dovecot.host)
    await page.getByLabel('Port').fill(String(dovecot.port))
    await page.getByLabel('Encryption').selectOption('starttls')
    await fill(page)
    await back(page, of)
    await page.context().close()
  })

  test('the back button, a reload and a second tab come to the page that fits', async () => {
    const of = await token()
    const page = await open()
    await page.goto(at(of))
    await page.getByLabel('Email address').fill('dora@mail.example')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByLabel('Password of the mailbox').waitFor()
    await page.goBack()
    assert.equal(await page.getByLabel('Email address').inputValue(), 'dora@mail.example')
    await page.reload()
    await page.goForward()
    await page.getByLabel('Password of the mailbox').waitFor()
    await page.reload()
    const tab = await page.context().newPage()
    await tab.goto(at(of, 'connecting'))
    await tab.getByText('dora@mail.example').waitFor()
    assert.equal(new URL(tab.url()).pathname, at(of, 'login'))
    await fill(page)
    await back(page, of)
    await tab.reload()
    await tab.getByRole('heading', { name: 'Your mailbox is connected' }).waitFor()
    assert.equal(await usersOf('dora@mail.example'), 1)
    await page.context().close()
  })

  test('a double click is one try', async () => {
    const of = await token({ email: 'emil@mail.example' })
    const page = await open()
    await page.goto(at(of))
    await page.getByLabel('Password of the mailbox').fill(dovecot.password)
    await page.getByRole('button', { name: 'Connect' }).dblclick()
    await back(page, of)
    assert.equal(await usersOf('emil@mail.example'), 1)
    assert.equal((await rig.engine.store.tokens.find(of))?.tries, 1)
    await page.context().close()
  })

  test('two browsers race: one mailbox is connected, and the other one is told clearly', async () => {
    for (let round = 0; round < 3; round += 1) {
      const of = await token()
      const pages = await Promise.all([open(), open()])
      const emails = pages.map((_page, index) => `race${round}-${index}@mail.example`)
      for (const [index, page] of pages.entries()) {
        await page.goto(at(of))
        await page.getByLabel('Email address').fill(emails[index] ?? '')
        await page.getByRole('button', { name: 'Continue' }).click()
        await page.getByLabel('Password of the mailbox').fill(dovecot.password)
      }
      await Promise.all(pages.map((page) => page.getByRole('button', { name: 'Connect' }).click()))
      const landing = (page: Page): Promise<string> =>
        page
          .getByText(/Back in the application|used in another window|has been used/)
          .first()
          .textContent()
          .then(String)
      const seen = await Promise.all(pages.map(landing))
      assert.equal(seen.filter((words) => words.startsWith('Back')).length, 1, seen.join('; '))
      const made = await Promise.all(emails.map(usersOf))
      assert.deepEqual(made.toSorted(), [0, 1])
      assert.equal(made[seen.findIndex((words) => words.startsWith('Back'))], 1)
      for (const page of pages) await page.context().close()
    }
  })

  test('without JavaScript: to the end, and a wrong password on the way', async () => {
    const of = await token()
    const page = await open({ ...looks.light, javaScriptEnabled: false })
    await page.goto(at(of))
    await page.getByLabel('Email address').fill('fritz@mail.example')
    await page.getByRole('button', { name: 'Continue' }).click()
    assert.equal(await page.getByRole('button', { name: 'Show' }).count(), 0)
    await fill(page, 'not-the-password')
    await page.getByText('did not accept').waitFor()
    await screenshot(page, shots, 'wizard-no-script')
    await fill(page)
    await page.getByRole('heading', { name: 'Back in the application' }).waitFor()
    assert(await isUsed(of))
    await page.context().close()
  })

  test('in German, on a phone, and the language can be changed', async () => {
    const of = await token()
    const page = await open({ ...looks.phone, locale: 'de-DE' })
    await page.goto(at(of))
    await page.getByRole('heading', { name: 'Postfach verbinden' }).waitFor()
    assert.equal(await page.getAttribute('html', 'lang'), 'de')
    await screenshot(page, shots, 'wizard-address-german')
    await page.getByLabel('E-Mail-Adresse').fill('greta@mail.example')
    await page.getByRole('button', { name: 'Weiter' }).click()
    await page.getByLabel('Passwort des Postfachs').fill('falsch')
    await page.getByRole('button', { name: 'Verbinden' }).click()
    await page.getByText('nicht angenommen').waitFor()
    await screenshot(page, shots, 'wizard-login-german')
    assert.ok((await overhang(page)) <= 0)
    assert.deepEqual(await barriers(page), [])
    await page.getByRole('link', { name: 'English' }).click()
    await page.getByRole('heading', { name: 'Log in to your mailbox' }).waitFor()
    await page.getByRole('link', { name: 'Deutsch' }).click()
    await page.getByLabel('Passwort des Postfachs').fill(dovecot.password)
    await page.getByRole('button', { name: 'Verbinden' }).click()
    await page.getByRole('heading', { name: 'Back in the application' }).waitFor()
    await page.context().close()
  })

  for (const [name, options] of [
    ['light', looks.light],
    ['dark', looks.dark],
    ['phone', looks.phone],
    ['german', { ...looks.phone, locale: 'de-DE' }],
  ] as const) {
    test(`links that are good for nothing, too many forms and our own failure say so: ${name}`, async (t) => {
      const limited = await startLiteRig({ env: { MAILROOM_RATE_CONNECT_PER_MINUTE: '1' } })
      t.after(() => limited.close())
      const page = await open({ ...options, baseURL: limited.url })
      const words = name === 'german' ? de : en
      const { ends } = words
      const leadsBack = async (of: string): Promise<void> => {
        const link = page.getByRole('link', { name: words.back('app.example.com') })
        assert.match((await link.getAttribute('href')) ?? '', new RegExp(`^https://app.example.com/done.*=${of}#part$`))
      }
      const see = async (end: keyof typeof ends): Promise<void> => {
        await page.getByRole('heading', { level: 1, name: ends[end].title }).waitFor()
        await screenshot(page, shots, `wizard-${end}-${name}`)
        assert.deepEqual(await barriers(page), [], end)
        assert.ok((await overhang(page)) <= 0, `${end} is too wide`)
      }
      const { tokens } = limited.engine.store
      const [expired = '', spent = '', busy = ''] = await Promise.all([1, 2, 3].map(() => deskOf(limited).token()))
      const stored = (await tokens.find(expired)) ?? assert.fail()
      await tokens.remove(stored.developerId, expired)
      await tokens.create({ ...stored, expiresAt: Date.now() - 1000 })
      for (let n = 0; n < 20; n += 1) await tokens.tried(spent, 20)
      assert.equal((await page.goto(at(expired)))?.status(), 410)
      await see('expired')
      await leadsBack(expired)
      assert.equal((await page.goto(at(spent)))?.status(), 410)
      await see('spent')
      await leadsBack(spent)
      await page.goto(at(busy))
      for (let n = 0; n < 2; n += 1) await page.locator('button.main').click()
      await see('busy')
      await leadsBack(busy)
      t.mock.method(limited.engine.connect, 'find', () => Promise.reject(new Error('out of order')))
      assert.equal((await page.goto(at(busy)))?.status(), 500)
      await see('broken')
      await page.context().close()
    })
  }

  test('no page asks anybody else for anything', async () => {
    const of = await token()
    const page = await open()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(at(of))
    await page.getByLabel('Email address').fill('hans@mail.example')
    await page.getByRole('button', { name: 'Continue' }).click()
    await fill(page)
    await back(page, of)
    const own = [rig.url, new URL(application.url).origin]
    assert.deepEqual(
      asked.filter((url) => !url.startsWith('data:') && !own.includes(new URL(url).origin)),
      [],
    )
    await page.context().close()
  })
})
