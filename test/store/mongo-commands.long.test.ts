/** What a read of the API asks of MongoDB: at most two commands, mostly one, once the account has been asked before. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import { basic } from '../api/core/raw-call.ts'
import { needs } from '../support/require.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { commandName, createProxy, type Proxy } from './mongo-proxy.ts'

/** What is kept in memory by the writes that pass the process: users, accounts, folders, and their totals. */
const none: readonly string[] = []
const messages = ['find messages']

suite('commands of a read', needs('mongodb'), () => {
  let uri = ''
  let proxy: Proxy
  let rig: LiteRig
  let box: TestMailbox
  let ids: string[] = []
  let webhookId = ''
  before(async () => {
    uri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_commands_${process.pid}`)
    proxy = await createProxy(uri)
    rig = await startLiteRig({ env: { MONGODB_URI: proxy.uri, MAILROOM_FOLDER_POLL: '1h' } })
    const subjects = ['one', 'two', 'three', 'four']
    box = await rig.mailbox('reader', { subjects })
    ids = await Promise.all(subjects.map((subject) => box.indexed(subject)))
    const made = await rig.ok('POST', '/lite/webhooks', { callback_url: 'https://app.example/heard' })
    webhookId = String(made['webhook_id'])
  })
  after(async () => {
    await rig.close()
    await proxy.close()
    await dropDatabase(uri)
  })

  /** Commands of this call, not those of the process beside it: the call log, in batches, and looks at other nodes. */
  async function commandsOf(path: string, status = 200): Promise<string[]> {
    proxy.seen.length = 0
    const answer = await rig.call('GET', path, undefined, { headers: { authorization: basic } })
    assert.equal(answer.status, status, answer.text)
    const shown = proxy.seen.map((command) => {
      const name = commandName(command)
      return `${name} ${String(command[name === 'getMore' ? 'collection' : name])}`
    })
    return shown.filter((command) => command !== 'insert calls' && !/ (?:nodes|slots|news)$/.test(command))
  }

  /** `paths`: the same call, each with an answer of its own, so that no kept answer serves it. The first warms up. */
  async function ask(paths: readonly string[], expected: readonly string[], status?: number): Promise<void> {
    for (const [at, path] of paths.entries()) {
      const asked = await commandsOf(path, status)
      if (at > 0) assert.deepEqual(asked, expected, path)
    }
  }

  const limits = (path: string, from = 1): string[] => [0, 1, 2].map((more) => `${path}?limit=${from + more}`)
  const thrice = (path: string): string[] => [path, path, path]
  const of = (end = ''): string[] => ids.map((id) => `${box.path}/messages/${id}${end}`)
  const unknown = (): string[] => [1, 2, 3].map((digit) => `${box.path}/messages/${String(digit).repeat(24)}`)

  test('lists of messages, and one message', async () => {
    await ask(limits(`${box.path}/messages`), messages)
    await ask(limits(`/lite/users/${box.userId}/email_accounts/0/messages`, 4), messages)
    await ask(limits(`${box.path}/folders/INBOX/messages`), messages)
    await ask(limits(`/2.0/accounts/${box.userId}/messages`), messages)
    await ask(of(), messages)
    await ask(of('/flags'), messages)
    await ask(of('?include_flags=1'), messages)
    const folder = ids.map((id) => `${box.path}/folders/INBOX/messages/${id}`)
    await ask(folder, messages)
    await ask(thrice(`${box.path}/messages/${encodeURIComponent('<one@sender.example>')}/flags`), messages)
  })

  test('a message that is not there, and a user and an account', async () => {
    await ask(unknown(), [...messages, 'aggregate messages'], 404)
    await ask([`${box.path}/messages/a@b`, `${box.path}/messages/c@d`], messages, 404)
    await ask(thrice(`/lite/users/${box.userId}/email_accounts/nobody`), none, 404)
    await ask(thrice(`/lite/users/${'0'.repeat(24)}`), ['find users'], 404)
  })

  test('an answer is kept from the second time on that it is asked for', async () => {
    const asked: (readonly string[])[] = []
    for (const path of thrice(`${box.path}/messages?sort_order=asc`)) asked.push(await commandsOf(path))
    assert.deepEqual(asked.slice(1), [messages, none])
  })

  test('folders, user and account ask nothing', async () => {
    await ask(thrice(`${box.path}/folders`), none)
    await ask(thrice(`${box.path}/folders/INBOX`), none)
    await ask(thrice(`/lite/users/${box.userId}`), none)
    await ask(thrice(`/2.0/accounts/${box.userId}`), none)
    await ask(thrice(`/lite/users/${box.userId}/email_accounts`), none)
    await ask(thrice(box.path), none)
  })

  test('contacts and webhooks, and lists of users', async () => {
    await ask(limits(`/lite/users/${box.userId}/contacts`), ['find contacts'])
    await ask(thrice(`/lite/users/${box.userId}/webhooks`), ['find webhooks'])
    await ask(thrice('/lite/webhooks'), ['find webhooks'])
    await ask(limits('/lite/users'), ['find users', 'find accounts'])
  })

  test('files, changes, deliveries, connect tokens', async () => {
    const of = ids.map((id) => `/2.0/accounts/${box.userId}/messages/${id}/files`)
    await ask(limits(`/2.0/accounts/${box.userId}/files`), messages)
    await ask(of, messages)
    await ask(limits(`/lite/users/${box.userId}/changes`), ['find changes'])
    await ask(limits(`/lite/webhooks/${webhookId}/deliveries`), ['find webhooks', 'find outbox'])
    await ask(thrice('/lite/connect_tokens'), ['find tokens'])
    await ask(thrice(`/lite/users/${box.userId}/connect_tokens`), ['find tokens'])
  })

  test('threads, however many: twice for mail that answers nothing', async () => {
    const v2 = `/2.0/accounts/${box.userId}`
    const twice = [...messages, ...messages]
    await ask(limits(`${v2}/threads`), twice)
    await ask(
      ids.map((id) => `${v2}/messages/${id}/thread`),
      twice,
    )
    await ask(
      limits(`${v2}/messages`, 2).map((path) => `${path}&include_thread_size=1`),
      twice,
    )
    const [first = ''] = await rig.list(`${v2}/threads`).then((urls) => urls as unknown as string[])
    await ask(thrice(first.slice(rig.url.length)), twice)
  })
})
