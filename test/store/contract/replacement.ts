/** An account that becomes another mailbox. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../engine/store/ids.ts'
import { createMailbox, listed, rejectsWith, type Subject } from './mailbox.ts'
import { epochStart, messageFacts } from './records.ts'

export function replacementContract({ store }: Subject): void {
  describe('another mailbox', () => {
    test('has nothing of the former one but the identities of its messages, and nothing is told', async () => {
      const mailbox = await createMailbox(store)
      const other = await createMailbox(store)
      const [kept] = await other.fill('INBOX', [messageFacts()])
      const facts = Array.from({ length: 1100 }, () => messageFacts())
      const ids = await mailbox.fill('INBOX', facts)
      const added = mailbox.added('Archive', 3)
      await mailbox.apply('Archive', { added: [added], ...mailbox.event(added) })
      const { id } = mailbox.account
      const patch = { server: 'imap.other.example', username: 'other' }
      const edited = await store.sync.replaceMailbox(id, patch, epochStart)
      assert(edited)
      assert.deepEqual(
        [edited.server, edited.username, edited.remapSince, edited.resume.initialSyncAt],
        ['imap.other.example', 'other', epochStart, null],
      )
      assert.deepEqual(await store.accounts.get(id), edited)
      assert.deepEqual(await store.folders.list(id), [])
      assert.equal(await store.messages.count(id), 0)
      assert.deepEqual(await store.messages.list(id, {}, { limit: 9, offset: 0 }), [])
      assert.deepEqual(await store.messages.knownUids(added.placement.folderId, '1', 0, 99), [])
      assert.deepEqual(await store.messages.gone(id, Number.MAX_SAFE_INTEGER, 9), [])
      const [first = ''] = ids
      const row = await mailbox.message(first)
      assert.deepEqual([row.placements, row.gone], [[], []])
      assert.equal((await store.messages.find(id, facts[0]?.emailMessageId ?? ''))?.id, first)
      assert.equal(await store.changes.lastSeq(id), 1)
      assert.equal((await other.message(kept ?? '')).placements.length, 1)
    })

    test('is read by a new owner alone, and knows the messages that it has as well', async () => {
      const mailbox = await createMailbox(store)
      const added = mailbox.added('INBOX', 5)
      await mailbox.apply('INBOX', { added: [added] })
      const late = await mailbox.batch('INBOX', { vanished: [5] })
      await store.sync.replaceMailbox(mailbox.account.id, { username: 'other' }, epochStart)
      await rejectsWith(store.sync.apply(late), 'lease_lost')
      const account = await store.accounts.claim(mailbox.account.id)
      assert(account)
      await store.folders.reconcile(account.id, account.epoch, [listed('INBOX')], true)
      const again = { ...added, placement: { ...added.placement, uid: 9 } }
      await store.sync.apply({ ...(await mailbox.batch('INBOX', { added: [again] })), epoch: account.epoch })
      const row = await mailbox.message(added.id)
      assert.deepEqual([row.placements, row.gone], [[again.placement], []])
    })

    test('once more before it was read keeps the earlier time; afterwards it does not', async () => {
      const mailbox = await createMailbox(store)
      const { id } = mailbox.account
      const since = async (at: number) => (await store.sync.replaceMailbox(id, {}, at))?.remapSince
      assert.equal(await since(epochStart + 10), epochStart + 10)
      assert.equal(await since(epochStart + 20), epochStart + 10)
      const account = await store.accounts.get(id)
      assert(account)
      await store.accounts.edit(id, { resume: { ...account.resume, initialSyncAt: epochStart } })
      assert.equal(await since(epochStart + 30), epochStart + 30)
    })

    test('of an unknown account answers null', async () => {
      assert.equal(await store.sync.replaceMailbox(newId(), {}, epochStart), null)
    })
  })
}
