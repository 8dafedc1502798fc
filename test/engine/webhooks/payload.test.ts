/**
 * What a callback says: both dialects, bodies and headers, the size cap, and what happens when the mail server cannot
 * give them.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { AppError } from '../../../engine/errors.ts'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import type { WebhookInput } from '../../../engine/webhooks/admin.ts'
import { attachmentRecord } from '../../store/contract/records.ts'
import { until } from '../../support/until.ts'
import { arrive, developerId, facts } from './fixture.ts'
import { account, freshPath, hook, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

const html = {
  section: '1.2',
  type: 'text/html',
  charset: 'utf-8',
  encoding: '8bit',
  size: 40,
  flowed: false,
  delSp: false,
}
const rich = facts('rich', {
  hostedMessageId: '111',
  hostedThreadId: '222',
  references: ['root@example.com'],
  attachments: [{ ...attachmentRecord(0, 'Offer-2024-01-31_v2.pdf'), size: 99 }],
  bodies: [{ ...html, section: '1.1', type: 'text/plain' }, html],
})

interface Sent {
  readonly emailMessageId: string
  readonly data: Record<string, unknown>
  readonly body: Readonly<Record<string, unknown>>
  readonly row: OutboxRecord
  readonly raw: string
}

async function deliver(
  input: WebhookInput,
  version: 'lite' | '2.0',
  texts: Readonly<Record<string, string>> | null,
  of = rich,
): Promise<Sent> {
  const path = freshPath()
  const emailMessageId = `${path.slice(1)}@x`
  await running.webhooks.create(
    { developerId, userId: user.id, version },
    { callbackUrl: receiver.url(path), ...input },
  )
  if (texts !== null) rig.mail.bodies.set(emailMessageId, texts)
  const { rows } = await arrive(rig.store, null, account, [{ facts: of }]).then(() =>
    arrive(rig.store, running.webhooks, account, [
      { facts: { ...of, emailMessageId }, flags: ['\\Flagged', '\\Seen'] },
    ]),
  )
  const [request] = await until('a callback', () => (receiver.at(path).length > 0 ? receiver.at(path) : null))
  assert.ok(request && rows[0])
  return {
    emailMessageId,
    data: request.body['message_data'] as Record<string, unknown>,
    body: request.body,
    row: rows[0],
    raw: request.raw,
  }
}

suite('payload', () => {
  test('lite: every field', async () => {
    const { emailMessageId, data, body } = await deliver({}, 'lite', null)
    assert.deepEqual(Object.keys(body).sort(), [
      'account_id',
      'message_data',
      'sequence',
      'signature',
      'timestamp',
      'token',
      'user_id',
      'webhook_id',
    ])
    const url = `https://mail.example/lite/users/${user.id}/email_accounts/me%3A%3Aexample`
    const place = { label: 'me::example', folder: 'INBOX', uid: 2, resource_url: url }
    const { message_id, person_info, ...rest } = data
    assert.match(String(message_id), /^[0-9a-f]{24}$/)
    assert.deepEqual(Object.keys(person_info as object), ['ada@mail.example.org', 'me@example.com'])
    assert.deepEqual(rest, {
      email_message_id: `<${emailMessageId}>`,
      mailhost_message_id: '111',
      gmail_message_id: '111',
      mailhost_thread_id: '222',
      gmail_thread_id: '222',
      addresses: { from: { email: 'ada@mail.example.org', name: 'Ada' }, to: [{ email: 'me@example.com' }] },
      references: ['<root@example.com>'],
      subject: 'Subject of rich',
      folders: ['INBOX'],
      date: 1_700_000_000,
      date_received: 1_700_000_001,
      bodies: [
        { type: 'text/plain', charset: 'utf-8', body_section: '1.1' },
        { type: 'text/html', charset: 'utf-8', body_section: '1.2' },
      ],
      email_accounts: [place],
      sources: [place],
      flags: { flagged: true, answered: false, draft: false, seen: true },
      files: [
        {
          size: 99,
          type: 'application/pdf',
          file_name: 'Offer-2024-01-31_v2.pdf',
          file_name_structure: (rest['files'] as { file_name_structure: unknown }[])[0]?.file_name_structure,
          main_file_name: (rest['files'] as { main_file_name: unknown }[])[0]?.main_file_name,
          body_section: '2',
          file_id: `${String(message_id)}-0`,
          attachment_id: 0,
          is_embedded: false,
          content_disposition: 'attachment',
          content_id: null,
        },
      ],
      resource_url: `${url}/messages/${String(message_id)}`,
    })
    const structure = (rest['files'] as { file_name_structure: [string, string][] }[])[0]?.file_name_structure ?? []
    assert.equal(structure.map(([text]) => text).join(''), 'Offer-2024-01-31_v2.pdf')
    assert.ok(structure.some(([text, kind]) => text === '2024-01-31' && kind === 'date'))
  })

  test('2.0: its own names', async () => {
    const { data } = await deliver({ receiveAllChanges: true }, '2.0', null)
    for (const key of [
      'email_message_id',
      'addresses',
      'person_info',
      'message_id',
      'references',
      'files',
      'date',
      'date_indexed',
      'subject',
      'folders',
      'sources',
    ]) {
      assert.ok(key in data, key)
    }
    assert.equal(data['message_type'], 'created')
    assert.equal('bodies' in data, false)
    const [source] = data['sources'] as { resource_url: string }[]
    assert.equal(source?.resource_url, `https://mail.example/2.0/accounts/${user.id}/sources/me%3A%3Aexample`)
  })

  test('include_body with body_type, include_header parsed and raw', async () => {
    const texts = { '1.1': 'Grüße', '1.2': '<p>Grüße</p>' }
    const one = await deliver({ includeBody: true, bodyType: 'text/plain', includeHeader: '1' }, 'lite', texts)
    assert.deepEqual(one.data['bodies'], [
      { type: 'text/plain', charset: 'utf-8', body_section: '1.1', content: 'Grüße' },
    ])
    assert.deepEqual(one.data['headers'], {
      Subject: ['Hello'],
      'X-Note': ['one', 'two'],
      'Message-ID': ['<1@x>'],
      'MIME-Version': ['1.0'],
      'DKIM-Signature': ['v=1'],
    })
    const two = await deliver({ includeBody: true, includeHeader: 'raw' }, '2.0', texts)
    assert.equal((two.data['bodies'] as unknown[]).length, 2)
    assert.match(String(two.data['headers']), /^Subject: Hello\r\n/)
    assert.equal(two.data['truncated'], undefined)
  })

  test('what is too large is cut, and headers and long lists give way', async () => {
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_PAYLOAD_MAX: '4096' })
    const text = '<"é😀>'.repeat(500)
    const huge = { ...rich, bodies: [{ ...html, section: '1.1', size: Buffer.byteLength(text) }] }
    const grown = await deliver({ includeBody: true }, '2.0', { '1.1': text }, huge)
    assert.equal(grown.data['truncated'], true)
    const [body] = grown.data['bodies'] as Record<string, unknown>[]
    const { content, ...rest } = body ?? {}
    assert.deepEqual(rest, {
      type: 'text/html',
      charset: 'utf-8',
      body_section: '1.1',
      truncated: true,
      size: Buffer.byteLength(text),
      link: `${String(grown.data['resource_url'])}/body?type=text%2Fhtml`,
    })
    assert.ok(text.startsWith(String(content)) && String(content).length > 500)
    assert.ok(Buffer.byteLength(grown.raw) <= 4096)
    assert.match(String(grown.data['resource_url']), /\/messages\/[0-9a-f]{24}$/)
    const size = 17 * 1_048_576
    const vast = await deliver({ includeBody: true }, 'lite', { '1.2': text }, { ...rich, bodies: [{ ...html, size }] })
    const [cut] = vast.data['bodies'] as Record<string, unknown>[]
    assert.deepEqual([cut?.['size'], cut?.['link']], [size, `${String(vast.data['resource_url'])}/raw`])
    rig.mail.header = `Subject: Hello\r\nX-Long: ${'x'.repeat(4000)}\r\n\r\n`
    const headed = await deliver({ includeBody: true, includeHeader: '1' }, 'lite', { '1.1': 'short', '1.2': 'short' })
    assert.deepEqual([headed.data['truncated'], headed.data['headers']], [true, undefined])
    assert.deepEqual(
      (headed.data['bodies'] as { content: string }[]).map((one) => one.content),
      ['short', 'short'],
      'whole, though the headers are large',
    )
    const crowd = Array.from({ length: 1000 }, (_, index) => ({
      name: `Person ${index}`,
      email: `p${index}@example.com`,
    }))
    const many = await deliver({}, 'lite', null, { ...rich, addresses: { ...rich.addresses, to: crowd } })
    assert.equal(many.data['truncated'], true)
  })

  test('bodies that cannot be read now are waited for, without blaming the receiver', async () => {
    rig.mail.broken = new AppError('account_unavailable', 'connecting')
    const path = freshPath()
    const webhook = await hook(path, { includeBody: true })
    const { rows, messages } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('wait') }])
    const [row, message] = [rows[0], messages[0]]
    assert.ok(row && message)
    const waiting = await until('postponed', async () => {
      const now = await rig.store.outbox.get(row.id)
      return now !== null && now.reason !== null ? now : null
    })
    assert.equal(waiting.state, 'pending')
    assert.equal(waiting.attemptCount, 0)
    assert.match(waiting.reason ?? '', /connecting/)
    assert.equal((await rig.store.webhooks.get(webhook.id))?.health.consecutiveFailures, 0)
    rig.mail.broken = null
    rig.mail.bodies.set(message.id, { '1': 'here it is' })
    const [request] = await until('a callback', () => (receiver.at(path).length > 0 ? receiver.at(path) : null), {
      withinMs: 9_000,
    })
    assert.deepEqual((request?.body['message_data'] as { bodies: unknown[] }).bodies, [
      { type: 'text/plain', charset: 'utf-8', body_section: '1', content: 'here it is' },
    ])
  })

  test('texts of a burst are read together, and each callback has its own', async () => {
    const path = freshPath()
    await hook(path, { includeBody: true })
    const names = Array.from({ length: 24 }, (_, index) => `burst${index}`)
    const bodies = [{ section: '1', type: 'text/plain', charset: 'utf-8', encoding: '7bit', size: 12 }]
    const part = bodies.map((one) => ({ ...one, flowed: false, delSp: false }))
    for (const name of names) rig.mail.bodies.set(`${name}@example.com`, { '1': `text of ${name}` })
    // Longer than the server says: it is read anew, alone.
    rig.mail.bodies.set('burst7@example.com', { '1': 'x'.repeat(40_000) })
    const calls = rig.mail.calls
    await arrive(
      rig.store,
      running.webhooks,
      account,
      names.map((name) => ({ facts: facts(name, { bodies: part }) })),
    )
    await until('callbacks', () => receiver.at(path).length === names.length)
    const told = receiver.at(path).map(({ body }) => body['message_data'] as { bodies: [{ content: string }] })
    assert.deepEqual(
      told.map(({ bodies: [{ content }] }) => content.slice(0, 20)),
      names.map((name) => (name === 'burst7' ? 'x'.repeat(20) : `text of ${name}`)),
    )
    assert.equal(told[7]?.bodies[0].content.length, 40_000)
    assert.ok(rig.mail.calls - calls <= 6, `${rig.mail.calls - calls} commands`)
  })

  test('a mail server that gives texts one by one, but not together: each callback has its own', async () => {
    const path = freshPath()
    await hook(path, { includeBody: true })
    const names = ['single1', 'single2', 'single3']
    const part = { section: '1', type: 'text/plain', charset: 'utf-8', encoding: '7bit', size: 12 }
    for (const name of names) rig.mail.bodies.set(`${name}@example.com`, { '1': `text of ${name}` })
    Object.assign(rig.mail, { fetchMany: () => Promise.reject(new AppError('network', 'connection reset')) })
    await arrive(
      rig.store,
      running.webhooks,
      account,
      names.map((name) => ({ facts: facts(name, { bodies: [{ ...part, flowed: false, delSp: false }] }) })),
    )
    await until('callbacks', () => receiver.at(path).length === names.length)
    const told = receiver.at(path).map(({ body }) => body['message_data'] as { bodies: [{ content: string }] })
    assert.deepEqual(
      told.map(({ bodies: [{ content }] }) => content),
      names.map((name) => `text of ${name}`),
    )
  })

  test('a message whose body is gone is told without it', async () => {
    const { data } = await deliver({ includeBody: true }, 'lite', null, facts('gone'))
    assert.equal(data['truncated'], true)
  })

  test('body_search decides at delivery: skipped with the filter’s word, or sent', async () => {
    const path = freshPath()
    await hook(path, { filters: { bodySearch: 'needle' } })
    rig.mail.bodies.set('hay@example.com', { '1': 'only hay' })
    rig.mail.bodies.set('needle@example.com', { '1': 'a Needle in it' })
    const planned = [{ facts: facts('hay') }, { facts: facts('needle') }]
    const { rows } = await arrive(rig.store, running.webhooks, account, planned)
    assert.equal(rows.length, 2)
    await until('a callback', () => receiver.at(path).length === 1)
    const hay = await until('skipped', async () => {
      const now = await rig.store.outbox.get(rows[0]?.id ?? '')
      return now?.state === 'skipped' ? now : null
    })
    assert.match(hay.reason ?? '', /^body_search: /)
    assert.equal((receiver.at(path)[0]?.body['message_data'] as { subject: string }).subject, 'Subject of needle')
  })
})
