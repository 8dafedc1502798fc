/** client/ against the running service and Dovecot: signed calls, typed answers, verified callbacks. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Callback, type Client, createClient, verify, WebhookVerificationError } from '../../client/index.ts'
import { type CallbackReceiver, startReceiver } from '../support/callbacks.ts'
import { type Dovecot, startDovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import { needs } from '../support/require.ts'
import { apiKey, apiSecret, type Service, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const address = 'anna@example.com'
const path = { label: '0' }

/** A body that says what the callback is of. */
function isMessage(callback: Callback): callback is Extract<Callback, { message_data: unknown }> {
  return 'message_data' in callback
}

suite('client', needs('dovecot'), () => {
  let service: Service
  let dovecot: Dovecot
  let receiver: CallbackReceiver
  let client: Client
  let id = ''

  before(async () => {
    ;[service, dovecot, receiver] = await Promise.all([startService(), startDovecot(), startReceiver()])
    client = createClient({ baseUrl: service.url, key: apiKey, secret: apiSecret })
    await dovecot.append(address, 'INBOX', mail({ to: address, subject: 'Übersicht & more', id: 'first' }))
  })
  after(async () => {
    await receiver.close()
    await service.remove()
    await dovecot.remove()
  })

  test('a wrong secret is a typed 401, and nothing is thrown', async () => {
    const stranger = createClient({ baseUrl: service.url, key: apiKey, secret: 'wrong' })
    const { data, error, response } = await stranger.GET('/lite/users')
    assert.equal(response.status, 401)
    assert.equal(data, undefined)
    assert.equal(error.type, 'error')
  })

  test('a user is made, mail is listed: bodies, queries and odd paths are covered by the signature', async () => {
    const { data: made } = await client.POST('/lite/users', {
      body: {
        email: address,
        server: dovecot.host,
        port: dovecot.port,
        use_ssl: 0,
        username: address,
        password: dovecot.password,
        type: 'imap',
        first_name: 'Änne + Co. & “Söhne”',
      },
    })
    assert.ok(made?.success === true && 'id' in made, JSON.stringify(made))
    id = made.id
    const user = await client.GET('/lite/users/{id}', { params: { path: { id } } })
    assert.equal(user.data?.first_name, 'Änne + Co. & “Söhne”')
    const listed = await until('the message', async () => {
      const { data = [] } = await client.GET('/lite/users/{id}/email_accounts/{label}/messages', {
        params: { path: { id, ...path }, query: { subject: 'Übersicht & more', limit: 5 } },
      })
      return data.length > 0 ? data : null
    })
    assert.equal(listed[0]?.subject, 'Übersicht & more')
    const folder = { id, ...path, folder: 'Projekte/2024 (neu)' }
    const added = await client.POST('/lite/users/{id}/email_accounts/{label}/folders/{folder}', {
      params: { path: folder },
    })
    assert.equal(added.data?.success, true, JSON.stringify(added.error))
  })

  test('a callback is verified by the secret of the webhook and by the API secret, and by nothing else', async () => {
    const { data: hook } = await client.POST('/lite/users/{id}/webhooks', {
      params: { path: { id } },
      body: { callback_url: `${receiver.url}/mail` },
    })
    const webhook = { id, webhook_id: hook?.webhook_id ?? assert.fail('no webhook') }
    const answer = await client.GET('/lite/users/{id}/webhooks/{webhook_id}/secret', { params: { path: webhook } })
    const secret = answer.data?.secret ?? assert.fail('no secret')
    await dovecot.append(address, 'INBOX', mail({ to: address, subject: 'Neu: ä', id: 'second' }))
    const { raw, headers } = await until('the callback', () => receiver.all[0])
    for (const key of [secret, apiSecret]) {
      const callback = verify(raw, headers, key)
      assert.ok(isMessage(callback))
      assert.equal(callback.message_data.subject, 'Neu: ä')
    }
    assert.ok(verify(raw, new Headers(headers as Record<string, string>), secret))
    const refused = { name: 'WebhookVerificationError' }
    assert.throws(() => verify(raw, headers, 'another secret'), refused)
    assert.throws(() => verify(raw.replace('Neu', 'Alt'), headers, secret), WebhookVerificationError)
    assert.throws(() => verify(raw, { ...headers, 'webhook-timestamp': '1700000000' }, secret), refused)
    assert.throws(() => verify(raw, {}, secret), refused)
  })
})
