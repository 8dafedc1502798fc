/** Lists over a mailbox of 200,000 messages, by whatever filters: no read holds the event loop for long. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { newId } from '../../engine/store/ids.ts'
import type { MessageQuery, Store } from '../../engine/store/port.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { createReaders } from '../../engine/store/sqlite/readers.ts'
import { attachmentRecord, outboxRecord } from '../store/contract/records.ts'
import { createMailbox, type Mailbox } from '../store/contract/mailbox.ts'
import { holdOf } from '../support/loop-held.ts'
import { copyMessages, copyRows } from '../support/many-messages.ts'
import { address, noAddresses } from '../support/records.ts'

const count = 200_000
const mostMs = 50
const page = { limit: 25, offset: 0 }

suite(`lists over a mailbox of ${count} messages`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-large-'))
  let store: Store
  let mailbox: Mailbox
  let folderId = ''
  before(async () => {
    const path = join(directory, 'store.sqlite')
    store = await createSqliteStore({ path, sync: 'off' })
    mailbox = await createMailbox(store)
    folderId = (await mailbox.folder('INBOX')).id
    const addresses = { ...noAddresses, from: [address('ann@x.example')], to: [address('bob@y.example')] }
    const facts = mailbox.added('INBOX', 1, { addresses, attachments: [attachmentRecord(0)], subject: 'Plain' }).facts
    const [id = ''] = await mailbox.fill('INBOX', [facts])
    copyMessages(path, id, count)
  })
  after(async () => {
    await store.close()
    rmSync(directory, { recursive: true })
  })

  const accountId = (): string => mailbox.account.id
  const hidden = { folderIds: ['f'.repeat(24)], deleted: true }
  const everything = count + 1
  const lists: readonly (readonly [string, () => Promise<number>, number])[] = [
    ['the newest', () => found({}), 25],
    ['a subject without a match', () => found({ subject: 'nowhere' }), 0],
    ['a subject of one', () => found({ subject: 'plain 199' }), 25],
    ['a subject of the oldest', () => found({ subject: 'plain 77777' }), 1],
    ['a sender and a subject', () => found({ from: ['x.example'], subject: 'nowhere' }), 0],
    ['a sender and a recipient', () => found({ from: ['s7@many.example'], to: ['nobody@y.example'] }), 0],
    ['many senders', () => found({ from: Array.from({ length: 90 }, (_, n) => `s${n}@many.example`) }), 25],
    ['no attachments', () => found({ hasAttachments: false, order: 'asc' }), 0],
    ['a high offset', () => found({}, count - 10), 11],
    ['a high offset in a folder', () => found({ folderId }, count - 10), 11],
    ['how many there are', () => store.messages.count(accountId()), everything],
    ['how many are in a folder', () => store.messages.count(accountId(), { folderId, hidden }), everything],
    ['totals', async () => (await store.messages.totals(accountId())).attachments, everything],
  ]
  const found = async (query: MessageQuery, offset = 0): Promise<number> =>
    (await store.messages.list(accountId(), query, { ...page, offset })).length

  for (const [name, list, expected] of lists) {
    test(`${name}: the loop is held for ${mostMs} ms at most`, async () => {
      const { value, ms } = await holdOf(list)
      assert.equal(value, expected)
      assert.ok(ms <= mostMs, `held for ${Math.round(ms)} ms`)
    })
  }

  const others: Readonly<Record<string, (path: string) => Promise<() => Promise<readonly unknown[]>>>> = {
    contacts: async (path) => {
      const { user } = mailbox
      const counts = { total: 1, direct: 0, indirect: 0, receivedAt: 0 }
      const contact = { userId: user.id, email: 'c@x.example', name: '', key: 'k:r', ...counts }
      await mailbox.apply('INBOX', { contacts: [contact] })
      const [stored] = await store.contacts.list(user.id, 'total_count', 'desc', page)
      copyRows(path, 'contacts', stored?.id ?? '', count)
      return () => store.contacts.search(user.id, 'nobody', page)
    },
    calls: async (path) => {
      const call = {
        id: newId(),
        developerId: mailbox.developer.id,
        userId: null,
        at: 1,
        method: 'GET',
        path: '/lite/users',
      }
      await store.calls.append([{ ...call, status: 200, durationMs: 1 }])
      copyRows(path, 'calls', call.id, count)
      return () => store.calls.list({ developerId: mailbox.developer.id, statusFrom: 599 }, page)
    },
    callbacks: async (path) => {
      const { id, developerId } = mailbox.user
      const row = outboxRecord({ id: 'f'.repeat(24), developerId }, { userId: id, accountId: mailbox.account.id })
      await store.outbox.enqueue([row])
      copyRows(path, 'outbox', row.id, count)
      return () => store.outbox.list({ developerId, statusFrom: 599 }, page)
    },
    users: (path) => {
      copyRows(path, 'users', mailbox.user.id, count)
      return Promise.resolve(() => store.users.list(mailbox.developer.id, { status: 'DISABLED' }, page))
    },
  }
  for (const [name, prepare] of Object.entries(others)) {
    test(`${count} ${name}: the loop is held for ${mostMs} ms at most`, async () => {
      const list = await prepare(join(directory, 'store.sqlite'))
      const { value, ms } = await holdOf(list)
      assert.deepEqual(value, [])
      assert.ok(ms <= mostMs, `held for ${Math.round(ms)} ms`)
    })
  }

  test('a read past its deadline says so, and another developer goes on', async (t) => {
    const readers = createReaders(join(directory, 'store.sqlite'), 1500)
    t.after(() => readers.close())
    const slow = 'WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT max(i) FROM n'
    await assert.rejects(readers.read('d', { sql: slow, values: [30_000_000] }), { code: 'timeout' })
    assert.deepEqual(await readers.read('e', { sql: 'SELECT 1', values: [] }), [[1]])
    await assert.rejects(readers.read('e', { sql: 'SELECT absent', values: [] }), /no such column/)
  })

  test('one developer does not keep the threads from another one', async () => {
    const other = await createMailbox(store)
    const path = join(directory, 'store.sqlite')
    const [id = ''] = await other.fill('INBOX', [other.added('INBOX', 1).facts])
    copyMessages(path, id, 5000, 'o')
    let done = 0
    const own = Array.from({ length: 8 }, async () => {
      await found({ from: ['x.example'], subject: 'nowhere' })
      done += 1
    })
    assert.deepEqual(await store.messages.list(other.account.id, { subject: 'nowhere' }, page), [])
    assert.ok(done < 4, `${done} of 8 searches of the first developer went before`)
    await Promise.all(own)
  })
})
