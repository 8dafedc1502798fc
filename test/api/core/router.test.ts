/** Paths as they are on the wire. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { compileRoutes, matchOf } from '../../../api/router.ts'
import { isAppError } from '../../../engine/index.ts'
import { echo, echoRoutes } from './echo.ts'
import { startRig, type Rig } from './rig.ts'

const patterns = compileRoutes(echoRoutes)
const account = '/lite/users/u/email_accounts/a%3A%3Ab'
const pattern = '/lite/users/{id}/email_accounts/{label}'

const patternOf = (path: string) => patterns.find(({ regexp }) => regexp.test(path))

function matched(method: string, path: string): { path: string; parameters: Record<string, string> } | number {
  const pattern = patternOf(path)
  if (pattern === undefined) return 404
  const match = matchOf(pattern, method, pattern.regexp.exec(path)?.slice(1) ?? [])
  return match === null ? 405 : { path: match.route.path, parameters: { ...match.parameters } }
}

const mid = '<a.b+c@x.example>'

const table: readonly (readonly [
  method: string,
  path: string,
  route: string | number,
  parameters?: Record<string, string>,
])[] = [
  ['GET', '/lite/users', '/lite/users', {}],
  ['GET', '/lite/users/', '/lite/users', {}],
  ['GET', '/lite/users//', 404],
  ['GET', '/Lite/users', 404],
  ['GET', '/', 404],
  ['GET', '/lite', 404],
  ['PUT', '/lite/users', 405],
  ['PATCH', '/lite/users/u', 405],
  ['HEAD', '/lite/users/u', '/lite/users/{id}', { id: 'u' }],
  ['GET', account, pattern, { id: 'u', label: 'a::b' }],
  ['GET', `${account}/`, pattern, { id: 'u', label: 'a::b' }],
  ['GET', '/lite/users/u/email_accounts/a::b', pattern, { id: 'u', label: 'a::b' }],
  ['GET', '/lite/users/u/email_accounts/a%3a:b', pattern, { id: 'u', label: 'a::b' }],
  ['GET', '/lite/users/u/email_accounts/0', pattern, { id: 'u', label: '0' }],
  ['GET', `${account}/folders/`, `${pattern}/folders`, { id: 'u', label: 'a::b' }],
  ['GET', `${account}/folders/A%2FB`, `${pattern}/folders/{folder+}`, { folder: 'A/B' }],
  ['GET', `${account}/folders/A/B`, `${pattern}/folders/{folder+}`, { folder: 'A/B' }],
  ['GET', `${account}/folders/A/B/`, `${pattern}/folders/{folder+}`, { folder: 'A/B' }],
  ['GET', `${account}/folders/A+B%20C`, `${pattern}/folders/{folder+}`, { folder: 'A+B C' }],
  ['GET', `${account}/folders/messages`, `${pattern}/folders/{folder+}`, { folder: 'messages' }],
  ['GET', `${account}/folders/A/messages`, `${pattern}/folders/{folder+}/messages`, { folder: 'A' }],
  ['GET', `${account}/folders/A/messages/messages`, `${pattern}/folders/{folder+}/messages`, { folder: 'A/messages' }],
  ['GET', `${account}/folders/A%2Fmessages`, `${pattern}/folders/{folder+}`, { folder: 'A/messages' }],
  ['POST', `${account}/folders/A/messages`, 405],
  [
    'GET',
    `${account}/folders/a/b/messages/7`,
    `${pattern}/folders/{folder+}/messages/{message_id}`,
    { folder: 'a/b', message_id: '7' },
  ],
  [
    'GET',
    `${account}/folders/a/messages/b/messages/7/flags`,
    `${pattern}/folders/{folder+}/messages/{message_id}/flags`,
    { folder: 'a/messages/b', message_id: '7' },
  ],
  ['GET', `${account}/messages/${mid}`, `${pattern}/messages/{message_id}`, { message_id: mid }],
  ['GET', `${account}/messages/${encodeURIComponent(mid)}/`, `${pattern}/messages/{message_id}`, { message_id: mid }],
  ['GET', `${account}/messages/%3Ca%2Fb@c%3E`, `${pattern}/messages/{message_id}`, { message_id: '<a/b@c>' }],
  ['GET', `${account}/messages/<a/b/c@d>`, `${pattern}/messages/{message_id}`, { message_id: '<a/b/c@d>' }],
  ['GET', `${account}/messages/a/unknown`, 404],
  [
    'POST',
    `${account}/folders/x/y/messages/<a/b@c>/flags`,
    `${pattern}/folders/{folder+}/messages/{message_id}/flags`,
    { folder: 'x/y', message_id: '<a/b@c>' },
  ],
  ['PUT', `${account}/folders/x/messages/<a@c>/flags`, 405],
  [
    'GET',
    `${account}/folders/x/messages/a%2fb%40c/attachments/0`,
    `${pattern}/folders/{folder+}/messages/{message_id}/attachments/{attachment_id}`,
    { message_id: 'a/b@c', attachment_id: '0' },
  ],
  ['GET', `${account}/folders/x/messages/a/attachments`, 404],
  ['GET', '/2.0/accounts/connect_tokens/abc', '/2.0/accounts/connect_tokens/{token}', { token: 'abc' }],
  ['GET', '/2.0/accounts/7/connect_tokens/', '/2.0/accounts/{id}/connect_tokens', { id: '7' }],
  [
    'POST',
    '/2.0/accounts/7/sources/0/folders/a/b/expunge',
    '/2.0/accounts/{id}/sources/{label}/folders/{folder+}/expunge',
    { folder: 'a/b' },
  ],
  [
    'PUT',
    '/2.0/accounts/7/sources/0/folders/expunge',
    '/2.0/accounts/{id}/sources/{label}/folders/{folder+}',
    { folder: 'expunge' },
  ],
  ['GET', `${account}/folders/a/expunge`, `${pattern}/folders/{folder+}`, { folder: 'a/expunge' }],
]

suite('router', () => {
  for (const [method, path, expected, parameters = {}] of table) {
    test(`${method} ${path}`, () => {
      const result = matched(method, path)
      if (typeof expected === 'number') {
        assert.equal(result, expected)
        return
      }
      assert.ok(typeof result === 'object', `found ${JSON.stringify(result)}`)
      assert.equal(result.path, expected)
      for (const [name, value] of Object.entries(parameters)) assert.equal(result.parameters[name], value)
    })
  }

  test('Allow names every method of the path', () => {
    assert.equal(patternOf('/lite/users/u')?.allow, 'GET, HEAD, DELETE, PUT, OPTIONS')
  })

  for (const bad of ['%', '%4', '%zz', '%e9', '%ff%fe', 'a%00b']) {
    test(`a path with ${JSON.stringify(bad)} is a bad request that names the parameter`, () => {
      assert.throws(
        () => matched('GET', `/lite/users/${bad}`),
        (error) => isAppError(error, 'bad_request') && error.details.parameter === 'id',
      )
    })
  }

  test('two routes for one method and path are refused', () => {
    assert.throws(() => compileRoutes([echo('GET', '/a/{id}'), echo('GET', '/a/{other}')]), /two routes/)
  })

  test('any label, folder and message id, each encoded whole, comes back', () => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((text) => !text.includes('\0') && text.isWellFormed())
    fc.assert(
      fc.property(name, name, name, fc.boolean(), (label, folder, message, slash) => {
        const path = `/lite/users/u/email_accounts/${encodeURIComponent(label)}/folders/${encodeURIComponent(folder)}/messages/${encodeURIComponent(message)}/flags${slash ? '/' : ''}`
        // These names have a meaning of their own in the next segment's place, and cannot be message ids.
        fc.pre(message !== 'messages' && message !== 'flags')
        const result = matched('GET', path)
        assert.ok(typeof result === 'object')
        assert.equal(result.path, `${pattern}/folders/{folder+}/messages/{message_id}/flags`)
        assert.deepEqual(result.parameters, { id: 'u', label, folder, message_id: message })
      }),
      { numRuns: 500 },
    )
  })

  test('a folder with raw slashes reads as the one with %2F', () => {
    const piece = fc.stringMatching(/^[a-z]{1,6}$/).filter((text) => text !== 'messages' && text !== 'expunge')
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const raw = matched('GET', `${account}/folders/${pieces.join('/')}/messages`)
        const encoded = matched('GET', `${account}/folders/${pieces.join('%2F')}/messages`)
        assert.deepEqual(raw, encoded)
      }),
    )
  })

  test('whatever the path, an answer comes at once', () => {
    const piece = fc.constantFrom('messages', 'folders', 'expunge', 'a', 'a@b', '', '%', 'flags', 'attachments', '0')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 300 }), (pieces) => {
        const began = process.cpuUsage()
        try {
          matched('GET', `${account}/${pieces.join('/')}`)
        } catch (error) {
          assert.ok(isAppError(error, 'bad_request'))
        }
        assert.ok(process.cpuUsage(began).user < 100_000)
      }),
      { numRuns: 300 },
    )
  })

  // 32 KiB is what the server takes. Processor time, so that a busy machine does not matter.
  for (const piece of ['/messages', 'messages/', '/messagesx', '@', '%40', '@/', 'a/', '/', '%', 'a@/messages/'])
    test(`a path of nothing but ${piece} is matched in little time`, () => {
      const begun = process.cpuUsage()
      for (const start of ['', 'messages/', 'folders/', 'folders/x/messages/'])
        for (const end of ['', '!', '/flags', '/messages/@'])
          patternOf(`${account}/${start}${piece.repeat(32_000 / piece.length)}${end}`)
      assert.ok(process.cpuUsage(begun).user < 500_000)
    })
})

suite('the same table through the app', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({ routes: echoRoutes })
  })
  after(() => rig.close())

  for (const [method, path, expected, parameters = {}] of table) {
    // The app has a page of its own there.
    if (path === '/') continue
    test(`${method} ${path}`, async () => {
      const answer = await rig.call(method, path)
      assert.equal(answer.status, typeof expected === 'number' ? expected : 200)
      if (typeof expected === 'number' || method === 'HEAD') return
      assert.equal(answer.json['route'], `${method} ${expected}`)
      const taken = answer.json['path'] as Record<string, string>
      for (const [name, value] of Object.entries(parameters)) assert.equal(taken[name], value)
    })
  }
})
