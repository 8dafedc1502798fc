/** Historical scans: what they send, and what was told before. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AccountRecord, OutboxRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { arrive, facts } from './fixture.ts'
import { account, freshPath, hook, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

function subjects(path: string): string[] {
  return receiver.at(path).map((one) => (one.body['message_data'] as { subject: string }).subject)
}

suite('historical scans', () => {
  const day = 86_400_000
  const old = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      facts: facts(`old${index}`, { sentAt: 1_600_000_000_000 + index * day }),
    }))

  async function ready(of: AccountRecord): Promise<AccountRecord> {
    const edited = await rig.store.accounts.edit(of.id, { resume: { ...of.resume, initialSyncAt: Date.now() } })
    assert.ok(edited)
    return edited
  }

  /** The wish comes later than the webhook. */
  async function scanned(webhook: WebhookRecord): Promise<void> {
    await running.webhooks.edit(webhook, { receiveHistorical: true })
    await until('scanned', async () => (await rig.store.webhooks.scan(webhook.id, account.id))?.done)
  }

  test('newest to oldest, once, resumed by another start', async () => {
    const path = freshPath()
    await arrive(rig.store, null, account, old(250))
    await ready(account)
    await hook(path, { receiveHistorical: true, filters: { subject: '/old/' } })
    await until('some', () => receiver.at(path).length >= 20)
    await running.stop()
    await startAnew()
    await until('all', () => new Set(receiver.at(path).map((one) => one.id)).size === 250)
    await until('done', async () => {
      const [webhook] = await rig.store.webhooks.listByUser(user.id)
      return (await rig.store.webhooks.scan(webhook?.id ?? '', account.id))?.done
    })
    const order = [...new Set(subjects(path))]
    assert.deepEqual(
      order,
      old(250)
        .map((one) => one.facts.subject)
        .reverse(),
    )
  })

  test('application level: accounts added later, when their first sync is complete; live mail is not told twice', async () => {
    const path = freshPath()
    const webhook = await hook(path, { receiveHistorical: true }, null)
    await rig.store.webhooks.edit(webhook.id, {})
    const late = await rig.account(user)
    await arrive(rig.store, null, late, old(3))
    await arrive(rig.store, running.webhooks, late, [{ facts: facts('live', { sentAt: 1_700_000_000_000 }) }])
    await until('live', () => receiver.at(path).length === 1)
    await running.webhooks.initialSyncDone(await ready(late))
    await until('all', () => receiver.at(path).length === 4)
    await until('done', async () => (await rig.store.webhooks.scan(webhook.id, late.id))?.done)
    assert.deepEqual(subjects(path), ['Subject of live', 'Subject of old2', 'Subject of old1', 'Subject of old0'])
  })

  test('old mail that is read after the first sync: planned as it is read, of those accounts alone, and sent once', async () => {
    const [own, all, plain] = [freshPath(), freshPath(), freshPath()]
    await until('a moment later', () => Date.now() > account.createdAt)
    const webhooks = [
      await hook(own, { receiveHistorical: true, filters: { subject: '/old/' } }),
      await hook(all, { receiveHistorical: true }, null),
      await hook(plain),
    ]
    const late = await rig.account(user)
    const planned = async (of: AccountRecord, arrivals: Parameters<typeof arrive>[3]) => {
      const { messages } = await arrive(rig.store, null, of, arrivals)
      const rows = await running.webhooks.planOld(of, messages)
      assert(rows.every(({ lane, state }) => lane === 1 && state === 'pending'))
      return Map.groupBy(rows, ({ webhookId }) => webhooks.findIndex(({ id }) => id === webhookId))
    }
    assert.equal((await planned(late, [{ facts: facts('first') }])).size, 0, 'the scan will come to it')
    await ready(account)
    await ready(late)
    const names = [{ facts: facts('other') }, ...old(2)]
    assert.deepEqual([...(await planned(account, names)).keys()], [0], 'the account was there before the application’s')
    const rows = await planned(late, names)
    assert.deepEqual([rows.get(0)?.length, rows.get(1)?.length, rows.size], [2, 3, 2])
    const subjectOf = async ({ messageId }: OutboxRecord) =>
      (await rig.store.messages.get(late.id, messageId ?? ''))?.subject
    const newestFirst = ['Subject of other', 'Subject of old1', 'Subject of old0']
    assert.deepEqual(await Promise.all((rows.get(1) ?? []).map(subjectOf)), newestFirst)
    await rig.store.outbox.enqueue([...rows.values()].flat())
    await running.webhooks.initialSyncDone(late)
    await until('scanned', async () => (await rig.store.webhooks.scan(webhooks[1]?.id ?? '', late.id))?.done)
    await until('sent', () => receiver.at(all).length >= 4)
    assert.equal(new Set(receiver.at(all).map((one) => one.id)).size, 4)
    assert.deepEqual([receiver.at(all).length, receiver.at(plain).length], [4, 0])
  })

  test('old mail that is read once the scan has begun, before it is noted that the first sync is complete', async () => {
    const path = freshPath()
    const webhook = await hook(path, { receiveHistorical: true })
    await arrive(rig.store, null, account, [{ facts: facts('first') }])
    const planned = async (name: string): Promise<number> => {
      const { messages } = await arrive(rig.store, null, account, [{ facts: facts(name) }])
      return (await running.webhooks.planOld(account, messages)).length
    }
    assert.equal(await planned('second'), 0)
    await running.webhooks.initialSyncDone(account)
    assert.equal(await planned('third'), 1)
    await until('scanned', async () => (await rig.store.webhooks.scan(webhook.id, account.id))?.done)
    await running.stop()
    await startAnew()
    assert.equal(await planned('fourth'), 1)
  })

  test('what was told live, under whatever event, is not sent again', async () => {
    const [moved, sent] = [freshPath(), freshPath()]
    await arrive(rig.store, null, account, old(1))
    await ready(account)
    const hooks = [
      await hook(moved, { filters: { folderAdded: 'Done' } }),
      await hook(sent, { filters: { folderAdded: '*' } }),
    ]
    const one = { facts: facts('one') }
    await arrive(rig.store, running.webhooks, account, [one])
    await arrive(rig.store, running.webhooks, account, [{ ...one, path: 'Done', kind: 'folder_added', first: false }])
    const two = { facts: facts('two') }
    await arrive(rig.store, running.webhooks, account, [{ ...two, path: 'Drafts', kind: 'draft', flags: ['\\Draft'] }])
    await arrive(rig.store, running.webhooks, account, [{ ...two, path: 'Sent', kind: 'folder_added', first: false }])
    await until('all live ones', () => receiver.at(moved).length === 1 && receiver.at(sent).length === 3)
    for (const webhook of hooks) await scanned(webhook)
    await until('the old one', () => receiver.at(sent).length > 3)
    assert.deepEqual(subjects(moved), ['Subject of one'])
    assert.deepEqual(
      subjects(sent),
      ['one', 'one', 'two', 'old0'].map((name) => `Subject of ${name}`),
    )
  })

  test('a flags change that was told live hides no mail from the scan', async () => {
    const path = freshPath()
    await ready(account)
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('flagged') }])
    const webhook = await hook(path, { receiveAllChanges: true })
    const change = { facts: facts('flagged'), kind: 'flags_changed', first: false } as const
    await arrive(rig.store, running.webhooks, account, [change])
    await until('the change', () => receiver.at(path).length === 1)
    await scanned(webhook)
    await until('the mail', () => receiver.at(path).length === 2)
    assert.deepEqual(subjects(path), ['Subject of flagged', 'Subject of flagged'])
  })

  test('nor is mail that came since the webhook was made and whose callbacks are no longer kept', async (t) => {
    const path = freshPath()
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('before', { sentAt: 1_600_000_000_000 }) }])
    await ready(account)
    const webhook = await hook(path)
    await until('a moment later', () => Date.now() > webhook.createdAt)
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('live') }])
    await arrive(rig.store, null, account, [{ facts: facts('read late') }])
    const isDelivered = async ({ id }: OutboxRecord) => (await rig.store.outbox.get(id))?.state === 'delivered'
    await until('live', async () => (await Promise.all(rows.map(isDelivered))).join() === 'true')
    await running.stop()
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 31 * day })
    await startAnew()
    assert.equal(await rig.store.outbox.expire(Date.now() - 30 * day, 10), 1)
    await scanned(webhook)
    await until('what was there before', () => receiver.at(path).length > 2)
    assert.deepEqual(subjects(path), ['Subject of live', 'Subject of read late', 'Subject of before'])
  })
})
