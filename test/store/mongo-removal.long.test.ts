/**
 * Removals that meet a writer between two of its writes, and removals that are cut short: the tidying leaves nothing.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isAppError } from '../../engine/errors.ts'
import { newId, urlChannelId } from '../../engine/store/ids.ts'
import { freshResume } from '../../engine/store/rows.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, listed, rejectsWith, type Mailbox } from './contract/mailbox.ts'
import { epochStart, outboxRecord, webhookRecord } from './contract/records.ts'
import { holdFirst, isWrite } from './mongo-proxy.ts'
import { database, direct, proxy, raw, store, useProxiedDatabase } from './mongo-scene.ts'

suite('a removal', needs('mongodb'), () => {
  let now = Date.now()
  useProxiedDatabase({ now: () => now })

  async function left(accountId: string): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const name of ['folders', 'messages', 'changes', 'outbox', 'scans']) {
      const count = await raw.db().collection(name).countDocuments({ accountId })
      if (count > 0) counts[name] = count
    }
    const contacts = await raw.db().collection('contacts').countDocuments({ accountId })
    return contacts > 0 ? { ...counts, contacts } : counts
  }

  async function arrivals(mailbox: Mailbox) {
    const added = [1, 2, 3].map((uid) => mailbox.added('INBOX', uid))
    const events = added.map((one) => mailbox.event(one))
    const [changes, outbox] = [events.flatMap((event) => event.changes), events.flatMap((event) => event.outbox)]
    const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
    const of = { userId: mailbox.user.id, email: 'ada@example.com', name: '' }
    const contacts = added.map(({ id }) => ({ ...of, key: `${id}:r`, ...counts }))
    return mailbox.batch('INBOX', { added, changes, outbox, contacts })
  }

  for (const where of ['contacts', 'messages', 'changes', 'outbox', 'folders']) {
    test(`of an account while a batch is held before its ${where}`, async () => {
      const mailbox = await createMailbox(direct)
      const batch = await arrivals(mailbox)
      const held = holdFirst(proxy, (command) => command['insert'] === where || command['update'] === where)
      const writing = rejectsWith(store.sync.apply(batch), 'lease_lost')
      await until('the batch is held', () => held.held)
      await direct.accounts.remove(mailbox.account.id)
      held.release()
      await writing
      await direct.tidy()
      assert.deepEqual(await left(mailbox.account.id), {})
    })
  }

  test('of an account while its folders are listed', async () => {
    const { account } = await createMailbox(direct)
    const held = holdFirst(proxy, (command) => command['update'] === 'folders')
    const list = [listed('INBOX'), listed('Later')]
    const writing = rejectsWith(store.folders.reconcile(account.id, account.epoch, list, true), 'lease_lost')
    await until('the list is held', () => held.held)
    await direct.accounts.remove(account.id)
    held.release()
    await writing
    await direct.tidy()
    assert.deepEqual(await left(account.id), {})
  })

  test('of an account while its status changes', async () => {
    const mailbox = await createMailbox(direct)
    const { account } = mailbox
    const row = outboxRecord(
      { id: urlChannelId(account.developerId, 'https://x.example/'), developerId: account.developerId },
      { accountId: account.id, kind: 'status', webhookId: null, url: 'https://x.example/' },
    )
    const held = holdFirst(proxy, (command) => command['insert'] === 'outbox')
    const step = { accountId: account.id, epoch: account.epoch, fromVersion: 0, resume: freshResume, outbox: [row] }
    const changing = store.accounts.transition({ ...step, status: 'DISABLED', statusMessage: 'no' })
    await until('the transition is held', () => held.held)
    await direct.accounts.remove(account.id)
    held.release()
    assert.equal(await changing, null)
    await direct.tidy()
    assert.deepEqual(await left(account.id), {})
  })

  test('of an account whose writer dies in the middle: the next tidying takes the rest', async () => {
    const mailbox = await createMailbox(direct)
    const batch = await arrivals(mailbox)
    const victim = await database.open({ uri: proxy.uri, timeoutMs: 5000, now: () => now })
    const held = holdFirst(proxy, (command) => command['insert'] === 'changes')
    const writing = victim.sync.apply(batch).catch((error: unknown) => error)
    await until('the batch is held', () => held.held)
    await direct.accounts.remove(mailbox.account.id)
    const before = proxy.decide
    let passed = 0
    proxy.decide = (command) => (isWrite(command) && (passed += 1) > 1 ? 'die' : before(command))
    held.release()
    const outcome = await writing
    assert(isAppError(outcome), String(outcome))
    proxy.decide = () => 'pass'
    proxy.revive()
    assert.notDeepEqual(await left(mailbox.account.id), {}, 'something is left to tidy')
    assert((await direct.tidy()) > 0)
    assert.deepEqual(await left(mailbox.account.id), {})
    // and is forgotten when no writer can be under way any more
    now += 2 * 3_600_000
    await direct.tidy()
    assert.equal(await raw.db().collection('removals').countDocuments({ of: mailbox.account.id }), 0)
  })

  test('that is cut short goes on by itself', async () => {
    const [one, two] = [await createMailbox(direct), await createMailbox(direct)]
    for (const box of [one, two]) await box.apply('INBOX', await arrivals(box))
    const victim = await database.open({ uri: proxy.uri, timeoutMs: 5000, now: () => now })
    proxy.decide = (command) => (command['delete'] === 'changes' ? 'die' : 'pass')
    await rejectsWith(victim.accounts.remove(one.account.id), 'store_unavailable')
    proxy.revive()
    await until('the database answers', () => victim.ping().then(() => true))
    await rejectsWith(victim.users.remove(two.user.id), 'store_unavailable')
    proxy.revive()
    proxy.decide = () => 'pass'
    await direct.tidy()
    assert.notEqual(await direct.accounts.get(one.account.id), null, 'it may still be at work')
    now += 61_000
    await direct.tidy()
    assert.equal(await direct.accounts.get(one.account.id), null)
    assert.equal(await direct.users.get(two.user.developerId, two.user.id), null)
    for (const box of [one, two]) assert.deepEqual(await left(box.account.id), {})
  })

  test('that is cut short before its first row goes on by itself', async () => {
    for (const first of ['accounts', 'folders']) {
      const mailbox = await createMailbox(direct)
      await mailbox.apply('INBOX', await arrivals(mailbox))
      const victim = await database.open({ uri: proxy.uri, timeoutMs: 5000, now: () => now })
      proxy.decide = (command) => (command['update'] === first || command['findAndModify'] === first ? 'die' : 'pass')
      await rejectsWith(victim.accounts.remove(mailbox.account.id), 'store_unavailable')
      proxy.revive()
      proxy.decide = () => 'pass'
      now += 61_000
      await direct.tidy()
      assert.equal(await direct.accounts.get(mailbox.account.id), null, `died before its write to ${first}`)
      assert.deepEqual(await left(mailbox.account.id), {})
    }
  })

  test('of a webhook while rows are queued for it', async () => {
    const mailbox = await createMailbox(direct)
    const webhook = webhookRecord(mailbox.developer.id, { userId: mailbox.user.id })
    const row = () => outboxRecord(webhook, { accountId: mailbox.account.id })
    await direct.webhooks.create(webhook)
    await direct.outbox.enqueue([row()])
    const held = holdFirst(proxy, (command) => command['delete'] === 'webhooks')
    const removing = store.webhooks.remove(webhook.id)
    await until('the removal is held', () => held.held)
    await direct.outbox.enqueue([row()])
    held.release()
    await removing
    assert.equal((await direct.outbox.backlog(webhook.id)).pending, 0)
    // later still: planned before the removal, queued after it
    await direct.outbox.enqueue([row()])
    assert.equal(await direct.tidy(), 1)
    assert.equal((await direct.outbox.backlog(webhook.id)).pending, 0)
    const scan = { webhookId: webhook.id, accountId: mailbox.account.id, after: null, done: false }
    await direct.webhooks.saveScan(scan, [row()])
    assert.equal(await direct.tidy(), 2)
    assert.equal(await direct.webhooks.scan(webhook.id, mailbox.account.id), null)
    assert.equal((await direct.outbox.backlog(webhook.id)).pending, 0)
  })

  test('a pause skips a long backlog in steps, and what it did stays when it fails', async () => {
    const webhook = webhookRecord(newId())
    const rows = Array.from({ length: 3500 }, () => outboxRecord(webhook))
    for (let start = 0; start < rows.length; start += 500) await direct.outbox.enqueue(rows.slice(start, start + 500))
    let updates = 0
    proxy.decide = (command) => (command['update'] === 'outbox' && (updates += 1) > 2 ? 'die' : 'pass')
    const victim = await database.open({ uri: proxy.uri })
    await rejectsWith(victim.outbox.skipPending(webhook.id, 'paused', epochStart), 'store_unavailable')
    assert.equal((await direct.outbox.backlog(webhook.id)).pending, 1500)
    assert.equal(await direct.outbox.skipPending(webhook.id, 'paused', epochStart), 1500)
  })
})
