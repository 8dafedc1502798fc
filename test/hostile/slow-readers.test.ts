/**
 * A developer whose clients ask for large bodies and do not read them: they wait for each other until their connections
 * time out (twice MAILROOM_REQUEST_TIMEOUT), and no other developer waits for them.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { apiKey, apiSecret, type Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, listed, userBody } from '../support/users.ts'
import { mostResidentMib } from './bystanders.ts'
import { addressOf, destroyAll, hold, type Held } from './sockets.ts'
import { basicOf, say } from './stranger.ts'

const mib = 1_048_576
const mallory = { key: 'mallory', secret: 'mallory-secret-0123456789' }
const email = { ann: 'ann@mail.example', mallory: 'mallory@mail.example' }

suite('answers that nobody reads', () => {
  const parts = new AsyncDisposableStack()
  let stage: Stage
  let server: ImapServer
  /** Paths of messages by their subjects. */
  const paths = new Map<string, string>()

  const asMallory = async (method: string, path: string, body?: Json): Promise<Json> => {
    const headers = { authorization: basicOf(mallory.key, mallory.secret), 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    return JSON.parse((await say(stage.service.url + path, { method, headers, ...sent })).body) as Json
  }
  const learn = async (list: (path: string) => Promise<Json[]>, user: string): Promise<void> => {
    const account = `/lite/users/${user}/email_accounts/0`
    for (const message of await list(`${account}/folders/INBOX/messages`))
      paths.set(String(message['subject']), `${account}/messages/${String(message['message_id'])}`)
  }

  before(async () => {
    server = await createImapServer({ users: { [email.ann]: {}, [email.mallory]: {} } })
    parts.defer(() => server.close())
    server.append(email.ann, 'INBOX', mail({ to: email.ann, subject: 'middling', text: 'y'.repeat(3 * mib) }))
    server.append(email.ann, 'INBOX', mail({ to: email.ann, subject: 'small', text: 'Hello.' }))
    server.append(email.mallory, 'INBOX', mail({ to: email.mallory, subject: 'huge', text: 'x'.repeat(15 * mib) }))
    stage = await openStage({ env: { MAILROOM_REQUEST_TIMEOUT: '5s' } })
    parts.defer(() => stage.remove())
    const { service } = stage
    const ann = await createUser(service, { ...server, password: 'secret' }, email.ann)
    await listed(service, ann, 'small')
    await learn((path) => service.list(path), ann)
    // Another key beside the first is another developer.
    await service.stop()
    await service.start({ MAILROOM_API_KEY: mallory.key, MAILROOM_API_SECRET: mallory.secret })
    const made = await asMallory('POST', '/lite/users', userBody({ ...server, password: 'secret' }, email.mallory))
    const list = async (path: string): Promise<Json[]> => (await asMallory('GET', path)) as unknown as Json[]
    await until('the huge one is listed', async () => {
      await learn(list, String(made['id']))
      return paths.has('huge')
    })
    await until('the mailbox of the other is read again', async () => {
      return (await service.api('GET', `${paths.get('small')}/body`)).status === 200
    })
  })
  after(() => parts.disposeAsync())

  const deaf = (count: number, what: string): Promise<Held[]> => {
    const authorization = `Authorization: ${basicOf(mallory.key, mallory.secret)}`
    const head = [`GET ${paths.get('huge')}${what} HTTP/1.1`, authorization]
    return Promise.all(Array.from({ length: count }, (_, n) => hold(stage.service.url, addressOf(n), head, '', true)))
  }
  const asked = async (subject: string): Promise<number> => {
    const started = performance.now()
    const { status } = await say(`${stage.service.url}${paths.get(subject)}/body`, {
      headers: { authorization: basicOf(apiKey, apiSecret) },
    })
    assert.equal(status, 200, subject)
    return performance.now() - started
  }

  /** Calls that ended before their answer was out. */
  const ended = async (): Promise<number> => {
    const { body } = await say(`${stage.service.url}/metrics`)
    const counts = body.matchAll(/^mailroom_api_calls_total\{.*status="499".*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }

  test('those that are not read end at the timeout of their connection', async () => {
    const held = await deaf(30, '/body')
    await until('they are ended', async () => (await ended()) > 3, {
      withinMs: 30_000,
      explain: () => stage.service.log().slice(-2000),
    })
    destroyAll(held)
    await until('and one that is read is answered', async () => {
      const { status, body } = await say(`${stage.service.url}${paths.get('huge')}/body`, {
        headers: { authorization: basicOf(mallory.key, mallory.secret) },
      })
      return status === 200 && body.length > 15 * mib
    })
  })

  for (const what of ['/body', '?include_body=1', '/raw']) {
    test(`30 of 15 MiB (${what}): the small and the middling body of another developer do not wait for them`, async () => {
      const earlier = mostResidentMib(stage.service, true)
      const held = await deaf(30, what)
      const waits: number[] = []
      for (let round = 0; round < 10; round += 1) waits.push(await asked('small'), await asked('middling'))
      const grown = mostResidentMib(stage.service) - earlier
      destroyAll(held)
      assert(Math.max(...waits) < 15_000, `waited ${Math.max(...waits)} ms`)
      assert(grown < 512, `${earlier} MiB before, ${grown} more`)
    })
  }
})
