/** The delivery log: what is listed and counted, and what is sent again. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../engine/store/ids.ts'
import type { OutboxKey } from '../../../engine/store/port.ts'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import type { Subject } from './mailbox.ts'
import { attempt, epochStart, outboxRecord, result, webhookRecord } from './records.ts'

export function deliveriesContract({ store }: Subject): void {
  describe('deliveries', () => {
    const all = { limit: 100, offset: 0 }
    /** Four rows of one webhook, oldest first, in each state, and one of another webhook. */
    const stage = async () => {
      const webhook = webhookRecord(newId())
      const other = webhookRecord(webhook.developerId)
      const [accountId, messageId] = [newId(), newId()]
      const rows = [
        outboxRecord(webhook, { state: 'delivered', finishedAt: 5, accountId, attempts: [attempt({ status: 204 })] }),
        outboxRecord(webhook, { state: 'failed', finishedAt: 6, accountId, messageId, attempts: [attempt()] }),
        outboxRecord(webhook, { state: 'skipped', finishedAt: 7, messageId }),
        outboxRecord(webhook, { attempts: [attempt({ status: null }), attempt({ status: 404 })] }),
        outboxRecord(other, { accountId, messageId, state: 'failed', finishedAt: 8 }),
      ] as const
      await store.outbox.enqueue(rows)
      return { webhook, other, accountId, messageId, rows }
    }

    test('are listed newest first by whatever is named', async () => {
      const { webhook, accountId, messageId, rows } = await stage()
      const [delivered, failed, skipped, pending, others] = rows
      const webhookId = webhook.id
      const list = async (query: Parameters<typeof store.outbox.list>[0]) => store.outbox.list(query, all)
      assert.deepEqual(await list({ webhookId }), [pending, skipped, failed, delivered])
      assert.deepEqual(await list({ developerId: webhook.developerId }), [...rows].reverse())
      assert.deepEqual(await list({ accountId }), [others, failed, delivered])
      assert.deepEqual(await list({ messageId }), [others, skipped, failed])
      assert.deepEqual(await list({ messageId, webhookId }), [skipped, failed])
      assert.deepEqual(await list({ webhookId, states: ['failed', 'pending'] }), [pending, failed])
      assert.deepEqual(await list({ webhookId, states: [] }), [])
      assert.deepEqual(await list({ accountId, states: ['failed'] }), [others, failed])
      const { createdAt } = failed
      assert.deepEqual(await list({ webhookId, createdFrom: createdAt }), [pending, skipped, failed])
      assert.deepEqual(await list({ webhookId, createdUntil: createdAt }), [failed, delivered])
      assert.deepEqual(await list({ webhookId, createdFrom: createdAt, createdUntil: createdAt }), [failed])
      assert.deepEqual(await list({ webhookId, statusFrom: 400 }), [pending, failed])
      assert.deepEqual(await list({ webhookId, statusFrom: 200, statusTo: 299 }), [delivered])
      assert.deepEqual(await list({ developerId: newId() }), [])
    })

    test('of all are listed and counted by time and state, and of several webhooks', async () => {
      const { webhook, other, rows } = await stage()
      const [delivered, failed, skipped, pending, others] = rows
      const at = Math.floor(delivered.createdAt / 10) * 10
      const time = { createdFrom: delivered.createdAt, createdUntil: others.createdAt }
      assert.deepEqual(await store.outbox.list(time, all), [...rows].reverse())
      assert.deepEqual(await store.outbox.list(time, all, 'ASC'), rows)
      assert.deepEqual(await store.outbox.list({ ...time, states: ['failed'] }, all), [others, failed])
      const both = { webhookId: [webhook.id, other.id] }
      assert.deepEqual(await store.outbox.list({ ...both, states: ['failed'] }, all), [others, failed])
      assert.deepEqual(await store.outbox.list(both, { limit: 2, offset: 1 }), [pending, skipped])
      const states = async (query: Parameters<typeof store.outbox.counts>[0], stepMs: number) => {
        const counts = await store.outbox.counts(query, stepMs)
        assert(counts.every((one) => one.at % stepMs === 0 && one.at >= at - stepMs))
        assert.equal(new Set(counts.map((one) => `${one.at} ${one.state}`)).size, counts.length)
        const sums = Map.groupBy(counts, ({ state }) => state)
        return [...sums].map(([state, own]) => [state, own.reduce((sum, { count }) => sum + count, 0)]).sort()
      }
      const two = [
        ['delivered', 1],
        ['failed', 2],
        ['pending', 1],
        ['skipped', 1],
      ]
      for (const query of [time, both, { developerId: webhook.developerId }])
        for (const stepMs of [1, 1000, 86_400_000]) assert.deepEqual(await states(query, stepMs), two)
      assert.deepEqual(await states({ ...both, states: ['failed'], accountId: failed.accountId ?? '' }, 60_000), [
        ['failed', 2],
      ])
      assert.deepEqual(await states({ messageId: newId() }, 60_000), [])
    })

    test('come in pages', async () => {
      const { webhook } = await stage()
      const whole = await store.outbox.list({ webhookId: webhook.id }, all)
      for (const query of [{ webhookId: webhook.id }, { webhookId: webhook.id, developerId: webhook.developerId }]) {
        const pages: OutboxRecord[] = []
        for (let offset = 0; offset < 6; offset += 3) {
          pages.push(...(await store.outbox.list(query, { limit: 3, offset })))
        }
        assert.deepEqual(pages, whole)
      }
    })

    test('of several accounts or messages are one list, also of more accounts than are walked side by side', async () => {
      const webhook = webhookRecord(newId())
      const accounts = Array.from({ length: 40 }, () => newId())
      const rows = [0, 1].flatMap((round) =>
        accounts.map((accountId, index) =>
          outboxRecord(webhook, { accountId, messageId: newId(), createdAt: epochStart + round * 100 + (index % 7) }),
        ),
      )
      await store.outbox.enqueue(rows)
      for (const some of [accounts, accounts.slice(0, 3), accounts.slice(0, 1), []]) {
        const own = rows
          .filter((row) => some.includes(row.accountId ?? ''))
          .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
        const page = { limit: 3, offset: 2 }
        assert.deepEqual(await store.outbox.list({ accountId: some }, page), own.slice(2, 5))
        const messageId = own.map((row) => row.messageId ?? '')
        const query = { accountId: some, messageId, webhookId: webhook.id }
        assert.deepEqual(await store.outbox.list(query, page), own.slice(2, 5))
      }
    })

    test('are set back to pending, finished ones alone unless they are named', async () => {
      const { webhook, rows } = await stage()
      const [delivered, failed, , pending, others] = rows
      const query = { webhookId: webhook.id, states: ['failed', 'pending'] } as const
      assert.deepEqual(await store.outbox.requeue(query, epochStart + 99, 10), { count: 1, next: null })
      const expected = { ...failed, state: 'pending', attemptCount: 0, dueAt: epochStart + 99, finishedAt: null }
      assert.deepEqual(await store.outbox.get(failed.id), expected)
      assert.deepEqual(await store.outbox.get(pending.id), pending)
      assert.deepEqual(await store.outbox.get(delivered.id), delivered)
      assert.deepEqual(await store.outbox.get(others.id), others)
      assert.deepEqual(await store.outbox.pending(webhook.id, [], 9), [expected, pending])
    })

    test('are set back by id and up to a limit, oldest first', async () => {
      const { webhook, rows } = await stage()
      const [delivered, failed, skipped, pending, others] = rows
      const webhookId = webhook.id
      const ids = [others.id, pending.id, skipped.id]
      assert.deepEqual(await store.outbox.requeue({ webhookId, ids }, epochStart + 7, 10), { count: 2, next: null })
      assert.equal((await store.outbox.get(skipped.id))?.state, 'pending')
      assert.deepEqual(await store.outbox.get(pending.id), { ...pending, attemptCount: 0, dueAt: epochStart + 7 })
      const next = { createdAt: delivered.createdAt, id: delivered.id }
      assert.deepEqual(await store.outbox.requeue({ webhookId }, epochStart, 1), { count: 1, next })
      assert.equal((await store.outbox.get(delivered.id))?.state, 'pending')
      assert.equal((await store.outbox.get(failed.id))?.state, 'failed')
      assert.equal((await store.outbox.requeue({ webhookId, ids: [] }, epochStart, 9)).count, 0)
      assert.equal((await store.outbox.requeue({ webhookId }, epochStart, 9)).count, 1)
    })

    test('are set back batch by batch, each once, whatever is finished meanwhile', async () => {
      const webhook = webhookRecord(newId())
      const rows = Array.from({ length: 7 }, (_, index) =>
        outboxRecord(webhook, {
          id: index.toString(16).padStart(32, '0'),
          createdAt: epochStart + Math.floor(index / 3),
          state: index % 2 === 0 ? 'failed' : 'delivered',
          finishedAt: epochStart + 50,
        }),
      ).map((row) => ({ ...row, id: webhook.id + row.id.slice(-8) }))
      const late = outboxRecord(webhook, { createdAt: epochStart, state: 'failed', finishedAt: epochStart + 61 })
      await store.outbox.enqueue([...rows, late])
      const query = { webhookId: webhook.id, createdUntil: epochStart + 9, finishedUntil: epochStart + 60 }
      const counts: number[] = []
      for (let next: OutboxKey | null | undefined; next !== null;) {
        const step = await store.outbox.requeue(query, epochStart + 60, 3, next)
        counts.push(step.count)
        const sent = (await store.outbox.pending(webhook.id, [], 9)).map((row) =>
          result(row, { state: 'delivered', finishedAt: epochStart + 60 }),
        )
        await store.outbox.record(sent)
        next = step.next
      }
      assert.deepEqual(counts, [3, 3, 1])
      for (const { id } of rows) assert.equal((await store.outbox.get(id))?.attempts.length, 1)
      assert.deepEqual(await store.outbox.get(late.id), late)
      const before = { ...query, finishedUntil: epochStart + 59 }
      assert.deepEqual(await store.outbox.requeue(before, epochStart, 9), { count: 0, next: null })
    })

    test('of every kind are listed by owner and kind', async () => {
      const webhook = webhookRecord(newId())
      const accountId = newId()
      const url = 'https://receiver.example.com/notice'
      const notice = (patch: Partial<OutboxRecord>) => outboxRecord(webhook, { accountId, url, event: null, ...patch })
      const rows = [
        notice({ kind: 'status', webhookId: null, state: 'delivered', finishedAt: 3 }),
        notice({ kind: 'message', url: null }),
        notice({ kind: 'failure', state: 'failed', finishedAt: 4 }),
        notice({ kind: 'failure' }),
        notice({ kind: 'test', accountId: null, state: 'delivered', finishedAt: 4 }),
      ] as const
      await store.outbox.enqueue(rows)
      const [status, message, failed, failure, trial] = rows
      const { developerId, id: webhookId } = webhook
      const list = async (query: Parameters<typeof store.outbox.list>[0]) => store.outbox.list(query, all)
      assert.deepEqual(await list({ developerId, kind: 'status' }), [status])
      assert.deepEqual(await list({ accountId, kind: 'status' }), [status])
      assert.deepEqual(await list({ webhookId, kind: 'status' }), [])
      assert.deepEqual(await list({ webhookId, kind: 'failure' }), [failure, failed])
      assert.deepEqual(await list({ webhookId, kind: 'failure', states: ['failed'] }), [failed])
      assert.deepEqual(await list({ accountId, developerId, kind: 'failure', createdFrom: failure.createdAt }), [
        failure,
      ])
      assert.deepEqual(await list({ webhookId, kind: 'test' }), [trial])
      assert.deepEqual(await list({ accountId, kind: 'message' }), [message])
      assert.deepEqual(await list({ webhookId }), [trial, failure, failed, message])
    })

    test('expire when they are finished and old, in steps', async () => {
      const webhook = webhookRecord(newId())
      const rows = [-30, -20, -10].map((finishedAt) => outboxRecord(webhook, { state: 'failed', finishedAt }))
      const waiting = outboxRecord(webhook, { createdAt: 1 })
      await store.outbox.enqueue([...rows, waiting])
      assert.equal(await store.outbox.expire(-10, 1), 1)
      assert.equal(await store.outbox.expire(-10, 9), 1)
      assert.equal(await store.outbox.expire(-10, 9), 0)
      assert.deepEqual(await store.outbox.get(waiting.id), waiting)
      assert.deepEqual(await store.outbox.list({ webhookId: webhook.id, states: ['failed'] }, all), rows.slice(2))
    })
  })
}
