/** A webhook of the application on two processes: one health, one probe at a time, and its places once. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import { createReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { needs } from '../support/require.ts'
import { startService, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, listed } from '../support/users.ts'

const accounts = 8
const places = 3
const delayMs = 150
const hook = '/hook'
const notices = '/notices'

suite('a webhook of the application on two processes', { timeout: 240_000, ...needs('mongodb', 'dovecot') }, () => {
  const services: Service[] = []
  const users: { readonly id: string; readonly email: string }[] = []
  let mongoUri = ''
  let dovecot: Dovecot
  let receiver: Receiver
  let webhook = ''

  before(async () => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_nodes_${randomBytes(4).toString('hex')}`)
    dovecot = await startDovecot({ mailboxes: accounts })
    receiver = await createReceiver()
    const env = {
      MAILROOM_SECRET: 'ab'.repeat(32),
      MAILROOM_WEBHOOK_SCHEDULE: '400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms,400ms',
      MAILROOM_WEBHOOK_JITTER: '0',
      MAILROOM_WEBHOOK_CONCURRENCY: String(places),
    }
    for (let count = 0; count < 2; count += 1) services.push(await startService({ mongoUri, env }))
    const body = { callback_url: receiver.url(hook), failure_notif_url: receiver.url(notices) }
    webhook = String((await first().ok('POST', '/lite/webhooks', body))['webhook_id'])
    await until('each owns users', async () => (await Promise.all(services.map(owned))).every((count) => count > 0))
    const create = async (at: number): Promise<void> => {
      const email = `user${at}@mail.example`
      await dovecot.append(email, 'INBOX', mail({ to: email, subject: `old ${email}` }))
      // A new user belongs to the process that is asked.
      users.push({ id: await createUser(services[at % 2] as Service, dovecot, email), email })
    }
    await Promise.all(Array.from({ length: accounts }, (_, at) => create(at)))
    for (const { id, email } of users) await listed(first(), id, `old ${email}`)
    // None is being handed over: what is due then is another matter (node-ends.long.test.ts).
    await until('each is watched', async () => (await sum('mailroom_accounts{tag="watching"}')) === accounts)
  })
  after(async () => {
    for (const service of services) await service.remove()
    await receiver.close()
    await dovecot.remove()
    await dropDatabase(mongoUri)
  })

  const first = (): Service => services[0] as Service
  async function figure({ url }: Service, series: string): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text()
    const line = text.split('\n').find((one) => one.startsWith(`${series} `))
    return Number(line?.split(' ')[1] ?? 0)
  }
  const sum = async (series: string): Promise<number> =>
    (await Promise.all(services.map((one) => figure(one, series)))).reduce((all, one) => all + one, 0)
  const owned = ({ log }: Service): Promise<number> => Promise.resolve(/"slots claimed"/.test(log()) ? 1 : 0)
  const states = async (): Promise<string[]> =>
    (await first().list(`/lite/webhooks/${webhook}/deliveries?limit=100`)).map(({ state }) => String(state))
  const record = () => first().ok('GET', `/lite/webhooks/${webhook}`)

  async function deliver(subject: string): Promise<void> {
    for (const { email } of users)
      await dovecot.append(email, 'INBOX', mail({ to: email, subject: `${subject} ${email}` }))
  }
  const subjectOf = ({ body }: Received): string => {
    const data = body['message_data'] as { readonly subject?: string } | undefined
    return data?.subject ?? ''
  }
  const subjects = (word: string): Set<string> =>
    new Set(
      receiver
        .at(hook)
        .map(subjectOf)
        .filter((subject) => subject.startsWith(word)),
    )
  /** Most that were under way at the same time: each is answered after `delayMs`. */
  function mostAtOnce(calls: readonly Received[]): number {
    return Math.max(0, ...calls.map(({ at }) => calls.filter((one) => one.at > at - delayMs && one.at <= at).length))
  }

  test('has its places once', async () => {
    receiver.script(hook, [], { status: 200, delayMs })
    for (const word of ['one', 'two', 'three']) await deliver(word)
    await until('all are delivered', () => subjects('three').size === accounts)
    for (const service of services)
      assert.ok((await figure(service, 'mailroom_deliveries_total{kind="message",outcome="delivered"}')) > 0)
    assert.ok(mostAtOnce(receiver.at(hook)) <= places, `${mostAtOnce(receiver.at(hook))} at once`)
  })

  test('is announced once when it fails, is tried by one process, and is well for both at once', async () => {
    receiver.script(hook, [], { status: 503, delayMs })
    const before = receiver.at(hook).length
    await deliver('four')
    await until('it is announced', () => receiver.at(notices).length > 0)
    const failed = receiver.at(hook).length
    assert.ok(failed - before <= 3 * places, `${failed - before} attempts until the announcement`)
    await until('it is tried on', () => receiver.at(hook).length >= failed + 8)
    const probes = receiver.at(hook).slice(failed)
    assert.equal(mostAtOnce(probes), 1, 'one probe at a time')
    const spanMs = (probes.at(-1)?.at ?? 0) - (probes[0]?.at ?? 0)
    // Each waits for 400 ms after the answer to the one before.
    assert.ok(spanMs >= (probes.length - 1) * 400, `${probes.length} probes within ${spanMs} ms`)
    receiver.script(hook, [], { status: 200, delayMs })
    await until('all are delivered', async () => (await states()).every((state) => state === 'delivered'))
    assert.equal(receiver.at(notices).length, 1)
    for (const news of ['failing', 'recovered'])
      assert.equal(await sum(`mailroom_webhook_news_total{news="${news}"}`), 1, news)
  })

  test('ends for both with a 410', async () => {
    receiver.script(hook, [{ status: 410 }], { status: 200, delayMs: 1000 })
    const before = receiver.at(hook).length
    for (const word of ['five', 'six', 'seven']) await deliver(word)
    await until('it is inactive', async () => (await record())['active'] === false)
    await until('its notice is there', () => receiver.at(notices).length === 2)
    const goneAt = receiver.at(hook)[before]?.at ?? 0
    await until('2 s have passed', () => Date.now() > goneAt + 2000)
    const seen = receiver.at(hook).length
    await deliver('eight')
    for (const { id, email } of users) await listed(first(), id, `eight ${email}`)
    assert.equal(receiver.at(hook).length, seen, 'what comes now is not sent')
    const ended = await states()
    assert.ok(!ended.includes('pending'), ended.join(' '))
    assert.ok(ended.filter((state) => state === 'failed').length > accounts, ended.join(' '))
  })
})
