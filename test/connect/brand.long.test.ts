/** The brand of a developer in the wizard, in a browser: the logo comes from a real https host. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { startAdminRig, type AdminRig } from '../api/admin/rig.ts'
import { artefacts, barriers, complaintsOf, looks, openBrowser, overhang, screenshot } from '../console/browser.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { deskOf } from './desk.ts'

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="600"><rect width="900" height="600" fill="#0a7d55"/></svg>'

suite('the brand of a developer in a browser', { ...needs('chromium'), timeout: 120_000 }, () => {
  const parts = new AsyncDisposableStack()
  const shots = artefacts()
  const asked: { readonly url: string; readonly referrer: string | undefined }[] = []
  let rig: AdminRig
  let browser: Browser
  let origin: string
  let path: string

  before(async () => {
    const server = createServer(selfSigned(), ({ url = '', headers }, response) => {
      asked.push({ url, referrer: headers.referer })
      response.setHeader('content-type', 'image/svg+xml')
      response.end(svg)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    parts.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    rig = await startAdminRig()
    parts.defer(() => rig.close())
    path = `/admin/developers/${(await rig.engine.store.developers.first())?.id}/brand`
    browser = await openBrowser()
    parts.defer(() => browser.close())
  })
  after(() => parts.disposeAsync())

  for (const [look, color] of [
    ['light', '#ffd400'],
    ['dark', '#101a5c'],
    ['phone', '#767676'],
  ] as const) {
    test(`name, logo and colour, ${look}: no barrier, nothing that the policy refuses, nothing too wide`, async () => {
      const name = `The Orange <i>Invoices</i> of Anna & Bert${look === 'phone' ? ', Limited, of London' : ''}`
      await rig.good('keys', 'PUT', path, { name, logo: `${origin}/${look}.svg`, color })
      const context = await browser.newContext({ ...looks[look], baseURL: rig.url, ignoreHTTPSErrors: true })
      const page = await context.newPage()
      const complaints = complaintsOf(page)
      const desk = deskOf(rig)
      for (const [step, extra] of [
        ['address', {}],
        ['login', { email: 'ada@mail.example' }],
      ] as const) {
        await page.goto(desk.at(await desk.token(extra)))
        await page.locator('header').getByText(name, { exact: true }).waitFor()
        const logo = page.getByRole('img', { name: 'Logo' })
        assert.equal(await logo.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth), 900)
        const { width, height } = (await logo.boundingBox()) ?? assert.fail('no logo')
        assert.ok(height <= 38 && width <= 150, `${width} × ${height}`)
        await screenshot(page, shots, `brand-${step}-${look}`)
        assert.deepEqual(await barriers(page), [], step)
        assert.ok((await overhang(page)) <= 0, `${step} is too wide`)
      }
      assert.deepEqual(complaints, [])
      assert.ok(asked.some(({ url }) => url === `/${look}.svg`))
      assert.deepEqual(
        asked.filter(({ referrer }) => referrer !== undefined),
        [],
      )
      await page.evaluate(`new Image().src = 'https://localhost:${new URL(origin).port}/other.svg'`)
      await until('the refusal', () => complaints.some((words) => /violates.*img-src/.test(words)))
      await context.close()
    })
  }
})
