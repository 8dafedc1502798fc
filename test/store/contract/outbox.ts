/** The outbox: what is sent next, and what becomes of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../engine/store/ids.ts'
import type { Subject } from './mailbox.ts'
import { attempt, epochStart, outboxRecord, result, webhookRecord } from './records.ts'

export function queueContract({ store }: Subject): void {
  describe('pending rows', () => {
    test('are queued once; the answer tells which were new', async () => {
      const webhook = webhookRecord(newId())
      const [first, second] = [outboxRecord(webhook), outboxRecord(webhook)]
      assert.deepEqual(await store.outbox.enqueue([first]), [first])
      const changed = { ...first, data: { other: 1 } }
      assert.deepEqual(await store.outbox.enqueue([changed, second, second]), [second])
      assert.deepEqual(await store.outbox.get(first.id), first)
      assert.equal(await store.outbox.get('f'.repeat(32)), null)
      assert.deepEqual(await store.outbox.enqueue([]), [])
    })

    test('of a channel come by lane, age and number', async () => {
      const webhook = webhookRecord(newId())
      const at = (lane: 0 | 1, age: number, seq: number) =>
        outboxRecord(webhook, { lane, createdAt: epochStart + age, seq, accountId: newId() })
      const ordered = [at(0, 1, 5), at(0, 1, 6), at(0, 2, 1), at(1, 0, 1), at(1, 0, 2)]
      await store.outbox.enqueue([...ordered].reverse())
      await store.outbox.enqueue([outboxRecord(webhookRecord(newId()))])
      assert.deepEqual(await store.outbox.pending(webhook.id, [], 10), ordered)
      assert.deepEqual(await store.outbox.pending(webhook.id, [], 2), ordered.slice(0, 2))
      assert.deepEqual(await store.outbox.pending(newId(), [], 10), [])
    })

    test('leave out accounts that are blocked, and keep those without an account', async () => {
      const webhook = webhookRecord(newId())
      const accounts = [newId(), newId(), newId()]
      const rows = Array.from({ length: 12 }, (_, index) =>
        outboxRecord(webhook, { accountId: [...accounts, null][index % 4] ?? null, createdAt: epochStart + index }),
      )
      await store.outbox.enqueue(rows)
      const [first, second] = accounts
      assert(first && second)
      const expected = rows.filter((row) => row.accountId !== first && row.accountId !== second)
      assert.deepEqual(await store.outbox.pending(webhook.id, [first, second], 10), expected)
      assert.deepEqual(await store.outbox.pending(webhook.id, [first, second], 3), expected.slice(0, 3))
      assert.deepEqual(await store.outbox.pending(webhook.id, [newId()], 20), rows)
      const free = rows.filter((row) => row.accountId === null)
      assert.deepEqual(await store.outbox.pending(webhook.id, accounts, 20), free)
    })

    test('of many accounts come in one order, whichever are blocked', async () => {
      const webhook = webhookRecord(newId())
      const accounts = Array.from({ length: 50 }, () => newId())
      const rows = [0, 1].flatMap((round) =>
        accounts.map((accountId, index) =>
          outboxRecord(webhook, { accountId, createdAt: epochStart + round * 100 + (index % 7) }),
        ),
      )
      await store.outbox.enqueue(rows)
      const blocked = accounts.slice(0, 3)
      const expected = rows
        .filter((row) => !blocked.includes(row.accountId ?? ''))
        .sort((a, b) => a.createdAt - b.createdAt || a.seq - b.seq)
      assert.deepEqual(await store.outbox.pending(webhook.id, blocked, 30), expected.slice(0, 30))
    })

    test('name their channels, and count', async () => {
      const webhook = webhookRecord(newId())
      assert.deepEqual(await store.outbox.backlog(webhook.id), { pending: 0, oldestAt: null })
      assert(!(await store.outbox.channels()).includes(webhook.id))
      const rows = [7, 3, 5].map((age) => outboxRecord(webhook, { lane: 1, createdAt: epochStart + age }))
      await store.outbox.enqueue(rows)
      assert.deepEqual(await store.outbox.backlog(webhook.id), { pending: 3, oldestAt: epochStart + 3 })
      const channels = await store.outbox.channels()
      assert.equal(channels.filter((channel) => channel === webhook.id).length, 1)
      await store.outbox.record(rows.map((row) => result(row, { state: 'delivered', finishedAt: 1 })))
      assert(!(await store.outbox.channels()).includes(webhook.id))
      assert.deepEqual(await store.outbox.backlog(webhook.id), { pending: 0, oldestAt: null })
    })

    test('of a developer are counted by channel, the one with the oldest first; and all together', async () => {
      const [developerId, before] = [newId(), await store.outbox.backlog(null)]
      const webhooks = [5, 2, 8].map((age) => ({ age, webhook: webhookRecord(developerId) }))
      const rows = webhooks.flatMap(({ age, webhook }) =>
        [age + 10, age, age + 20].map((at) => outboxRecord(webhook, { lane: 1, createdAt: at })),
      )
      const finished = webhooks.map(({ webhook }) =>
        outboxRecord(webhook, { state: 'delivered', createdAt: 1, finishedAt: 1 }),
      )
      const other = outboxRecord(webhookRecord(newId()), { createdAt: 1 })
      assert.deepEqual(await store.outbox.late(developerId, 10), [])
      await store.outbox.enqueue([...rows, ...finished, other])
      const late = webhooks
        .map(({ age, webhook }) => ({ channelId: webhook.id, pending: 3, oldestAt: age }))
        .toSorted((a, b) => a.oldestAt - b.oldestAt)
      assert.deepEqual(await store.outbox.late(developerId, 10), late)
      assert.deepEqual(await store.outbox.late(developerId, 2), late.slice(0, 2))
      assert.deepEqual(await store.outbox.backlog(null), { pending: before.pending + 10, oldestAt: 1 })
      await store.outbox.record([...rows, other].map((row) => result(row, { state: 'delivered', finishedAt: 1 })))
      assert.deepEqual(await store.outbox.late(developerId, 10), [])
      assert.deepEqual(await store.outbox.backlog(null), before)
    })
  })
}

export function attemptsContract({ store }: Subject): void {
  describe('attempts', () => {
    test('are recorded with the next state, several rows in one step', async () => {
      const webhook = webhookRecord(newId())
      const [first, second] = [outboxRecord(webhook), outboxRecord(webhook)]
      await store.outbox.enqueue([first, second])
      const ok = attempt({ status: 200, error: null })
      const dueAt = epochStart + 5000
      await store.outbox.record([
        result(first, { dueAt, reason: 'waiting' }),
        result(second, { attempt: ok, state: 'delivered', finishedAt: epochStart + 9 }),
        { ...result(first), id: 'f'.repeat(32) },
      ])
      const expected = { ...first, attempts: [attempt()], attemptCount: 1, dueAt, reason: 'waiting' }
      assert.deepEqual(await store.outbox.get(first.id), expected)
      const delivered = { ...second, attempts: [ok], attemptCount: 1, state: 'delivered', finishedAt: epochStart + 9 }
      assert.deepEqual(await store.outbox.get(second.id), delivered)
      assert.deepEqual(await store.outbox.pending(webhook.id, [], 9), [expected])
    })

    test('the last 12 are kept, each with its response', async () => {
      const row = outboxRecord(webhookRecord(newId()))
      await store.outbox.enqueue([row])
      for (let number = 1; number <= 14; number += 1) {
        const made = attempt({ at: epochStart + number, response: `answer ${number}` })
        await store.outbox.record([result(row, { attempt: made })])
      }
      const stored = await store.outbox.get(row.id)
      assert.equal(stored?.attemptCount, 14)
      assert.deepEqual(
        stored.attempts.map(({ at, response }) => [at - epochStart, response]),
        Array.from({ length: 12 }, (_, index) => [index + 3, `answer ${index + 3}`]),
      )
    })

    test('may be tried before they count; set back, they count at once', async () => {
      const row = outboxRecord(webhookRecord(newId()))
      await store.outbox.enqueue([row])
      const [dueAt, countsAt] = [epochStart + 5, epochStart + 50]
      await store.outbox.record([result(row, { dueAt, countsAt })])
      await store.outbox.record([
        result(row, { attempt: attempt({ at: epochStart + 1 }), dueAt: epochStart + 10, counted: false }),
      ])
      const waiting = await store.outbox.get(row.id)
      assert.deepEqual([waiting?.dueAt, waiting?.countsAt, waiting?.attemptCount], [epochStart + 10, countsAt, 1])
      await store.outbox.record([
        result(row, { attempt: attempt({ at: epochStart + 2 }), state: 'failed', finishedAt: epochStart + 60 }),
      ])
      await store.outbox.requeue({ webhookId: row.webhookId ?? '', ids: [row.id] }, epochStart + 20, 1)
      assert.equal((await store.outbox.get(row.id))?.countsAt, epochStart + 20)
    })

    test('a state without an attempt counts none', async () => {
      const row = outboxRecord(webhookRecord(newId()))
      await store.outbox.enqueue([row])
      await store.outbox.record([result(row, { attempt: null, state: 'failed', finishedAt: 5, reason: '410' })])
      assert.deepEqual(await store.outbox.get(row.id), { ...row, state: 'failed', finishedAt: 5, reason: '410' })
    })

    test('a paused webhook keeps no backlog of messages', async () => {
      const webhook = webhookRecord(newId())
      const [first, second] = [outboxRecord(webhook), outboxRecord(webhook, { accountId: newId() })]
      const trial = outboxRecord(webhook, { kind: 'test' })
      const sent = outboxRecord(webhook, { state: 'delivered', finishedAt: 1 })
      const other = outboxRecord(webhookRecord(newId()))
      await store.outbox.enqueue([first, second, trial, sent, other])
      assert.equal(await store.outbox.skipPending(webhook.id, 'paused', 77), 2)
      assert.equal(await store.outbox.skipPending(webhook.id, 'paused', 78), 0)
      for (const row of [first, second]) {
        assert.deepEqual(await store.outbox.get(row.id), { ...row, state: 'skipped', finishedAt: 77, reason: 'paused' })
      }
      for (const row of [trial, sent, other]) assert.deepEqual(await store.outbox.get(row.id), row)
      assert.equal(await store.outbox.skipPending(other.channelId, 'gone', 79, 'failed'), 1)
      const ended = { ...other, state: 'failed', finishedAt: 79, reason: 'gone' }
      assert.deepEqual(await store.outbox.get(other.id), ended)
      await store.outbox.record([result(first)])
      const late = await store.outbox.get(first.id)
      assert.deepEqual([late?.state, late?.finishedAt, late?.attemptCount], ['skipped', 77, 1])
    })
  })
}
