/** What operators do to an email account, and the stream of its steps, on the real app with a scripted mail server. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openEventStream } from '../../support/event-stream.ts'
import { until } from '../../support/until.ts'
import type { TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

describe('actions on accounts', () => {
  let rig: AdminRig
  let box: TestMailbox

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_WRONG_KEYS: '0', MAILROOM_BACKOFF_AUTH: '1h' } })
    box = await rig.mailbox('ann', { subjects: ['one', 'two'] })
  })
  after(() => rig.close())

  const state = () => rig.engine.accounts.view(box.accountId)?.state
  const act = (action: string, body?: Record<string, string>) =>
    rig.as(rig.tokens.act, 'POST', `/admin/accounts/${box.accountId}/${action}`, body ?? {})
  const watching = () => until('watching', () => state() === 'watching')

  test('reconnect gives up the session for a new one', async () => {
    await watching()
    const before = rig.imap.accepted
    const answer = await act('reconnect')
    assert.deepEqual([answer.status, answer.json['id']], [200, box.accountId], answer.text)
    await until('a new connection', () => rig.imap.accepted > before)
    await watching()
  })

  test('reconnect of an account that has to wait is refused, with the time of its next try', async (t) => {
    const dora = await rig.mailbox('dora')
    const view = () => rig.engine.accounts.view(dora.accountId)
    const again = () => rig.as(rig.tokens.act, 'POST', `/admin/accounts/${dora.accountId}/reconnect`, {})
    await until('watching', () => view()?.state === 'watching')
    const limit = { tagged: 'NO Request is throttled. Suggested Backoff Time: 92415 milliseconds' }
    t.after(() => (rig.imap.hooks = {}))
    rig.imap.hooks = { command: ({ name }) => (name === 'SELECT' ? limit : undefined) }
    assert.equal((await again()).status, 200)
    await until('throttled', () => view()?.state === 'throttled')
    const at = new Date(view()?.next?.at ?? 0).toISOString().slice(0, 19).replace('T', ' ')
    const { status, json } = await again()
    const words = `email account ${dora.accountId} is throttled. It connects again when the server allows it at `
    assert.deepEqual([status, json['value']], [409, `${words}${at} UTC.`])
  })

  test('a pause closes the connections, survives a restart, and ends with resume', async () => {
    const { engine } = rig
    assert.equal((await act('pause')).json['state'], 'paused')
    await until('no connection', () => rig.imap.connections.every(({ user }) => user !== box.email))
    const refused = await act('reconnect')
    assert.deepEqual(
      [refused.status, refused.json['value']],
      [409, `email account ${box.accountId} is paused: resume it first`],
    )
    await engine.accounts.stop(box.accountId)
    const stored = await engine.store.accounts.get(box.accountId)
    assert(stored)
    engine.accounts.start(stored)
    assert.equal(state(), 'paused')
    const resumed = await act('resume')
    assert.equal(resumed.status, 200, resumed.text)
    await watching()
    assert.equal((await engine.store.accounts.get(box.accountId))?.paused, false)
  })

  test('check tries a login, and says how it went', async () => {
    const well = await act('check')
    assert.equal(well.status, 200, well.text)
    assert.deepEqual([well.json['success'], well.json['failure'], well.json['message']], [true, null, null])
    const carl = await rig.mailbox('carl')
    rig.imap.setPassword(carl.email, 'another one')
    const failed = await rig.good('act', 'POST', `/admin/accounts/${carl.accountId}/check`, {})
    assert.deepEqual([failed['success'], failed['failure']], [false, 'auth_rejected'])
    assert.equal((failed['account'] as { status: string }).status, 'DISABLED')
    const overview = await rig.good('read', 'GET', '/admin/overview')
    const attention = overview['attention'] as { kind: string; id: string; what: string }[]
    assert.deepEqual(
      attention.map(({ kind, id }) => [kind, id]),
      [['account', carl.accountId]],
    )
    assert.match(attention[0]?.what ?? '', /^carl@mail\.example at .*: DISABLED \(/)
  })

  test('a folder is read anew: all of its messages are asked for', async () => {
    const from = rig.imap.log.length
    const answer = await act('read-anew', { folder: 'INBOX' })
    assert.equal(answer.status, 200, answer.text)
    const lines = rig.imap.log.slice(from).map(({ line }) => line)
    assert.ok(
      lines.some((line) => /UID SEARCH .*1:\*/i.test(line)),
      lines.join('\n'),
    )
    assert.ok(
      lines.some((line) => /UID FETCH 1:2 .*FLAGS/i.test(line)),
      lines.join('\n'),
    )
    const unknown = await act('read-anew', { folder: 'Nowhere' })
    assert.deepEqual([unknown.status, unknown.json['value']], [404, 'folder Nowhere is invalid'])
    const none = await act('read-anew')
    assert.deepEqual([none.status, none.json['value']], [400, 'folder: is required'])
  })

  test('the stream has each step and each line as it comes, without secrets', async () => {
    const url = `${rig.url}/admin/accounts/${box.accountId}/events`
    const stream = await openEventStream(url, { authorization: `Bearer ${rig.tokens.read}` })
    assert.equal(stream.status, 200)
    await act('reconnect')
    await until('a login and its end', () => /connect done/.test(stream.text) && /event: line/.test(stream.text))
    assert.match(stream.text, /event: step\ndata: \{"at":[\d.]+,"event":"WAKE","state":"connecting","ms":null\}\n\n/)
    assert.match(
      stream.text,
      /event: line\ndata: \{"at":[\d.]+,"connection":\d+,"line":"> \w+ (LOGIN|AUTHENTICATE [\w-]+) \*\*\*"\}\n\n/,
    )
    assert.doesNotMatch(stream.text, /secret/)
    stream.close()
    await watching()
  })

  test('routes are for operators who may act', async () => {
    for (const action of ['reconnect', 'pause', 'resume', 'check', 'read-anew'])
      await refusesOthers(rig, 'POST', `/admin/accounts/${box.accountId}/${action}`, 'act')
    await refusesOthers(rig, 'GET', `/admin/accounts/${box.accountId}/events`, 'read')
    assert.equal(state(), 'watching')
  })

  test('an unknown id is a 404', async () => {
    for (const action of ['reconnect', 'pause', 'resume', 'check', 'read-anew']) {
      const answer = await rig.as(rig.tokens.act, 'POST', `/admin/accounts/nobody/${action}`, { folder: 'INBOX' })
      assert.deepEqual([answer.status, answer.json['value']], [404, 'email account nobody is invalid'], action)
    }
    assert.equal((await rig.as(rig.tokens.read, 'GET', '/admin/accounts/nobody/events')).status, 404)
  })
})

test('reconnect is refused while a login beside the open session is throttled, and the session stays', async () => {
  const env = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_COMMAND_IDLE_CLOSE: '100ms' }
  await using parts = new AsyncDisposableStack()
  const rig = await startAdminRig({ env })
  parts.defer(() => rig.close())
  const box = await rig.mailbox('hal', { subjects: ['old'] })
  const view = () => rig.engine.accounts.view(box.accountId)
  const isAlone = () => view()?.state === 'watching' && rig.imap.connections.length === 1
  await until('only the session that watches', isAlone)
  const session = rig.imap.connections[0]?.id
  const limit = { tagged: 'NO Request is throttled. Suggested Backoff Time: 92415 milliseconds' }
  rig.imap.hooks = { command: ({ name }) => (['LOGIN', 'AUTHENTICATE'].includes(name) ? limit : undefined) }
  const headers = await rig.call('GET', `${box.path}/messages/${await box.indexed('old')}/headers`)
  assert.equal(headers.status, 503, headers.text)
  const at = new Date(view()?.next?.at ?? 0).toISOString().slice(0, 19).replace('T', ' ')
  const { status, json } = await rig.as(rig.tokens.act, 'POST', `/admin/accounts/${box.accountId}/reconnect`, {})
  const words = `email account ${box.accountId} is throttled. It logs in for commands again at ${at} UTC.`
  assert.deepEqual([status, json['value']], [409, words])
  assert.equal(view()?.state, 'watching')
  assert.ok(rig.imap.connections.some(({ id }) => id === session))
})
