/** The brand of a developer: set by operators, shown in the connect wizard as text, and allowed by its policy. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { logoOrigin } from '../../../engine/index.ts'
import { deskOf } from '../../connect/desk.ts'
import { createVisitor, type Shown } from '../../connect/visitor.ts'
import { until } from '../../support/until.ts'
import type { Json } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

const password = 'a password of an operator'
const brand = { name: 'Eye & <b>Ear</b>', logo: 'https://cdn.example.com:8443/l.svg?a=1&b="', color: '#FFd400' }
const none = { name: null, logo: null, color: null }

describe('the brand of a developer', () => {
  let rig: AdminRig
  let path: string

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_ADMIN_PASSWORD: password } })
    path = `/admin/developers/${(await rig.engine.store.developers.first())?.id}`
  })
  after(() => rig.close())

  const set = (body: Json) => rig.good('keys', 'PUT', `${path}/brand`, body)
  const shown = async (): Promise<unknown> => (await rig.good('read', 'GET', path))['brand']
  async function wizard(): Promise<Shown & { readonly policy: string }> {
    const desk = deskOf(rig)
    const page = await createVisitor(rig.url).open(desk.at(await desk.token()))
    return { ...page, policy: page.headers.get('content-security-policy') ?? '' }
  }

  test('it is set by one call, shown, recorded; a part that is left out or empty is none', async () => {
    assert.deepEqual(await shown(), none)
    assert.deepEqual((await set(brand))['brand'], brand)
    assert.deepEqual(await shown(), brand)
    const recorded = async () => (await rig.good('read', 'GET', '/admin/audit')) as unknown as Json[]
    await until('the record', async () => (await recorded()).some(({ action }) => action === 'developers brand'))
    await set({ name: '  ', color: '#112233', logo: null })
    assert.deepEqual(await shown(), { ...none, color: '#112233' })
    await set({})
    assert.deepEqual(await shown(), none)
    await refusesOthers(rig, 'PUT', `${path}/brand`, 'keys')
    const nobody = await rig.as(rig.tokens.keys, 'PUT', '/admin/developers/nobody/brand', {})
    assert.deepEqual([nobody.status, nobody.json['value']], [404, 'developer nobody is invalid'])
  })

  for (const [part, values] of Object.entries({
    color: ['red', '#fff', '#2457d6}body{', '#2457d6\n;', 'x#2457d6', '#2457dg'],
    logo: [
      'http://cdn.example.com/l.svg',
      'data:image/svg+xml,%3Csvg/%3E',
      'javascript:alert(1)',
      '//cdn.example.com/l.svg',
      'https://',
      'https://user@cdn.example.com/l.svg',
      'https://user:secret@cdn.example.com/l.svg',
      'https://*/l.svg',
      'https://a;sandbox/l.svg',
      'https://a,b/l.svg',
    ],
    name: ['x'.repeat(101)],
  })) {
    test(`a wrong ${part} is a 400 that names it, and nothing is changed`, async () => {
      for (const value of values) {
        const answer = await rig.as(rig.tokens.keys, 'PUT', `${path}/brand`, { ...brand, [part]: value })
        assert.equal(answer.status, 400, value)
        assert.match(String(answer.json['value']), new RegExp(`^${part}: expected .*, or nothing$`))
      }
      assert.deepEqual(await shown(), none)
    })
  }

  test('the wizard shows it as text, and its policy allows the origin of the logo and nothing else', async () => {
    const before = await wizard()
    assert.match(before.text, /app\.example\.com asks for access/)
    assert.doesNotMatch(before.policy, /img-src/)
    await set(brand)
    const page = await wizard()
    assert.match(page.text, /Eye &amp; &lt;b&gt;Ear&lt;\/b&gt; asks for access/)
    assert.ok(page.text.includes('<img src="https://cdn.example.com:8443/l.svg?a=1&amp;b=&quot;" alt="Logo" />'))
    assert.match(page.text, /--brand: #FFd400; --brand-ink: #000000;/)
    assert.match(page.policy, /; img-src https:\/\/cdn\.example\.com:8443;/)
    assert.equal(
      page.policy.replace(/ img-src [^;]*;|'sha256-[^']+'/g, ''),
      before.policy.replace(/'sha256-[^']+'/g, ''),
    )
    await set({ color: '#112233' })
    const plain = await wizard()
    assert.match(plain.text, /app\.example\.com asks for access/)
    assert.match(plain.text, /--brand: #112233; --brand-ink: #ffffff;/)
    assert.doesNotMatch(plain.policy, /img-src/)
    await set({})
  })

  test('a link that has ended has the brand too; a link of nobody, or of another developer, has not', async () => {
    await set(brand)
    const desk = deskOf(rig)
    const visitor = createVisitor(rig.url)
    const { developer } = await rig.engine.developers.create('Other')
    const [ended, other] = [await desk.token(), await desk.token()]
    for (const [of, change] of [
      [ended, { expiresAt: Date.now() - 1 }],
      [other, { developerId: developer.id }],
    ] as const) {
      const token = (await rig.engine.store.tokens.find(of)) ?? assert.fail('no token')
      await rig.engine.store.tokens.remove(token.developerId, of)
      await rig.engine.store.tokens.create({ ...token, ...change })
    }
    const gone = await visitor.ask(desk.at(ended))
    assert.equal(gone.status, 410)
    assert.match(gone.text, /Eye &amp;/)
    assert.match(gone.headers.get('content-security-policy') ?? '', /img-src https:\/\/cdn\.example\.com:8443;/)
    for (const link of [other, 'unknown']) {
      const page = await visitor.ask(desk.at(link))
      assert.doesNotMatch(page.text, /Eye &amp;/)
      assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /cdn\.example\.com/)
    }
    await set({})
  })

  test('the page of the developer has a form for it, filled in as it is', async () => {
    const browser = createVisitor(rig.url)
    await browser.send('/console/login', { password, to: '/console' })
    const page = path.replace('/admin', '/console')
    await browser.open(page)
    const { logo, color } = brand
    const saved = await browser.send(`${page}/brand`, { name: 'Orange', logo, color })
    assert.deepEqual([saved.status, saved.location], [303, page])
    assert.deepEqual(await shown(), { ...brand, name: 'Orange' })
    assert.match((await browser.open(page)).text, /<input name="name" value="Orange"[^]*name="color" value="#FFd400"/)
    const refused = await browser.send(`${page}/brand`, { name: '', logo: 'http://a.example', color: '' })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /logo: expected an https:\/\/ URL/)
    await browser.open(page)
    await browser.send(`${page}/brand`, { name: '', logo: '', color: '' })
    assert.deepEqual(await shown(), none)
  })

  test('an origin is spelled as a policy has it', () => {
    assert.equal(logoOrigin('HTTPS://Bücher.Example:443/l.svg'), 'https://xn--bcher-kva.example')
    assert.equal(logoOrigin('https://127.0.0.1:8443/l.svg'), 'https://127.0.0.1:8443')
  })
})
