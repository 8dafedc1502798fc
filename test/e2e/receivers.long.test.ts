/**
 * One dead receiver costs nobody else anything: the whole service, fifty webhooks of one user, three of them at bad
 * receivers.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { createImapServer, fullCapabilities } from '../support/imap-server/index.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { mail } from '../support/mail.ts'
import { freePort } from '../support/port.ts'
import { createReceiver, type Receiver } from '../support/receiver.ts'
import { startService, type Json, type Service } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { quickRetries } from './stage.ts'

const healthy = 47
const messagesPerRun = 4
/** With and without by turns: what else the machine does meanwhile weighs on both. */
const rounds = 4
/** Held up by a bad receiver, a callback would take its retries, or minutes (see `env`), and not this little more. */
const allowedRatio = 5

/** A hanging receiver hangs for longer than any step of the test waits. */
const env = { ...quickRetries, MAILROOM_WEBHOOK_TIMEOUT: '30s', MAILROOM_SHUTDOWN_TIMEOUT: '500ms' }

interface Rig {
  readonly service: Service
  readonly receiver: Receiver
  readonly userId: string
  /** New mail in the user's INBOX. */
  readonly send: (subject: string) => void
}

async function openRig(parts: AsyncDisposableStack): Promise<Rig> {
  const email = 'ruth@mail.example'
  const password = 'correct-horse'
  const imap = await createImapServer({ users: { [email]: { password } }, capabilities: fullCapabilities })
  parts.defer(() => imap.close())
  const receiver = await createReceiver()
  parts.defer(() => receiver.close())
  const store = chosenStore()
  parts.defer(() => store.remove())
  const service = await startService({ env: { ...env, ...store.env } })
  parts.defer(() => service.remove())
  const send = (subject: string): void => void imap.append(email, 'INBOX', mail({ to: email, subject }))
  send('old')
  const userId = await createUser(service, { host: imap.host, port: imap.port, password }, email)
  await listed(service, userId, 'old')
  return { service, receiver, userId, send }
}

/**
 * Sends one message after the other, each when all healthy receivers know of the one before. Answers each callback's
 * latency.
 */
async function run({ receiver, send }: Rig, name: string): Promise<number[]> {
  const latencies: number[] = []
  for (let index = 0; index < messagesPerRun; index++) {
    const subject = `${name} ${index}`
    const arrived = () =>
      receiver.requests.filter((one) => one.path.startsWith('/healthy/') && tells(one.body, subject))
    const sentAt = Date.now()
    send(subject)
    await until(`"${subject}" at every healthy receiver`, () => arrived().length >= healthy, { withinMs: 20_000 })
    assert.equal(new Set(arrived().map(({ path }) => path)).size, healthy)
    latencies.push(...arrived().map(({ at }) => at - sentAt))
  }
  return latencies
}

function tells(body: Receiver['requests'][number]['body'], subject: string): boolean {
  return (body['message_data'] as Json | undefined)?.['subject'] === subject
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return Math.max(1, sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN)
}

suite(`bad receivers, ${chosenStore().kind} store`, () => {
  const parts = new AsyncDisposableStack()
  let rig: Rig
  before(async () => {
    rig = await openRig(parts)
  })
  after(() => parts.disposeAsync())

  const hook = (webhookId: string) => `/lite/users/${rig.userId}/webhooks/${webhookId}`
  const failing = async (webhookId: string) => (await rig.service.ok('GET', hook(webhookId)))['failure'] === true
  const attemptsOf = async (webhookId: string): Promise<Json[]> =>
    (await rig.service.list(`${hook(webhookId)}/deliveries?kind=message`)).flatMap(({ attempts }) => attempts as Json[])
  const add = (url: string) =>
    createWebhook(rig.service, rig.userId, url, { failure_notif_url: rig.receiver.url('/notice') })
  const noticesOf = (webhookId: string) =>
    rig.receiver.at('/notice').filter(({ body }) => body['webhook_id'] === webhookId)

  /** Fifty webhooks from here on, until `undo`. */
  async function addBad() {
    const { receiver, service } = rig
    const hanging = await add(receiver.url('/hanging'))
    const broken = await add(receiver.url('/broken'))
    const refusing = await add(`http://127.0.0.1:${await freePort()}/`)
    const undo = async (): Promise<void> => {
      for (const webhookId of [hanging, broken, refusing]) await service.ok('DELETE', hook(webhookId))
    }
    return { hanging, broken, refusing, undo }
  }

  async function assertBad({ hanging, broken, refusing }: Awaited<ReturnType<typeof addBad>>): Promise<void> {
    const asked = rig.receiver.at('/hanging').filter(({ body }) => body['webhook_id'] === hanging)
    assert.equal(asked.length, 1, 'it still waits for the first answer')
    await until('failure of two', async () => (await failing(broken)) && (await failing(refusing)))
    assert((await attemptsOf(broken)).some((one) => one['status_code'] === 500))
    assert((await attemptsOf(refusing)).some((one) => String(one['error']).startsWith('network: ')))
    const noticed = () => noticesOf(broken).length > 0 && noticesOf(refusing).length > 0
    await until('their notices', noticed)
  }

  test('50 webhooks, one hanging, one refusing, one answering 500: the latency of the others does not move', async (t) => {
    const { receiver } = rig
    receiver.script('/hanging', [], 'hang')
    receiver.script('/broken', [], { status: 500 })
    for (let index = 0; index < healthy; index++) await add(receiver.url(`/healthy/${index}`))
    await run(rig, 'warm')
    const without: number[] = []
    const during: number[] = []
    for (let round = 0; round < rounds; round++) {
      without.push(...(await run(rig, `without ${round}`)))
      const bad = await addBad()
      during.push(...(await run(rig, `with ${round}`)))
      await assertBad(bad)
      await bad.undo()
    }
    const figures = [0.25, 0.5].map((share) => [quantile(without, share), quantile(during, share)] as const)
    t.diagnostic(figures.map(([usual, now]) => `${usual} ms without, ${now} ms with the bad ones`).join('; '))
    for (const [usual, now] of figures) assert(now <= usual * allowedRatio, `${now} ms instead of ${usual} ms`)
    const told = receiver.requests.filter(({ path }) => path.startsWith('/healthy/'))
    assert.equal(told.length, healthy * messagesPerRun * (1 + 2 * rounds), 'nobody was told anything twice')
  })

  test('a self-signed certificate: not one byte of mail, a failure that says tls, and a notice', async () => {
    let requests = 0
    const server = createServer(selfSigned(), (_request, response) => {
      requests += 1
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const webhookId = await add(`https://127.0.0.1:${(server.address() as AddressInfo).port}/callback`)
      rig.send('secret')
      await until('failure', () => failing(webhookId))
      const attempts = await attemptsOf(webhookId)
      assert(attempts.length >= 3, JSON.stringify(attempts))
      for (const { status_code, error } of attempts) {
        assert.equal(status_code, null)
        assert.match(String(error), /^tls: .*self-signed/)
      }
      const [notice] = await until('the notice', () => noticesOf(webhookId).length > 0 && noticesOf(webhookId))
      assert.match(String(notice?.body['data']), /^tls: .*self-signed/)
      assert.equal(requests, 0)
    } finally {
      server.close()
      server.closeAllConnections()
    }
  })
})
