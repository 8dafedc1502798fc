/** Signed calls: what an independent signer signs is accepted, anything that was changed on the way is not. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { baseString, baseUri, parseOAuthHeader, signatureOf } from '../../../api/oauth1.ts'
import { parsePairs } from '../../../api/wire.ts'
import { sign, type Carrier, type Signed, type SignerOptions, type Unsigned } from '../../support/oauth-signer.ts'
import { echoRoutes } from './echo.ts'
import { apiKey, apiSecret, callRaw, type Answer } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

const own = { key: apiKey, secret: apiSecret } as const

suite('texts of RFC 5849', () => {
  test('the base string of section 3.4.1.1', () => {
    const header = parseOAuthHeader(
      'OAuth realm="Example",oauth_consumer_key="9djdj82h48djs9d2", oauth_token="kkk9d7dh3k39sjv7",oauth_signature_method="HMAC-SHA1", oauth_timestamp="137131201",oauth_nonce="7d8f3e4a",oauth_signature="bYT5CMsGcbgUdFHObYMEfcx6bsw%3D"',
    )
    assert.ok(header !== null)
    const pairs = [
      ...header,
      ...parsePairs('b5=%3D%253D&a3=a&c%40=&a2=r%20b', 'query'),
      ...parsePairs('c2&a3=2+q', 'body'),
    ]
    assert.equal(
      baseString('post', baseUri('http://EXAMPLE.com:80', '/request'), pairs),
      'POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540%3D%26c2%3D%26oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7',
    )
  })

  test('PLAINTEXT is the key itself, section 3.4.4', () => {
    assert.equal(signatureOf('PLAINTEXT', 'djr9rjt0jd78jf88&', ''), 'djr9rjt0jd78jf88%26&')
  })

  test('the base URI keeps the path and drops the scheme’s own port', () => {
    assert.equal(baseUri('https://Api.Example:443', '/A%3a:b/%2F/'), 'https://api.example/A%3a:b/%2F/')
    assert.equal(baseUri('https://api.example:8443/prefix', '/x'), 'https://api.example:8443/prefix/x')
    assert.equal(baseUri('http://[::1]:3000', '/x'), 'http://[::1]:3000/x')
  })

  for (const header of ['OAuth a=', 'OAuth a="1" b="2"', 'OAuth "1"', 'OAuth a="1', 'OAuth a="%zz"', 'OAuth =x']) {
    test(`${header} ${header === 'OAuth a=' ? 'has an empty value' : 'is not a header'}`, () => {
      assert.deepEqual(parseOAuthHeader(header), header === 'OAuth a=' ? [['a', '']] : null)
    })
  }

  test('whatever the header holds, it is read or refused', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const pairs = parseOAuthHeader(`OAuth ${text}`)
        assert.ok(pairs === null || Array.isArray(pairs))
      }),
    )
  })
})

suite('signed calls', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({
      routes: echoRoutes,
      env: { MAILROOM_RATE_CALLS_PER_HOUR: '0', MAILROOM_WRONG_KEYS: '0' },
    })
  })
  after(() => rig.close())

  const send = (method: string, { target, headers, body }: Signed): Promise<Answer> =>
    callRaw(rig.port, method, target, { headers, ...(body === null ? {} : { body }) })

  const signed = (call: Omit<Unsigned, 'baseUrl'>, options: Partial<SignerOptions> = {}): Promise<Answer> =>
    send(call.method, sign({ ...call, baseUrl: rig.url }, { ...own, ...options }))

  const account = '/lite/users/u/email_accounts'
  const paths = [
    '/lite/users/5f',
    '/lite/users/5f/',
    `${account}/anna::gmail`,
    `${account}/anna%3A%3Agmail/`,
    `${account}/anna%3a%3agmail/folders/%5BGmail%5D%2FAll%20Mail`,
    `${account}/0/folders/[Gmail]/All%20Mail/messages`,
    `${account}/0/folders/K%C3%B6ln/messages/`,
    `${account}/0/messages/%3Ca%2Fb%2Bc%40d.example%3E`,
    `${account}/0/messages/<a/b+c@d.example>`,
    `${account}/0/messages/gm-14f8`,
  ]
  for (const path of paths) {
    for (const carrier of ['header', 'query'] as const) {
      test(`${path} in the ${carrier}`, async () => {
        const answer = await signed({ method: 'GET', path, query: [['limit', '5']] }, { carrier })
        assert.equal(answer.status, 200, answer.text)
      })
    }
  }

  const shapes: Readonly<Record<string, Partial<SignerOptions>>> = {
    'no space after commas': { separator: ',' },
    'a realm': { realm: 'https://api.example/' },
    'an empty token': { emptyToken: true },
    'HMAC-SHA256': { signatureMethod: 'HMAC-SHA256' },
  }
  for (const [name, options] of Object.entries(shapes)) {
    test(`with ${name}`, async () => {
      for (const method of ['GET', 'DELETE']) {
        const answer = await signed({ method, path: '/lite/users/5f', query: [['a', '']] }, options)
        assert.equal(answer.status, 200, answer.text)
      }
    })
  }

  for (const method of ['POST', 'PUT', 'DELETE'] as const) {
    for (const carrier of ['header', 'query', 'form'] as const) {
      test(`a form on ${method}, the signature in the ${carrier}`, async () => {
        const form = [
          ['name', 'Anna & Bär+x'],
          ['empty', ''],
          ['name', 'b'],
          ['a[]', "*~!()'"],
        ] as const
        const path = method === 'POST' ? '/lite/users' : '/lite/users/5f'
        const answer = await signed({ method, path, query: [['q', 'a b']], form }, { carrier })
        assert.equal(answer.status, 200, answer.text)
        const { values } = answer.json as { values: Record<string, unknown> }
        assert.equal(values.name, 'b')
        assert.equal(values.empty, '')
        assert.equal(values.q, 'a b')
        assert.deepEqual(values.a, ["*~!()'"])
      })
    }
  }

  test('multipart and JSON bodies are not signed', async () => {
    const bodies = [
      ['application/json', '{"name":"Anna"}'],
      [
        'multipart/form-data; boundary=x',
        '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nAnna\r\n--x--\r\n',
      ],
    ] as const
    for (const [type, body] of bodies) {
      const call = sign({ method: 'POST', baseUrl: rig.url, path: '/lite/users' }, own)
      const answer = await callRaw(rig.port, 'POST', call.target, {
        headers: { ...call.headers, 'content-type': type },
        body,
      })
      assert.equal(answer.status, 200, answer.text)
      assert.equal((answer.json.values as Record<string, string>).name, 'Anna')
    }
  })

  test('any parameters in any carrier are verified; any one of them changed is refused', async () => {
    const word = fc.string({ unit: fc.constantFrom(...Array.from('aZ09 +&=%/~*\'"(),;ü€\u{1F600}')), maxLength: 12 })
    const pair = fc.tuple(
      word.filter((name) => name !== '' && !name.startsWith('oauth_')),
      word,
    )
    const pairs = fc.array(pair, { maxLength: 5 })
    const carriers = fc.constantFrom<Carrier>('header', 'query', 'form')
    const methods = fc.constantFrom('HMAC-SHA1' as const, 'HMAC-SHA256' as const)
    await fc.assert(
      fc.asyncProperty(pairs, pairs, carriers, methods, async (query, form, carrier, signatureMethod) => {
        const call = { method: 'POST', baseUrl: rig.url, path: '/lite/users/', query, form }
        const good = await send('POST', sign(call, { ...own, carrier, signatureMethod }))
        assert.equal(good.status, 200, good.text)
        const [[name, value] = ['x', '']] = [...query, ...form]
        const fresh = sign(call, { ...own, carrier, signatureMethod })
        const added = {
          ...fresh,
          target: `${fresh.target}${fresh.target.includes('?') ? '&' : '?'}${encodeURIComponent(name)}=${encodeURIComponent(`${value}!`)}`,
        }
        assert.equal((await send('POST', added)).status, 401)
      }),
      { numRuns: 120 },
    )
  })

  test('a call with any single byte changed is refused', async () => {
    const call = {
      method: 'POST',
      baseUrl: rig.url,
      path: `${account}/a::b/folders/Sent`,
      query: [['delimiter', 'slash']],
      form: [['name', 'anna']],
    } as const
    const where = fc.constantFrom('path', 'query', 'form', 'header', 'method' as const)
    await fc.assert(
      fc.asyncProperty(where, fc.nat(), async (place, at) => {
        const good = sign(call, own)
        const [path = '', query = ''] = good.target.split('?')
        const header = good.headers.authorization ?? ''
        const changed = {
          path: { ...good, target: `${flip(path, at, path.lastIndexOf('/'))}?${query}` },
          query: { ...good, target: `${path}?${flip(query, at)}` },
          form: { ...good, body: flip(good.body ?? '', at) },
          header: { ...good, headers: { ...good.headers, authorization: flip(header, at, 'OAuth '.length) } },
          method: good,
        }[place]
        const answer = await send(place === 'method' ? 'GET' : 'POST', changed)
        assert.equal(answer.status, 401, `${place} ${JSON.stringify(changed)}: ${answer.text}`)
      }),
      { numRuns: 250 },
    )
  })

  test('a wrong signature answers 401, code 105 and the base string, never the secret', async () => {
    const answer = await signed({ method: 'GET', path: '/lite/users', query: [['email', 'a b']] }, { secret: 'wrong' })
    assert.equal(answer.status, 401)
    assert.equal(answer.json.type, 'error')
    assert.equal(answer.json.code, 105)
    const base = `GET&${encodeURIComponent(`${rig.url}/lite/users`)}&email%3Da%2520b%26oauth_consumer_key%3Dframe-key%26`
    assert.ok(String(answer.json.value).includes(base), answer.text)
    assert.ok(!answer.text.includes(apiSecret) && !answer.text.includes(encodeURIComponent(apiSecret)))
    assert.match(String(answer.headers['www-authenticate']), /OAuth.*Basic.*Bearer/)
  })

  test('a replay is refused, also of another path; another nonce is not', async () => {
    const call = { method: 'GET', baseUrl: rig.url, path: '/lite/users' }
    // A nonce belongs to its second: the next one may begin between two calls.
    const timestamp = Math.floor(Date.now() / 1000)
    const once = sign(call, { ...own, timestamp, nonce: 'n-1' })
    assert.equal((await send('GET', once)).status, 200)
    const again = await send('GET', once)
    assert.equal(again.status, 401)
    assert.match(again.text, /oauth_nonce/)
    assert.equal(
      (await send('GET', sign({ ...call, path: '/lite/users/5f' }, { ...own, timestamp, nonce: 'n-1' }))).status,
      401,
    )
    assert.equal((await send('GET', sign(call, { ...own, nonce: 'n-2' }))).status, 200)
  })

  test('a wrong signature spends no nonce', async () => {
    const call = { method: 'GET', baseUrl: rig.url, path: '/lite/users' }
    assert.equal((await send('GET', sign(call, { ...own, secret: 'wrong', nonce: 'n-3' }))).status, 401)
    assert.equal((await send('GET', sign(call, { ...own, nonce: 'n-3' }))).status, 200)
  })

  test('timestamps count within five minutes of our clock, either way', async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const [offset, status] of [
      [-290, 200],
      [290, 200],
      [-310, 401],
      [310, 401],
    ] as const) {
      const answer = await signed({ method: 'GET', path: '/lite/users' }, { timestamp: now + offset })
      assert.equal(answer.status, status, `${offset}: ${answer.text}`)
      if (status === 401) assert.match(answer.text, /oauth_timestamp.*clock/)
    }
  })

  const refusedQueries: Readonly<Record<string, RegExp>> = {
    'oauth_consumer_key=frame-key': /oauth_signature_method/,
    'oauth_consumer_key=frame-key&oauth_signature_method=RSA-SHA1&oauth_signature=x': /oauth_signature_method/,
    'oauth_consumer_key=frame-key&oauth_consumer_key=frame-key': /oauth_consumer_key.*more than once/,
    'oauth_consumer_key=a&oauth_signature_method=HMAC-SHA1&oauth_signature=x&oauth_token=t': /oauth_token/,
    'oauth_consumer_key=a&oauth_signature_method=HMAC-SHA1&oauth_signature=x&oauth_version=2.0': /oauth_version/,
    'oauth_consumer_key=a&oauth_signature_method=HMAC-SHA1&oauth_signature=x&oauth_timestamp=1e9&oauth_nonce=1':
      /oauth_timestamp/,
    'oauth_consumer_key=a&oauth_signature_method=PLAINTEXT&oauth_signature=x': /unknown/,
    'oauth_consumer_key=frame-key&oauth_signature_method=PLAINTEXT&oauth_signature=x': /https/,
  }
  for (const [query, words] of Object.entries(refusedQueries)) {
    test(`refused: ${query}`, async () => {
      const answer = await callRaw(rig.port, 'GET', `/lite/users?${query}`, { headers: {} })
      assert.equal(answer.status, 401)
      assert.match(answer.text, words)
    })
  }
})

suite('signed calls behind a proxy', () => {
  const origins: Readonly<
    Record<
      string,
      { readonly env: Record<string, string>; readonly headers: Record<string, string>; readonly baseUrl: string }
    >
  > = {
    MAILROOM_PUBLIC_URL: {
      env: { MAILROOM_PUBLIC_URL: 'https://mail.example/' },
      headers: {},
      baseUrl: 'https://mail.example',
    },
    'X-Forwarded of a trusted proxy': {
      env: { MAILROOM_TRUST_PROXY: '1' },
      headers: { 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'mail.example, inner' },
      baseUrl: 'https://mail.example',
    },
    'Host, when nobody is trusted': {
      env: {},
      headers: { host: 'Other.example:8080', 'x-forwarded-host': 'mail.example' },
      baseUrl: 'http://other.example:8080',
    },
    'Host as it was written': { env: {}, headers: { host: 'Other.example:80' }, baseUrl: 'http://Other.example:80' },
  }
  for (const [name, { env, headers, baseUrl }] of Object.entries(origins)) {
    test(`scheme and host come from ${name}`, async () => {
      const rig = await startRig({ routes: echoRoutes, env })
      try {
        const call = sign({ method: 'GET', baseUrl, path: '/lite/users' }, own)
        const answer = await callRaw(rig.port, 'GET', call.target, { headers: { ...call.headers, ...headers } })
        assert.equal(answer.status, 200, answer.text)
      } finally {
        await rig.close()
      }
    })
  }

  test('PLAINTEXT is accepted over https, with the right secret', async () => {
    const rig = await startRig({ routes: echoRoutes, env: { MAILROOM_PUBLIC_URL: 'https://mail.example' } })
    try {
      for (const [secret, status] of [
        [apiSecret, 200],
        ['wrong', 401],
      ] as const) {
        const call = sign(
          { method: 'GET', baseUrl: 'https://mail.example', path: '/lite/users' },
          { ...own, secret, signatureMethod: 'PLAINTEXT' },
        )
        const answer = await callRaw(rig.port, 'GET', call.target, { headers: call.headers })
        assert.equal(answer.status, status, answer.text)
        assert.ok(!answer.text.includes('%26'), 'the secret’s own text is not told')
      }
    } finally {
      await rig.close()
    }
  })
})

/** Another letter or digit in place of the one at or after `at`; what is changed always means something else. */
function flip(text: string, at: number, from = 0): string {
  const places = Array.from(text).flatMap((sign, index) =>
    index >= from && /[a-z0-9]/i.test(sign) && !/%.?$/.test(text.slice(0, index)) ? [index] : [],
  )
  const place = places[at % places.length] ?? 0
  const old = text.charAt(place)
  return text.slice(0, place) + (old === 'q' ? 'p' : 'q') + text.slice(place + 1)
}
