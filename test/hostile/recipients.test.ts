/** Mail to thousands of people, which anybody may send: stored in steps, found by each address. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { parseAddresses } from '../../engine/messages/addresses.ts'
import { watchLoop, workAs, type Held, type Owner } from '../../engine/observe/loop.ts'
import type { ContactDelta } from '../../engine/store/records.ts'
import { openDatabase } from '../../engine/store/sqlite/database.ts'
import { createMailbox } from '../store/contract/mailbox.ts'
import { assertHolds, holdOf } from '../support/loop-held.ts'
import { address, noAddresses } from '../support/records.ts'
import { openTestStore, type TestStore } from '../support/test-store.ts'

const mails = 30
const recipients = 5000
const contacts = 100

suite('mail to 5,000 recipients', () => {
  let opened: TestStore
  before(async () => (opened = await openTestStore()))
  after(() => opened.remove())

  test('a batch of it holds the loop for 50 ms at most, and is stored whole', async () => {
    const { store } = opened
    const mailbox = await createMailbox(store)
    const { account, user } = mailbox
    const added = Array.from({ length: mails }, (_, n) => {
      const list = Array.from({ length: recipients }, (_, of) => `p${of}@host${n}-${of}.example`)
      const to = parseAddresses(list.join(', '))
      const from = [address(`sender${n}@example.com`)]
      return mailbox.added('INBOX', n + 1, { addresses: { ...noAddresses, from, to, cc: to, bcc: to } })
    })
    const deltas = added.flatMap(({ id, facts }): ContactDelta[] =>
      facts.addresses.to.slice(0, contacts).map(({ email }) => {
        return { userId: user.id, email, name: '', key: `${id}:o`, total: 1, direct: 0, indirect: 0, receivedAt: 0 }
      }),
    )
    const cursor = { uidValidity: '1', uidNext: mails + 1, backfillBelow: 1, highestModseq: '0', exists: mails }
    const cursorAfter = { ...cursor, comparedAt: 0, quarantined: [] }
    const batch = await mailbox.batch('INBOX', { added, contacts: deltas, cursorAfter })
    const { ms } = await holdOf(() => store.sync.apply(batch))
    assert.equal(await store.messages.count(account.id), mails)
    const page = { limit: 1, offset: mails * contacts - 1 }
    const last = await store.contacts.list(user.id, 'total_count', 'desc', page)
    assert.equal(last.length, 1, 'every contact is counted')
    assert.deepEqual((await mailbox.folder('INBOX')).cursor, cursorAfter)
    // a crash after the first steps: the batch comes again
    await assert.rejects(store.sync.apply(batch), /another/)
    await store.sync.apply({ ...batch, cursorBefore: cursorAfter })
    const [most] = await store.contacts.list(user.id, 'total_count', 'desc', { limit: 1, offset: 0 })
    assert.equal(most?.totalCount, 1)

    const find = (email: string) => store.messages.count(account.id, { email: [email] })
    assert.equal(await find('sender3@example.com'), 1)
    assert.equal(await find('p100@host7-100.example'), 1)
    const folded = await holdOf(() => find('p999@host7-999.example'))
    assert.equal(folded.value, 1, 'one of the keys that no index holds')
    assert.ok(folded.ms <= 50, `a search held the loop for ${folded.ms} ms`)
    const many = (host: string) => Array.from({ length: 100 }, (_, n) => `p${n}@${host}-${n}.example`)
    const long = await holdOf(() => store.messages.count(account.id, { to: many('host7'), email: many('absent') }))
    assert.equal(long.value, 0)
    assert.ok(long.ms <= 50, `a search for 200 addresses held the loop for ${long.ms} ms`)
    const gone = await mailbox.batch('INBOX', { vanished: added.map(({ placement }) => placement.uid) })
    const away = await holdOf(() => store.sync.apply(gone))
    assert.equal(await store.messages.count(account.id, { to: ['example'] }), 0)
    const back = await mailbox.batch('INBOX', { added })
    const again = await holdOf(() => store.sync.apply(back))
    assertHolds([ms, away.ms, again.ms], 50)
    assert.equal(await store.messages.count(account.id, { to: ['example'] }), mails)
  })

  test('a long step of the store is reported with its owner', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'mr-owner-'))
    const db = openDatabase(join(directory, 'store.sqlite'), 'off', 1000)
    const reports: Held[] = []
    const end = watchLoop((held) => reports.push(held))
    t.after(async () => {
      end()
      await db.close()
      rmSync(directory, { recursive: true })
    })
    const owner: Owner = { kind: 'account', id: 'a1' }
    const spin = 'WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT max(i) FROM n'
    await workAs(owner, () => db.write(() => db.number(spin, 3_000_000)))
    await workAs(owner, () => db.read(() => db.number(spin, 3_000_000)))
    assert.deepEqual(
      reports.map((held) => held.owner),
      [owner, owner],
    )
  })
})
