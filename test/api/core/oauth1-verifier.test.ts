/**
 * The verifier alone, with the clock in the test's hands: every limit, every parameter, and what is remembered of a
 * nonce.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  baseString,
  baseUri,
  createOAuthVerifier,
  isSigned,
  normalizeParameters,
  parseOAuthHeader,
  type SignedCall,
  type TryKey,
} from '../../../api/oauth1.ts'
import { type Pair, parsePairs, parseTarget } from '../../../api/wire.ts'
import { type Authenticated, isAppError, sameText } from '../../../engine/index.ts'
import { sign, type SignerOptions, type Unsigned } from '../../support/oauth-signer.ts'
import { developerRecord } from '../../support/records.ts'

const now = 1_700_000_000_500
const seconds = 1_700_000_000
const windowMs = 300_000
const own = { key: 'key-1', secret: 'secret & more', timestamp: seconds } as const
const developer: Authenticated = {
  developer: developerRecord({ apiKey: own.key }),
  secret: own.secret,
  secrets: [{ secret: own.secret, createdAt: 0, expiresAt: null }],
}

interface Remembered {
  readonly key: string
  readonly nonce: string
  readonly timestamp: number
  readonly expiresAt: number
}

function rig({ nonceTtlMs = 600_000, time = now } = {}) {
  const remembered: Remembered[] = []
  const tries: { readonly key: string; right: boolean }[] = []
  const tryKey: TryKey = async (key, check) => {
    const one = { key, right: false }
    tries.push(one)
    const result = await check()
    one.right = true
    return result
  }
  const verifier = createOAuthVerifier({
    authenticate: (key) => Promise.resolve(key === own.key ? developer : null),
    nonces: {
      remember(key, nonce, timestamp, expiresAt) {
        const fresh = !remembered.some((one) => one.key === key && one.nonce === nonce && one.timestamp === timestamp)
        remembered.push({ key, nonce, timestamp, expiresAt })
        return Promise.resolve(fresh)
      },
    },
    windowMs,
    nonceTtlMs,
    now: () => time,
  })
  return { verify: (call: SignedCall) => verifier.verify(call, tryKey), remembered, tries }
}

const users: Unsigned = { method: 'GET', baseUrl: 'https://mail.example', path: '/lite/users' }

/** The call as it arrives. */
function arrived(call: Unsigned, options: Partial<SignerOptions> = {}): SignedCall {
  const { target, headers, body } = sign(call, { ...own, ...options })
  const { path, query } = parseTarget(target)
  return {
    method: call.method,
    baseUrl: call.baseUrl,
    path,
    header: headers.authorization ?? null,
    query: parsePairs(query, 'query'),
    form: parsePairs(body ?? '', 'body'),
    hashBody: (_found, hash) => Promise.resolve(void hash.update(body ?? '')),
  }
}

/** A call with exactly these protocol parameters in its query. */
function bare(parameters: Readonly<Record<string, string>>, more: Partial<SignedCall> = {}): SignedCall {
  const query = Object.entries(parameters)
  return {
    method: 'GET',
    baseUrl: 'https://mail.example',
    path: '/',
    header: null,
    form: [],
    hashBody: () => Promise.resolve(),
    query,
    ...more,
  }
}

function refuses(work: Promise<unknown>, parameter: string, words = /./): Promise<void> {
  return assert.rejects(work, (error) => {
    assert(isAppError(error, 'unauthorized'), String(error))
    assert.deepEqual(error.details, { parameter })
    assert.ok(error.message.startsWith(`${parameter} `), error.message)
    assert.match(error.message, words)
    return true
  })
}

const plain = {
  oauth_consumer_key: own.key,
  oauth_signature_method: 'PLAINTEXT',
  oauth_signature: 'secret%20%26%20more&',
}

suite('what is signed', () => {
  const call = bare({}, { query: [] })
  const rows: readonly (readonly [string, Partial<SignedCall>, boolean])[] = [
    ['nothing', {}, false],
    ['a header', { header: 'OAuth x' }, true],
    [
      'a key in the query',
      {
        query: [
          ['a', '1'],
          ['oauth_consumer_key', ''],
        ],
      },
      true,
    ],
    ['a signature in the query', { query: [['oauth_signature', 'x']] }, true],
    [
      'a key in the form',
      {
        form: [
          ['a', '1'],
          ['oauth_consumer_key', 'k'],
        ],
      },
      true,
    ],
    ['a signature in the form', { form: [['oauth_signature', 'x']] }, true],
    ['only other parameters', { query: [['oauth_token', 'x']], form: [['consumer_key', 'x']] }, false],
  ]
  for (const [name, more, signed] of rows) {
    test(name, () => assert.equal(isSigned({ ...call, ...more }), signed))
  }
})

suite('parameters', () => {
  for (const name of Object.keys(plain)) {
    test(`${name} is required`, async () => {
      const rest = Object.fromEntries(Object.entries(plain).filter(([one]) => one !== name))
      await refuses(rig().verify(bare(rest)), name, /is required/)
      await refuses(rig().verify(bare({ ...plain, [name]: '' })), name, /is required/)
    })
  }

  test('time and nonce are required, but not of PLAINTEXT, which may go without both', async () => {
    const { verify, remembered } = rig()
    assert.equal(await verify(bare(plain)), developer)
    assert.deepEqual(remembered, [])
    const time = { oauth_timestamp: String(seconds) }
    await refuses(verify(bare({ ...plain, ...time })), 'oauth_nonce', /is required/)
    await refuses(verify(bare({ ...plain, oauth_nonce: 'n' })), 'oauth_timestamp', /is required/)
    const hashed = { ...plain, oauth_signature_method: 'HMAC-SHA1' }
    await refuses(verify(bare({ ...hashed, oauth_nonce: 'n' })), 'oauth_timestamp', /is required/)
    await refuses(verify(bare({ ...hashed, ...time })), 'oauth_nonce', /is required/)
    assert.equal(await verify(bare({ ...plain, ...time, oauth_nonce: 'n' })), developer)
    assert.equal(remembered.length, 1)
    await refuses(verify(bare({ ...plain, ...time, oauth_nonce: 'n' })), 'oauth_nonce', /used before/)
  })

  test('a protocol parameter twice is refused, wherever; any other may come twice', async () => {
    for (const name of [...Object.keys(plain), 'oauth_timestamp', 'oauth_nonce', 'oauth_version', 'oauth_token']) {
      const twice = [...Object.entries(plain), [name, ''], [name, '']] as Pair[]
      await refuses(rig().verify(bare({}, { query: twice })), name, /more than once/)
    }
    const others: Pair[] = [
      ['a', '1'],
      ['a', '2'],
      ['oauth_other', '1'],
      ['oauth_other', '1'],
    ]
    const call = bare({}, { query: [...Object.entries(plain), ...others] })
    assert.equal(await rig().verify(call), developer)
  })

  test('version 1.0 and an empty token, or none', async () => {
    const { verify } = rig()
    for (const more of [{ oauth_version: '1.0' }, { oauth_token: '' }]) {
      assert.equal(await verify(bare({ ...plain, ...more })), developer)
    }
    await refuses(verify(bare({ ...plain, oauth_version: '2.0' })), 'oauth_version')
    await refuses(verify(bare({ ...plain, oauth_version: '' })), 'oauth_version')
    await refuses(verify(bare({ ...plain, oauth_token: 't' })), 'oauth_token')
  })

  test('methods, keys and headers that we do not know', async () => {
    const { verify } = rig()
    for (const oauth_signature_method of ['RSA-SHA1', 'toString', 'plaintext']) {
      await refuses(verify(bare({ ...plain, oauth_signature_method })), 'oauth_signature_method')
    }
    await refuses(verify(bare({ ...plain, oauth_consumer_key: 'k' })), 'oauth_consumer_key', /unknown/)
    await refuses(verify(bare(plain, { header: 'OAuth a="1" b' })), 'Authorization')
  })
})

suite('time', () => {
  test('a timestamp counts up to the window on both sides, and not beyond', async () => {
    for (const [timestamp, time, off] of [
      [seconds, seconds * 1000 + windowMs, null],
      [seconds, seconds * 1000 - windowMs, null],
      [seconds, seconds * 1000 + windowMs + 1000, 301],
      [seconds, seconds * 1000 - windowMs - 1, 300],
    ] as const) {
      const work = rig({ time }).verify(arrived(users, { timestamp }))
      if (off === null) assert.equal(await work, developer)
      else await refuses(work, 'oauth_timestamp', new RegExp(`${off} s away .* ${Math.floor(time / 1000)}$`))
    }
  })

  test('is whole seconds, nothing else', async () => {
    for (const text of ['-1', '1.5', '1e9', ' 1700000000', '1700000000 ', '1700000000000', 'x', '0x10']) {
      const call = bare({ ...plain, oauth_timestamp: text, oauth_nonce: 'n' })
      await refuses(rig({ time: 0 }).verify(call), 'oauth_timestamp', /Unix timestamp/)
    }
    const early = bare({ ...plain, oauth_timestamp: '1', oauth_nonce: 'n' })
    assert.equal(await rig({ time: 0 }).verify(early), developer)
  })

  test('a nonce is remembered for its time, and for as long as its timestamp could come again', async () => {
    const short = rig({ nonceTtlMs: 1000 })
    const ahead = seconds + 299
    await short.verify(arrived(users, { nonce: 'n', timestamp: ahead }))
    const [one] = short.remembered
    assert(one)
    assert.deepEqual([one.key, one.nonce, one.timestamp], [own.key, 'n', ahead])
    assert.ok(one.expiresAt > ahead * 1000 + windowMs, 'not forgotten while it is acceptable')
    assert.ok(one.expiresAt <= ahead * 1000 + windowMs + 5000)
    const long = rig({ nonceTtlMs: 3_600_000 })
    await long.verify(arrived(users))
    assert.equal(long.remembered[0]?.expiresAt, now + 3_600_000)
  })

  test('a nonce may have 512 characters', async () => {
    const { verify, remembered } = rig()
    assert.equal(await verify(arrived(users, { nonce: 'n'.repeat(512) })), developer)
    await refuses(verify(arrived(users, { nonce: 'n'.repeat(513) })), 'oauth_nonce', /512/)
    assert.equal(remembered.length, 1)
  })
})

suite('a try of a key', () => {
  test('is what fails for the key or its secret, and nothing else that is wrong with the call', async () => {
    const { verify, tries } = rig()
    for (const timestamp of [seconds - 301, seconds + 301]) {
      await refuses(verify(arrived(users, { timestamp })), 'oauth_timestamp')
    }
    await refuses(verify(bare({ ...plain, oauth_token: 't' })), 'oauth_token')
    assert.deepEqual(tries, [])
    await refuses(verify(arrived(users, { key: 'k' })), 'oauth_consumer_key')
    await assert.rejects(verify(arrived(users, { secret: 's' })))
    await verify(arrived(users, { nonce: 'n' }))
    await refuses(verify(arrived(users, { nonce: 'n' })), 'oauth_nonce')
    assert.deepEqual(
      tries.map(({ key, right }) => [key, right]),
      [
        ['k', false],
        [own.key, false],
        [own.key, true],
        [own.key, true],
      ],
    )
  })
})

suite('the signature', () => {
  test('of any carrier and method', async () => {
    for (const carrier of ['header', 'query', 'form'] as const) {
      for (const signatureMethod of ['HMAC-SHA1', 'HMAC-SHA256', 'PLAINTEXT'] as const) {
        const call = arrived({ ...users, method: 'POST', query: [['a', 'b c']] }, { carrier, signatureMethod })
        assert.equal(await rig().verify(call), developer, `${carrier} ${signatureMethod}`)
      }
    }
  })

  test('that is wrong says the base string, and spends no nonce', async () => {
    const { verify, remembered } = rig()
    const call = arrived(users, { secret: 'other' })
    const base = baseString('GET', 'https://mail.example/lite/users', parseOAuthHeader(call.header ?? '') ?? [])
    await assert.rejects(verify(call), (error) => {
      assert(isAppError(error, 'bad_signature'))
      assert.deepEqual(error.details, { baseString: base })
      assert.ok(error.message.endsWith(base))
      return true
    })
    assert.deepEqual(remembered, [])
  })

  test('of the host as it was written counts too, of another host does not', async () => {
    const written = { ...users, baseUrl: 'https://Mail.example:443' }
    assert.equal(await rig().verify(arrived(written)), developer)
    const standard = { ...arrived(users), baseUrl: 'https://Mail.example:443' }
    assert.equal(await rig().verify(standard), developer)
    const other = { ...arrived(users), baseUrl: 'https://Other.example:443' }
    await assert.rejects(rig().verify(other), (error) => isAppError(error, 'bad_signature'))
  })

  test('in clear goes over https only, and is never told', async () => {
    for (const baseUrl of ['http://mail.example', 'ftp://https:']) {
      await refuses(rig().verify(bare(plain, { baseUrl })), 'oauth_signature_method', /https/)
    }
    assert.equal(await rig().verify(bare(plain, { baseUrl: 'HTTPS://mail.example' })), developer)
    const wrong = rig().verify(bare({ ...plain, oauth_signature: 'secret' }))
    await assert.rejects(wrong, (error) => {
      assert(isAppError(error, 'bad_signature'))
      assert.deepEqual(error.details, {})
      assert.doesNotMatch(error.message, /more/)
      return true
    })
  })

  test('is compared whole', () => {
    for (const [expected, given, same] of [
      ['abc', 'abc', true],
      ['abc', 'abd', false],
      ['abc', 'ab', false],
      ['abc', 'abcd', false],
      ['', '', true],
      ['é', 'e', false],
    ] as const) {
      assert.equal(sameText(expected, given), same, `${expected} ${given}`)
    }
  })
})

suite('texts', () => {
  test('the header in the spellings of clients', () => {
    const wanted = [
      ['a', '1'],
      ['b', 'x y'],
    ]
    for (const header of [
      'OAuth a="1", b="x%20y"',
      'oauth a="1",b="x%20y"',
      'OAuth   a = "1" ,  b=x%20y ,',
      'OAuth a=1,b="x%20y",  ',
      'OAuth realm="r", a="1", REALM="s",b="x y"',
      'OAuth %61="1",b="x%20y"',
    ]) {
      assert.deepEqual(parseOAuthHeader(header), wanted, header)
    }
    assert.deepEqual(parseOAuthHeader('OAuth '), [])
    assert.deepEqual(parseOAuthHeader('OAuth a=""'), [['a', '']])
    for (const header of ['OAuth a', 'OAuth a="1";b="2"', 'OAuth a="1"b="2"', 'OAuth %="1"', 'OAuth a="1",,b="2"']) {
      assert.equal(parseOAuthHeader(header), null, header)
    }
  })

  test('parameters are sorted by the bytes of name and then value, after encoding, without the signature', () => {
    const pairs: Pair[] = [
      ['b', '2'],
      ['a', 'z'],
      ['oauth_signature', 'x'],
      ['a', 'b'],
      ['a b', '1'],
      ['B', '1'],
      ['b', '2'],
      ['a', 'B'],
      ['é', '&'],
    ]
    assert.equal(normalizeParameters(pairs), '%C3%A9=%26&B=1&a=B&a=b&a=z&a%20b=1&b=2&b=2')
    assert.equal(normalizeParameters([...pairs].reverse()), normalizeParameters(pairs))
  })

  test('the scheme’s own port is left out, in any case; another scheme’s is not', () => {
    const rows = [
      ['HTTPS://A.example:443/P', 'https://a.example/P/x'],
      ['https://a.example:80', 'https://a.example:80/x'],
      ['HTTP://a.example:80', 'http://a.example/x'],
      ['http://a.example:443', 'http://a.example:443/x'],
      ['https://a.example:4430', 'https://a.example:4430/x'],
      ['http://[2001:DB8::1]:80/a/b', 'http://[2001:db8::1]/a/b/x'],
    ] as const
    for (const [baseUrl, uri] of rows) assert.equal(baseUri(baseUrl, '/x'), uri)
  })
})
