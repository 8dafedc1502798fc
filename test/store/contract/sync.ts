/** The one way of mail into the store: batches, their repeats, and owners that have lost their lease. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SyncBatch } from '../../../engine/store/port.ts'
import { createMailbox, moved, rejectsWith, type Mailbox, type Subject } from './mailbox.ts'
import { epochStart } from './records.ts'

/** Two arrivals with their events, and the cursor behind them. */
async function arrivals(mailbox: Mailbox, uids: readonly number[]): Promise<SyncBatch> {
  const added = uids.map((uid) => mailbox.added('INBOX', uid))
  const events = added.map((one) => mailbox.event(one))
  const batch = await mailbox.batch('INBOX')
  return {
    ...batch,
    added: added.map((one, index) => ({ ...one, firstChangeId: events[index]?.changes[0]?.id ?? null })),
    changes: events.flatMap((event) => event.changes),
    outbox: events.flatMap((event) => event.outbox),
    cursorAfter: moved(batch.cursorBefore, { uidNext: Math.max(...uids) + 1, exists: uids.length }),
  }
}

export function syncContract({ store, clock }: Subject): void {
  describe('sync.apply', () => {
    test('stores rows, changes, outbox, counts and cursor', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1, 2])
      const answer = await store.sync.apply(batch)
      assert.deepEqual(
        answer.changes,
        batch.changes.map((change, index) => ({ ...change, seq: index + 1 })),
      )
      assert.deepEqual(await store.changes.since(mailbox.account.id, 0, 10), answer.changes)
      for (const [index, row] of batch.outbox.entries())
        assert.deepEqual(await store.outbox.get(row.id), { ...row, seq: index + 1 })
      for (const added of batch.added) {
        const { id, identity, firstChangeId } = added
        assert.deepEqual(await store.messages.get(mailbox.account.id, id), {
          ...added.facts,
          id,
          accountId: mailbox.account.id,
          identity,
          firstChangeId,
          indexedAt: clock.now,
          placements: [added.placement],
          gone: [],
        })
      }
      const folder = await mailbox.folder('INBOX')
      const progress = {
        cursor: batch.cursorAfter,
        counts: { messages: 2, unseen: 2 },
        completeAt: clock.now,
        messages: 0,
        unseen: 0,
      }
      const { cursor, counts, completeAt, messages, unseen } = folder
      assert.deepEqual({ cursor, counts, completeAt, messages, unseen }, progress)
      assert.deepEqual({ ...answer.folder, ...folder }, folder)
    })

    test('the same batch again is refused: the cursor has moved on', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1])
      await store.sync.apply(batch)
      await rejectsWith(store.sync.apply(batch), 'lease_lost')
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 1)
    })

    test('repeated on its own cursor it changes nothing and tells nothing', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1, 2])
      const first = await store.sync.apply(batch)
      const callbacks = () => store.outbox.list({ accountId: mailbox.account.id }, { limit: 9, offset: 0 })
      const queued = await callbacks()
      const before = await Promise.all(batch.added.map((one) => mailbox.message(one.id)))
      clock.now += 1000
      const again = await store.sync.apply({ ...batch, cursorBefore: batch.cursorAfter })
      assert.deepEqual(again.changes, first.changes)
      assert.deepEqual(await callbacks(), queued)
      assert.deepEqual(await Promise.all(batch.added.map((one) => mailbox.message(one.id))), before)
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 2)
      assert.equal(await store.messages.count(mailbox.account.id), 2)
    })

    test('a larger batch that contains it adds only what is new', async () => {
      const mailbox = await createMailbox(store)
      const small = await arrivals(mailbox, [1, 2])
      await store.sync.apply(small)
      const more = await arrivals(mailbox, [3])
      const larger: SyncBatch = {
        ...more,
        added: [...more.added, ...small.added],
        changes: [...more.changes, ...small.changes],
        outbox: [...more.outbox, ...small.outbox],
      }
      const answer = await store.sync.apply(larger)
      assert.deepEqual(
        answer.changes.map((change) => change.seq),
        [3, 1, 2],
      )
      for (const [index, row] of [...small.outbox, ...more.outbox].entries())
        assert.deepEqual(await store.outbox.get(row.id), { ...row, seq: index + 1 })
      const log = await store.changes.since(mailbox.account.id, 0, 10)
      assert.deepEqual(
        log.map((change) => change.seq),
        [1, 2, 3],
      )
      assert.equal(await store.messages.count(mailbox.account.id), 3)
    })

    test('a row that was delivered meanwhile stays delivered', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1])
      const [row] = batch.outbox
      assert(row)
      await store.sync.apply(batch)
      const result = { id: row.id, attempt: null, state: 'delivered', dueAt: 1, finishedAt: 2, reason: null } as const
      await store.outbox.record([result])
      await store.sync.apply({ ...batch, cursorBefore: batch.cursorAfter })
      assert.equal((await store.outbox.get(row.id))?.state, 'delivered')
    })

    test('numbers have no gaps, over batches of several folders', async () => {
      const mailbox = await createMailbox(store)
      for (const path of ['INBOX', 'Archive', 'INBOX', 'Trash']) {
        const one = mailbox.added(path, 1 + (await store.changes.lastSeq(mailbox.account.id)))
        await mailbox.apply(path, { added: [one], ...mailbox.event(one) })
      }
      const log = await store.changes.since(mailbox.account.id, 0, 10)
      assert.deepEqual(
        log.map((change) => change.seq),
        [1, 2, 3, 4],
      )
    })
  })
}

export function leaseContract({ store }: Subject): void {
  const untouched = async (mailbox: Mailbox, batch: SyncBatch): Promise<void> => {
    assert.equal(await store.messages.count(mailbox.account.id), 0)
    assert.equal(await store.changes.lastSeq(mailbox.account.id), 0)
    for (const row of batch.outbox) assert.equal(await store.outbox.get(row.id), null)
    for (const one of batch.added) assert.equal(await store.messages.get(mailbox.account.id, one.id), null)
  }

  describe('a lost lease', () => {
    test('an older epoch is refused and leaves nothing', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1, 2])
      await store.accounts.claim(mailbox.account.id)
      await rejectsWith(store.sync.apply(batch), 'lease_lost')
      await untouched(mailbox, batch)
      assert.equal((await mailbox.folder('INBOX')).cursor, null)
      await store.sync.apply({ ...batch, epoch: 2 })
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 2)
    })

    test('another cursor in the store is refused and leaves nothing', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1, 2])
      await mailbox.apply('INBOX', { cursorAfter: moved(null, { uidNext: 5 }) })
      await rejectsWith(store.sync.apply(batch), 'lease_lost')
      const off = moved(null, { uidNext: 5, quarantined: [7] })
      await rejectsWith(store.sync.apply({ ...batch, cursorBefore: off }), 'lease_lost')
      await untouched(mailbox, batch)
      assert.equal((await mailbox.folder('INBOX')).cursor?.uidNext, 5)
    })

    test('an account or folder that is gone is refused', async () => {
      const mailbox = await createMailbox(store)
      const batch = await arrivals(mailbox, [1])
      await rejectsWith(store.sync.apply({ ...batch, folderId: '0'.repeat(24) }), 'lease_lost')
      await store.accounts.remove(mailbox.account.id)
      await rejectsWith(store.sync.apply(batch), 'lease_lost')
      await untouched(mailbox, batch)
    })

    test('two batches from one cursor: the first is stored', async () => {
      const mailbox = await createMailbox(store)
      const batches = [await arrivals(mailbox, [1]), await arrivals(mailbox, [2])]
      const answers: PromiseSettledResult<unknown>[] = []
      for (const batch of batches) answers.push(...(await Promise.allSettled([store.sync.apply(batch)])))
      assert.deepEqual(answers.map((answer) => answer.status).sort(), ['fulfilled', 'rejected'])
      assert.equal(await store.messages.count(mailbox.account.id), 1)
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 1)
      assert.equal((await mailbox.folder('INBOX')).cursor?.exists, 1)
      const lost = batches[answers.findIndex((answer) => answer.status === 'rejected')]
      assert(lost)
      for (const row of lost.outbox) assert.equal(await store.outbox.get(row.id), null)
    })

    test('UIDs of an older epoch are not forgotten', async () => {
      const mailbox = await createMailbox(store)
      await mailbox.apply('INBOX', { added: [mailbox.added('INBOX', 1)], vanishedAt: epochStart })
      const { id } = await mailbox.folder('INBOX')
      await store.accounts.claim(mailbox.account.id)
      await rejectsWith(store.sync.forgetPlacements(mailbox.account.id, 1, id, '2', 10), 'lease_lost')
      assert.equal((await store.messages.knownUids(id, '1', 1, 9)).length, 1)
    })
  })
}
