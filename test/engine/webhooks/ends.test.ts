/** Callbacks that one node has planned while another node ends or pauses their webhook: none stays pending. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AccountRecord, OutboxRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { arrive, developerId, facts, type Running } from './fixture.ts'
import { account, freshPath, hook, receiver, rig, running, startAnew, user, useScene } from './scene.ts'

useScene()

/** A callback that the receiver refuses waits for the rest of the test. */
const slow = { MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' }

const ends = [
  ['a 410', 'failed', 'the receiver answered 410 Gone'],
  ['active=0', 'skipped', 'the webhook was paused'],
] as const

async function planned({ webhooks }: Running, to: AccountRecord): Promise<OutboxRecord> {
  const { rows } = await arrive(rig.store, webhooks, to, [{ facts: facts('late') }])
  const [row] = rows
  assert.ok(row, 'no callback was planned')
  return row
}

for (const [what, ...expected] of ends) {
  suite(`after ${what}, a callback of another node`, () => {
    /** `end` ends the webhook on `running`; `other` has not heard of it. */
    async function begin() {
      await running.stop()
      await startAnew(slow)
      const path = freshPath()
      receiver.script(path, what === 'a 410' ? [{ status: 410 }] : [], { status: 503 })
      const webhook = await hook(path, {}, null)
      const other = await rig.start(slow)
      const late = await rig.account(user)
      return {
        webhook,
        path,
        other,
        async end(): Promise<void> {
          if (what === 'a 410') await planned(running, account)
          else await running.webhooks.edit(webhook, { active: false })
          await until('inactive', async () => (await rig.store.webhooks.get(webhook.id))?.active === false)
        },
        hear: () => other.webhooks.rereadWebhook(webhook.id),
        arrives: () => planned(other, late),
      }
    }

    async function outcome({ id }: OutboxRecord): Promise<readonly unknown[]> {
      const row = await until('ended', async () => {
        const now = await rig.store.outbox.get(id)
        return now?.state === 'pending' ? null : now
      })
      return [row.state, row.reason]
    }

    async function refused({ id }: OutboxRecord): Promise<void> {
      await until('refused', async () => (await rig.store.outbox.get(id))?.attemptCount === 1)
    }

    test('ends when it is stored after the node has heard', async (context) => {
      const { end, hear, arrives } = await begin()
      const { sync } = rig.store
      const apply = sync.apply.bind(sync)
      const applyLate: typeof apply = async (batch) => {
        await end()
        await hear()
        return apply(batch)
      }
      context.mock.method(sync, 'apply', applyLate, { times: 1 })
      assert.deepEqual(await outcome(await arrives()), expected)
    })

    test('ends when it is stored before the node hears', async () => {
      const { end, hear, arrives } = await begin()
      await end()
      const row = await arrives()
      await refused(row)
      await hear()
      assert.deepEqual(await outcome(row), expected)
    })

    test('ends at the next start when the node does not hear', async () => {
      const { other, end, arrives } = await begin()
      await end()
      const row = await arrives()
      await refused(row)
      await Promise.all([other.stop(), running.stop()])
      await startAnew(slow)
      assert.deepEqual(await outcome(row), expected)
    })

    test('ends with an edit with active=1 when it is still there', async () => {
      const { webhook, end, hear, arrives } = await begin()
      await end()
      const row = await arrives()
      await refused(row)
      await hear()
      await rig.store.outbox.requeue({ developerId, ids: [row.id] }, Date.now(), 1)
      await running.webhooks.edit(webhook, { active: true })
      assert.deepEqual(await outcome(row), expected)
    })

    test('goes out when the webhook is active again, and the node does not know', async () => {
      const { webhook, path, other, end, hear } = await begin()
      await end()
      await hear()
      await running.webhooks.edit(webhook, { active: true })
      const row = await planned(running, account)
      await refused(row)
      other.webhooks.rereadChannel(webhook.id)
      receiver.script(path, [])
      await running.webhooks.edit(webhook, { active: true })
      assert.deepEqual(await outcome(row), ['delivered', null])
    })

    test('ends by a later pause as by the first', async () => {
      const { webhook, end } = await begin()
      await end()
      await running.webhooks.edit(webhook, { active: true })
      const row = await planned(running, account)
      await refused(row)
      await running.webhooks.edit(webhook, { active: false })
      assert.deepEqual(await outcome(row), ['skipped', 'the webhook was paused'])
    })

    test('ends alike when it is being sent', async (context) => {
      const { other, end, hear, arrives } = await begin()
      const { developers } = rig.store
      const get = developers.get.bind(developers)
      const [isAsked, isEnded] = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()]
      const getLate: typeof get = async (id) => {
        isAsked.resolve(null)
        await isEnded.promise
        return get(id)
      }
      context.mock.method(developers, 'get', getLate, { times: 1 })
      const row = await arrives()
      await isAsked.promise
      await end()
      await hear()
      isEnded.resolve(null)
      await other.stop()
      assert.deepEqual(await outcome(row), expected)
    })
  })
}
