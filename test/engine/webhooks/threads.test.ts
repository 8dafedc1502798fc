/** filter_thread finds a thread also through replies that name their parent only. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { threadIdOf } from '../../../engine/messages/threads.ts'
import type { MessageFacts } from '../../../engine/store/records.ts'
import { lookUpThread, newTarget } from '../../../engine/webhooks/targets.ts'
import { until } from '../../support/until.ts'
import { arrive, facts, freely } from './fixture.ts'
import { account, hook, rig, running, useScene } from './scene.ts'

useScene()

suite('a thread whose replies leave References out', () => {
  const mail = (name: string, parent: string | null, references: readonly string[] = []): MessageFacts => {
    const id = (one: string) => `${one}@example.com`
    const hints = {
      hostedThreadId: null,
      references: references.map(id),
      inReplyTo: parent === null ? null : id(parent),
      emailMessageId: id(name),
    }
    return { ...facts(name), ...hints, threadId: threadIdOf(account.id, hints, () => name) }
  }

  const sentOf = async (thread: string, mails: readonly MessageFacts[]): Promise<string[]> => {
    const webhook = await hook('/thread', { filters: { thread: `<${thread}@example.com>` } })
    for (const one of mails) await arrive(rig.store, running.webhooks, account, [{ facts: one }])
    const rows = await until('all rows have ended', async () => {
      const now = await rig.store.outbox.list({ webhookId: webhook.id }, { limit: 20, offset: 0 })
      return now.every(({ state }) => state !== 'pending') ? now : null
    })
    const delivered = rows.filter(({ state }) => state === 'delivered').map(({ messageId }) => messageId ?? '')
    const messages = await rig.store.messages.byIds(account.id, delivered)
    const dry = await running.webhooks.dryRun(webhook, account, 20, freely)
    const matching = new Set(dry.filter(({ matched }) => matched).map(({ message }) => message.id))
    for (const { id } of messages) assert.ok(matching.has(id), 'what matched on arrival matches in the dry run')
    return messages.map(({ emailMessageId }) => (emailMessageId ?? '').replace('@example.com', '')).sort()
  }

  // a1 ← a2 ← a3 (names a2 only) ← a4 (References as RFC 5322 makes them of a3), and a5 that answers a1.
  const thread = () => [
    mail('a1', null),
    mail('a2', 'a1', ['a1']),
    mail('a3', 'a2'),
    mail('a4', 'a3', ['a2', 'a3']),
    mail('a5', 'a1', ['a1']),
    mail('b1', null),
    mail('b2', 'b1'),
    mail('c1', 'nowhere', ['gone', 'nowhere']),
  ]

  test('is told whole when the filter names its first message', async () => {
    assert.deepEqual(await sentOf('a1', thread()), ['a1', 'a2', 'a3', 'a4', 'a5'])
  })

  test('is told whole from then on when the filter names another', async () => {
    for (const facts of thread().slice(0, 2)) await arrive(rig.store, null, account, [{ facts }])
    assert.deepEqual(await sentOf('a2', thread().slice(2)), ['a3', 'a4', 'a5'])
  })

  test('is told from a reply that names its parent only', async () => {
    await arrive(rig.store, null, account, [{ facts: mail('a1', null) }])
    await arrive(rig.store, null, account, [{ facts: mail('a2', 'a1', ['a1']) }])
    await arrive(rig.store, null, account, [{ facts: mail('a3', 'a2') }])
    const sent = await sentOf('a3', [mail('a5', 'a1', ['a1']), mail('b1', null), mail('a6', 'a2')])
    assert.deepEqual(sent, ['a5', 'a6'])
  })

  test('what was found is looked up anew after ten minutes, also when it is asked for all the time', async (t) => {
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    const webhook = await hook('/anew', { filters: { thread: '<d2@example.com>' } })
    const target = newTarget(webhook)
    await arrive(rig.store, null, account, [{ facts: mail('d2', 'd1') }])
    const id = facts('d2').emailMessageId ?? ''
    const message = await rig.store.messages.find(account.id, id)
    assert.ok(message)
    const finds = t.mock.method(rig.store.messages, 'find')
    for (let minute = 0; minute <= 30; minute += 5) {
      await lookUpThread(rig.store, target, message)
      now += 5 * 60_000
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const asked = finds.mock.calls.filter(({ arguments: [, reference] }) => reference === 'd2@example.com')
    assert.ok(asked.length >= 3, `${asked.length} look-ups`)
  })

  test('two messages that name each other come to an end', async () => {
    assert.deepEqual(await sentOf('other', [mail('x', 'y'), mail('y', 'x')]), [])
  })
})
