/** Contacts of accounts from before everybody in a message was counted. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactId } from '../../engine/store/ids.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { startRecount } from '../../engine/maintenance.ts'
import type { Store } from '../../engine/store/port.ts'
import type { AddedMessage, ContactDelta } from '../../engine/index.ts'
import { createMailbox, type Mailbox } from '../store/contract/mailbox.ts'
import { addressed, userRecord } from '../store/contract/records.ts'
import { openTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'

const me = 'me@mail.example'

/** As senders were counted then. */
function received(mailbox: Mailbox, { id, facts }: AddedMessage): ContactDelta[] {
  const email = facts.addresses.from[0]?.email ?? ''
  const counts = { total: 1, direct: 0, indirect: 1, receivedAt: facts.receivedAt }
  return email === me ? [] : [{ userId: mailbox.user.id, email, name: '', key: `${id}:r`, ...counts }]
}

async function storeLetters(mailbox: Mailbox, path: string, count: number, from: string, to: string): Promise<void> {
  const letters = Array.from({ length: count }, (_, index) =>
    mailbox.added(path, index + 1, addressed({ from: [from], to: [to, me], cc: ['cy@away.example'] })),
  )
  const counted = path === 'Trash' ? [] : letters.flatMap((letter) => received(mailbox, letter))
  await mailbox.apply(path, { added: letters, contacts: counted })
}

async function counts(store: Store, { user }: Mailbox): Promise<Record<string, readonly number[]>> {
  const contacts = await store.contacts.list(user.id, 'total_count', 'desc', { limit: 100, offset: 0 })
  return Object.fromEntries(contacts.map((one) => [one.email, [one.totalCount, one.indirectCount]]))
}

test('everybody in the mail that is there is counted once, over pages and restarts, and rubbish is not', async (t) => {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const user = userRecord('d'.repeat(24), { emailAddresses: [me] })
  await store.users.create(user)
  const mailbox = await createMailbox(store, { user, folders: ['INBOX', 'Sent', 'Trash'] })
  const sent = (await mailbox.folder('Sent')).id
  const folders = (await store.folders.list(mailbox.account.id)).map((folder) => ({
    ...folder,
    specialUse: folder.id === sent ? ('\\Sent' as const) : folder.path === 'Trash' ? ('\\Trash' as const) : null,
  }))
  await store.folders.reconcile(mailbox.account.id, mailbox.account.epoch, folders, true)
  await storeLetters(mailbox, 'INBOX', 250, 'bob@away.example', 'dan@away.example')
  await storeLetters(mailbox, 'Sent', 3, me, 'bob@away.example')
  await storeLetters(mailbox, 'Trash', 2, 'eve@away.example', 'dan@away.example')
  assert.deepEqual(await counts(store, mailbox), { 'bob@away.example': [250, 250] })

  // fails after the first page, as when the process ends there
  let pages = 0
  const failing: Store = {
    ...store,
    contacts: {
      ...store.contacts,
      count: (accountId, deltas) => {
        pages += 1
        return pages === 2 ? Promise.reject(new Error('the store is away')) : store.contacts.count(accountId, deltas)
      },
    },
  }
  const stopFirst = startRecount({ store: failing, log: silentLogger })
  await until('the second page failed', () => pages === 2)
  await stopFirst()
  assert.equal((await store.accounts.get(mailbox.account.id))?.everybodyCounted, undefined)

  const wanted = { 'bob@away.example': [253, 250], 'cy@away.example': [253, 0], 'dan@away.example': [250, 0] }
  for (let round = 0; round < 2; round += 1) {
    const stop = startRecount({ store, log: silentLogger })
    await until('counted', async () => (await store.accounts.get(mailbox.account.id))?.everybodyCounted)
    await stop()
    assert.deepEqual(await counts(store, mailbox), wanted)
    const contact = await store.contacts.get(user.id, contactId(user.id, 'cy@away.example'))
    assert.equal(contact?.lastReceivedAt, 0)
  }
  await store.accounts.remove(mailbox.account.id)
  assert.deepEqual(await counts(store, mailbox), {})
})
