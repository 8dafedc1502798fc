/** Who may come into the console, and who not: on the real service in this process, without a browser. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { type Answer, callRaw } from '../api/core/rig.ts'
import { openEventStream } from '../support/event-stream.ts'
import { until } from '../support/until.ts'

const password = 'a password of an operator'
const form = { 'content-type': 'application/x-www-form-urlencoded' }

function login(rig: LiteRig, words: string, to = '/console'): Promise<Answer> {
  const body = new URLSearchParams({ password: words, to }).toString()
  return callRaw(rig.port, 'POST', '/console/login', { headers: form, body })
}

function cookieIn(answer: Answer): string {
  assert.equal(answer.status, 303)
  const [cookie = ''] = answer.headers['set-cookie'] ?? []
  return cookie
}

/** A session, and its token as the pages have it. */
async function session(rig: LiteRig): Promise<{ readonly cookie: string; readonly csrf: string }> {
  const cookie = cookieIn(await login(rig, password)).split(';')[0] ?? ''
  const { text } = await callRaw(rig.port, 'GET', '/console', { headers: { cookie } })
  return { cookie, csrf: /name="csrf" value="([\w-]+)"/.exec(text)?.[1] ?? assert.fail('no token') }
}

suite('who may come into the console', () => {
  let rig: LiteRig
  before(
    async () => (rig = await startLiteRig({ env: { MAILROOM_ADMIN_PASSWORD: password, MAILROOM_WRONG_KEYS: '3' } })),
  )
  after(() => rig.close())

  const get = (path: string, cookie = '') => callRaw(rig.port, 'GET', path, { headers: { cookie } })
  const post = (path: string, cookie: string, fields: Record<string, string>) =>
    callRaw(rig.port, 'POST', path, { headers: { ...form, cookie }, body: new URLSearchParams(fields).toString() })

  test('without a session each page leads to the login, which leads back', async () => {
    for (const path of ['/console', '/console/accounts?state=waiting', '/console/accounts/x', '/console/tokens']) {
      for (const cookie of ['', 'mailroom_console=unknown', 'other=1']) {
        const answer = await get(path, cookie)
        assert.equal(answer.status, 303, path)
        assert.equal(answer.headers.location, `/console/login?to=${encodeURIComponent(path)}`)
      }
    }
    const page = await get('/console/login?to=%2Fconsole%2Fhosts')
    assert.equal(page.status, 200)
    assert.ok(page.text.includes('name="to" value="/console/hosts"'))
    assert.equal((await get('/console/events?page=/console')).status, 303)
  })

  test('a right password opens a session, whose cookie no script and no other site gets', async () => {
    const answer = await login(rig, password, '/console/hosts?x=1')
    assert.equal(answer.headers.location, '/console/hosts?x=1')
    assert.match(cookieIn(answer), /^mailroom_console=[\w-]{20,}; HttpOnly; SameSite=Strict; Path=\/console$/)
    for (const elsewhere of [
      'https://evil.example/',
      '//evil.example',
      '/lite/users',
      '/console@evil',
      '/console/../docs',
      '/console/%2e%2e/docs',
      '/console\r\nX: 1',
    ])
      assert.equal((await login(rig, password, elsewhere)).headers.location, '/console')
  })

  test('a login from another site is refused, and counts as no try', async () => {
    const body = new URLSearchParams({ password: 'wrong' }).toString()
    for (const from of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
      for (let time = 0; time < 5; time += 1) {
        const answer = await callRaw(rig.port, 'POST', '/console/login', { headers: { ...form, ...from }, body })
        assert.equal(answer.status, 403)
      }
    }
    assert.equal((await login(rig, password)).status, 303)
  })

  test('a login ends the session that the browser had', async () => {
    const { cookie } = await session(rig)
    const body = new URLSearchParams({ password }).toString()
    const again = await callRaw(rig.port, 'POST', '/console/login', { headers: { ...form, cookie }, body })
    assert.equal(again.status, 303)
    assert.equal((await get('/console', cookie)).status, 303)
  })

  test('a page says what a browser may do with it', async () => {
    const { cookie } = await session(rig)
    const { headers, text, status } = await get('/console', cookie)
    assert.equal(status, 200)
    assert.equal(headers['cache-control'], 'no-store')
    const policy = String(headers['content-security-policy'])
    for (const tag of ['style', 'script']) {
      const content = [...text.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(([, inner = '']) => inner)
      assert.equal(content.length, 1)
      const hash = createHash('sha256').update(content.join('')).digest('base64')
      assert.ok(policy.includes(`${tag}-src 'sha256-${hash}'`), tag)
    }
    for (const rule of [`default-src 'none'`, `form-action 'self'`, `frame-ancestors 'none'`, `base-uri 'none'`])
      assert.ok(policy.includes(rule), rule)
    assert.doesNotMatch(text, /\son\w+=|\sstyle=|(?:src|href)="(?:https?:)?\/\//)
  })

  test('an action without a session, or with the token of another, does nothing', async () => {
    const [own, other] = [await session(rig), await session(rig)]
    const made = (await rig.engine.operators.tokens()).length
    const refused: readonly (readonly [string, Record<string, string>])[] = [
      ['', { name: 'thief' }],
      ['', { name: 'thief', csrf: own.csrf }],
      [own.cookie, { name: 'thief' }],
      [own.cookie, { name: 'thief', csrf: other.csrf }],
      [own.cookie, { name: 'thief', csrf: '' }],
    ]
    for (const [cookie, fields] of refused) assert.equal((await post('/console/tokens', cookie, fields)).status, 403)
    assert.equal((await rig.engine.operators.tokens()).length, made)
    assert.equal((await post('/console/tokens', own.cookie, { name: 'mine', csrf: own.csrf, read: '1' })).status, 200)
    assert.equal((await rig.engine.operators.tokens()).length, made + 1)
  })

  test('errors are pages, and name the parameter', async () => {
    const { cookie, csrf } = await session(rig)
    const unknown = await get('/console/accounts/000000000000000000000000', cookie)
    assert.equal(unknown.status, 404)
    assert.match(unknown.text, /000000000000000000000000 is invalid/)
    const bad = await get('/console/accounts?limit=x', cookie)
    assert.equal(bad.status, 400)
    assert.match(bad.text, /<p class="bad">limit: /)
    const nameless = await post('/console/developers', cookie, { csrf, name: '' })
    assert.equal(nameless.status, 400)
    assert.match(nameless.text, /<p class="bad">name: /)
  })

  test('an open page hears of what changes on it, until the session is over', async () => {
    const { cookie, csrf } = await session(rig)
    assert.equal((await get('/console/events?page=/lite/users', cookie)).status, 400)
    const stream = await openEventStream(`${rig.url}/console/events?page=/console/accounts?q=ida`, { cookie })
    assert.equal(stream.headers['content-type'], 'text/event-stream')
    await until('the list', () => stream.events.length === 1)
    assert.match(String(stream.events[0]?.data['accounts']), /No account is like this/)
    await rig.mailbox('otto')
    const { email } = await rig.mailbox('ida')
    await until('the new account', () => stream.events.at(-1)?.data['accounts']?.toString().includes(email))
    assert.ok(stream.events.every(({ data }) => !String(data['accounts']).includes('otto')))
    await post('/console/logout', cookie, { csrf })
    await until('the end', () => stream.ended)
  })

  test('after a logout the session is over', async () => {
    const { cookie, csrf } = await session(rig)
    assert.equal((await post('/console/logout', cookie, { csrf })).status, 303)
    assert.equal((await get('/console', cookie)).status, 303)
    assert.equal((await post('/console/tokens', cookie, { csrf, name: 'late' })).status, 403)
  })

  test('the documents do not have it', async () => {
    for (const path of ['/openapi.json', '/docs']) assert.doesNotMatch((await get(path)).text, /"?\/console/)
  })

  // The last one: this address has to wait afterwards.
  test('after some wrong passwords the right one has to wait too', async () => {
    for (let n = 0; n < 3; n += 1) {
      const answer = await login(rig, 'a guess')
      assert.equal(answer.status, 401)
      assert.match(answer.text, /password: it is wrong/)
    }
    const answer = await login(rig, password)
    assert.equal(answer.status, 429)
    assert.ok(Number(answer.headers['retry-after']) >= 1)
    assert.match(answer.text, /password: too many wrong ones from this address; try again in \d+ s/)
  })
})

test('behind https the cookie is for https alone', async () => {
  const env = { MAILROOM_ADMIN_PASSWORD: password, MAILROOM_PUBLIC_URL: 'https://mail.example.com' }
  const rig = await startLiteRig({ env })
  try {
    assert.match(cookieIn(await login(rig, password)), /; Secure$/)
  } finally {
    await rig.close()
  }
})

test('without a password, on a host that others reach, there is no console', async () => {
  const rig = await startLiteRig({ env: { MAILROOM_HOST: '0.0.0.0' } })
  try {
    for (const path of ['/console', '/console/login', '/console/accounts', '/console/events?page=/console'])
      assert.equal((await callRaw(rig.port, 'GET', path, { headers: {} })).status, 404, path)
    assert.equal((await login(rig, '')).status, 404)
  } finally {
    await rig.close()
  }
})
