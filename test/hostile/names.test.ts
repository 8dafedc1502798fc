/**
 * Words that every JavaScript object answers to (`constructor`, `__proto__`, `toString`), from callers, mail, mail
 * servers and receivers: each is a word like any other, and finds nothing that nobody put there.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { createReceiver, type Receiver } from '../support/receiver.ts'
import type { Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'

const words = ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty', '__defineGetter__']
const email = 'ann@mail.example'

suite('names of Object.prototype', () => {
  const parts = new AsyncDisposableStack()
  let stage: Stage
  let server: ImapServer
  let receiver: Receiver
  let user: string
  let account: string
  before(async () => {
    stage = await openStage({ env: { MAILROOM_FOLDER_POLL: '300ms' } })
    parts.defer(() => stage.remove())
    server = await createImapServer({ users: { [email]: {} } })
    parts.defer(() => server.close())
    for (const word of words) server.createFolder(email, word, [word, `\\${word}`])
    server.append(email, 'INBOX', mail({ to: email, subject: 'old' }))
    receiver = await createReceiver(() => ({
      status: 200,
      headers: Object.fromEntries(words.map((word) => [word, word])),
    }))
    parts.defer(() => receiver.close())
    user = await createUser(stage.service, { ...server, password: 'secret' }, email)
    account = `/lite/users/${user}/email_accounts/0`
    await listed(stage.service, user, 'old')
  })
  after(() => parts.disposeAsync())

  const status = async (method: string, path: string, body?: Json): Promise<number> =>
    (await stage.service.api(method, path, body)).status

  test('as values of flags and enumerations they are refused, and the parameter is named', async () => {
    const webhook = await createWebhook(stage.service, user, receiver.url('/flags'))
    for (const word of words) {
      for (const name of ['active', 'include_body', 'include_header', 'receive_all_changes']) {
        const answer = await stage.service.api('POST', `/lite/users/${user}/webhooks/${webhook}`, { [name]: word })
        assert.equal(answer.status, 400, `${name}=${word}`)
        assert.match(String((answer.body as Json)['value']), new RegExp(`^${name}: `))
      }
      for (const name of ['include_headers', 'include_flags', 'include_body', 'sort_order', 'limit']) {
        const { status: code, body } = await stage.service.api('GET', `${account}/messages?${name}=${word}`)
        assert.equal(code, 400, `${name}=${word}`)
        assert.match(String((body as Json)['value']), new RegExp(`^${name}: `))
      }
    }
    assert.equal((await stage.service.ok('GET', `/lite/users/${user}/webhooks/${webhook}`))['active'], true)
    await stage.service.ok('DELETE', `/lite/users/${user}/webhooks/${webhook}`)
  })

  test('as names of parameters they say nothing, wherever they stand', async () => {
    const query = words.map((word) => `${word}=0&${word}[active]=0`).join('&')
    assert.equal(await status('GET', `/lite/users?${query}`), 200)
    const poison =
      '{"callback_url":"http://127.0.0.1:1/","__proto__":{"active":0},"constructor":{"prototype":{"active":0}}}'
    const made = await stage.service.ok('POST', `/lite/users/${user}/webhooks`, JSON.parse(poison) as Json)
    const shown = await stage.service.ok('GET', `/lite/users/${user}/webhooks/${String(made['webhook_id'])}`)
    assert.equal(shown['active'], true)
    await stage.service.ok('DELETE', `/lite/users/${user}/webhooks/${String(made['webhook_id'])}`)
  })

  test('as ids, labels and paths they are unknown', async () => {
    for (const word of words) {
      const paths = [`/${word}`, `/lite/${word}`, `/lite/users/${word}`, `/lite/users/${user}/email_accounts/${word}`]
      paths.push(`/lite/users/${user}/webhooks/${word}`, `${account}/messages/${word}`, `${account}/folders/no/${word}`)
      paths.push(
        `/lite/oauth_providers/${word}`,
        `/lite/connect_tokens/${word}`,
        `/lite/users/${user}/contacts/${word}`,
      )
      for (const path of paths) assert.equal(await status('GET', path), 404, path)
    }
  })

  test('as names of folders, with attributes of that name, they are ordinary folders', async () => {
    for (const word of words) {
      const folder = await stage.service.ok('GET', `${account}/folders/${word}`)
      assert.equal(folder['name'], word)
      assert.doesNotMatch(JSON.stringify(folder), /function|native|\[object/)
    }
    const all = await stage.service.list(`${account}/folders`)
    assert.equal(all.find(({ name }) => name === 'Sent')?.['symbolic_name'], '\\Sent')
  })

  test('in mail: headers, addresses, parameters, charset, zone and flags are told as they are written', async () => {
    await createWebhook(stage.service, user, receiver.url('/mail'), { include_body: 1, include_header: 1 })
    const boundary = 'constructor'
    const raw = [
      ...words.map((word) => `${word}: value of ${word}`),
      ...words.map((word) => `X-${word}: x`),
      'From: constructor <__proto__@constructor>',
      `To: ${words.map((word) => `${word} <${word}@mail.example>`).join(', ')}, <__proto__>`,
      'Subject: poisoned',
      'Date: Mon, 21 Nov 2022 07:08:00 constructor',
      'Message-ID: <constructor>',
      'List-constructor: <__proto__>',
      `Content-Type: multipart/mixed; boundary="${boundary}"; ${words.map((word) => `${word}=${word}`).join('; ')}`,
      '',
      `--${boundary}`,
      'Content-Type: text/plain; charset=constructor',
      'Content-Transfer-Encoding: constructor',
      '',
      'plain text',
      `--${boundary}`,
      'Content-Type: constructor/__proto__; name=__proto__',
      'Content-Disposition: constructor; filename=__proto__',
      '',
      'file',
      `--${boundary}--`,
      '',
    ].join('\r\n')
    server.append(email, 'INBOX', raw, words)
    await listed(stage.service, user, 'poisoned')
    const [message] = await stage.service.list(
      `${account}/messages?subject=poisoned&include_headers=1&include_body=1&include_flags=1`,
    )
    assert(message)
    assert.equal(message['sent_at'], Date.UTC(2022, 10, 21, 7, 8) / 1000)
    const headers = message['headers'] as Record<string, string[]>
    for (const word of words)
      assert.deepEqual(Object.getOwnPropertyDescriptor(headers, word.toLowerCase())?.value, [`value of ${word}`])
    assert.equal((message['bodies'] as Json[])[0]?.['content'], 'plain text')
    const people = message['person_info'] as Json
    for (const word of words) assert(Object.hasOwn(people, `${word}@mail.example`), JSON.stringify(people))
    assert.deepEqual((message['flags'] as Json)['raw'], words.toSorted())
    const [callback] = await until('the callback', () =>
      receiver.at('/mail').length > 0 ? receiver.at('/mail') : null,
    )
    assert.match(callback?.raw ?? '', /"value of __proto__"/)
    assert.match(callback?.raw ?? '', /plain text/)
    assert.doesNotMatch(JSON.stringify(message) + (callback?.raw ?? ''), /native code|\[object/)
  })

  test('in the answer of a receiver they are headers that nobody reads: the callback is delivered, once', async () => {
    const [first] = receiver.at('/mail')
    server.append(email, 'INBOX', mail({ to: email, subject: 'next' }))
    await until('the next callback', () => receiver.at('/mail').length > 1)
    assert.equal(receiver.at('/mail').filter(({ id }) => id === first?.id).length, 1)
  })

  test('as response codes and untagged answers of a mail server they are no reason of anything', async () => {
    for (const word of words) {
      const other = `${word.replaceAll('_', '')}@mail.example`
      server.hooks = {
        command: ({ name }) =>
          name === 'AUTHENTICATE'
            ? { lines: [`* ${word} ${word}`, `* OK [${word} ${word}] ${word}`], tagged: `NO [${word}] ${word}` }
            : undefined,
      }
      const body = { email: other, server: server.host, port: server.port, use_ssl: 0, username: other, password: 'x' }
      const answer = await stage.service.ok('POST', '/lite/users', body)
      assert.equal(answer['feedback_code'], 'invalid_credentials', JSON.stringify(answer))
      assert.match(String(answer['feedback']), new RegExp(`rejected the login: .*${word}`))
    }
    server.hooks = {}
    assert.equal((await stage.service.ok('GET', account))['status'], 'OK')
  })
})
