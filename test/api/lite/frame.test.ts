/**
 * What the frame adds to real routes: the status of the account, what is left of the limits, and no more than the
 * limits.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { resourceRoutes } from '../../../api/app.ts'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { basic, startLiteRig, type LiteRig, type TestMailbox } from './rig.ts'

const ofAccount = '/lite/users/{id}/email_accounts/{label}'

suite('the frame on real routes', () => {
  let rig: LiteRig
  let box: TestMailbox
  let message = ''
  before(async () => {
    rig = await startLiteRig({
      env: { MAILROOM_RATE_CALLS_PER_HOUR: '400', MAILROOM_RATE_IMAP_PER_MINUTE: '60' },
      now: () => clock.now,
    })
    box = await rig.mailbox('frame', { subjects: ['the message'] })
    message = await box.indexed('the message')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
  })
  after(() => rig.close())
  const clock = { now: Date.now() }

  const real: Readonly<Record<string, () => string>> = {
    id: () => box.userId,
    label: () => encodeURIComponent(box.label),
    folder: () => 'INBOX',
    message_id: () => message,
    attachment_id: () => '0',
    token: () => 'nothinglikeit000',
  }
  const filled = (path: string): string =>
    path.replaceAll(/\{(\w+)\+?\}/g, (_whole, name: string) => real[name]?.() ?? `no-${name}`)

  test('every GET about one account carries its status, found or not', async () => {
    const paths = resourceRoutes.filter(({ method, path }) => method === 'GET' && path.startsWith(ofAccount))
    assert(paths.length > 10)
    for (const { path } of paths) {
      const answer = await rig.call('GET', filled(path))
      const header = answer.headers['x-service-email-account-status']
      assert.equal(header, `${rig.url}${box.path} OK`, `${path}: ${answer.status}`)
    }
    const answer = await rig.call('GET', `/lite/users/${box.userId}`)
    assert.equal(answer.headers['x-service-email-account-status'], undefined, 'a user is no account')
  })

  test('so does everything that is refused before its handler is reached', async () => {
    const json = { 'content-type': 'application/json' }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const status = `${rig.url}${box.path} OK`
    const calls: [number, string, string, Record<string, string>, string?][] = [
      [400, 'GET', '/messages?limit=x', {}],
      [400, 'GET', '/messages?x=%FF', {}],
      [400, 'GET', '/folders/%FF', {}],
      [400, 'POST', '', json, '{"port":"x"}'],
      [400, 'POST', '', json, '{broken'],
      [400, 'POST', '', { 'content-type': 'text/plain' }, 'x'],
      [400, 'POST', '', form, 'x=%FF'],
      [405, 'PUT', '', {}],
      [405, 'DELETE', '/messages', {}],
      [413, 'POST', '', form, 'x'.repeat(2_000_000)],
    ]
    for (const [code, method, rest, headers, text] of calls) {
      const path = box.path.replace(encodeURIComponent(box.label), '0') + rest
      const options = text === undefined ? {} : { body: text }
      const answer = await rig.call(method, path, undefined, {
        headers: { authorization: basic, ...headers },
        ...options,
      })
      assert.equal(answer.status, code, `${method} ${path}: ${answer.text}`)
      assert.equal(answer.headers['x-service-email-account-status'], status, `${method} ${path}`)
      assert.notEqual(answer.headers['x-ratelimit-imap-remaining'], undefined)
      assert.notEqual(answer.headers['x-ratelimit-remaining'], undefined)
      const stranger = await rig.call(method, path, undefined, { headers, ...options })
      assert([401, code].includes(stranger.status))
      assert.equal(stranger.headers['x-service-email-account-status'], undefined, 'nobody else learns it')
    }
  })

  test('every answer about a user says what is left of the minute, without counting', async () => {
    const left = async (method: string, path: string): Promise<number> =>
      Number((await rig.call(method, path)).headers['x-ratelimit-imap-remaining'])
    const before = await left('GET', box.path)
    assert(before > 0 && before <= 60)
    for (const path of [
      box.path,
      `${box.path}/messages`,
      `${box.path}/messages/unknown`,
      `/lite/users/${box.userId}`,
      `/lite/users/${box.userId}/contacts?limit=x`,
    ])
      assert.equal(await left('GET', path), before, path)
    assert.equal(await left('GET', '/lite/users'), Number.NaN)
  })

  test('a login that makes an email account is counted', async () => {
    rig.imap.addUser('counted@mail.example')
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const made = await rig.call('POST', '/lite/users', userBody(server, 'counted@mail.example'))
    assert.equal(made.headers['x-ratelimit-imap-remaining'], '59')
    const accounts = `/lite/users/${String(made.json['id'])}/email_accounts`
    const more = await rig.call('POST', accounts, userBody(server, 'counted@mail.example'))
    assert.equal(more.headers['x-ratelimit-imap-remaining'], '58')
  })

  // Each node counts for itself.
  test('every answer says what is left of the hour, and the limit ends it', { skip: nodeCount > 1 }, async () => {
    const left = async (path: string): Promise<number> =>
      Number((await rig.call('GET', path)).headers['x-ratelimit-remaining'])
    const before = await left('/lite/users')
    assert.equal(await left(box.path), before - 1)
    assert.equal(await left('/lite/users/nobody'), before - 2, 'errors count too')
    const { headers } = await rig.call('GET', '/lite/users')
    assert.equal(headers['x-ratelimit-limit'], '400')
    const reset = Number(headers['x-ratelimit-reset'])
    assert(reset > clock.now / 1000 && reset <= clock.now / 1000 + 3601)
    for (let rest = await left('/lite/users'); rest > 0; rest -= 1)
      await rig.call('GET', '/lite/discovery?email=x@gmail.com')
    const over = await rig.call('GET', '/lite/users')
    assert.equal(over.status, 429)
    const { status, headers: told } = await rig.call('GET', box.path)
    assert.deepEqual([status, told['x-service-email-account-status']], [429, `${rig.url}${box.path} OK`])
    assert.equal(over.json['type'], 'error')
    assert(Number(over.headers['retry-after']) > 0)
    assert.equal((await rig.call('GET', '/healthz')).status, 200, 'not a developer’s call')
    clock.now += 3_601_000
    assert.equal((await rig.call('GET', '/lite/users')).status, 200)
  })

  test('calls that touch the mail server are counted per user', async () => {
    const touch = () => rig.call('POST', box.path, { force_status_check: 1 })
    const first = await touch()
    assert.equal(first.status, 200)
    assert.equal(first.headers['x-ratelimit-imap-limit'], '60')
    const used = 60 - Number(first.headers['x-ratelimit-imap-remaining'])
    assert(used >= 1)
    const answers = []
    for (let count = used; count <= 60; count += 1) answers.push((await touch()).status)
    assert.equal(answers.at(-1), 429)
    assert(answers.slice(0, -1).every((status) => status === 200))
    const other = await rig.mailbox('other')
    assert.equal((await rig.call('POST', other.path, { force_status_check: 1 })).status, 200, 'another user')
    assert.equal((await rig.call('GET', `${box.path}/messages`)).status, 200, 'the index is asked as before')
    clock.now += 61_000
    assert.equal((await touch()).status, 200)
  })

  test('the name of the status header and of the limits is the same for errors about the account', async () => {
    const answer = await rig.call('GET', `${box.path}/messages/unknown`)
    assert.equal(answer.status, 404)
    assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${box.path} OK`)
    assert.notEqual(answer.headers['x-ratelimit-remaining'], undefined)
    assert.match(String(answer.headers['x-request-id']), /./)
  })
})
