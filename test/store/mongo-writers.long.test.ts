/**
 * Several writers on one database: owners that race for an account, bulks that overlap, rows that two change at once.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Document } from 'mongodb'
import { isAppError } from '../../engine/errors.ts'
import { contactId } from '../../engine/store/ids.ts'
import type { AddedMessage, Store, SyncBatch } from '../../engine/store/port.ts'
import type { AccountRecord } from '../../engine/store/records.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, listed, moved, rejectsWith, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, epochStart, outboxRecord, webhookRecord } from './contract/records.ts'
import { commandName, createProxy, type Proxy, type Verdict } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const page = { limit: 1000, offset: 0 }

/** A batch of arrivals with their events, as the owner with this epoch writes it. */
async function arrivals(mailbox: Mailbox, owner: AccountRecord, added: readonly AddedMessage[]): Promise<SyncBatch> {
  const events = added.map((one) => mailbox.event(one))
  const batch = await mailbox.batch('INBOX')
  return {
    ...batch,
    epoch: owner.epoch,
    added: added.map((one, index) => ({ ...one, firstChangeId: events[index]?.changes[0]?.id ?? null })),
    changes: events.flatMap((event) => event.changes),
    outbox: events.flatMap((event) => event.outbox),
    cursorAfter: moved(batch.cursorBefore, { uidNext: Math.max(...added.map(({ placement }) => placement.uid)) + 1 }),
  }
}

/** Holds the first command that `is` names until it is released. */
function holdFirst(proxy: Proxy, is: (command: Document) => boolean) {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const state = { held: false, release }
  proxy.decide = async (command): Promise<Verdict> => {
    if (state.held || !is(command)) return 'pass'
    state.held = true
    await released
    return 'pass'
  }
  return state
}

function insertsInto(collection: string): (command: Document) => boolean {
  return (command) => commandName(command) === 'insert' && command['insert'] === collection
}

suite('several writers', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let store: Store
  /** A second process, whose commands can be held. */
  let other: Store

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    store = await database.open()
    other = await database.open({ uri: proxy.uri })
  })
  after(async () => {
    await database.remove()
    await proxy.close()
  })

  async function assertEmpty(accountId: string): Promise<void> {
    assert.equal(await store.messages.count(accountId), 0)
    assert.equal(await store.changes.lastSeq(accountId), 0)
    assert.deepEqual(await store.outbox.list({ accountId }, page), [])
  }

  test('an owner whose account was taken over leaves nothing', async () => {
    const mailbox = await createMailbox(store)
    const batch = await arrivals(mailbox, mailbox.account, [mailbox.added('INBOX', 1)])
    await other.accounts.claim(mailbox.account.id)
    await rejectsWith(store.sync.apply(batch), 'lease_lost')
    await assertEmpty(mailbox.account.id)
  })

  test('one that is overtaken in the middle of a batch tells nothing, and the new owner tells each message once', async () => {
    const mailbox = await createMailbox(store)
    const all = [1, 2, 3].map((uid) => mailbox.added('INBOX', uid))
    const late = await arrivals(mailbox, mailbox.account, all.slice(0, 2))
    const hold = holdFirst(proxy, insertsInto('changes'))
    const losing = rejectsWith(other.sync.apply(late), 'lease_lost')
    await until('the first owner is held', () => hold.held)
    const owner = await store.accounts.claim(mailbox.account.id)
    assert(owner)
    const { changes } = await store.sync.apply(await arrivals(mailbox, owner, all))
    hold.release()
    await losing
    assert.deepEqual(
      changes.map(({ seq, messageId }) => [seq, messageId]),
      all.map(({ id }, index) => [index + 1, id]),
    )
    assert.deepEqual(await store.changes.since(mailbox.account.id, 0, 10), changes)
    assert.equal(await store.messages.count(mailbox.account.id), 3)
    const told = await store.outbox.list({ accountId: mailbox.account.id }, page)
    assert.deepEqual(told.map(({ changeId }) => changeId).sort(), changes.map(({ id }) => id).sort())
    assert.equal((await mailbox.folder('INBOX')).cursor?.uidNext, 4)
  })

  test('one that is held while the account becomes another mailbox leaves no mail of the former one', async () => {
    const mailbox = await createMailbox(store)
    const { id } = mailbox.account
    const known = mailbox.added('INBOX', 1)
    await mailbox.apply('INBOX', { added: [known] })
    const again = { ...known, placement: { ...known.placement, uid: 2 } }
    const batch = await arrivals(mailbox, mailbox.account, [again, mailbox.added('INBOX', 3)])
    const hold = holdFirst(proxy, insertsInto('messages'))
    const losing = rejectsWith(other.sync.apply(batch), 'lease_lost')
    await until('the batch is held', () => hold.held)
    assert(await store.sync.replaceMailbox(id, { username: 'other' }, epochStart))
    hold.release()
    await losing
    assert.deepEqual(await store.messages.list(id, {}, page), [])
    assert.deepEqual(await store.messages.gone(id, Number.MAX_SAFE_INTEGER, 9), [])
  })

  test('also where the folder has been listed anew by then', async () => {
    const mailbox = await createMailbox(store)
    const { id } = mailbox.account
    await mailbox.apply('INBOX', { added: [mailbox.added('INBOX', 1)] })
    const batch = await arrivals(mailbox, mailbox.account, [mailbox.added('INBOX', 2)])
    const hold = holdFirst(proxy, insertsInto('messages'))
    const losing = rejectsWith(other.sync.apply(batch), 'lease_lost')
    await until('the batch is held', () => hold.held)
    assert(await store.sync.replaceMailbox(id, { username: 'other' }, epochStart))
    const owner = await store.accounts.claim(id)
    assert(owner)
    await store.folders.reconcile(id, owner.epoch, [listed('INBOX')], true)
    hold.release()
    await losing
    assert.deepEqual(await store.messages.list(id, {}, page), [])
  })

  test('one that is held while its folder is numbered anew leaves no place of the former numbers', async () => {
    const mailbox = await createMailbox(store)
    const { id, epoch } = mailbox.account
    const late = mailbox.added('INBOX', 2)
    await mailbox.apply('INBOX', { added: [mailbox.added('INBOX', 1)] })
    const batch = await arrivals(mailbox, mailbox.account, [late])
    const hold = holdFirst(proxy, insertsInto('messages'))
    const losing = rejectsWith(other.sync.apply(batch), 'lease_lost')
    await until('the batch is held', () => hold.held)
    const owner = await store.accounts.claim(id)
    assert.equal(owner?.epoch, epoch + 1)
    const renumbered = { ...late, placement: { ...late.placement, uidValidity: '2', uid: 1 } }
    const cursorAfter = moved(batch.cursorBefore, { uidValidity: '2', uidNext: 2 })
    await mailbox.apply('INBOX', { epoch: epoch + 1, added: [renumbered], cursorAfter })
    hold.release()
    await losing
    const { placements, gone } = await mailbox.message(late.id)
    assert.deepEqual([placements, gone], [[renumbered.placement], []])
  })

  test('owners that take an account from each other again and again lose and repeat nothing', async () => {
    const mailbox = await createMailbox(store)
    const all = Array.from({ length: 9 }, (_, index) => mailbox.added('INBOX', index + 1))
    const own = async (process: Store): Promise<void> => {
      for (;;) {
        const owner = await process.accounts.claim(mailbox.account.id)
        const cursor = (await process.folders.byPath(mailbox.account.id, 'INBOX'))?.cursor
        const next = all.slice((cursor?.uidNext ?? 1) - 1, (cursor?.uidNext ?? 1) + 2)
        if (next.length === 0) return
        assert(owner)
        try {
          await process.sync.apply({ ...(await arrivals(mailbox, owner, next)), cursorBefore: cursor ?? null })
        } catch (error) {
          assert(isAppError(error, 'lease_lost'), String(error))
        }
      }
    }
    await Promise.all([own(store), own(other)])
    const changes = await store.changes.since(mailbox.account.id, 0, 100)
    assert.deepEqual(
      changes.map(({ seq }) => seq),
      all.map((_, index) => index + 1),
    )
    assert.deepEqual(new Set(changes.map(({ messageId }) => messageId)), new Set(all.map(({ id }) => id)))
    const told = await store.outbox.list({ accountId: mailbox.account.id }, page)
    assert.deepEqual(
      told.map(({ changeId, seq }) => [changeId, seq]).sort(),
      changes.map(({ id, seq }) => [id, seq]).sort(),
    )
    assert.equal(await store.messages.count(mailbox.account.id), all.length)
  })

  test('a bulk with known rows adds the others and says which', async () => {
    const webhook = webhookRecord('d'.repeat(24))
    const rows = Array.from({ length: 6 }, () => outboxRecord(webhook))
    await store.outbox.enqueue(rows.filter((_, index) => index % 2 === 0))
    const added = await store.outbox.enqueue(rows)
    assert.deepEqual(
      added.map(({ id }) => id),
      rows.filter((_, index) => index % 2 === 1).map(({ id }) => id),
    )
    assert.deepEqual(await store.outbox.enqueue(rows), [])
    assert.equal((await store.outbox.backlog(webhook.id)).pending, 6)
  })

  test('bulks that overlap at the same time add each row for one of them', async () => {
    const webhook = webhookRecord('d'.repeat(24))
    const rows = Array.from({ length: 40 }, () => outboxRecord(webhook))
    const parts = Array.from({ length: 8 }, (_, index) => rows.slice(index * 4, index * 4 + 12))
    const added = await Promise.all(parts.map((part, index) => (index % 2 ? store : other).outbox.enqueue(part)))
    const ids = added.flat().map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    assert.deepEqual(new Set(ids), new Set(rows.map(({ id }) => id)))
  })

  test('an account on its way when its user is removed does not stay', async () => {
    const { user, account } = await createMailbox(store)
    const late = accountRecord(user)
    const hold = holdFirst(proxy, insertsInto('accounts'))
    const creation = rejectsWith(other.accounts.create(late), 'not_found')
    await until('the account is held', () => hold.held)
    assert.deepEqual(await store.users.remove(user.id), [account.id])
    hold.release()
    await creation
    assert.equal(await store.accounts.get(late.id), null)
  })

  test('two accounts of one user count the same contact at the same time', async () => {
    const mailbox = await createMailbox(store)
    const sibling = accountRecord(mailbox.user)
    await store.accounts.create(sibling)
    const account = await store.accounts.claim(sibling.id)
    assert(account)
    const [folder] = await store.folders.reconcile(account.id, account.epoch, [listed('INBOX')], true)
    assert(folder)
    const empty = await mailbox.batch('INBOX')
    const batches: SyncBatch[] = [empty, { ...empty, accountId: account.id, epoch: account.epoch, folderId: folder.id }]
    const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
    const work = batches.flatMap((batch, of) =>
      Array.from({ length: 10 }, (_, number) => ({
        ...batch,
        cursorBefore: null,
        cursorAfter: moved(null, { uidNext: 1 }),
        contacts: [
          { userId: mailbox.user.id, email: 'ada@example.com', name: 'Ada', key: `${of}-${number}:r`, ...counts },
        ],
      })),
    )
    const apply = async (batch: SyncBatch, index: number): Promise<void> => {
      const process = index % 2 ? store : other
      const { cursor } = (await process.folders.byPath(batch.accountId, 'INBOX')) ?? { cursor: null }
      await process.sync.apply({ ...batch, cursorBefore: cursor })
    }
    // the first of each account opens its folder; the rest race
    await Promise.all([work[0], work[10]].flatMap((batch, index) => (batch ? [apply(batch, index)] : [])))
    await Promise.all([...work.slice(1, 10), ...work.slice(11)].map(apply))
    const contact = await store.contacts.get(mailbox.user.id, contactId(mailbox.user.id, 'ada@example.com'))
    assert.deepEqual([contact?.totalCount, contact?.indirectCount], [20, 20])
  })

  test('flags that are written while others write other places of the message are there, and these too', async () => {
    const mailbox = await createMailbox(store)
    const one = mailbox.added('INBOX', 1)
    await mailbox.apply('INBOX', { added: [one] })
    const flagged = { messageId: one.id, uid: 1, flags: ['\\Flagged'], modseq: '5', rev: 1 }
    const copy = async (process: Store, path: string): Promise<void> => {
      const { placement } = mailbox.added(path, 7)
      await process.sync.apply(await mailbox.batch(path, { added: [{ ...one, placement }] }))
    }
    await Promise.all([
      other.sync.apply(await mailbox.batch('INBOX', { flagUpdates: [flagged] })),
      copy(store, 'Archive'),
      copy(other, 'Trash'),
    ])
    const { placements } = await mailbox.message(one.id)
    const lies = placements.map(({ path, uid, flags }) => `${path} ${uid} ${flags.join()}`).sort()
    assert.deepEqual(lies, ['Archive 7 ', 'INBOX 1 \\Flagged', 'Trash 7 '])
  })

  test('an attempt that is recorded while its webhook is paused is kept, once', async () => {
    const webhook = webhookRecord('d'.repeat(24))
    const row = outboxRecord(webhook)
    await store.outbox.enqueue([row])
    const hold = holdFirst(proxy, (command) => commandName(command) === 'update' && command['update'] === 'outbox')
    const attempt = { at: epochStart, durationMs: 5, status: 500, error: 'HTTP 500', response: 'no' }
    const result = {
      id: row.id,
      attempt,
      state: 'pending',
      dueAt: epochStart + 9,
      finishedAt: null,
      reason: null,
    } as const
    const recording = other.outbox.record([result])
    await until('the record is held', () => hold.held)
    assert.equal(await store.outbox.skipPending(webhook.id, 'paused', epochStart + 1), 1)
    hold.release()
    await recording
    const after = await store.outbox.get(row.id)
    assert.deepEqual([after?.state, after?.attemptCount, after?.attempts], ['skipped', 1, [attempt]])
  })
})
