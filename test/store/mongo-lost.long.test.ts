/** The database does what it was asked, and the answer is lost: what a creation leaves, and who hears of it. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Document } from 'mongodb'
import { newId } from '../../engine/store/ids.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, createUser, rejectsWith } from './contract/mailbox.ts'
import { accountRecord, epochStart, outboxRecord, tokenRecord, userRecord, webhookRecord } from './contract/records.ts'
import { isWrite } from './mongo-proxy.ts'
import { database, direct, proxy, raw, store, useProxiedDatabase } from './mongo-scene.ts'

suite('an answer that is lost', needs('mongodb'), () => {
  useProxiedDatabase({ timeoutMs: 8000 })

  /** The first write like this is carried out, and its answer lost; the way is open again after `backMs`. */
  function lose(is: (command: Document) => boolean, backMs: number | null = 100): { readonly lost: boolean } {
    const state = { lost: false }
    const { die } = proxy
    proxy.die = () => {
      proxy.die = die
      die()
      if (backMs !== null) setTimeout(() => proxy.revive(), backMs)
    }
    proxy.decide = (command) => {
      if (state.lost || !isWrite(command) || !is(command)) return 'pass'
      state.lost = true
      return 'die-after'
    }
    return state
  }

  for (const collection of ['accounts', 'users']) {
    test(`of a user's creation with its account (${collection}): both are there, and the caller hears so`, async () => {
      const user = userRecord(newId())
      const account = accountRecord(user)
      const state = lose((command) => command['insert'] === collection)
      await store.users.createWithAccount(user, account)
      assert(state.lost)
      assert.deepEqual(await direct.users.get(user.developerId, user.id), user)
      assert.deepEqual(await direct.accounts.get(account.id), account)
      // to be found there when it is not repeated is an error still
      await rejectsWith(store.users.createWithAccount(user, accountRecord(user)), 'conflict')
    })
  }

  test('of an account, a webhook and a token: they are there, once', async () => {
    const user = await createUser(direct)
    const account = accountRecord(user)
    lose((command) => command['insert'] === 'accounts')
    await store.accounts.create(account)
    assert.deepEqual(await direct.accounts.listByUser(user.id), [account])
    const webhook = webhookRecord(user.developerId, { userId: user.id })
    lose((command) => command['insert'] === 'webhooks')
    await store.webhooks.create(webhook)
    assert.deepEqual(await direct.webhooks.listByUser(user.id), [webhook])
    const token = tokenRecord(user.developerId, { userId: user.id })
    lose((command) => command['insert'] === 'tokens')
    await store.tokens.create(token)
    assert.deepEqual(await direct.tokens.list(user.developerId, {}, 10), [token])
    await rejectsWith(store.accounts.create({ ...account, id: newId() }), 'conflict')
  })

  test('of a creation while the database stays away: unavailable, and nothing is begun later', async () => {
    const impatient = await database.open({ uri: proxy.uri, timeoutMs: 5000 })
    const user = userRecord(newId())
    const account = accountRecord(user)
    const state = lose((command) => command['insert'] === 'accounts', null)
    await rejectsWith(impatient.users.createWithAccount(user, account), 'store_unavailable')
    assert(state.lost)
    proxy.revive()
    await until('the database answers', () => impatient.ping().then(() => true))
    await impatient.users.undoCreate(user.id, account.id)
    assert.equal(await direct.users.get(user.developerId, user.id), null)
    assert.equal(await direct.accounts.get(account.id), null)
    await impatient.users.undoCreate(user.id, account.id)
  })

  test('an undo that dies on its way never leaves a user without its account', async () => {
    const user = userRecord(newId())
    const account = accountRecord(user)
    await direct.users.createWithAccount(user, account)
    const impatient = await database.open({ uri: proxy.uri, timeoutMs: 5000 })
    lose((command) => command['delete'] === 'users', null)
    await rejectsWith(impatient.users.undoCreate(user.id, account.id), 'store_unavailable')
    assert.equal(await direct.users.get(user.developerId, user.id), null)
    assert.notEqual(await direct.accounts.get(account.id), null)
  })

  test('of an attempt: it counts once, also when it is recorded again', async () => {
    const row = outboxRecord(webhookRecord(newId()))
    await direct.outbox.enqueue([row])
    const attempt = { at: epochStart, durationMs: 5, status: 500, error: 'HTTP 500', response: 'no' }
    const next = { state: 'pending', dueAt: epochStart + 9, finishedAt: null, reason: null } as const
    const impatient = await database.open({ uri: proxy.uri, timeoutMs: 5000 })
    const state = lose((command) => command['update'] === 'outbox', null)
    await rejectsWith(impatient.outbox.record([{ id: row.id, attempt, ...next }]), 'store_unavailable')
    assert(state.lost)
    proxy.revive()
    await until('the database answers', () => impatient.ping().then(() => true))
    await impatient.outbox.record([{ id: row.id, attempt, ...next }])
    const after = await direct.outbox.get(row.id)
    assert.deepEqual([after?.attemptCount, after?.attempts], [1, [attempt]])
  })

  test('a row that another unique index refuses is an error, and not one that is there', async () => {
    const outbox = raw.db().collection('outbox')
    const partialFilterExpression = { probe: { $gte: '' } }
    await outbox.createIndexes([{ key: { probe: 1 }, name: 'outbox_probe', unique: true, partialFilterExpression }])
    const webhook = webhookRecord(newId())
    const [one, two] = [outboxRecord(webhook), outboxRecord(webhook)]
    const probed = (row: typeof one) => ({ ...row, probe: 'same' })
    assert.equal((await store.outbox.enqueue([probed(one)])).length, 1)
    assert.deepEqual(await store.outbox.enqueue([probed(one)]), [])
    await rejectsWith(store.outbox.enqueue([probed(two)]), 'conflict')
    await outbox.dropIndex('outbox_probe')
  })

  test('what a contact remembers stays small, however many messages it has', async () => {
    const mailbox = await createMailbox(direct)
    const { user } = mailbox
    const all = Array.from({ length: 1500 }, (_, index) => mailbox.added('INBOX', index + 1))
    for (let start = 0; start < all.length; start += 100) {
      const added = all.slice(start, start + 100)
      const contacts = added.map(({ id }) => {
        const counts = { total: 1, direct: 0, indirect: 1, receivedAt: 1 }
        return { userId: user.id, email: 'news@example.com', name: '', key: `${id}:r`, ...counts }
      })
      await mailbox.apply('INBOX', { added, contacts })
    }
    const [contact] = await raw.db().collection('contacts').find({ userId: user.id }).toArray()
    assert.equal(contact?.['totalCount'], 1500)
    const applied = contact['applied'] as readonly string[]
    assert(applied.length <= 300, `${applied.length} keys`)
    proxy.seen.length = 0
    await store.contacts.search(user.id, 'news', { limit: 5, offset: 0 })
    const steps = proxy.seen.find((command) => command['aggregate'] === 'contacts')?.['pipeline'] as Document[]
    assert(steps.some(({ $project }) => ($project as Document | undefined)?.['applied'] === 0))
  })
})
