/** Webhooks, their health and their scans. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { newId } from '../../../engine/store/ids.ts'
import type { WebhookRecord } from '../../../engine/store/records.ts'
import { freshHealth } from '../../../engine/store/rows.ts'
import { createUser, rejectsWith, type Subject } from './mailbox.ts'
import { epochStart, outboxRecord, webhookRecord } from './records.ts'

export function webhooksContract({ store }: Subject): void {
  describe('webhooks', () => {
    test('are listed by owner, oldest first', async () => {
      const { developerId, id: userId } = await createUser(store)
      const [second, first] = [2, 1].map((age) => webhookRecord(developerId, { userId, createdAt: epochStart + age }))
      const [appSecond, appFirst] = [2, 1].map((age) => webhookRecord(developerId, { createdAt: epochStart + age }))
      assert(first && second && appFirst && appSecond)
      for (const webhook of [second, appSecond, first, appFirst]) await store.webhooks.create(webhook)
      assert.deepEqual(await store.webhooks.listByUser(userId), [first, second])
      assert.deepEqual(await store.webhooks.listByDeveloper(developerId), [appFirst, appSecond])
      assert.deepEqual(await store.webhooks.listByDeveloper(newId()), [])
      assert.deepEqual(await store.webhooks.get(first.id), first)
      assert.equal(await store.webhooks.get(newId()), null)
    })

    test('of a user are not there without it', async () => {
      const webhook = webhookRecord(newId(), { userId: newId() })
      await rejectsWith(store.webhooks.create(webhook), 'not_found')
      assert.equal(await store.webhooks.get(webhook.id), null)
    })

    test('are no more than there may be, of a user, of the application and of a developer', async () => {
      const one = await createUser(store)
      const { developerId } = one
      const other = await createUser(store, developerId)
      const limits = { owner: 2, developer: 5 }
      const create = (userId: string | null) => store.webhooks.create(webhookRecord(developerId, { userId }), limits)
      const refused = async (userId: string | null, limit: string): Promise<void> => {
        await assert.rejects(
          create(userId),
          (error) => isAppError(error, 'too_many') && error.details['limit'] === limit,
        )
      }
      for (const { id } of [one, other]) {
        for (let count = 0; count < 2; count += 1) await create(id)
        await refused(id, 'owner')
      }
      await create(null)
      await refused(null, 'developer')
      const [first] = await store.webhooks.listByUser(one.id)
      assert(first)
      await store.webhooks.remove(first.id)
      await create(null)
      await refused(one.id, 'developer')
      await store.webhooks.remove((await store.webhooks.listByUser(other.id))[0]?.id ?? '')
      await refused(null, 'owner')
      await store.webhooks.create(webhookRecord(developerId), { owner: 0, developer: 0 })
      assert.equal((await store.webhooks.listByDeveloper(developerId)).length, 3)
    })

    test('made at the same time, no more remain than there may be', async () => {
      const { developerId, id: userId } = await createUser(store)
      const create = () => store.webhooks.create(webhookRecord(developerId, { userId }), { owner: 3, developer: 0 })
      const made = await Promise.allSettled(Array.from({ length: 12 }, create))
      const succeeded = made.filter(({ status }) => status === 'fulfilled').length
      const there = (await store.webhooks.listByUser(userId)).length
      assert(there <= 3, `${there} are there`)
      assert.equal(succeeded, there)
    })

    test('pages go over all of them by id, once each', async () => {
      const made = Array.from({ length: 5 }, () => webhookRecord(newId()))
      for (const webhook of made) await store.webhooks.create(webhook)
      const seen: string[] = []
      for (let after: string | null = null; ;) {
        const page: WebhookRecord[] = await store.webhooks.page(after, 2)
        seen.push(...page.map((webhook) => webhook.id))
        if (page.length < 2) break
        after = page.at(-1)?.id ?? null
      }
      assert.deepEqual(seen, [...new Set(seen)].sort())
      for (const webhook of made) assert(seen.includes(webhook.id))
    })

    test('an edit changes what it names, and takes filters away', async () => {
      const webhook = webhookRecord(newId(), { filters: { subject: 'a', from: 'b' } })
      await store.webhooks.create(webhook)
      const patch = { active: false, filters: { from: 'c' }, failureNotifUrl: 'https://x.example/' }
      assert.deepEqual(await store.webhooks.edit(webhook.id, patch), { ...webhook, ...patch })
      assert.deepEqual(await store.webhooks.get(webhook.id), { ...webhook, ...patch })
      assert.equal(await store.webhooks.edit(newId(), { active: true }), null)
    })

    test('health is recorded with the notification it announces', async () => {
      const webhook = webhookRecord(newId())
      await store.webhooks.create(webhook)
      const health = {
        ...freshHealth,
        failure: true,
        consecutiveFailures: 3,
        failureVersion: 1,
        failingSince: epochStart,
      }
      const row = outboxRecord(webhook, { kind: 'failure', channelId: 'u'.padEnd(24, '1'), webhookId: null })
      await store.webhooks.recordHealth(webhook.id, health, [row])
      await store.webhooks.recordHealth(webhook.id, health, [row])
      assert.deepEqual(await store.webhooks.get(webhook.id), { ...webhook, health })
      assert.deepEqual(await store.outbox.get(row.id), row)
    })

    test('health that replaces another one is recorded only while that one is there', async () => {
      const webhook = webhookRecord(newId())
      await store.webhooks.create(webhook)
      const failing = { ...freshHealth, failure: true, failingSince: epochStart }
      assert.equal(await store.webhooks.recordHealth(webhook.id, failing, [], webhook.health), true)
      const stored = (await store.webhooks.get(webhook.id))?.health
      assert.equal(await store.webhooks.recordHealth(webhook.id, freshHealth, [], webhook.health), false)
      assert.deepEqual(await store.webhooks.get(webhook.id), { ...webhook, health: failing })
      assert.equal(await store.webhooks.recordHealth(webhook.id, freshHealth, [], stored), true)
      assert.deepEqual(await store.webhooks.get(webhook.id), { ...webhook, health: freshHealth })
      assert.equal(await store.webhooks.recordHealth(newId(), freshHealth, [], stored), false)
    })

    test('a removal takes pending rows and scans along, and leaves the record of deliveries', async () => {
      const webhook = webhookRecord(newId())
      const other = webhookRecord(webhook.developerId)
      for (const one of [webhook, other]) await store.webhooks.create(one)
      const sent = outboxRecord(webhook, { state: 'delivered', finishedAt: epochStart })
      const [waiting, others] = [outboxRecord(webhook), outboxRecord(other)]
      await store.outbox.enqueue([sent, waiting, others])
      await store.webhooks.saveScan({ webhookId: webhook.id, accountId: newId(), after: null, done: false }, [])
      await store.webhooks.remove(webhook.id)
      assert.equal(await store.webhooks.get(webhook.id), null)
      assert.equal(await store.outbox.get(waiting.id), null)
      assert.deepEqual(await store.outbox.get(sent.id), sent)
      assert.deepEqual(await store.outbox.get(others.id), others)
      assert.deepEqual(await store.webhooks.get(other.id), other)
      await store.webhooks.remove(webhook.id)
    })

    test('a scan moves on with the rows it queued', async () => {
      const webhook = webhookRecord(newId())
      await store.webhooks.create(webhook)
      const accountId = newId()
      const key = { webhookId: webhook.id, accountId }
      assert.equal(await store.webhooks.scan(webhook.id, accountId), null)
      const row = outboxRecord(webhook, { lane: 1, accountId })
      const scan = { ...key, after: { sentAt: 5, id: newId() }, done: false }
      await store.webhooks.saveScan(scan, [row])
      assert.deepEqual(await store.webhooks.scan(webhook.id, accountId), scan)
      assert.deepEqual(await store.outbox.get(row.id), row)
      const result = { id: row.id, attempt: null, state: 'delivered', dueAt: 1, finishedAt: 2, reason: null } as const
      await store.outbox.record([result])
      await store.webhooks.saveScan({ ...scan, done: true }, [row])
      assert.deepEqual(await store.webhooks.scan(webhook.id, accountId), { ...scan, done: true })
      assert.equal((await store.outbox.get(row.id))?.state, 'delivered', 'a repeat queues nothing again')
      assert.equal(await store.webhooks.scan(webhook.id, newId()), null)
      await store.webhooks.remove(webhook.id)
      assert.equal(await store.webhooks.scan(webhook.id, accountId), null)
    })
  })
}
