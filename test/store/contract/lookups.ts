/** Single messages and known UIDs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createMailbox, type Subject } from './mailbox.ts'
import { attachmentRecord, epochStart, messageFacts } from './records.ts'

export function lookupsContract({ store }: Subject): void {
  describe('single messages', () => {
    test('are found by our id, Message-ID and hosted id, within the account', async () => {
      const mailbox = await createMailbox(store)
      const other = await createMailbox(store)
      const facts = messageFacts({ emailMessageId: 'Odd/Id+1@x', hostedMessageId: '17c0ffee', hostedThreadId: '17c0' })
      const [id] = await mailbox.fill('INBOX', [facts])
      assert(id)
      const message = await mailbox.message(id)
      for (const reference of [id, 'Odd/Id+1@x', '17c0ffee']) {
        assert.deepEqual(await store.messages.find(mailbox.account.id, reference), message)
        assert.deepEqual(await store.messages.findAll(mailbox.account.id, reference, 9), [message])
        assert.equal(await store.messages.find(other.account.id, reference), null)
      }
      assert.deepEqual(await store.messages.several([id, '0'.repeat(24)]), [message])
      assert.deepEqual(await store.messages.everywhere('odd/id+1@x', 9), [])
      const [twin] = await other.fill('INBOX', [{ ...facts, emailMessageId: `${id}@x` }])
      assert.deepEqual(
        (await store.messages.everywhere(`${id}@x`, 9)).map((one) => one.id),
        [twin],
      )
      for (const reference of ['odd/id+1@x', '17c0', '', '0'.repeat(24)]) {
        assert.equal(await store.messages.find(mailbox.account.id, reference), null)
      }
      assert.equal(await store.messages.get(other.account.id, id), null)
      assert.equal(await store.messages.get(mailbox.account.id, '0'.repeat(24)), null)
    })

    for (const name of ['twice@x', 'twice'])
      test(`with one Message-ID, ${name}: live before gone, newest first`, async () => {
        const mailbox = await createMailbox(store)
        // one Message-ID, three identities: mail that was sent again in another form
        const rows = [1, 3, 2].map((age, index) => {
          const uid = index + 1
          const added = mailbox.added('INBOX', uid, { emailMessageId: name, sentAt: epochStart + age })
          return { ...added, id: `${mailbox.account.id.slice(0, 23)}${uid}`, identity: `hdr:${uid}` }
        })
        await mailbox.apply('INBOX', { added: rows })
        const all = async (limit = 9) =>
          (await store.messages.findAll(mailbox.account.id, name, limit)).map(({ id }) => Number(id.slice(-1)))
        const found = async () => (await store.messages.find(mailbox.account.id, name))?.placements[0]?.uid
        assert.equal(await found(), 2)
        assert.deepEqual(
          [await all(), await all(2)],
          [
            [2, 3, 1],
            [2, 3],
          ],
        )
        await mailbox.apply('INBOX', { vanished: [2], vanishedAt: epochStart })
        assert.equal(await found(), 3)
        assert.deepEqual(await all(), [3, 1, 2])
        await mailbox.apply('INBOX', { vanished: [1, 3], vanishedAt: epochStart })
        assert.equal((await store.messages.find(mailbox.account.id, name))?.id, rows[1]?.id)
      })

    test('by Message-IDs: of each the one that counts, within the account', async () => {
      const mailbox = await createMailbox(store)
      const other = await createMailbox(store)
      const many = Array.from({ length: 12 }, (_, index) => {
        const added = mailbox.added('INBOX', index + 1, { emailMessageId: 'many@x', sentAt: epochStart + 100 + index })
        return { ...added, id: `${mailbox.account.id.slice(0, 22)}${index + 10}`, identity: `hdr:${index}` }
      })
      await mailbox.apply('INBOX', { added: many })
      await mailbox.apply('INBOX', { vanished: [12], vanishedAt: epochStart })
      const [old] = await mailbox.fill('Archive', [messageFacts({ emailMessageId: 'old@x', sentAt: epochStart })])
      await other.fill('INBOX', [messageFacts({ emailMessageId: 'theirs@x' })])
      const asked = ['old@x', 'many@x', 'theirs@x', 'none@x', 'many@x']
      const found = await store.messages.byMessageIds(mailbox.account.id, asked)
      const ids = Object.fromEntries(Array.from(found, ([reference, { id }]) => [reference, id]))
      assert.deepEqual(ids, { 'many@x': many[10]?.id, 'old@x': old })
      assert.equal((await store.messages.byMessageIds(mailbox.account.id, [])).size, 0)
    })

    test('by ids come in the order asked, known ones only', async () => {
      const mailbox = await createMailbox(store)
      const other = await createMailbox(store)
      const ids = await mailbox.fill('INBOX', [messageFacts(), messageFacts(), messageFacts()])
      const foreign = await other.fill('INBOX', [messageFacts()])
      const asked = [ids[2], ids[0], '0'.repeat(24), ...foreign].filter((id) => id !== undefined)
      const found = await store.messages.byIds(mailbox.account.id, asked)
      assert.deepEqual(
        found.map((message) => message.id),
        [ids[2], ids[0]],
      )
      assert.deepEqual(await store.messages.byIds(mailbox.account.id, []), [])
    })

    test('keep every fact as it was given', async () => {
      const mailbox = await createMailbox(store)
      const facts = messageFacts({
        subject: '🎉 "quotes" \\ $where {"$gt": 1} \u0000 Grüße',
        listHeaders: { 'list-id': '<a.b.c>', 'list-unsubscribe': '<mailto:x@y>' },
        references: ['a@b', 'c@d'],
        attachments: [attachmentRecord(0, 'Füße .pdf'), { ...attachmentRecord(1), contentId: 'cid', embedded: true }],
        receivedHeaders: ['from x by y; Mon', 'from z'],
      })
      const [id] = await mailbox.fill('INBOX', [facts])
      assert(id)
      const stored = await mailbox.message(id)
      const { accountId, identity, firstChangeId, indexedAt, placements, gone } = stored
      assert.deepEqual(stored, { ...facts, id, accountId, identity, firstChangeId, indexedAt, placements, gone })
      assert.equal(accountId, mailbox.account.id)
      assert(identity.startsWith('mid:') && firstChangeId === null && indexedAt > 0)
      assert.deepEqual([placements.length, gone.length], [1, 0])
    })
  })

  describe('known UIDs', () => {
    test('are those of one folder, UIDVALIDITY and range, ascending', async () => {
      const mailbox = await createMailbox(store)
      const added = [9, 2, 30, 11].map((uid) => mailbox.added('INBOX', uid))
      await mailbox.apply('INBOX', { added: [...added, mailbox.added('INBOX', 10, {}, { uidValidity: '2' })] })
      await mailbox.apply('Archive', { added: [mailbox.added('Archive', 10)] })
      const { id } = await mailbox.folder('INBOX')
      const uids = async (from: number, to: number) =>
        (await store.messages.knownUids(id, '1', from, to)).map((known) => known.uid)
      assert.deepEqual(await uids(0, 4_294_967_295), [2, 9, 11, 30])
      assert.deepEqual(await uids(2, 11), [2, 9, 11])
      assert.deepEqual(await uids(3, 8), [])
      assert.deepEqual(await uids(30, 30), [30])
      const among = async (...some: number[]) =>
        (await store.messages.knownAmong(id, '1', some)).map((known) => known.uid)
      assert.deepEqual(await among(30, 2, 10, 3, 30), [2, 30])
      assert.deepEqual(await among(), [])
    })
  })

  describe('the historical scan', () => {
    test('goes from newest to oldest, once over each live message', async () => {
      const mailbox = await createMailbox(store)
      const same = [3, 1, 2, 2, 2].map((age) => messageFacts({ sentAt: epochStart + age }))
      const ids = await mailbox.fill('INBOX', same)
      await mailbox.apply('INBOX', { added: [mailbox.added('INBOX', 99, { sentAt: epochStart + 9 })] })
      await mailbox.apply('INBOX', { vanished: [99], vanishedAt: epochStart })
      const seen: { sentAt: number; id: string }[] = []
      for (let after: { sentAt: number; id: string } | null = null; ;) {
        const page = await store.messages.older(mailbox.account.id, after, 2)
        seen.push(...page.map(({ sentAt, id }) => ({ sentAt, id })))
        const last = seen.at(-1)
        if (page.length === 0 || !last) break
        after = last
      }
      assert.deepEqual(seen.map((one) => one.id).sort(), [...ids].sort())
      const sorted = [...seen].sort((a, b) => b.sentAt - a.sentAt || (a.id < b.id ? 1 : -1))
      assert.deepEqual(seen, sorted)
    })
  })

  describe('what is picked of messages', () => {
    test('is of live ones, newest message first, in pages over all of it', async () => {
      const mailbox = await createMailbox(store)
      const counts = [2, 0, 3, 1]
      const facts = counts.map((count, age) =>
        messageFacts({
          sentAt: epochStart + age,
          attachments: Array.from({ length: count }, (_, index) => attachmentRecord(index, `${age}-${index}`)),
        }),
      )
      await mailbox.fill('INBOX', facts)
      await mailbox.apply('Trash', {
        added: [mailbox.added('Trash', 1, { attachments: [attachmentRecord(0)] })],
      })
      await mailbox.apply('Trash', { vanished: [1], vanishedAt: epochStart })
      const names = async (limit: number, offset: number, query = {}) =>
        store.messages.picked(mailbox.account.id, query, { limit, offset }, ({ attachments }) =>
          attachments.map(({ fileName }) => fileName),
        )
      const whole = ['3-0', '2-0', '2-1', '2-2', '0-0', '0-1']
      assert.deepEqual(await names(99, 0), whole)
      for (const limit of [1, 2, 4]) {
        const pages: string[] = []
        for (let offset = 0; offset < whole.length; offset += limit) pages.push(...(await names(limit, offset)))
        assert.deepEqual(pages, whole)
      }
      assert.deepEqual(await names(99, 99), [])
      assert.deepEqual(await names(99, 0, { sentUntil: epochStart }), ['0-0', '0-1'])
    })

    test('is none twice and lacks none, where hundreds were sent at one time', async () => {
      const mailbox = await createMailbox(store)
      const ages = Array.from({ length: 450 }, (_, n) => (n < 30 ? 0 : n < 380 ? 1 : n))
      await mailbox.fill(
        'INBOX',
        ages.map((age) => messageFacts({ sentAt: epochStart + age })),
      )
      for (const order of ['asc', 'desc'] as const) {
        const { id } = mailbox.account
        const listed = (await store.messages.list(id, { order }, { limit: 500, offset: 0 })).map((one) => one.id)
        const picked = (limit: number, offset: number) =>
          store.messages.picked(id, { order }, { limit, offset }, (one) => Promise.resolve([one.id]))
        assert.equal(listed.length, ages.length)
        assert.deepEqual(await picked(500, 0), listed)
        assert.deepEqual(await picked(20, 300), listed.slice(300, 320))
      }
    })
  })
}
