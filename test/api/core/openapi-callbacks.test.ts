/**
 * The `webhooks` of the OpenAPI document against what is really sent: a callback of each kind, over HTTP, to a
 * receiver.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { resourceRoutes } from '../../../api/app.ts'
import { verification } from '../../../api/docs/entries.ts'
import { buildOpenApi, propertiesOf } from '../../../api/openapi.ts'
import type { Json } from '../../../api/examples.ts'
import { apiSecret, arrive, facts } from '../../engine/webhooks/fixture.ts'
import { account, freshPath, hook, rig, receiver, running, useScene } from '../../engine/webhooks/scene.ts'
import { attachmentRecord } from '../../store/contract/records.ts'
import { validate } from '../../support/json-schema.ts'
import type { Received } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

useScene()

interface Verification {
  bodyIsSigned(body: unknown, apiSecret: string): boolean
  headersAreSigned(headers: unknown, rawBody: string, secret: string): boolean
}

const document = buildOpenApi(resourceRoutes)
const whole = document as unknown as Json

const part = {
  section: '1',
  type: 'text/plain',
  charset: 'utf-8',
  encoding: '8bit',
  size: 6,
  flowed: false,
  delSp: false,
}
const rich = facts('rich', {
  hostedMessageId: '111',
  hostedThreadId: '222',
  references: ['root@example.com'],
  attachments: [attachmentRecord(0, 'Offer-2024-01-31_v2.pdf')],
  bodies: [part],
})

suite('callbacks are sent as the document says', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-verification-'))
  let shown: Verification
  before(async () => {
    const module = join(directory, 'verification.mjs')
    writeFileSync(module, verification)
    shown = (await import(pathToFileURL(module).href)) as Verification
  })
  after(() => rmSync(directory, { recursive: true, force: true }))

  /**
   * One that has come: by its schema and no field beyond it, with every header, and signed by the way that /docs shows.
   */
  const check = (kind: string, request: Received | undefined, secret: string | null): void => {
    assert.ok(request)
    const callback = document.webhooks[kind]?.post
    assert.ok(callback)
    const { schema } = callback.requestBody.content['application/json']
    assert.equal(validate(schema, request.body, whole), null)
    assert.deepEqual(unknownFields(schema, request.body), [])
    for (const { name } of callback.parameters) assert.equal(typeof request.headers[name], 'string', name)
    assert.equal(request.headers['content-type'], 'application/json')
    assert.ok(shown.bodyIsSigned(request.body, apiSecret))
    for (const key of secret === null ? [apiSecret] : [apiSecret, secret])
      assert.ok(shown.headersAreSigned(request.headers, request.raw, key))
    assert.ok(!shown.bodyIsSigned({ ...request.body, token: 'another' }, apiSecret))
    assert.ok(!shown.headersAreSigned(request.headers, `${request.raw} `, apiSecret))
    assert.ok(!shown.headersAreSigned(request.headers, request.raw, 'another secret'))
  }

  const unknownFields = (schema: Json, body: Readonly<Record<string, unknown>>): string[] => {
    const { properties } = propertiesOf(resolved(schema))
    const inner = body['message_data'] as Readonly<Record<string, unknown>> | undefined
    const deeper =
      inner === undefined ? [] : Object.keys(inner).filter((name) => !(name in dataFields(properties['message_data'])))
    return [...Object.keys(body).filter((name) => !(name in properties)), ...deeper]
  }
  const dataFields = (schema: Json = {}): Json => propertiesOf(resolved(schema)).properties
  const resolved = (schema: Json): Json => {
    const name = typeof schema.$ref === 'string' ? (schema.$ref.split('/').at(-1) ?? '') : ''
    return name === '' ? schema : (document.components.schemas?.[name] as Json)
  }

  const first = (path: string): Promise<Received> => until('a callback', () => receiver.at(path)[0])

  for (const includeHeader of ['1', 'raw'] as const) {
    test(`message, with everything that may be asked for, headers ${includeHeader}`, async () => {
      const path = freshPath()
      rig.mail.bodies.set('rich@example.com', { '1': 'Hello.' })
      const webhook = await hook(path, { includeBody: true, includeHeader, receiveAllChanges: true })
      await arrive(rig.store, running.webhooks, account, [{ facts: rich, flags: ['\\Seen'] }])
      check('message', await first(path), running.webhooks.secret(webhook))
    })
  }

  test('message, of the least', async () => {
    const path = freshPath()
    await hook(path)
    const nobody = { from: [], sender: [], replyTo: [], to: [], cc: [], bcc: [], returnPath: [] }
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('bare', { addresses: nobody, subject: '' }) }])
    check('message', await first(path), null)
  })

  test('message, of a test', async () => {
    const path = freshPath()
    const webhook = await hook(path, { includeBody: true, includeHeader: 'raw', receiveAllChanges: true })
    await running.webhooks.test(webhook)
    const request = await first(path)
    assert.equal(request.body['test'], true)
    check('message', request, running.webhooks.secret(webhook))
  })

  test('status', async () => {
    const path = freshPath()
    const edited = await rig.store.accounts.edit(account.id, { statusCallbackUrl: receiver.url(path) })
    assert.ok(edited)
    const news = { status: 'DISABLED', message: 'wrong password', version: edited.statusVersion + 1 } as const
    const outbox = await running.webhooks.planStatus(edited, news)
    const step = {
      accountId: edited.id,
      epoch: edited.epoch,
      fromVersion: edited.statusVersion,
      status: news.status,
      statusMessage: news.message,
      resume: edited.resume,
      outbox,
    }
    assert.ok(await rig.store.accounts.transition(step))
    running.webhooks.stored(edited.id, outbox, [])
    check('status', await first(path), null)
  })

  test('failure', async () => {
    const [path, notice] = [freshPath(), freshPath()]
    receiver.script(path, [], { status: 410 })
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notice) })
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('refused') }])
    check('failure', await first(notice), running.webhooks.secret(webhook))
  })

  test('sync', async () => {
    const path = freshPath()
    const options = { ...account.options, callbackUrl: receiver.url(path) }
    const edited = await rig.store.accounts.edit(account.id, { options })
    assert.ok(edited)
    await running.webhooks.initialSyncDone(edited)
    check('sync', await first(path), null)
  })

  test('none of the kinds is left out', () => {
    assert.deepEqual(Object.keys(document.webhooks), ['message', 'status', 'failure', 'sync'])
    for (const { post } of Object.values(document.webhooks)) {
      const { schema } = post.requestBody.content['application/json']
      assert.ok(resolved(schema).examples)
    }
  })
})
