/** What comes in, in every spelling, and what goes out: statuses, headers, error bodies. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { z } from 'zod'
import { defineRoute, type Route } from '../../../api/route.ts'
import { AppError, notFound, silentLogger, type AccountRecord, type UserRecord } from '../../../engine/index.ts'
import { until } from '../../support/until.ts'
import { checkedRoute, echo, echoRoutes } from './echo.ts'
import { apiKey, apiSecret, basic, callRaw } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

function failing(path: string, error: () => unknown): Route {
  return defineRoute(`GET ${path}`, {
    auth: 'developer',
    summary: 'Fails',
    tag: 'test',
    response: z.object({}),
    handler: () => Promise.reject(error() as Error),
  })
}

const user = { id: '5f'.repeat(12) } as UserRecord
const account = { label: 'anna::gmail', status: 'DISABLED' } as AccountRecord

function concerning(path: string): Route {
  return defineRoute(`GET ${path}`, {
    auth: 'developer',
    summary: 'Concerns an account',
    tag: 'test',
    response: z.object({ ok: z.boolean() }),
    handler: (_input, call) => {
      call.concerns(user, account)
      call.touchesImap(user)
      return Promise.resolve({ ok: true })
    },
  })
}

const routes: readonly Route[] = [
  ...echoRoutes,
  echo('GET', '/lite/echo'),
  checkedRoute,
  concerning('/lite/status'),
  concerning('/2.0/status'),
  failing('/fails/unknown', () => notFound('user', 'abc')),
  failing('/fails/bug', () => new TypeError('secret internals')),
  failing('/fails/text', () => 'thrown text'),
  failing('/fails/store', () => new AppError('store_unavailable', 'mongodb://inner-host refused')),
  failing('/fails/disabled', () => new AppError('account_disabled', 'password rejected', { retryAfterMs: 90_500 })),
  failing('/fails/refused', () => new AppError('server_refused', 'the mail server refused: NO')),
  failing('/fails/limit', () => new AppError('busy', 'many calls are under way')),
  failing('/fails/files', () => new AppError('busy', 'no file left', { cause: new Error('EMFILE') })),
  failing('/fails/slow', () => new AppError('timeout', 'the mail server is too slow')),
  defineRoute('GET /fails/schema', {
    auth: 'developer',
    summary: 'Answers against its schema',
    tag: 'test',
    response: z.object({ count: z.number() }),
    handler: () => Promise.resolve({ count: 'three' } as unknown as { count: number }),
  }),
]

suite('requests', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({ routes, env: { MAILROOM_BODY_LIMIT: '2048' } })
  })
  after(() => rig.close())

  const post = (type: string | null, body: string, path = '/lite/users?from=query&both=query') =>
    callRaw(rig.port, 'POST', path, {
      headers: { authorization: basic, ...(type === null ? {} : { 'content-type': type }) },
      body,
    })

  const bodies = [
    ['application/x-www-form-urlencoded', 'both=body&name=B%C3%A4r+x&name=last&empty='],
    ['application/x-www-form-urlencoded; charset=UTF-8', 'both=body&name=last&empty'],
    ['application/json', '{"both":"body","name":"last","empty":"","__proto__":{"x":1}}'],
    ['Application/JSON; charset=utf-8', '{"both":"body","name":"last","empty":""}'],
    [null, 'both=body&name=last&empty='],
    [null, ' {"both":"body","name":"last","empty":""}'],
    [
      'multipart/form-data; boundary="b"',
      ['both\r\nbody', 'name"; filename="f.txt\r\nfile is read over', 'name\r\nfirst', 'name\r\nlast', 'empty\r\n']
        .map((part) => `--b\r\nContent-Disposition: form-data; name="${part.replace('\r\n', '"\r\n\r\n')}\r\n`)
        .join('') + '--b--\r\n',
    ],
  ] as const
  for (const method of ['POST', 'PUT', 'DELETE']) {
    for (const [type, body] of bodies) {
      test(`${method} with ${String(type)}: ${JSON.stringify(body.slice(0, 24))}`, async () => {
        const path = `/lite/users${method === 'POST' ? '' : '/u'}?from=query&both=query`
        const headers = { authorization: basic, ...(type === null ? {} : { 'content-type': type }) }
        const { status, text, json } = await callRaw(rig.port, method, path, { headers, body })
        assert.equal(status, 200, text)
        const { both, name, empty, from } = json.values as Record<string, string>
        assert.deepEqual({ both, name, empty, from }, { both: 'body', name: 'last', empty: '', from: 'query' })
      })
    }
  }

  const badBodies = [
    ['application/json', '{"a":', /not valid JSON/],
    ['application/json', '[1]', /JSON object/],
    ['application/json', 'null', /JSON object/],
    ['application/x-www-form-urlencoded', 'a=%zz', /percent-encoding/],
    ['application/x-www-form-urlencoded', 'a=%ff', /percent-encoding/],
    ['text/xml', '<a/>', /expected application\/x-www-form-urlencoded/],
    ['multipart/form-data', 'x', /multipart/],
    ['multipart/form-data; boundary=b', '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx', /multipart/],
    // Wrong in several places: the parser complains more than once.
    ['multipart/form-data; boundary=b', `--b\r\n\x01: x\r\n\r\ny\r\n--b\r\n\x02: x\r\n\r\ny\r\n--b`, /multipart/],
  ] as const
  for (const [type, body, words] of badBodies) {
    test(`400 for ${type}: ${JSON.stringify(body)}`, async () => {
      const answer = await post(type, body)
      assert.equal(answer.status, 400)
      assert.equal(answer.json.type, 'error')
      assert.match(String(answer.json.value), words)
      assert.match(String(answer.json.value), /^body: /)
    })
  }

  test('a part of a multipart body that has no name is passed over', async () => {
    const parts = ['', '; name="name"'].map((name) => `--b\r\nContent-Disposition: form-data${name}\r\n\r\nx\r\n`)
    const { status, json } = await post('multipart/form-data; boundary=b', `${parts.join('')}--b--\r\n`)
    assert.deepEqual([status, (json.values as Record<string, string>)['name']], [200, 'x'])
  })

  test('an empty body of any type is no body', async () => {
    for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
      assert.equal((await post(type, '')).status, 200)
    }
  })

  test('a compressed body is refused', async () => {
    const answer = await callRaw(rig.port, 'POST', '/lite/users', {
      headers: { authorization: basic, 'content-encoding': 'gzip', 'content-type': 'application/json' },
      body: 'x',
    })
    assert.equal(answer.status, 400)
    assert.match(answer.text, /Content-Encoding gzip/)
  })

  test('413 for a body over the limit, also when nobody said how long it is', async () => {
    for (const more of [{}, { 'transfer-encoding': 'chunked' }]) {
      const headers = { authorization: basic, ...more }
      const answer = await callRaw(rig.port, 'POST', '/lite/users', { headers, body: `a=${'x'.repeat(1_000_000)}` })
      assert.equal(answer.status, 413, answer.text)
      assert.match(answer.text, /2048 bytes/)
      assert.equal(answer.headers.connection, 'close')
    }
  })

  test('the last value of a repeated name wins, and a malformed query is a bad request', async () => {
    const repeated = await rig.call('GET', '/lite/echo?a=1&a=2&&b&=x&c=a+b%2Bc')
    assert.deepEqual(repeated.json.values, { a: '2', b: '', '': 'x', c: 'a b+c' })
    const bad = await rig.call('GET', '/lite/echo?a=%9')
    assert.equal(bad.status, 400)
    assert.match(bad.text, /query: invalid percent-encoding/)
  })

  test('validated values: the query on writes, the body over it, the name in the error', async () => {
    const headers = { authorization: basic, 'content-type': 'application/x-www-form-urlencoded' }
    const good = await callRaw(rig.port, 'POST', '/checked?limit=7&name=q&body=ignored', {
      headers,
      body: 'loud=True&name=b',
    })
    assert.deepEqual(good.json, { limit: 7, loud: true, name: 'b' })
    for (const [path, words] of [
      ['/checked', /^name: is required$/],
      ['/checked?name=a&limit=101', /^limit: expected a whole number from 1 to 100$/],
      ['/checked?name=a&loud=perhaps', /^loud: expected 1 or 0$/],
    ] as const) {
      const bad = await rig.call('POST', path)
      assert.equal(bad.status, 400)
      assert.match(String(bad.json.value), words)
    }
  })

  test('JSON is exactly application/json, and each answer has a request id of its own', async () => {
    const [first, second] = [await rig.call('GET', '/lite/users'), await rig.call('GET', '/fails/unknown')]
    for (const { headers } of [first, second]) {
      assert.equal(headers['content-type'], 'application/json')
      assert.match(String(headers['x-request-id']), /^[0-9a-f]{12}-[0-9a-z]+$/)
    }
    assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id'])
  })

  test('HEAD has the headers of GET and no body; OPTIONS says what is allowed', async () => {
    const [get, head] = [await rig.call('GET', '/lite/users'), await rig.call('HEAD', '/lite/users')]
    assert.equal(head.status, 200)
    assert.equal(head.text, '')
    assert.equal(head.headers['content-length'], get.headers['content-length'])
    const options = await callRaw(rig.port, 'OPTIONS', '/lite/users/5f/', { headers: {} })
    assert.equal(options.status, 204)
    assert.equal(options.headers.allow, 'GET, HEAD, DELETE, PUT, OPTIONS')
  })

  test('405 with Allow for a known path, 404 for an unknown one, and never a redirect', async () => {
    for (const method of ['PATCH', 'TRACE', 'PUT']) {
      const wrong = await rig.call(method, '/lite/users')
      assert.equal(wrong.status, 405)
      assert.equal(wrong.headers.allow, 'GET, HEAD, POST, OPTIONS')
      assert.equal(wrong.json.type, 'error')
    }
    for (const path of ['/nothing', '/lite//users', '//', '/lite/users/u/nothing/', '/docs/../lite/users']) {
      const unknown = await rig.call('GET', path)
      assert.equal(unknown.status, 404, path)
      assert.equal(unknown.headers.location, undefined)
      assert.match(String(unknown.json.value), /is invalid$/)
    }
  })

  test('the target may be in absolute form', async () => {
    const answer = await rig.call('GET', `http://127.0.0.1:${rig.port}/lite/echo?a=1`)
    assert.deepEqual(answer.json.values, { a: '1' })
  })

  const statuses: readonly (readonly [path: string, status: number, value: RegExp, retryAfter?: string])[] = [
    ['/fails/unknown', 404, /^user abc is invalid$/],
    ['/fails/bug', 500, /^internal error; request id [0-9a-f]{12}-[0-9a-z]+$/],
    ['/fails/text', 500, /^internal error; request id/],
    ['/fails/schema', 500, /^internal error; request id/],
    ['/fails/store', 503, /^the service cannot reach its store at the moment$/, '30'],
    ['/fails/disabled', 503, /^password rejected$/, '91'],
    ['/fails/refused', 503, /^the mail server refused: NO$/],
    ['/fails/slow', 504, /^the mail server is too slow$/, '10'],
  ]
  for (const [path, status, value, retryAfter] of statuses) {
    test(`${path} answers ${status}`, async () => {
      const answer = await rig.call('GET', path)
      assert.equal(answer.status, status)
      assert.deepEqual(Object.keys(answer.json), ['type', 'value'])
      assert.match(String(answer.json.value), value)
      assert.equal(answer.headers['retry-after'], retryAfter)
      assert.equal(answer.headers['x-ratelimit-limit'], '5000', 'errors too say what is left')
    })
  }

  test('the status header names the account in the words of the API version', async () => {
    for (const [path, resource] of [
      ['/lite/status', `/lite/users/${user.id}/email_accounts/anna%3A%3Agmail`],
      ['/2.0/status', `/2.0/accounts/${user.id}/sources/anna%3A%3Agmail`],
    ] as const) {
      const answer = await rig.call('GET', path)
      assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${resource} DISABLED`)
      assert.equal(answer.headers['x-ratelimit-imap-limit'], '240')
    }
  })

  test('Basic and Bearer', async () => {
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    const good = [
      basic,
      basic.replace('Basic', 'bAsIc'),
      `Bearer ${apiKey}.${apiSecret}`,
      `bearer  ${apiKey}.${apiSecret} `,
    ]
    const bad = [
      `Basic ${base64(`${apiKey}:wrong`)}`,
      `Basic ${base64(`nobody:${apiSecret}`)}`,
      `Basic ${base64(`${apiKey}:${apiSecret}x`)}`,
      `Basic ${base64(apiKey)}`,
      'Basic',
      'Basic !!!',
      `Bearer ${apiKey}`,
      `Bearer ${apiKey}.wrong`,
      `Bearer .${apiSecret}`,
      'Digest x',
    ]
    for (const authorization of good) {
      assert.equal(
        (await callRaw(rig.port, 'GET', '/lite/users', { headers: { authorization } })).status,
        200,
        authorization,
      )
    }
    for (const authorization of bad) {
      const answer = await callRaw(rig.port, 'GET', '/lite/users', { headers: { authorization } })
      assert.equal(answer.status, 401, authorization)
      assert.match(String(answer.json.value), /^Authorization: /)
    }
    assert.equal((await callRaw(rig.port, 'GET', '/lite/users', { headers: {} })).status, 401)
  })

  test('a Host that is none is refused before it gets into links', async () => {
    const answer = await callRaw(rig.port, 'GET', '/lite/users', {
      headers: { host: 'a"><script>', authorization: basic },
    })
    assert.equal(answer.status, 400)
    assert.match(answer.text, /Host/)
  })

  test('calls are written to the call log, without their query', async () => {
    await rig.call('GET', '/lite/users/logged?password=hidden')
    await rig.call('GET', '/2.0/status?password=hidden')
    const developer = await rig.store.developers.byKey(apiKey)
    assert.ok(developer !== null)
    const rows = await until('both rows', async () => {
      const list = await rig.store.calls.list(
        { developerId: developer.id, path: '/lite/users/logged' },
        { limit: 10, offset: 0 },
      )
      const others = await rig.store.calls.list(
        { developerId: developer.id, userId: user.id },
        { limit: 10, offset: 0 },
      )
      return list.length > 0 && others.length > 0 ? [...list, ...others] : null
    })
    assert.equal(rows[0]?.method, 'GET')
    assert.equal(rows[0].status, 200)
    assert.ok(rows.every((row) => !row.path.includes('hidden')))
  })
})

suite('rate limits', () => {
  test('calls per hour and key: told in every answer, 429 with Retry-After, open again after the hour', async () => {
    let clock = 1_700_000_000_000
    const rig = await startRig({ routes, env: { MAILROOM_RATE_CALLS_PER_HOUR: '3' }, now: () => clock })
    try {
      for (const left of ['2', '1', '0']) {
        const answer = await rig.call('GET', '/lite/users')
        assert.equal(answer.status, 200)
        assert.equal(answer.headers['x-ratelimit-limit'], '3')
        assert.equal(answer.headers['x-ratelimit-remaining'], left)
        assert.equal(answer.headers['x-ratelimit-reset'], '1700003600')
      }
      clock += 600_000
      const over = await rig.call('GET', '/lite/users')
      assert.equal(over.status, 429)
      assert.equal(over.headers['retry-after'], '3000')
      assert.equal(over.headers['x-ratelimit-remaining'], '0')
      assert.match(String(over.json.value), /limit of 3 calls an hour/)
      assert.equal((await callRaw(rig.port, 'GET', '/healthz', { headers: {} })).status, 200)
      clock += 3_000_000
      assert.equal((await rig.call('GET', '/lite/users')).headers['x-ratelimit-remaining'], '2')
    } finally {
      await rig.close()
    }
  })

  test('calls that touch IMAP per minute and user', async () => {
    let clock = 1_700_000_000_000
    const rig = await startRig({ routes, env: { MAILROOM_RATE_IMAP_PER_MINUTE: '2' }, now: () => clock })
    try {
      for (const left of ['1', '0'])
        assert.equal((await rig.call('GET', '/lite/status')).headers['x-ratelimit-imap-remaining'], left)
      const over = await rig.call('GET', '/lite/status')
      assert.equal(over.status, 429)
      assert.equal(over.headers['retry-after'], '60')
      assert.equal((await rig.call('GET', '/lite/users')).status, 200, 'other calls go on')
      clock += 60_000
      assert.equal((await rig.call('GET', '/lite/status')).status, 200)
    } finally {
      await rig.close()
    }
  })

  test('0 is no limit, and then there is nothing to tell', async () => {
    const rig = await startRig({
      routes,
      env: { MAILROOM_RATE_CALLS_PER_HOUR: '0', MAILROOM_RATE_IMAP_PER_MINUTE: '0' },
    })
    try {
      const { status, headers } = await rig.call('GET', '/lite/status')
      assert.equal(status, 200)
      assert.ok(!Object.keys(headers).some((name) => name.startsWith('x-ratelimit')))
    } finally {
      await rig.close()
    }
  })
})

test('no file left to open is told in the log, a limit of ours that was reached is not', async () => {
  const told: unknown[] = []
  const log = { ...silentLogger, error: (facts: unknown) => void told.push((facts as { route: string }).route) }
  const rig = await startRig({ routes, log })
  try {
    for (const path of ['/fails/limit', '/fails/files']) assert.equal((await rig.call('GET', path)).status, 503)
    assert.deepEqual(told, ['/fails/files'])
  } finally {
    await rig.close()
  }
})
