/** Who may come into the console, and who not: on the real service in this process, without a browser. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { type Answer, callRaw } from '../api/core/raw-call.ts'
import { newId } from '../../engine/store/ids.ts'
import { type EventStream, openEventStream } from '../support/event-stream.ts'
import { outboxRecord } from '../store/contract/records.ts'
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

function closed(values: readonly { readonly labels: Record<string, unknown>; readonly value: number }[]): boolean {
  return values.some(({ labels }) => labels['route'] === '/console/events' && labels['status'] === 499)
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
    assert.equal((await post('/console/tokens', own.cookie, { name: 'mine', csrf: own.csrf, read: '1' })).status, 303)
    assert.equal((await rig.engine.operators.tokens()).length, made + 1)
  })

  test('a secret is shown once, in an answer to a GET of its own session', async () => {
    const [own, other] = [await session(rig), await session(rig)]
    const made = await post('/console/developers', own.cookie, { csrf: own.csrf, name: 'Grace' })
    assert.deepEqual([made.status, made.headers.location], [303, '/console/shown?page=%2Fconsole%2Fdevelopers'])
    assert.doesNotMatch((await get('/console/shown', other.cookie)).text, /API secret/)
    assert.match((await get('/console/shown', own.cookie)).text, /<dt>API secret<\/dt>\s*<dd><code>[\w-]{32}<\/code>/)
    assert.doesNotMatch((await get('/console/shown', own.cookie)).text, /API secret/)
  })

  test('what ends a key or a token asks first, and the question changes nothing', async () => {
    const { cookie, csrf } = await session(rig)
    const { developer } = await rig.engine.developers.create('Hedy')
    const { record } = await rig.engine.operators.createToken('watcher', ['read'])
    const list = (await get('/console/developers', cookie)).text + (await get('/console/tokens', cookie)).text
    const deeds: readonly (readonly [path: string, words: RegExp])[] = [
      [`/console/developers/${developer.id}/rotate`, new RegExp(`Hedy \\(API key ${developer.apiKey}\\)`)],
      [`/console/developers/${developer.id}/revoke`, /Calls of Hedy .* are refused at once/],
      [`/console/tokens/${record.id}/revoke`, /The token watcher is refused at once/],
    ]
    for (const [path, words] of deeds) {
      assert.ok(list.includes(`href="${path}"`), path)
      assert.ok(!list.includes(`action="${path}"`), path)
      const question = await get(path, cookie)
      assert.match(question.text, words)
      assert.ok(question.text.includes(`<form method="post" action="${path}"`), path)
      assert.equal((await get(path.replace(/[0-9a-f]{24}/, 'f'.repeat(24)), cookie)).status, 404)
    }
    const found = async () => (await rig.engine.store.developers.get(developer.id)) ?? assert.fail('gone')
    assert.deepEqual(await found(), developer)
    for (const [path] of deeds) assert.equal((await post(path, cookie, { csrf })).status, 303)
    const { sealedSecret, revokedAt } = await found()
    assert.ok(sealedSecret !== developer.sealedSecret && typeof revokedAt === 'number')
    assert.ok((await rig.engine.operators.tokens()).some(({ id, revokedAt: at }) => id === record.id && at !== null))
  })

  test('of many tokens the newest can be revoked', async () => {
    const { cookie } = await session(rig)
    const { operators, store } = rig.engine
    const { record } = await operators.createToken('old', ['read'])
    const many = Array.from({ length: 1000 }, () => store.operators.put({ ...record, id: newId(), createdAt: 1 }))
    await Promise.all(many)
    const path = `/console/tokens/${(await operators.createToken('newest', ['read'])).record.id}/revoke`
    assert.match((await get(path, cookie)).text, /The token newest is refused at once/)
    assert.ok((await get('/console/tokens?offset=1000', cookie)).text.includes(path))
  })

  test('a list keeps its length and its filters from page to page', async () => {
    const { cookie } = await session(rig)
    for (const name of ['Mary', 'Joan']) await rig.engine.developers.create(name)
    const next = async (path: string): Promise<string | undefined> =>
      /href="([^"]*)">Next</.exec((await get(path, cookie)).text)?.[1]
    assert.equal(await next('/console/developers?limit=1'), '/console/developers?limit=1&amp;offset=1')
    for (const name of ['one', 'two'])
      await rig.ok('POST', '/lite/webhooks', { callback_url: `https://app.example.com/${name}` })
    const [webhook = assert.fail()] = await rig.engine.webhooks.all()
    const filters = `developer=${webhook.developerId}&failing=0`
    assert.equal(
      await next(`/console/webhooks?${filters}&limit=1`),
      `/console/webhooks?${filters}&limit=1&offset=1`.replaceAll('&', '&amp;'),
    )
  })

  test('the search of each page leads to what is meant, and lists what is like it by kind', async () => {
    const { accountId, email } = await rig.mailbox('mia')
    await rig.mailbox('miao')
    const { cookie } = await session(rig)
    assert.match((await get('/console', cookie)).text, /<form role="search" action="\/console\/search">/)
    const meant = await get(`/console/search?q=${encodeURIComponent(email.toUpperCase())}`, cookie)
    assert.deepEqual([meant.status, meant.headers.location], [303, `/console/accounts/${accountId}`])
    const like = await get('/console/search?q=mia', cookie)
    const [, accounts = ''] = /<h2>Accounts<\/h2>(.*)<h2>Users<\/h2>/s.exec(like.text) ?? []
    for (const name of ['mia@', 'miao@']) assert(accounts.includes(name), name)
    assert.match((await get('/console/search?q=nobody@nowhere', cookie)).text, /Nothing matches/)
  })

  test('failed callbacks that the log shows are sent again after a question, which leads back to the log as it was', async () => {
    const { cookie, csrf } = await session(rig)
    const { store } = rig.engine
    const developerId = (await store.developers.first())?.id ?? assert.fail()
    await rig.ok('POST', '/lite/webhooks', { callback_url: 'https://app.example.com/again' })
    const webhook = (await rig.engine.webhooks.all()).find(({ callbackUrl }) => callbackUrl.endsWith('/again'))
    assert(webhook)
    const failed = (createdAt: number) =>
      outboxRecord({ id: webhook.id, developerId }, { state: 'failed', createdAt, finishedAt: createdAt })
    const rows = [failed(Date.now() - 5000), failed(Date.now() - 9_000_000)]
    await store.outbox.enqueue(rows)
    const filters = '/console/deliveries?webhook=%2Fagain&state=failed&within=3600'
    const { text } = await get(filters, cookie)
    assert.match(text, /<svg\s+class="bars"[^>]*aria-label="0 delivered, 1 failed/)
    assert.doesNotMatch(text, /<form method="post" action="\/console\/deliveries/)
    const asks = /href="([^"]*)">Send all failed again: 1</.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? assert.fail()
    const question = (await get(asks, cookie)).text
    assert.match(question, new RegExp(`href="${RegExp.escape(filters.replaceAll('&', '&amp;'))}">Cancel<`))
    assert.equal((await store.outbox.get(rows[0]?.id ?? ''))?.state, 'failed')
    const form = /<form method="post" action="\/console\/deliveries\/redeliver".*?<\/form>/s.exec(question)?.[0] ?? ''
    const fields = Object.fromEntries(
      [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
    )
    // A callback that fails after the page was shown is not among those that were asked for.
    const later = failed(Date.now() + 2000)
    await store.outbox.enqueue([later])
    assert.equal((await post('/console/deliveries/redeliver', '', { ...fields, csrf })).status, 403)
    const sent = await post('/console/deliveries/redeliver', cookie, { ...fields, csrf })
    assert.deepEqual([sent.status, sent.headers.location], [303, filters], sent.text)
    const after = await get(filters, cookie)
    assert.equal(after.text.match(/The failed callbacks are sent again/g)?.length, 1)
    assert.match(after.text, /1 of 1 were queued again/)
    assert.match(after.text, /<progress max="1" value="1"/)
    assert.equal((await store.outbox.get(later.id))?.state, 'failed')
    const states = await Promise.all(rows.map(async ({ id }) => (await store.outbox.get(id))?.state))
    assert.notEqual(states[0], 'failed')
    assert.equal(states[1], 'failed', 'it is older than the filter asked for')
  })

  test('errors are pages, and name the parameter', async () => {
    const { cookie, csrf } = await session(rig)
    const unknown = await get('/console/accounts/000000000000000000000000', cookie)
    assert.equal(unknown.status, 404)
    assert.match(unknown.text, /000000000000000000000000 is invalid/)
    const bad = await get('/console/accounts?limit=x', cookie)
    assert.equal(bad.status, 400)
    assert.match(bad.text, /<p class="bad">limit: /)
    const fast = await post('/console/hosts', cookie, { csrf, host: 'h', what: 'slow', pace: '6001' })
    assert.equal(fast.status, 400)
    assert.match(fast.text, /<p class="bad">pace: expected a whole number from 0 to 6000/)
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
    assert.match(String(stream.events[0]?.data['accounts']), /No account matches/)
    await rig.mailbox('otto')
    const { email } = await rig.mailbox('ida')
    await until('the new account', () => stream.events.at(-1)?.data['accounts']?.toString().includes(email))
    assert.ok(stream.events.every(({ data }) => !String(data['accounts']).includes('otto')))
    await post('/console/logout', cookie, { csrf })
    await until('the end', () => stream.ended)
  })

  test('the page of an account that is removed hears that it is gone, and the stream ends', async () => {
    const { accountId, userId } = await rig.mailbox('gone')
    const { cookie } = await session(rig)
    const stream = await openEventStream(`${rig.url}/console/events?page=/console/accounts/${accountId}`, { cookie })
    await until('the page', () => stream.events.length > 0)
    await rig.ok('DELETE', `/lite/users/${userId}`)
    await until('the end', () => stream.ended)
    assert.equal(stream.events.at(-1)?.event, 'gone', stream.text.slice(-200))
  })

  test("a session has five streams: one more ends its oldest, and nobody else's", async () => {
    const [own, other] = [await session(rig), await session(rig)]
    const timed = async (route: string): Promise<number> => {
      const { values } = await rig.engine.metrics.apiSeconds.get()
      const count = values.find((one) => one.labels.route === route && one.metricName?.endsWith('_count'))
      return count?.value ?? 0
    }
    const open = ({ cookie }: { readonly cookie: string }) =>
      openEventStream(`${rig.url}/console/events?page=/console/tokens`, { cookie })
    const before = await timed('/console/events')
    const theirs = await open(other)
    const streams: EventStream[] = []
    for (let n = 0; n < 7; n += 1) {
      streams.push(await open(own))
      await until('its begin', () => streams[n]?.text.startsWith('retry: '))
    }
    await until('the end of two', () => streams.filter(({ ended }) => ended).length === 2)
    assert.deepEqual(
      streams.map(({ text, ended }) => [text.endsWith('event: over\ndata: {}\n\n'), ended]),
      streams.map((_, index) => [index < 2, index < 2]),
    )
    streams[6]?.close()
    await until('room', () => rig.engine.metrics.apiCalls.get().then(({ values }) => closed(values)))
    streams.push(await open(own))
    await until('its begin', () => streams[7]?.text.startsWith('retry: '))
    assert.deepEqual([streams[2]?.ended, theirs.ended], [false, false])
    for (const stream of [...streams, theirs]) stream.close()
    assert.equal(await timed('/console/events'), before, 'streams are no latency')
    assert.ok((await timed('/console')) > 0)
  })

  test('the lines before a failure come to an open page too', async () => {
    const { accountId, email } = await rig.mailbox('lena')
    const { cookie } = await session(rig)
    const stream = await openEventStream(`${rig.url}/console/events?page=/console/accounts/${accountId}`, { cookie })
    await until('the page', () => stream.events.length > 0)
    assert.equal(stream.events[0]?.data['frozen-at'], 'none yet')
    rig.imap.dropConnections(email)
    const heard = (part: string) => stream.events.findLast(({ data }) => part in data)?.data[part]
    await until('the failure', () => String(heard('frozen-at')).startsWith('network, '))
    assert.match(String(heard('frozen')), /&gt; \w+ (?:SELECT|EXAMINE) /)
    stream.close()
  })

  test('after a logout the session is over', async () => {
    const { cookie, csrf } = await session(rig)
    const ended = cookieIn(await post('/console/logout', cookie, { csrf }))
    assert.equal(ended, 'mailroom_console=; HttpOnly; SameSite=Strict; Path=/console; Max-Age=0')
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
    const cookie = cookieIn(await login(rig, password))
    assert.match(cookie, /^__Host-mailroom_console=[\w-]{20,}; HttpOnly; SameSite=Strict; Path=\/; Secure$/)
    const open = (given: string) => callRaw(rig.port, 'GET', '/console', { headers: { cookie: given } })
    const own = cookie.split(';')[0] ?? ''
    assert.equal((await open(own)).status, 200)
    assert.equal((await open(own.replace('__Host-', ''))).status, 303, 'set by anybody')
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
