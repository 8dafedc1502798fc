/**
 * Texts from strangers and from mail servers that a careless parser reads again and again: nobody else waits for them.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createImapServer } from '../support/imap-server/index.ts'
import { openStage, type Stage } from '../e2e/stage.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { userBody } from '../support/users.ts'
import { assertShort, beside } from './bystanders.ts'
import { basicOf, say } from './stranger.ts'

suite('texts that take long to read', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
  })
  after(() => stage.remove())

  const spaces = ' '.repeat(31_000)
  const headers = [`OAuth a=${spaces}x y`, `OAuth ${spaces}a=1`, `Basic ${spaces}x`, `Bearer ${'.'.repeat(31_000)}`]
  for (const header of headers) {
    test(`Authorization: ${header.slice(0, 8)} and 31,000 characters`, async () => {
      const { service } = stage
      const waits = await beside(service, async () => {
        for (let n = 0; n < 10; n += 1) {
          const { status, body } = await say(`${service.url}/lite/users`, { headers: { authorization: header } })
          assert.equal(status, 401)
          assert.match(body, /Authorization: longer than 8192 characters/)
        }
      })
      assertShort(waits, 10)
    })
  }

  test('the longest header that is read is read quickly', async () => {
    const { service } = stage
    const authorization = `OAuth a=${' '.repeat(8180)}x y`.slice(0, 8192)
    const waits = await beside(service, async () => {
      for (let n = 0; n < 50; n += 1) {
        assert.equal((await say(`${service.url}/lite/users`, { headers: { authorization } })).status, 401)
      }
    })
    assertShort(waits, 50)
  })

  const bodies = {
    'application/x-www-form-urlencoded': 'a&'.repeat(500_000),
    'multipart/form-data; boundary=b':
      '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'.repeat(2000) + '--b--\r\n',
  }
  for (const [type, body] of Object.entries(bodies)) {
    test(`more than 1000 parameters in ${type}`, async () => {
      const { service } = stage
      const waits = await beside(service, async () => {
        for (let n = 0; n < 5; n += 1) {
          const headers = { 'content-type': type, authorization: basicOf(apiKey, apiSecret) }
          const { status, body: words } = await say(`${service.url}/lite/users`, { method: 'POST', headers, body })
          assert.equal(status, 400)
          assert.match(words, /body: .*more than 1000 parameters/)
        }
      })
      assertShort(waits, 5)
    })
  }

  const jsons = {
    'more than 10000 values': [
      `{${Array.from({ length: 80_000 }, (_, n) => `"${n}":1`).join(',')}}`,
      `{"a":[${'{},'.repeat(340_000)}{}]}`,
      `{"a":[${'[],'.repeat(5_000)}[]]}`,
    ],
    'deeper than 32 levels': [
      `{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}`,
      `{"a":${'['.repeat(32)}${']'.repeat(32)}}`,
    ],
  }
  for (const [words, texts] of Object.entries(jsons)) {
    test(`JSON with ${words} is refused before it is parsed`, async () => {
      const { service } = stage
      const headers = { 'content-type': 'application/json', authorization: basicOf(apiKey, apiSecret) }
      const waits = await beside(service, async () => {
        for (let n = 0; n < 10; n += 1) {
          const body = texts[n % texts.length] as string
          const answer = await say(`${service.url}/lite/users`, { method: 'POST', headers, body })
          assert.equal(answer.status, 400)
          assert.match(answer.body, new RegExp(`body: .*${words}`))
        }
      })
      assertShort(waits, 10)
    })
  }

  test('JSON within the limits is read, whatever its texts hold', async () => {
    const nested = `${'['.repeat(31)}${JSON.stringify(`\\"${'[{,'.repeat(20_000)}"\\`)}${']'.repeat(31)}`
    const body = `{"email":"limits@mail.example","a":${nested},"b":[${'1,'.repeat(9_900)}1]}`
    const headers = { 'content-type': 'application/json', authorization: basicOf(apiKey, apiSecret) }
    const answer = await say(`${stage.service.url}/lite/users`, { method: 'POST', headers, body })
    assert.equal(answer.status, 200, answer.body)
  })

  for (const [length, code] of [
    [4000, 'throttled'],
    [60_000, 'protocol'],
  ] as const) {
    test(`a refusal of a mail server of ${length} characters is ${code}`, async () => {
      const { service } = stage
      const tagged = `NO request is throttled, backoff${' '.repeat(length)}x`
      const hooks = { command: ({ name }: { name: string }) => (name === 'AUTHENTICATE' ? { tagged } : undefined) }
      const server = await createImapServer({ users: { 'ann@mail.example': {} }, hooks })
      try {
        const waits = await beside(service, async () => {
          const body = userBody({ ...server, password: 'secret' }, 'ann@mail.example')
          const answer = await service.ok('POST', '/lite/users', body)
          assert.equal(answer['feedback_code'], code, JSON.stringify(answer))
        })
        assertShort(waits, 1)
      } finally {
        await server.close()
      }
    })
  }
})
