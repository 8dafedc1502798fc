/** The documentation in a browser: each page in light, dark and on a phone, and the search. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { artefacts, barriers, complaintsOf, looks, openBrowser, overhang, screenshot } from '../../console/browser.ts'
import { needs } from '../../support/require.ts'
import { type Service, startService } from '../../support/service.ts'

suite('/docs in a browser', needs('chromium'), () => {
  let service: Service
  let browser: Browser
  before(async () => {
    ;[service, browser] = await Promise.all([startService(), openBrowser()])
  })
  after(async () => {
    await browser.close()
    await service.remove()
  })

  for (const look of ['light', 'dark', 'phone'] as const) {
    test(`${look}: no barriers, nothing that its policy forbids, nothing that sticks out`, async () => {
      const page = await browser.newPage(looks[look])
      const complaints = complaintsOf(page)
      await page.goto(`${service.url}/docs`)
      const all = await page.locator('nav li > a').all()
      const links = await Promise.all(all.map((link) => link.getAttribute('href')))
      assert.ok(links.length >= 8, links.join())
      // The pages of tasks are made alike.
      const seen = look === 'light' ? links : links.slice(0, 3)
      for (const link of seen.map(String)) {
        await page.goto(`${service.url}${link}`)
        // Its first screen: a picture of the whole page takes seconds.
        await screenshot(page, directory, `docs-${link.split('/').at(-1) ?? ''}-${look}`, false)
        assert.deepEqual([await barriers(page, look), await overhang(page)], [[], 0], link)
      }
      assert.deepEqual(complaints, [])
      await page.close()
    })
  }

  test('the search of any page leads to the operations with all of its words', async () => {
    const page = await browser.newPage(looks.light)
    await page.goto(`${service.url}/docs/messages`)
    await page.fill('#search', 'include_body webhook')
    await page.press('#search', 'Enter')
    await page.waitForURL(/\/docs\?search=/)
    const shown = page.locator('#operations li:visible')
    assert.deepEqual(await shown.allInnerTexts(), [
      'POST\nCreate a webhook at user level',
      'POST\nEdit a webhook',
      'POST\nCreate a webhook at application level',
    ])
    assert.equal(await page.locator('#quick-start').isVisible(), false)
    await page.fill('#search', '')
    assert.ok((await shown.count()) > 100 && (await page.locator('#quick-start').isVisible()))
    await page.fill('#search', 'raw message')
    await shown.first().locator('a').click()
    await page.waitForURL(/\/docs\/messages#/)
    await page.close()
  })

  test('without a script the first page shows all operations, and leads to every page', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto(`${service.url}/docs?search=webhook`)
    assert.ok((await page.locator('#operations li:visible').count()) > 100)
    await page.click('nav a[href="/docs/webhooks"]')
    assert.equal(await page.locator('h1', { hasText: 'Webhooks' }).isVisible(), true)
    await context.close()
  })

  const directory = artefacts()
})
