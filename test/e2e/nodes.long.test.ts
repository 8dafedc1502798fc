/** Several processes on one database: each owns a part of the users, answers for all, and takes over from others. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { startReceiver, subjectOf, type CallbackReceiver } from '../support/callbacks.ts'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import { needs } from '../support/require.ts'
import { startService, type Json, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { quickRetries } from './stage.ts'

const accounts = 24

suite('three processes on one database', { timeout: 300_000, ...needs('mongodb', 'dovecot') }, () => {
  const services: Service[] = []
  let mongoUri = ''
  let dovecot: Dovecot
  let receiver: CallbackReceiver
  const users: { readonly id: string; readonly email: string }[] = []

  before(async () => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_nodes_${randomBytes(4).toString('hex')}`)
    dovecot = await startDovecot({ mailboxes: accounts })
    receiver = await startReceiver()
  })
  after(async () => {
    for (const service of services) await service.remove()
    await receiver.close()
    await dovecot.remove()
    await dropDatabase(mongoUri)
  })

  async function start(): Promise<Service> {
    const service = await startService({ mongoUri, env: { MAILROOM_SECRET: 'ab'.repeat(32), ...quickRetries } })
    services.push(service)
    return service
  }

  /** Accounts with an actor in this process. */
  async function watchedBy({ url }: Service): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text()
    const counts = [...text.matchAll(/^mailroom_accounts\{tag="watching"\} (\d+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }
  const watched = (some: readonly Service[]): Promise<number[]> => Promise.all(some.map(watchedBy))
  /** Every account is watched, by one process each. */
  async function shared(some: readonly Service[], withinMs = 30_000): Promise<void> {
    const sum = async (): Promise<boolean> => (await watched(some)).reduce((all, one) => all + one, 0) === accounts
    await until('every account is watched once', sum, {
      withinMs,
      explain: () => some.map((one) => one.log()).join('\n'),
    })
  }

  async function deliver(subject: string): Promise<void> {
    for (const { email } of users)
      await dovecot.append(email, 'INBOX', mail({ to: email, subject: `${subject} ${email}` }))
  }
  /** The callbacks of this mail: two for each account, each under one id, however often it was sent. */
  async function told(subject: string, withinMs = 30_000): Promise<void> {
    const ids = (): Set<string> => {
      const own = receiver
        .accepted()
        .filter(({ body }) => 'message_data' in body && subjectOf({ body } as never).startsWith(subject))
      return new Set(own.map(({ path, id, body }) => `${path} ${subjectOf({ body } as never)} ${id}`))
    }
    await until(`callbacks of ${subject}`, () => ids().size >= 2 * accounts, {
      withinMs,
      explain: () => [...ids()].join('\n'),
    })
    await until('they are told of', async () => {
      const seen = receiver.all.length
      await new Promise((resolve) => setTimeout(resolve, 1500))
      return seen === receiver.all.length
    })
    assert.equal(ids().size, 2 * accounts, [...ids()].join('\n'))
  }

  test('share the users, answer for all of them, and take over', { timeout: 300_000 }, async (t) => {
    const first = await start()
    await first.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/app` })
    for (let at = 0; at < accounts; at += 1) {
      const email = `user${at}@mail.example`
      await dovecot.append(email, 'INBOX', mail({ to: email, subject: `old ${email}` }))
      const id = await createUser(first, dovecot, email)
      users.push({ id, email })
    }
    for (const { id, email } of users) {
      await listed(first, id, `old ${email}`)
      await createWebhook(first, id, `${receiver.url}/user`)
    }
    await shared([first])
    const others = [await start(), await start()]
    const all = [first, ...others]
    await until('each has a part', async () => (await watched(all)).every((count) => count > 0), {
      withinMs: 30_000,
      explain: () => all.map((one) => one.log()).join('\n---\n'),
    })
    await shared(all)
    t.diagnostic(`accounts: ${(await watched(all)).join(', ')}`)

    await deliver('one')
    await told('one')

    for (const { id, email } of users) {
      const path = `/lite/users/${id}/email_accounts/0/folders/INBOX/messages`
      for (const service of all) {
        await listed(service, id, `one ${email}`)
        const [message] = await service.list(`${path}?limit=1`)
        const messageId = encodeURIComponent(String(message?.['message_id']))
        const body = await service.ok('GET', `${path}/${messageId}/body`)
        assert(Array.isArray(body['bodies']) && body['bodies'].length > 0, JSON.stringify(body))
        const seen = service === others[0]
        await service.ok('POST', `${path}/${messageId}/flags`, { seen: seen ? 1 : 0 })
        const flags = await first.ok('GET', `${path}/${messageId}/flags`)
        assert.equal((flags['flags'] as Json)['read'], seen, JSON.stringify(flags))
      }
    }

    const [second, third] = others as [Service, Service]
    await deliver('two')
    await third.kill9()
    const killedAt = performance.now()
    await deliver('three')
    await shared([first, second])
    t.diagnostic(`watched again ${Math.round(performance.now() - killedAt)} ms after the kill`)
    await told('two')
    await told('three')

    const { pid } = second
    process.kill(pid, 'SIGSTOP')
    const stoppedAt = performance.now()
    await deliver('four')
    await shared([first], 60_000)
    t.diagnostic(`watched again ${Math.round(performance.now() - stoppedAt)} ms after the stop`)
    await told('four')
    await deliver('five')
    process.kill(pid, 'SIGCONT')
    await told('five')
    await until('the one that was stopped has ended', () => second.log().includes('it ends'), {
      explain: () => second.log().slice(-3000),
    })
    await second.kill9()
    await second.start()
    await until('it has a part again', async () => (await watchedBy(second)) > 0, { withinMs: 30_000 })
    await shared([first, second])

    const leftAt = performance.now()
    assert.equal(await first.stop(), 0)
    await shared([second])
    t.diagnostic(`watched again ${Math.round(performance.now() - leftAt)} ms after the orderly end began`)
    await deliver('six')
    await told('six')
  })
})
