/** Contacts, counted once per message and kind. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contactId } from '../../../engine/store/ids.ts'
import type { AddedMessage } from '../../../engine/store/port.ts'
import type { ContactDelta } from '../../../engine/store/records.ts'
import { createMailbox, moved, type Mailbox, type Subject } from './mailbox.ts'
import { epochStart } from './records.ts'

function delta(mailbox: Mailbox, email: string, key: string, patch: Partial<ContactDelta> = {}): ContactDelta {
  return {
    userId: mailbox.user.id,
    email,
    name: '',
    key,
    total: 1,
    direct: 0,
    indirect: 1,
    receivedAt: epochStart,
    ...patch,
  }
}

export function contactsContract({ store }: Subject): void {
  describe('contacts', () => {
    test('are counted once per key, however often a batch is repeated', async () => {
      const mailbox = await createMailbox(store)
      const first = delta(mailbox, 'Ann@X.com', 'm1:r', { name: 'Ann', receivedAt: epochStart + 5 })
      const direct = delta(mailbox, 'ann@x.com', 'm1:d', { total: 0, direct: 1, indirect: -1, receivedAt: 0 })
      const second = delta(mailbox, 'ANN@x.com', 'm2:r', { name: 'Old name', receivedAt: epochStart + 1 })
      await mailbox.apply('INBOX', { contacts: [first, first, direct] })
      await mailbox.apply('INBOX', { contacts: [direct, first] })
      await mailbox.apply('INBOX', { contacts: [second, first] })
      const id = contactId(mailbox.user.id, 'ann@x.com')
      assert.deepEqual(await store.contacts.get(mailbox.user.id, id), {
        id,
        userId: mailbox.user.id,
        email: 'ann@x.com',
        name: 'Ann',
        totalCount: 2,
        directCount: 1,
        indirectCount: 1,
        lastReceivedAt: epochStart + 5,
      })
    })

    test('are exact for a sender of many messages, in another folder, renumbered, and found under another role', async () => {
      const mailbox = await createMailbox(store)
      const all = Array.from({ length: 700 }, (_, index) => mailbox.added('INBOX', index + 1))
      const received = (some: readonly AddedMessage[]) =>
        some.map(({ id }) => delta(mailbox, 'news@example.com', `${id}:r`))
      const read = async (path: string, some: readonly AddedMessage[], uidValidity = '1'): Promise<void> => {
        const { id: folderId } = await mailbox.folder(path)
        const added = some.map((one) => ({ ...one, placement: { ...one.placement, folderId, path, uidValidity } }))
        for (let start = 0; start < added.length; start += 100) {
          const part = added.slice(start, start + 100)
          await mailbox.apply(path, { added: part, contacts: path === 'Trash' ? [] : received(part) })
        }
      }
      const total = async () => {
        const contact = await store.contacts.get(mailbox.user.id, contactId(mailbox.user.id, 'news@example.com'))
        return [contact?.totalCount, contact?.indirectCount]
      }
      await read('INBOX', all.slice(0, 600))
      assert.deepEqual(await total(), [600, 600])
      await read('Archive', all.slice(0, 600))
      const { id, cursor } = await mailbox.folder('INBOX')
      await mailbox.apply('INBOX', { cursorAfter: moved(cursor, { uidValidity: '2' }) })
      while ((await store.sync.forgetPlacements(mailbox.account.id, mailbox.account.epoch, id, '2', 500)) > 0);
      await read('INBOX', all.slice(0, 600), '2')
      assert.deepEqual(await total(), [600, 600])
      // known, and counted for nothing until it is moved
      await read('Trash', all.slice(600))
      assert.deepEqual(await total(), [600, 600])
      await read('INBOX', all.slice(600), '2')
      await read('Archive', all.slice(600))
      assert.deepEqual(await total(), [700, 700])
    })

    test('one message counts for each of its people', async () => {
      const mailbox = await createMailbox(store)
      const contacts = ['a@x.com', 'b@x.com'].map((email) => delta(mailbox, email, 'm1:r'))
      await mailbox.apply('INBOX', { contacts })
      const page = await store.contacts.list(mailbox.user.id, 'total_count', 'desc', { limit: 9, offset: 0 })
      assert.deepEqual(page.map((contact) => contact.email).sort(), ['a@x.com', 'b@x.com'])
    })

    test('are counted once, whether an earlier batch had the mail or the count of one of its people', async () => {
      const mailbox = await createMailbox(store)
      const [one, two] = [mailbox.added('INBOX', 1), mailbox.added('INBOX', 2)]
      const others = (...some: AddedMessage[]) =>
        some.flatMap(({ id }) =>
          ['a@x.com', 'b@x.com'].map((email) => delta(mailbox, email, `${id}:o`, { indirect: 0, receivedAt: 0 })),
        )
      const received = delta(mailbox, 'a@x.com', `${one.id}:r`)
      await mailbox.apply('INBOX', { added: [one, two], contacts: [received] })
      for (let round = 0; round < 2; round += 1) await mailbox.apply('INBOX', { contacts: others(one, two) })
      await mailbox.apply('INBOX', { added: [one], contacts: [received, ...others(one)] })
      const all = await store.contacts.list(mailbox.user.id, 'total_count', 'desc', { limit: 9, offset: 0 })
      assert.deepEqual(
        all.map((contact) => [contact.email, contact.totalCount, contact.indirectCount, contact.lastReceivedAt]),
        [
          ['a@x.com', 3, 1, epochStart],
          ['b@x.com', 2, 0, 0],
        ],
      )
      await store.accounts.remove(mailbox.account.id)
      assert.deepEqual(await store.contacts.list(mailbox.user.id, 'total_count', 'desc', { limit: 9, offset: 0 }), [])
    })

    test('are sorted by each count, both ways, in pages', async () => {
      const mailbox = await createMailbox(store)
      const counts = [
        ['a@x.com', 5, 1, 4],
        ['b@x.com', 3, 3, 3],
        ['c@x.com', 9, 0, 1],
        ['d@x.com', 3, 2, 2],
      ] as const
      const contacts = counts.map(([email, total, direct, indirect]) =>
        delta(mailbox, email, 'm1:r', { total, direct, indirect }),
      )
      await mailbox.apply('INBOX', { contacts })
      const names = async (sort: 'total_count' | 'direct_count' | 'indirect_count', order: 'asc' | 'desc') => {
        const pages = await Promise.all(
          [0, 3].map((offset) => store.contacts.list(mailbox.user.id, sort, order, { limit: 3, offset })),
        )
        return pages.flat().map((contact) => contact.email.charAt(0))
      }
      assert.deepEqual(await names('direct_count', 'desc'), ['b', 'd', 'a', 'c'])
      assert.deepEqual(await names('indirect_count', 'asc'), ['c', 'd', 'b', 'a'])
      const total = await names('total_count', 'desc')
      assert(['cabd', 'cadb'].includes(total.join('')))
      assert.deepEqual(await names('total_count', 'asc'), total.toReversed())
    })

    test('are searched by part of name or address, without case', async () => {
      const mailbox = await createMailbox(store)
      const contacts = [
        delta(mailbox, 'ann@firma.de', 'm1:r', { name: 'Jürgen Müller', total: 2 }),
        delta(mailbox, 'bob@other.org', 'm1:r', { name: 'Bob 100%' }),
      ]
      await mailbox.apply('INBOX', { contacts })
      const search = async (text: string, offset = 0) =>
        (await store.contacts.search(mailbox.user.id, text, { limit: 9, offset })).map((contact) => contact.email)
      assert.deepEqual(await search('MÜLL'), ['ann@firma.de'])
      assert.deepEqual(await search('firma'), ['ann@firma.de'])
      assert.deepEqual(await search('o'), ['bob@other.org'])
      assert.deepEqual(await search('0%'), ['bob@other.org'])
      assert.deepEqual(await search('.*'), [])
      assert.deepEqual(await search('r'), ['ann@firma.de', 'bob@other.org'])
      assert.deepEqual(await search('r', 1), ['bob@other.org'])
    })

    test('belong to one user', async () => {
      const [mine, other] = [await createMailbox(store), await createMailbox(store)]
      await mine.apply('INBOX', { contacts: [delta(mine, 'a@x.com', 'm1:r')] })
      const id = contactId(mine.user.id, 'a@x.com')
      assert.equal(await store.contacts.get(other.user.id, id), null)
      assert.deepEqual(await store.contacts.search(other.user.id, 'a', { limit: 9, offset: 0 }), [])
      assert.deepEqual(await store.contacts.list(other.user.id, 'total_count', 'desc', { limit: 9, offset: 0 }), [])
    })

    test('a refused batch counts nothing', async () => {
      const mailbox = await createMailbox(store)
      const batch = await mailbox.batch('INBOX', { contacts: [delta(mailbox, 'a@x.com', 'm1:r')], epoch: 99 })
      await assert.rejects(store.sync.apply(batch))
      assert.equal(await store.contacts.get(mailbox.user.id, contactId(mailbox.user.id, 'a@x.com')), null)
    })
  })
}
