/**
 * Each page and each button of the console, in a browser, against the whole service as a process on a real mail server.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, Locator, Page } from 'playwright-core'
import { drawings, statesOf } from '../../engine/index.ts'
import { acceptedFor, type Stage } from '../e2e/stage.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'
import { artefacts, barriers, complaintsOf, cutCells, looks, openBrowser, overhang, screenshot } from './browser.ts'
import { build, password, type World } from './world.ts'

/** `accounts`: how many, beside the three that are looked at. */
export function consoleSuite(name: string, accounts: number): void {
  suite(name, { ...needs('chromium', 'dovecot'), timeout: 600_000 }, () => {
    const parts = new AsyncDisposableStack()
    const shots = artefacts()
    let world: World
    let browser: Browser

    before(async () => {
      world = await build(parts, accounts)
      browser = await openBrowser()
      parts.defer(() => browser.close())
    })
    after(() => parts.disposeAsync())

    async function visit(look: keyof typeof looks = 'light'): Promise<Page> {
      const context = await browser.newContext({ ...looks[look], baseURL: world.stage.service.url })
      const page = await context.newPage()
      page.setDefaultTimeout(10_000)
      await page.goto('/console')
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      return page
    }

    const pages = (): readonly (readonly [name: string, path: string, heading: string | RegExp])[] => [
      ['overview', '/console', 'Overview'],
      ['accounts', '/console/accounts', 'Accounts'],
      ['account', world.account, world.ada.email],
      ['webhooks', '/console/webhooks', 'Webhooks'],
      ['webhook', world.webhook, /127\.0\.0\.1/],
      ['deliveries', '/console/deliveries', 'Deliveries'],
      ['delivery', world.delivery, 'Callback'],
      ['resend', '/console/deliveries/redeliver?within=3600', 'Send failed callbacks again'],
      ['search', '/console/search?q=example', 'Search'],
      ['search-none', '/console/search?q=nothing-at-all', 'Search'],
      ['trail', `${world.account}/trail?q=news`, 'news'],
      ['trail-newest', `${world.account}/trail`, 'Why did this mail not arrive?'],
      ['trail-unknown', `${world.account}/trail?q=unknown@mail.example`, 'Why did this mail not arrive?'],
      ['hosts', '/console/hosts', 'Hosts'],
      ['developers', '/console/developers', 'Developers'],
      ['developer', world.developer, 'Developer'],
      ['tokens', '/console/tokens', 'Tokens'],
      ['retention', '/console/retention', 'Retention'],
      ['audit', '/console/audit', 'Audit'],
    ]

    for (const look of ['light', 'dark', 'phone'] as const) {
      test(`each page, ${look}: no barrier, nothing that the policy refuses, nothing too wide`, async () => {
        const page = await visit(look)
        const complaints = complaintsOf(page)
        for (const [shot, path, heading] of pages()) {
          await page.goto(path)
          await page.getByRole('heading', { level: 1, name: heading }).waitFor()
          await screenshot(page, shots, `${shot}-${look}`)
          assert.deepEqual(await barriers(page, look), [], path)
          assert.ok((await overhang(page)) <= 0, `${path} is too wide`)
          if (look === 'phone') assert.deepEqual(await cutCells(page), [], path)
          const named = await page.evaluate<string[]>(
            `[...document.querySelectorAll('[role=region]')].map((one) => one.ariaLabel)`,
          )
          assert.equal(new Set(named).size, named.length, `${path} has regions named alike: ${named.join()}`)
        }
        assert.deepEqual(complaints, [])
        await page.context().close()
      })
    }

    test('the login says what is wrong, and leads to the page that was asked for', async () => {
      const context = await browser.newContext({ ...looks.light, baseURL: world.stage.service.url })
      const page = await context.newPage()
      await page.goto('/console/hosts')
      assert.deepEqual(await barriers(page), [])
      await page.getByLabel('Password').fill('a guess')
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('password: it is wrong').waitFor()
      await screenshot(page, shots, 'login-light')
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('heading', { level: 1, name: 'Hosts' }).waitFor()
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Password').waitFor()
      await page.goto('/console/hosts')
      await page.getByLabel('Password').waitFor()
      await context.close()
    })

    test('the charts have exactly the states and arrows of the machines, and light the active states', async () => {
      const page = await visit()
      for (const [path, drawing, active] of [
        [world.account, drawings.account, 'running.life.online.mailbox.watching.alive'],
        [world.webhook, drawings.webhook, 'running.work.active.draining.idle'],
      ] as const) {
        await page.goto(path)
        const boxes = await page.locator('[data-state]').all()
        const shown = await Promise.all(boxes.map(async (box) => (await box.getAttribute('data-state')) ?? ''))
        const states = statesOf(drawing.chart).map(({ path }) => path)
        assert.deepEqual(shown.toSorted(), states.slice(1).toSorted())
        const arrows = await page.locator('[data-arrow]').count()
        assert.equal(arrows, drawing.arrows.length)
        await page.locator(`[data-state="${active}"].on.leaf`).waitFor()
      }
      await page.context().close()
    })

    test('an account whose server is gone: it is found, and its page says why, since when and what comes next', async () => {
      const page = await visit()
      await page.goto('/console/accounts')
      await page.getByRole('combobox', { name: 'State', exact: true }).selectOption('waiting')
      await page.getByRole('combobox', { name: 'Failure' }).selectOption('network')
      await page.getByRole('button', { name: 'Show' }).click()
      await page.getByRole('link', { name: world.lost }).click()
      await page.getByRole('heading', { level: 1, name: world.lost }).waitFor()
      await page
        .getByText(/connects again in \d:\d\d, \w+ try/)
        .first()
        .waitFor()
      const first = await countdown(page)
      await until('a tick', async () => (await countdown(page)) !== first)
      await page.locator('[data-arrow="running.life.waiting>running.life.connecting"].runs').waitFor()
      await page.locator('.label .runs', { hasText: /^after wait in \d:\d\d$/ }).waitFor()
      await page.locator('[data-arrow="running.life.deciding>running.life.waiting.backoff"].lit').waitFor()
      await screenshot(page, shots, 'lost-account-light')
      await page.context().close()
    })

    test('on a phone an account is a card with why and next, and its chart opens at the active state', async () => {
      const page = await visit('phone')
      const onScreen = async (what: Locator): Promise<void> => {
        const { x, width } = (await what.boundingBox()) ?? assert.fail(String(what))
        assert.ok(x >= 0 && x + width <= looks.phone.viewport.width, `${String(what)} begins at ${x}`)
      }
      await page.goto('/console/accounts?failure=network')
      const card = page.getByRole('row', { name: world.lost })
      for (const text of [/ECONNREFUSED/, /connects again/]) await onScreen(card.getByText(text))
      await page.goto('/console/deliveries?q=news')
      await page.getByRole('cell').first().getByRole('link', { name: 'news' }).waitFor()
      await page.goto(world.account)
      assert.equal(await page.getByRole('button', { name: /^(Pause|Resume)$/ }).count(), 1)
      await onScreen(page.locator('[data-state="running.life.online.mailbox.watching.alive"].on.leaf'))
      await page.context().close()
    })

    test('among all, one is found by a part of its address; the list has pages', async () => {
      const page = await visit()
      const total = accounts + 3
      const limit = Math.ceil(total / 2)
      await page.goto(`/console/accounts?limit=${limit}`)
      const shown = () => page.getByRole('row').getByRole('link', { name: /@/ }).allTextContents()
      const first = await shown()
      await page.getByRole('link', { name: 'Next' }).click()
      await page.getByText(`${limit + 1}–${total} of ${total}`).waitFor()
      await page.waitForLoadState()
      assert.equal(new Set([...first, ...(await shown())]).size, total)
      await page.getByLabel('Address, label or id').fill('USER0@')
      await page.getByRole('button', { name: 'Show' }).click()
      await page.getByText('1–1 of 1').waitFor()
      assert.deepEqual(await shown(), ['user0@mail.example'])
      await page.context().close()
    })

    test('an open page follows what happens', async () => {
      const page = await visit()
      await page.goto(world.account)
      await page.locator('[data-state="running.life.online.mailbox.watching"].on').waitFor()
      const second = await page.context().newPage()
      await second.goto(world.account)
      await second.getByRole('button', { name: 'Pause' }).click()
      await second.getByText('It is paused').waitFor()
      await page.locator('[data-state="running.life.paused"].on').waitFor()
      await page.locator('[data-arrow="running.life>running.life.paused"].lit').waitFor()
      await second.getByRole('button', { name: 'Resume' }).click()
      await page.locator('[data-state="running.life.online.mailbox.watching"].on').waitFor()
      assert.equal(page.url(), `${world.stage.service.url}${world.account}`)
      await page.context().close()
    })

    test('reconnect, check status, read a folder anew', async () => {
      const page = await visit()
      await page.goto(world.account)
      await page.getByRole('button', { name: 'Check status' }).click()
      await page.getByText('Its login was checked').waitFor()
      await page.getByRole('button', { name: 'Reconnect' }).click()
      await page.getByText('It connects again').waitFor()
      await page.getByRole('combobox', { name: 'Folder' }).selectOption('INBOX')
      await page.getByRole('button', { name: 'Compare again' }).click()
      await page.getByText('INBOX is compared again').waitFor()
      await page.locator('[data-state="running.life.online.mailbox.watching"].on').waitFor()
      await page.context().close()
    })

    test('a callback is sent again', async () => {
      const page = await visit()
      const count = () => acceptedFor(world.stage, world.ada).length
      const seen = count()
      await page.goto(world.webhook)
      await page.getByRole('region', { name: 'Callbacks' }).getByRole('link').first().click()
      await page.getByRole('button', { name: 'Send it again' }).click()
      await page.getByText('It is sent again').waitFor()
      await until('the callback again', () => count() > seen)
      await page.context().close()
    })

    test('a webhook whose receiver fails: it is found, with what waits, since when and why', async () => {
      const page = await visit()
      await page.goto('/console/webhooks')
      await page.getByRole('combobox', { name: 'Receiver' }).selectOption('fails')
      await page.getByRole('button', { name: 'Show' }).click()
      await page.getByText('1–1 of 1').waitFor()
      const row = page.getByRole('row', { name: '/late' })
      assert.equal(await row.locator('td.n').first().textContent(), '1')
      await row.getByText('HTTP 500').waitFor()
      await row.locator('.pill.bad', { hasText: 'failing' }).waitFor()
      await screenshot(page, shots, 'late-webhooks-light')
      await row.getByRole('link', { name: '/late' }).click()
      await page.getByText(/failures in a row/).waitFor()
      await page.locator('[data-state="running.health.retrying"].on').waitFor()
      await page
        .getByRole('region', { name: 'Callbacks' })
        .getByText(/in \d:\d\d/)
        .waitFor()
      await screenshot(page, shots, 'late-webhook-light')
      await page.context().close()
    })

    test('the search box, on any page, leads to an account; a whole address at once', async () => {
      const page = await visit()
      await page.goto('/console/hosts')
      const box = page.getByRole('search').getByRole('searchbox')
      const { email } = world.ada
      await box.fill(email.slice(0, 5))
      await box.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Search' }).waitFor()
      await page.getByRole('main').getByRole('link', { name: email }).first().click()
      await page.getByRole('heading', { level: 1, name: email }).waitFor()
      await page.goto('/console/audit')
      await box.fill(email)
      await box.press('Enter')
      await page.getByRole('heading', { level: 1, name: email }).waitFor()
      await page.context().close()
    })

    test('a host is slowed down, stopped and freed', async () => {
      const page = await visit()
      await page.goto('/console/hosts')
      const host = page.getByRole('region', { name: 'Hosts' })
      assert.equal(await page.getByRole('combobox', { name: 'Host' }).inputValue(), '')
      const name = await page.getByRole('combobox', { name: 'Host' }).locator('option').nth(1).getAttribute('value')
      const choose = () => page.getByRole('combobox', { name: 'Host' }).selectOption(name)
      await choose()
      await page.getByRole('button', { name: 'Slow down' }).click()
      await host.getByText('10 logins a minute').waitFor()
      await choose()
      await page.getByRole('button', { name: 'Stop' }).click()
      await page.getByRole('button', { name: 'Stop logins' }).click()
      await host.getByText('stopped').waitFor()
      await choose()
      await page.getByRole('button', { name: 'Free' }).click()
      await host.getByText('as configured').first().waitFor()
      await page.context().close()
    })

    test('the page of an account that is removed says so, and asks no more', async () => {
      const { service } = world.stage
      const id = await createUser(service, world.dovecot, 'leaving@mail.example')
      const page = await visit()
      await page.goto('/console/accounts?q=leaving%40')
      await page.getByRole('link', { name: 'leaving@mail.example' }).click()
      await page.getByRole('heading', { name: 'Chart' }).waitFor()
      await service.ok('DELETE', `/lite/users/${id}`)
      await page.getByText('What this page shows is gone').waitFor()
      assert.equal(await page.evaluate('events.readyState'), 2, 'the stream is closed for good')
      await page.context().close()
    })

    test('a developer is made, gets a new secret, is revoked and restored; the secrets work', async () => {
      const page = await visit()
      await page.goto('/console/developers')
      await page.getByLabel('Name', { exact: true }).fill('Grace')
      await page.getByRole('button', { name: 'Create' }).click()
      const [key = '', secret = ''] = await secrets(page)
      await screenshot(page, shots, 'secret-light')
      const status = (with_: string) => callAs(world.stage, key, with_)
      assert.equal(await status(secret), 200)
      await page.getByRole('link', { name: 'Continue' }).click()
      const row = page.getByRole('row', { name: 'Grace' })
      await row.getByRole('link', { name: 'New secret' }).click()
      await page.getByText('The one of today is accepted for 24 more hours').waitFor()
      assert.deepEqual(await barriers(page), [])
      assert.equal(await status(secret), 200)
      await page.getByRole('button', { name: 'Make a new secret' }).click()
      const [, next = ''] = await secrets(page)
      await page.reload()
      await page.getByText('is shown once').waitFor()
      assert.deepEqual([await status(secret), await status(next)], [200, 200])
      await page.goto('/console/developers')
      await row.getByRole('button', { name: 'Revoke the old secret' }).click()
      await page.getByText('The old secret is refused').waitFor()
      assert.deepEqual([await status(secret), await status(next)], [401, 200])
      await row.getByRole('link', { name: 'Revoke', exact: true }).click()
      await page.getByRole('button', { name: 'Revoke', exact: true }).click()
      await row.getByText('revoked').waitFor()
      assert.equal(await status(next), 401)
      await row.getByRole('button', { name: 'Restore' }).click()
      await row.getByRole('link', { name: 'Revoke' }).waitFor()
      assert.equal(await status(next), 200)
      await page.context().close()
    })

    test('a token of the admin API is made with its scopes, and revoked', async () => {
      const page = await visit()
      await page.goto('/console/tokens')
      await page.getByLabel('Name', { exact: true }).fill('grafana')
      await page.getByLabel('read').check()
      await page.getByRole('button', { name: 'Create' }).click()
      const token = (await page.locator('.note code').textContent()) ?? ''
      const status = async (path: string, method = 'GET') =>
        (await fetch(world.stage.service.url + path, { method, headers: { authorization: `Bearer ${token}` } })).status
      assert.deepEqual([await status('/admin/overview'), await status('/admin/tokens', 'POST')], [200, 403])
      await page.getByRole('link', { name: 'Continue' }).click()
      await page.getByRole('row', { name: 'grafana' }).getByRole('link', { name: 'Revoke' }).click()
      await page.getByRole('button', { name: 'Revoke' }).click()
      await page.getByText('The token is refused').waitFor()
      assert.equal(await status('/admin/overview'), 401)
      await page.context().close()
    })
  })
}

/** Key and secret of the page that shows them once. */
async function secrets(page: Page): Promise<string[]> {
  const codes = page.locator('.note code')
  await codes.first().waitFor()
  return codes.allTextContents()
}

async function callAs({ service }: Stage, key: string, secret: string): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
  return (await fetch(`${service.url}/lite/users`, { headers: { authorization } })).status
}

/** What the page counts down. */
async function countdown(page: Page): Promise<string> {
  return (await page.locator('time[data-until]').first().textContent()) ?? ''
}
