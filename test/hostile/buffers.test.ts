/**
 * Bytes that strangers, developers and mail servers have the service hold at once: together no more than its budget.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, listed } from '../support/users.ts'
import { beside, mostResidentMib, mostSettledMib } from './bystanders.ts'
import { addressOf, destroyAll, hold } from './sockets.ts'
import { basicOf, say } from './stranger.ts'

const mib = 1_048_576
/** Far less than what is sent, and more than what the service has without it. */
const mostMib = 480

suite('bodies of calls', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage({ env: { MAILROOM_WRONG_KEYS: '0' } })
  })
  after(() => stage.remove())

  const path = '/lite/users'
  const post = (authorization: string | null, length: number, type = 'application/json'): string[] => [
    `POST ${path} HTTP/1.1`,
    `Content-Type: ${type}`,
    `Content-Length: ${length}`,
    ...(authorization === null ? [] : [`Authorization: ${authorization}`]),
  ]

  test('600 connections without a key, each with a body of 1 MiB but its last byte, are not held', async () => {
    const { service } = stage
    const body = Buffer.alloc(mib - 1, ' ')
    const ways = [
      post(null, mib),
      post(basicOf('nobody', 'x'.repeat(20)), mib),
      post('OAuth oauth_consumer_key="nobody"', mib),
      post(null, mib, 'application/x-www-form-urlencoded'),
    ]
    let most = 0
    const waits = await beside(service, async () => {
      const held = await Promise.all(
        Array.from({ length: 600 }, (_, n) => hold(service.url, addressOf(n % 6), ways[n % ways.length] ?? [], body)),
      )
      await until('all are out', () => held.every(({ socket, closed }) => closed || socket.writableLength === 0), {
        withinMs: 30_000,
      })
      most = await mostSettledMib(service)
      destroyAll(held)
    })
    assert(most < mostMib, `${most} MiB resident`)
    assert(waits.processor < 5000, `${waits.processor} ms of processor time`)
  })

  test('a stranger is refused at once, and need not send the rest', async () => {
    for (const head of [post(null, mib), post(basicOf('nobody', 'x'.repeat(20)), mib), post(null, 4 * mib)]) {
      const caller = await hold(stage.service.url, '127.0.0.1', head, Buffer.alloc(100_000, ' '))
      await until('401', () => /^HTTP\/1\.1 401/.test(caller.text), { explain: () => caller.text })
      destroyAll([caller])
    }
  })

  test('a developer sends as much as ever; a body for nobody, and a form that is signed, have 64 KiB', async () => {
    const { service } = stage
    const authorization = basicOf(apiKey, apiSecret)
    for (const [type, start, end] of [
      ['application/json', '{"email":"big@mail.example","x":"', '"}'],
      ['application/x-www-form-urlencoded', 'email=big@mail.example&x=', ''],
    ] as const) {
      const body = start + 'x'.repeat(900_000) + end
      const sent = await say(service.url + path, {
        method: 'POST',
        headers: { authorization, 'content-type': type },
        body,
      })
      assert.equal(sent.status, 200, sent.body)
    }
    const large = { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'x'.repeat(900_000) }
    const open = await say(`${service.url}/healthz`, { ...large, method: 'GET' })
    assert.equal(open.status, 413)
    assert.match(open.body, /body: larger than 65536 bytes/)
    const signed = await say(`${service.url}${path}?oauth_consumer_key=${apiKey}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `a=${'x'.repeat(900_000)}`,
    })
    assert.equal(signed.status, 413)
    assert.match(signed.body, /larger than 65536 bytes, as a form that is signed/)
  })

  test('a developer who sends very many large bodies slowly is held to a part, and others are served', async () => {
    const { service } = stage
    const authorization = basicOf(apiKey, apiSecret)
    const body = Buffer.alloc(mib - 1, ' ')
    const held = await Promise.all(
      Array.from({ length: 300 }, (_, n) => hold(service.url, addressOf(n % 6), post(authorization, mib), body)),
    )
    let most = 0
    const waits = await beside(service, async () => (most = await mostSettledMib(service)))
    destroyAll(held)
    assert(most < mostMib, `${most} MiB resident`)
    assert(waits.list < 5000, `a list waited ${waits.list} ms`)
    const one = await say(service.url + path, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'after@mail.example', x: 'x'.repeat(900_000) }),
    })
    assert.equal(one.status, 200, 'and all was given back')
  })
})

suite('answers of mail servers', () => {
  test('twelve literals of 64 MiB, of which only the end is missing, are not all held', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `user${n}@mail.example`)
    const server = await createImapServer({ users: Object.fromEntries(names.map((name) => [name, {}])) })
    const stage = await openStage({ env: { MAILROOM_COMMAND_TIMEOUT: '8s' } })
    try {
      const { service } = stage
      const bodies: string[] = []
      for (const name of names) {
        server.append(name, 'INBOX', mail({ to: name, subject: 'large', text: 'x'.repeat(1000) }))
        const id = await createUser(service, { ...server, password: 'secret' }, name)
        await listed(service, id, 'large')
        const [first] = await service.list(`/lite/users/${id}/email_accounts/0/folders/INBOX/messages`)
        bodies.push(`/lite/users/${id}/email_accounts/0/messages/${String(first?.['message_id'])}/body`)
      }
      const size = 64 * mib
      const start = Buffer.from(`* 1 FETCH (UID 1 BODY[1]<0> {${size}}\r\n`)
      // The ends of these lines are the literal's too. The last line never comes.
      const piece = Buffer.alloc(mib - 2, 'x')
      const lines = [Buffer.concat([start, piece]), ...Array.from({ length: 63 }, () => piece)]
      server.hooks = {
        command: ({ name, text }) => (name === 'UID FETCH' && text.includes('BODY.PEEK[1]') ? { lines } : undefined),
      }
      const waits = await beside(service, () =>
        Promise.all(
          bodies.map(async (body) => {
            const { status } = await service.api('GET', body)
            assert([503, 504].includes(status), String(status))
          }),
        ),
      )
      const most = mostResidentMib(service)
      assert(most < mostMib, `${most} MiB resident`)
      assert(waits.list < 5000, `a list waited ${waits.list} ms`)
      server.hooks = {}
      const isRead = async (): Promise<boolean> => (await service.api('GET', bodies[0] ?? '')).status === 200
      await until('the mailbox is read as ever', isRead, { withinMs: 20_000 })
    } finally {
      await stage.remove()
      await server.close()
    }
  })

  test('bodies of which a few bytes were told, and half a MiB is given, are cut', async () => {
    await using parts = new AsyncDisposableStack()
    const name = 'ann@mail.example'
    const server = await createImapServer({ users: { [name]: {} } })
    parts.defer(() => server.close())
    for (let n = 0; n < 100; n += 1) server.append(name, 'INBOX', mail({ to: name, subject: `small ${n}`, text: 'Hi' }))
    const stage = await openStage()
    parts.defer(() => stage.remove())
    const { service } = stage
    const id = await createUser(service, { ...server, password: 'secret' }, name)
    await listed(service, id, 'small 0')
    const size = mib / 2
    const answer = (_one: unknown, n: number): (Buffer | string)[] => [
      Buffer.concat([
        Buffer.from(`* ${n + 1} FETCH (UID ${n + 1} BODY[1]<0> {${size}}\r\n`),
        Buffer.alloc(size - 2, 'x'),
      ]),
      ')',
    ]
    const lines = Array.from({ length: 100 }, answer).flat()
    server.hooks = {
      command: ({ name: command, text }) =>
        command === 'UID FETCH' && text.includes('BODY.PEEK[1]') ? { lines, tagged: 'OK done' } : undefined,
    }
    const list = `${service.url}/lite/users/${id}/email_accounts/0/folders/INBOX/messages?limit=100&include_body=1`
    const headers = { authorization: basicOf(apiKey, apiSecret) }
    const answers = await Promise.all(Array.from({ length: 6 }, () => say(list, { headers })))
    for (const { status, body } of answers) {
      assert.equal(status, 200)
      assert(body.includes('"truncated":true') && body.length < 10 * mib, `${body.length} bytes`)
    }
    const most = mostResidentMib(service)
    assert(most < mostMib, `${most} MiB resident`)
  })
})
