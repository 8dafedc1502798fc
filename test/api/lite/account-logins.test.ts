/**
 * A login that is rejected while an older session watches the mailbox: what the API and the status callback say of it.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createReceiver, type Receiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from './rig.ts'

suite('a password that was changed while the mailbox is watched', () => {
  let rig: LiteRig
  let receiver: Receiver
  let box: TestMailbox
  const parts = new AsyncDisposableStack()
  before(async () => {
    receiver = await createReceiver()
    parts.defer(() => receiver.close())
    rig = await startLiteRig({
      env: { MAILROOM_FOLDER_POLL: '1h', MAILROOM_COMMAND_IDLE_CLOSE: '100ms', MAILROOM_BACKOFF_AUTH: '8s,500ms' },
    })
    parts.defer(() => rig.close())
    box = await rig.mailbox('changed', { extra: { status_callback_url: receiver.url('/status') }, subjects: ['old'] })
    await until('only the session that watches', () => rig.imap.connections.length === 1)
    rig.imap.setPassword(box.email, 'another')
  })
  after(() => parts.disposeAsync())

  const headers = async () => rig.call('GET', `${box.path}/messages/${await box.indexed('old')}/headers`)
  const statusOf = (answer: { readonly headers: NodeJS.Dict<string | string[]> }): unknown =>
    String(answer.headers['x-service-email-account-status']).split(' ').at(-1)

  test('a call is 503 with Retry-After, and the account says at once why and when the next try is', async () => {
    const answer = await headers()
    assert.equal(answer.status, 503)
    assert.match(String(answer.json['value']), /rejected the login/)
    const seconds = Number(answer.headers['retry-after'])
    assert(seconds >= 1 && seconds <= 8, `Retry-After: ${seconds}`)
    const view = await rig.call('GET', box.path)
    assert.deepEqual([view.json['status'], statusOf(view)], ['OK', 'OK'])
    assert.match(String(view.json['status_message']), /rejected the login: .*\. Next try at .* UTC\.$/)
    assert.deepEqual(receiver.requests, [])
  })

  test('the third rejection is DISABLED, in the header too, with one status callback', async () => {
    await until('DISABLED', async () => (await rig.ok('GET', box.path))['status'] === 'DISABLED', {
      withinMs: 30_000,
    })
    const answer = await headers()
    assert.deepEqual([answer.status, statusOf(answer)], [503, 'DISABLED'])
    assert(Number(answer.headers['retry-after']) > 60)
    await until('the callback', () => receiver.at('/status').length > 0)
    assert.deepEqual(
      receiver.at('/status').map(({ body }) => body['failure']),
      ['permanent'],
    )
  })

  test('the new password heals it, and the callback says so', async () => {
    const edited = await rig.ok('POST', box.path, { password: 'another' })
    assert.deepEqual([edited['success'], edited['status'], edited['status_message']], [true, 'OK', null])
    const answer = await headers()
    assert.deepEqual([answer.status, statusOf(answer)], [200, 'OK'])
    await until('the callback', () => receiver.at('/status').length > 1)
    assert.deepEqual(
      receiver.at('/status').map(({ body }) => body['failure']),
      ['permanent', 'cleared'],
    )
  })
})
