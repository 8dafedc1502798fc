/** The change log. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createMailbox, type Mailbox, type Subject } from './mailbox.ts'
import { changeDraft, epochStart } from './records.ts'

/** Changes at these times, of one message each unless named. */
async function log(mailbox: Mailbox, times: readonly number[], messageId?: string) {
  const { id } = await mailbox.folder('INBOX')
  const changes = times.map((at, index) =>
    changeDraft(
      {
        accountId: mailbox.account.id,
        userId: mailbox.user.id,
        folderId: id,
        messageId: messageId ?? String(index).padStart(24, '0'),
      },
      { at },
    ),
  )
  return (await mailbox.apply('INBOX', { changes })).changes
}

export function changesContract({ store }: Subject): void {
  describe('the change log', () => {
    test('is read from a number on, in order, up to the limit', async () => {
      const mailbox = await createMailbox(store)
      const changes = await log(
        mailbox,
        [1, 2, 3, 4].map((age) => epochStart + age),
      )
      const { id } = mailbox.account
      assert.deepEqual(await store.changes.since(id, 0, 100), changes)
      assert.deepEqual(await store.changes.since(id, 1, 2), changes.slice(1, 3))
      assert.deepEqual(await store.changes.since(id, 4, 100), [])
      assert.equal(await store.changes.lastSeq(id), 4)
    })

    test('belongs to one account', async () => {
      const [mine, other] = [await createMailbox(store), await createMailbox(store)]
      const [change] = await log(mine, [epochStart])
      assert(change)
      assert.deepEqual(await store.changes.get(mine.account.id, change.id), change)
      assert.equal(await store.changes.get(other.account.id, change.id), null)
      assert.equal(await store.changes.get(mine.account.id, 'f'.repeat(32)), null)
      assert.deepEqual(await store.changes.since(other.account.id, 0, 9), [])
      assert.equal(await store.changes.lastSeq(other.account.id), 0)
    })

    test('of one message, oldest first', async () => {
      const mailbox = await createMailbox(store)
      const messageId = 'ab'.repeat(12)
      const first = await log(mailbox, [epochStart + 2], messageId)
      await log(mailbox, [epochStart + 3])
      const last = await log(mailbox, [epochStart + 1], messageId)
      assert.deepEqual(await store.changes.ofMessage(mailbox.account.id, messageId), [...first, ...last])
    })

    test('of many accounts expires together, and each keeps its newest', async () => {
      const mailboxes = await Promise.all(Array.from({ length: 25 }, () => createMailbox(store)))
      for (const mailbox of mailboxes) await log(mailbox, [1, 2, 3])
      while ((await store.changes.expire(100, 20)) > 0);
      for (const { account } of mailboxes) {
        assert.deepEqual(
          (await store.changes.since(account.id, 0, 9)).map(({ seq }) => seq),
          [3],
        )
      }
    })

    test('expires in steps, and the newest of an account stays and counts on', async () => {
      const mailbox = await createMailbox(store)
      // older than anything another test writes
      const times = [1, 2, 3, 4, 5]
      await log(mailbox, times)
      assert.equal(await store.changes.expire(100, 3), 3)
      assert.equal(await store.changes.expire(100, 3), 1)
      assert.equal(await store.changes.expire(100, 3), 0)
      const left = await store.changes.since(mailbox.account.id, 0, 9)
      assert.deepEqual(
        left.map((change) => change.seq),
        [5],
      )
      const [next] = await log(mailbox, [6])
      assert.equal(next?.seq, 6)
      assert.equal(await store.changes.expire(6, 9), 1, 'strictly older')
    })
  })
}
