/**
 * Every operation of /openapi.json is called, and what is sent and what comes back is checked against the document that
 * the server serves, by a validator that knows nothing of the schemas it was made from.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { answerOf } from '../../../api/openapi.ts'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { openEventStream } from '../../support/event-stream.ts'
import { validate } from '../../support/json-schema.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { driveAdmin } from '../admin/operations.ts'
import { driveV2 } from '../v2/operations.ts'
import { driveV2Writes } from '../v2/write-operations.ts'
import { basic, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

interface Described {
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly schema: Json
    readonly required: boolean
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> }
  readonly responses: Readonly<Record<string, Json>>
  readonly security: readonly unknown[]
}

interface Document extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

interface Call {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: Json
  readonly accept?: string
}

const user = '/lite/users/{id}'
const EA = `${user}/email_accounts/{label}`
const raw = [
  'From: Ada <ada@sender.example>',
  'To: op@mail.example',
  'Subject: parts',
  'Message-ID: <parts@sender.example>',
  'Date: Mon, 06 May 2024 10:00:00 +0000',
  'List-Id: <list.example>',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Hello.',
  '--b',
  'Content-Type: application/pdf; name=x.pdf',
  'Content-Disposition: attachment; filename=x.pdf',
  'Content-Transfer-Encoding: base64',
  '',
  'JVBERi0=',
  '--b--',
  '',
].join('\n')

suite('operations of the OpenAPI document', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let document: Document
  let box: TestMailbox
  let message = ''
  let token = ''
  const answered = new Set<string>()

  before(async () => {
    rig = await startLiteRig()
    receiver = await startReceiver()
    document = (await rig.ok('GET', '/openapi.json')) as Document
    token = (await rig.engine.operators.createToken('op', ['read', 'act', 'keys'])).token
    box = await rig.mailbox('op')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    message = await box.deliverRaw(raw, 'parts')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const keyOf = (template: string): string => (template.startsWith('/admin/') ? `Bearer ${token}` : basic)

  const described = (method: string, template: string): Described => {
    const operation = document.paths[template]?.[method.toLowerCase()]
    assert(operation !== undefined, `${method} ${template} is not described`)
    return operation
  }

  /** What is sent is what the document says. */
  const checkRequest = (operation: Described, { query = {}, body }: Call): void => {
    for (const [name, value] of Object.entries(query)) {
      const parameter = operation.parameters.find((one) => one.name === name && one.in === 'query')
      assert(parameter !== undefined, `query parameter ${name} is not described`)
      assert.equal(validate(parameter.schema, value, document, name), null)
    }
    const required = operation.parameters.filter((one) => one.in === 'query' && one.required).map(({ name }) => name)
    assert.deepEqual(
      required.filter((name) => !(name in query)),
      [],
    )
    if (body === undefined) return
    const schema = operation.requestBody?.content['application/json']?.schema
    assert(schema !== undefined, 'a body is not described')
    assert.equal(validate(schema, body, document, 'body'), null)
    const known = Object.keys(schema['properties'] ?? {})
    assert.deepEqual(
      Object.keys(body).filter((name) => !known.includes(name)),
      [],
      'parameters that are not described',
    )
  }

  const checkAnswer = (operation: Described, status: number, type: string, text: string): Json => {
    const response = resolved(operation.responses[String(status)])
    assert(response !== undefined, `status ${status} is not described: ${text}`)
    const contents = (response['content'] ?? {}) as Readonly<Record<string, { readonly schema: unknown }>>
    const media = Object.entries(contents).find(([one]) => one === '*/*' || type.startsWith(one))
    assert(media !== undefined, `${type} is none of ${Object.keys(contents).join(', ')}`)
    const [described, { schema }] = media
    if (described !== 'application/json') return {}
    assert.equal(type, 'application/json')
    const value = JSON.parse(text) as Json
    assert.equal(validate(schema, value, document), null)
    return value
  }
  const resolved = (response: Json | undefined): Json | undefined => {
    const reference = response?.['$ref']
    const name = (typeof reference === 'string' ? reference : '').split('/').at(-1) ?? ''
    if (name === '') return response
    return (document['components'] as Readonly<Record<string, Readonly<Record<string, Json>>>>)['responses']?.[name]
  }

  const send = async (
    method: string,
    template: string,
    call: Call,
  ): Promise<{ status: number; value: Json; text: string }> => {
    const operation = described(method, template)
    checkRequest(operation, call)
    const usual: Readonly<Record<string, string>> = {
      id: box.userId,
      label: box.label,
      folder: 'INBOX',
      message_id: message,
    }
    const values = { ...usual, ...call.path }
    const path = template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(values[name] ?? name))
    const query = new URLSearchParams(Object.entries(call.query ?? {}).map(([name, value]) => [name, String(value)]))
    const { body, accept } = call
    const options = { headers: { authorization: keyOf(template), ...(accept === undefined ? {} : { accept }) } }
    const answer = await rig.call(method, query.size === 0 ? path : `${path}?${query.toString()}`, body, options)
    const type = String(answer.headers['content-type'])
    return { status: answer.status, value: checkAnswer(operation, answer.status, type, answer.text), text: answer.text }
  }
  /** One operation with its good answer. */
  const drive = async (method: string, template: string, call: Call = {}): Promise<Json> => {
    const { status, value, text } = await send(method, template, call)
    assert.equal(String(status), answerOf(described(method, template)).status, `${method} ${template}: ${text}`)
    answered.add(`${method} ${template}`)
    return value
  }

  test('system', async () => {
    for (const path of ['/', '/healthz', '/readyz', '/metrics', '/openapi.json', '/docs']) await drive('GET', path)
    await drive('GET', '/docs/{page}', { path: { page: 'messages' } })
    assert.equal((await drive('GET', '/', { accept: 'application/json' }))['docs'], `${rig.url}/docs`)
  })

  test('users and email accounts', async () => {
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    rig.imap.addUser('made@mail.example')
    const made = await drive('POST', '/lite/users', {
      body: userBody(server, 'made@mail.example', { first_name: 'M' }),
    })
    const path = { id: String(made['id']) }
    await drive('GET', '/lite/users', {
      query: { email: 'made@mail.example', status: 'OK', status_ok: 1, limit: 5, offset: 0 },
    })
    await drive('GET', user, { path })
    await drive('POST', user, { path, body: { first_name: 'N' } })
    await drive('PUT', user, { path, body: { last_name: 'O' } })
    rig.imap.addUser('more@mail.example')
    const more = await drive('POST', `${user}/email_accounts`, { path, body: userBody(server, 'more@mail.example') })
    await drive('GET', `${user}/email_accounts`, { path, query: { status_ok: 1 } })
    const own = { ...path, label: String(more['label']) }
    await drive('GET', EA, { path: own })
    await drive('POST', EA, { path: own, body: { status: 1, force_status_check: 1, status_callback_url: '' } })
    await drive('DELETE', EA, { path: own })
    await drive('DELETE', user, { path })
  })

  test('folders', async () => {
    await drive('GET', `${EA}/folders`, { query: { include_names_only: 1 } })
    await drive('GET', `${EA}/folders`)
    await drive('POST', `${EA}/folders/{folder}`, { path: { folder: 'Made/Here' }, query: { delimiter: '/' } })
    await drive('GET', `${EA}/folders/{folder}`, { path: { folder: 'Made/Here' } })
  })

  test('messages', async () => {
    const contents = { include_body: 1, include_headers: 'raw', include_flags: 1, body_type: 'text/plain' }
    const list = {
      ...contents,
      subject: 'parts',
      from: 'ada@sender.example',
      sort_order: 'asc',
      limit: 1,
      date_after: 1,
    }
    await drive('GET', `${EA}/messages`, { query: { ...list, folder: 'INBOX' } })
    await drive('GET', `${EA}/folders/{folder}/messages`, { query: { ...list, include_headers: '1' } })
    const hook = await drive('POST', `${user}/webhooks`, { body: { callback_url: `${receiver.url}/x` } })
    for (const base of [`${EA}/messages/{message_id}`, `${EA}/folders/{folder}/messages/{message_id}`]) {
      await drive('GET', base, { query: contents })
      await drive('GET', `${base}/body`, { query: { type: 'text/plain' } })
      await drive('GET', `${base}/headers`)
      await drive('GET', `${base}/headers`, { query: { raw: 1 } })
      await drive('GET', `${base}/raw`)
      await drive('GET', `${base}/flags`)
      await drive('POST', `${base}/flags`, { body: { flagged: 1, seen: 0 } })
      await drive('POST', `${base}/read`)
      await drive('DELETE', `${base}/read`)
      await drive('GET', `${base}/attachments`)
      await drive('GET', `${base}/attachments/{attachment_id}`, { path: { attachment_id: '0' } })
      await drive('GET', `${base}/explain`, { query: { webhook_id: String(hook['webhook_id']) } })
    }
    const { text } = await send('GET', `${EA}/messages/{message_id}/attachments/{attachment_id}`, {
      path: { attachment_id: '0' },
      query: { as_link: 1 },
    })
    const link = String((JSON.parse(text) as Json)['link'])
    const parts = /^\/downloads\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(new URL(link).pathname)
    const [, account = '', id = '', attachment = ''] = (parts ?? []).map(decodeURIComponent)
    await drive('GET', '/downloads/{account}/{message}/{attachment}', {
      path: { account, message: id, attachment },
      query: Object.fromEntries([...new URL(link).searchParams].map(([k, v]) => [k, k === 'expires' ? Number(v) : v])),
    })
    await drive('PUT', `${EA}/folders/{folder}/messages/{message_id}`, { query: { new_folder_id: 'Archive' } })
    await until('in Archive', async () =>
      (await rig.list(`${box.path}/folders/Archive/messages`)).some((one) => one['message_id'] === message),
    )
    await drive('PUT', `${EA}/messages/{message_id}`, { query: { new_folder_id: 'INBOX' } })
  })

  test('webhooks and their deliveries', async () => {
    for (const base of [`${user}/webhooks`, '/lite/webhooks']) {
      const body = {
        callback_url: `${receiver.url}/hook`,
        filter_subject: 'deliver',
        include_body: 1,
        body_type: 'text/plain',
      }
      const made = await drive('POST', base, { body })
      const path = { webhook_id: String(made['webhook_id']) }
      await drive('GET', base)
      await drive('GET', `${base}/{webhook_id}`, { path })
      await drive('POST', `${base}/{webhook_id}`, { path, body: { receive_all_changes: 0, include_header: 'raw' } })
      await box.deliver({ subject: `deliver ${base.length}` })
      const log = (): Promise<Json> =>
        drive('GET', `${base}/{webhook_id}/deliveries`, {
          path,
          query: { state: 'delivered', kind: 'message', limit: 5 },
        })
      const [row] = await until('delivered', async () => {
        const rows = (await log()) as unknown as Json[]
        return rows.length > 0 ? rows : null
      })
      const one = { ...path, delivery_id: String(row?.['delivery_id']) }
      await drive('POST', `${base}/{webhook_id}/deliveries/{delivery_id}/redeliver`, { path: one })
      await drive('POST', `${base}/{webhook_id}/redeliver`, { path, body: { failed_only: 1, from: 1, to: 2 } })
      await drive('GET', `${base}/{webhook_id}/redeliver`, { path })
      await drive('POST', '/app/logs/webhooks/{delivery_id}/redeliver', { path: one })
      await drive('POST', `${base}/{webhook_id}/test`, { path })
      await drive('GET', `${base}/{webhook_id}/secret`, { path })
      await drive('POST', `${base}/{webhook_id}/secret`, { path })
      await drive('GET', `${base}/{webhook_id}/dry_run`, { path, query: { limit: 5, user_id: box.userId, label: '0' } })
      await drive('DELETE', `${base}/{webhook_id}`, { path })
    }
  })

  test('changes, contacts and connect tokens', async () => {
    await drive('GET', `${user}/changes`, { query: { since: 'now', limit: 10 } })
    await drive('GET', `${user}/changes`)
    await drive('GET', `${user}/contacts`, {
      query: { sort_by: 'direct_count', sort_order: 'asc', limit: 100, offset: 0 },
    })
    await drive('GET', `${user}/contacts/{contactid}`, { path: { contactid: 'ada@sender.example' } })
    for (const base of ['/lite/connect_tokens', `${user}/connect_tokens`, `${EA}/connect_tokens`]) {
      const body = { callback_url: 'http://localhost/done', email: 'new@mail.example', first_name: 'N', last_name: '' }
      const path = { token: String((await drive('POST', base, { body }))['token']) }
      await drive('GET', base)
      await drive('GET', `${base}/{token}`, { path })
      await drive('DELETE', `${base}/{token}`, { path })
    }
  })

  test('discovery, OAuth providers and the application', async () => {
    await drive('GET', '/lite/discovery', { query: { email: 'x@gmail.com' } })
    await drive('GET', '/lite/discovery', { query: { email: 'x@gmail.com', list: 1 } })
    const key = 'client/1'
    const body = { type: 'GMAIL_OAUTH2', provider_consumer_key: key, provider_consumer_secret: 'a-long-enough-secret' }
    await drive('POST', '/lite/oauth_providers', { body })
    await drive('GET', '/lite/oauth_providers')
    await drive('GET', '/lite/oauth_providers/{key}', { path: { key } })
    await drive('DELETE', '/lite/oauth_providers/{key}', { path: { key } })
    const path = '/app/status_callback_url'
    await drive('POST', path, { body: { status_callback_url: 'http://127.0.0.1:9/' } })
    await drive('GET', path)
    await drive('DELETE', path)
    await drive('GET', '/app/logs/webhooks', {
      query: {
        status_code_from: 200,
        account_id: box.userId,
        label: '0',
        kind: 'message',
        state: 'delivered',
        limit: 3,
      },
    })
    await until('calls', async () => {
      const rows = await drive('GET', '/app/logs/calls', {
        query: { request_method: 'GET', timestamp_after: 1, limit: 3 },
      })
      return (rows as unknown as Json[]).length === 3
    })
  })

  test('the 2.0 API', async () => {
    await driveV2(rig, { box, message, from: 'ada@sender.example' }, drive)
  })

  test('writes and webhooks of 2.0', async () => {
    await driveV2Writes(message, drive)
  })

  test('the admin API', async () => {
    await driveAdmin(rig, box.accountId, drive)
    const stream = await openEventStream(`${rig.url}/admin/accounts/${box.accountId}/events`, {
      authorization: keyOf('/admin/'),
    })
    const type = String(stream.headers['content-type'])
    checkAnswer(described('GET', '/admin/accounts/{id}/events'), stream.status, type, '')
    stream.close()
    answered.add('GET /admin/accounts/{id}/events')
  })

  test('unknown ids, bad parameters and missing keys are answered as described', async () => {
    const nobody = {
      id: 'f'.repeat(24),
      webhook_id: 'f'.repeat(24),
      token: 'x'.repeat(16),
      key: 'x',
      message_id: 'none',
    }
    for (const [template, operations] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const names = operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name)
        if (!names.some((name) => name in nobody) || operation.security.length === 0) continue
        const path = template.replaceAll(
          /\{(\w+)\}/g,
          (_whole, name: string) => ((nobody as Json)[name] as string | undefined) ?? '0',
        )
        const known = { headers: { authorization: keyOf(template) } }
        const answer = await rig.call(method.toUpperCase(), path, undefined, known)
        assert([400, 404].includes(answer.status), `${method} ${path}: ${answer.status} ${answer.text}`)
        checkAnswer(operation, answer.status, String(answer.headers['content-type']), answer.text)
        const unsigned = await rig.call(method.toUpperCase(), path, undefined, { headers: {} })
        assert.equal(unsigned.status, 401)
        checkAnswer(operation, 401, String(unsigned.headers['content-type']), unsigned.text)
      }
    }
  })

  test('none was left out', () => {
    const all = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    assert(all.length > 80)
    assert.deepEqual(
      all.filter((operation) => !answered.has(operation)),
      rig.engine.store.kind === 'mongodb' ? ['POST /admin/backup', 'GET /admin/backup'] : [],
    )
  })
})
