/**
 * What the mail server does wrong, and what the caller is told: never an empty success for something that could not be
 * read.
 */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, afterEach, before, suite, test } from 'node:test'
import { inSet } from '../../../engine/accounts/session/uids.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import type { HookCall } from '../../support/imap-server/index.ts'
import { basic, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const isRead = ({ name, text }: HookCall): boolean =>
  name === 'UID FETCH' && text.includes('BODY.PEEK') && !text.includes('HEADER.FIELDS')

suite('a mail server that does not answer', () => {
  test('is 504 in time, with Retry-After; what the index has is answered all the while', async () => {
    const rig = await startLiteRig({ env: { MAILROOM_COMMAND_TIMEOUT: '1s' } })
    try {
      const mailbox = await rig.mailbox('silent', { subjects: ['one', 'two', 'three'] })
      const message = `${mailbox.path}/messages/${await mailbox.indexed('one')}`
      const contents = [
        `${mailbox.path}/messages?include_body=1`,
        `${mailbox.path}/messages?include_headers=1`,
        `${message}?include_body=1`,
        `${message}/body`,
        `${message}/headers`,
        `${message}/raw`,
      ]
      rig.imap.hooks = {
        command: (call) => (isRead(call) || call.name === 'UID SEARCH' || call.name === 'UID STORE' ? {} : undefined),
      }
      for (const path of [...contents, `${mailbox.path}/folders/INBOX/messages?body_search_string=x`]) {
        const answer = await rig.call('GET', path)
        assert.equal(answer.status, 504, `${path}: ${answer.text}`)
        assert.match(String(answer.headers['retry-after']), /^\d+$/)
        assert.equal(answer.json['type'], 'error')
      }
      const write = await rig.call('POST', `${message}/read`)
      assert.equal(write.status, 504, write.text)
      const list = await rig.list(`${mailbox.path}/messages?include_flags=1`)
      assert.equal(list.length, 3)
      assert(list.every((message) => (message['flags'] as Json)['read'] === false))
      rig.imap.hooks = {}
      await until('the connection is back', async () => (await rig.call('GET', `${message}/body`)).status === 200)
    } finally {
      await rig.close()
    }
  })
})

suite('a mail server that fails', () => {
  let rig: LiteRig
  let mailbox: TestMailbox
  const ids: string[] = []

  before(async () => {
    rig = await startLiteRig({
      env: {
        MAILROOM_STRIKES: '1',
        MAILROOM_BACKOFF_AUTH: '1h',
        MAILROOM_LINK_TTL: '100ms',
      },
    })
    mailbox = await rig.mailbox('fails', { subjects: ['one', 'two', 'three'] })
    for (const subject of ['one', 'two', 'three']) ids.push(await mailbox.indexed(subject))
    const big = mail({ to: mailbox.email, subject: 'big', text: 'x'.repeat(70).concat('\n').repeat(40_000) })
    ids.push(await mailbox.deliverRaw(big, 'big'))
    await mailbox.deliverRaw(withFile, 'with file')
  })
  after(() => rig.close())
  afterEach(() => {
    rig.imap.hooks = {}
  })

  const withFile = [
    'From: a@sender.example',
    'Subject: with file',
    'MIME-Version: 1.0',
    'Content-Type: application/pdf; name="x.pdf"',
    'Content-Disposition: attachment; filename="x.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
    'aGVsbG8=',
    '',
  ].join('\r\n')
  const asksFor = ({ text }: HookCall, uid: number): boolean => inSet(/UID FETCH (\S+)/.exec(text)?.[1] ?? '0')(uid)

  test('one message that the server refuses is named on the list; alone it is 503 with the reason', async () => {
    rig.imap.hooks = {
      command: (call) => (isRead(call) && asksFor(call, 2) ? { tagged: 'NO [SERVERBUG] cannot read it' } : undefined),
    }
    const list = await rig.list(`${mailbox.path}/folders/INBOX/messages?include_body=1&sort_order=asc`)
    const told = new Map(list.map((message) => [message['message_id'], message]))
    assert.match(String(told.get(ids[1])?.['body_error']), /cannot read it/)
    assert((told.get(ids[1])?.['bodies'] as Json[]).every((body) => !('content' in body)))
    for (const id of [ids[0], ids[2]]) {
      assert(!('body_error' in (told.get(id) ?? {})))
      assert.equal((told.get(id)?.['bodies'] as Json[])[0]?.['content'], 'Hello.\n')
    }
    for (const path of [
      `${mailbox.path}/messages/${ids[1]}/body`,
      `${mailbox.path}/messages/${ids[1]}?include_body=1`,
    ]) {
      const answer = await rig.call('GET', path)
      assert.equal(answer.status, 503)
      assert.match(String(answer.json['value']), /cannot read it/)
    }
  })

  test('one message that the server has no more is named on the list, and 404 alone', async () => {
    rig.imap.hooks = {
      send: (response, call) =>
        call !== null && isRead(call) && response.toString('latin1').startsWith('* 3 FETCH (') ? null : response,
    }
    const list = await rig.list(`${mailbox.path}/messages?include_body=1&include_headers=raw`)
    const missing = list.find((message) => message['message_id'] === ids[2])
    assert.match(String(missing?.['body_error']), /no longer/)
    assert.equal(list.filter((message) => 'body_error' in message).length, 1)
    assert.equal((await rig.call('GET', `${mailbox.path}/messages/${ids[2]}/body`)).status, 404)
  })

  test('bodies and headers of a page are asked for together: those that are small, one command for each structure', async () => {
    const asked: string[] = []
    rig.imap.hooks = {
      command: (call) => {
        if (isRead(call)) asked.push(call.text)
        return undefined
      },
    }
    const list = await rig.list(`${mailbox.path}/messages?include_body=1&include_headers=raw&subject=e`)
    const single = async (id: unknown) =>
      rig.ok('GET', `${mailbox.path}/messages/${String(id)}?include_body=1&include_headers=raw`)
    assert.deepEqual(list.map((message) => message['subject']).sort(), ['one', 'three', 'with file'])
    assert.equal(asked.length, 2, asked.join('\n'))
    for (const message of list) assert.deepEqual(message, await single(message['message_id']))
  })

  test('a search that is refused in one folder fails whole', async () => {
    rig.imap.append(mailbox.email, 'Archive', mail({ to: mailbox.email, subject: 'archived' }))
    await mailbox.indexed('archived')
    // The message is in the index a moment before its folder says so.
    const counted = async () => (await rig.call('GET', `${mailbox.path}/folders/Archive`)).json['nb_messages'] === 1
    await until('the folder has it', counted)
    rig.imap.hooks = {
      command: (call) =>
        call.name === 'UID SEARCH' && call.folder?.name === 'Archive' ? { tagged: 'NO no search here' } : undefined,
    }
    assert.equal((await rig.call('GET', `${mailbox.path}/messages?body_search_string=hello`)).status, 503)
    assert.equal((await rig.list(`${mailbox.path}/folders/INBOX/messages?body_search_string=hello`)).length, 3)
  })

  test('a stream that breaks off is not taken for the whole: the connection ends', async () => {
    let reads = 0
    rig.imap.hooks = { command: (call) => (isRead(call) && ++reads > 2 ? { close: 'reset' } : undefined) }
    const { promise, resolve } = Promise.withResolvers<{ status: number; bytes: number; complete: boolean }>()
    const path = `${mailbox.path}/messages/${ids[3]}/raw`
    request(
      { host: '127.0.0.1', port: rig.port, path, headers: { authorization: basic }, agent: false },
      (response) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => (bytes += chunk.length))
        response.on('error', () => undefined)
        response.on('close', () => resolve({ status: response.statusCode ?? 0, bytes, complete: response.complete }))
      },
    ).end()
    const answer = await promise
    assert.equal(answer.status, 200)
    assert.equal(answer.complete, false)
    assert(answer.bytes < 2_840_000)
  })

  test('a link does not show the words of the mail server, which the call with a key does', async () => {
    const id = await mailbox.indexed('with file')
    const file = `${mailbox.path}/messages/${id}/attachments/0`
    const { link } = await rig.ok('GET', `${file}?as_link=1`)
    rig.imap.hooks = { command: (call) => (isRead(call) ? { tagged: 'NO mailbox of ann@inner.example' } : undefined) }
    const shown = await rig.call('GET', String(link).slice(rig.url.length), undefined, { headers: {} })
    const own = await rig.call('GET', file)
    rig.imap.hooks = {}
    assert.match(own.text, /ann@inner\.example/)
    assert.equal(shown.status, own.status)
    assert.match(String(shown.json['value']), /^the file cannot be read from the mail server now/)
    assert(!shown.text.includes('inner.example'))
  })

  test('an expired link is 403 and says so', async () => {
    const id = await mailbox.indexed('with file')
    const { link } = await rig.ok('GET', `${mailbox.path}/messages/${id}/attachments/0?as_link=1`)
    const path = String(link).slice(rig.url.length)
    const expired = await until('the link expires', async () => {
      const answer = await rig.call('GET', path, undefined, { headers: {} })
      if (answer.status === 200) assert.equal(answer.text, 'hello')
      return answer.status === 200 ? null : answer
    })
    assert.equal(expired.status, 403)
    assert.match(String(expired.json['value']), /expired/)
  })

  test('a DISABLED account: 503 with the reason for what the server has, 200 for what the index has', async () => {
    rig.imap.hooks = {
      command: ({ name }) =>
        /LOGIN|AUTHENTICATE/.test(name) ? { tagged: 'NO [AUTHENTICATIONFAILED] wrong password' } : undefined,
    }
    rig.imap.dropConnections()
    await until('DISABLED', async () => (await rig.ok('GET', mailbox.path))['status'] === 'DISABLED')
    const calls: [string, string, Json?][] = [
      ['GET', `${mailbox.path}/messages?include_body=1`],
      ['GET', `${mailbox.path}/messages?include_headers=1`],
      ['GET', `${mailbox.path}/messages/${ids[0]}?include_body=1`],
      ['GET', `${mailbox.path}/messages/${ids[0]}/body`],
      ['GET', `${mailbox.path}/messages/${ids[0]}/headers`],
      ['GET', `${mailbox.path}/messages/${ids[0]}/raw`],
      ['GET', `${mailbox.path}/folders/INBOX/messages?body_search_string=x`],
      ['POST', `${mailbox.path}/messages/${ids[0]}/flags`, { seen: 1 }],
      ['POST', `${mailbox.path}/messages/${ids[0]}/read`],
      ['PUT', `${mailbox.path}/folders/INBOX/messages/${ids[0]}`, { new_folder_id: 'Trash' }],
    ]
    for (const [method, path, body] of calls) {
      const answer = await rig.call(method, path, body)
      assert.equal(answer.status, 503, `${method} ${path}: ${answer.text}`)
      assert.match(String(answer.json['value']), /DISABLED.*(wrong password|password|login)/i)
      assert.match(String(answer.headers['retry-after']), /^\d+$/)
    }
    const list = await rig.call('GET', `${mailbox.path}/messages?include_flags=1`)
    assert.equal(list.status, 200)
    assert.match(String(list.headers['x-service-email-account-status']), / DISABLED$/)
  })
})
