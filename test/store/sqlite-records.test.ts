/**
 * The version of an account's mail, and the array of its folders, are the same while nothing has changed, and others
 * after any change; after another process's soon.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../engine/store/port.ts'
import type { MessageRecord } from '../../engine/store/records.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { until } from '../support/until.ts'
import { createMailbox, type Mailbox } from './contract/mailbox.ts'
import { messageFacts } from './contract/records.ts'

describe('what tells that nothing has changed', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mailroom-records-'))
  const path = join(directory, 'mailroom.db')
  let store: Store
  let other: Store
  let mailbox: Mailbox
  let message: MessageRecord

  before(async () => {
    store = await createSqliteStore({ path, sync: 'off' })
    other = await createSqliteStore({ path, sync: 'off' })
    mailbox = await createMailbox(store)
    await mailbox.fill('INBOX', [messageFacts()])
    message = (await listed()) ?? assert.fail('nothing listed')
  })
  after(async () => {
    await store.close()
    await other.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const listed = async (): Promise<MessageRecord | undefined> =>
    (await store.messages.list(mailbox.account.id, {}, { limit: 25, offset: 0 }))[0]

  const version = (): Promise<number | null> => store.messages.version(mailbox.account.id)

  test('unchanged: the same version and the very same folders', async () => {
    assert.equal(typeof (await version()), 'number')
    assert.equal(await version(), await version())
    const { id } = mailbox.account
    assert.equal(await store.folders.list(id), await store.folders.list(id))
  })

  for (const [name, writer, seen] of [
    ['by us', () => store, () => Promise.resolve()],
    ['by another process', () => other, (so: () => Promise<boolean>) => until('the change', so)],
  ] as const) {
    test(`changed ${name}: another version, and the new flags in every kind of read`, async () => {
      const before = await version()
      const flags = [`\\Flag${name.length}`]
      const { path, uid, rev } = (await mailbox.message(message.id)).placements[0] ?? assert.fail('no place')
      const update = { messageId: message.id, uid, flags, modseq: '9', rev: rev + 1 }
      await writer().sync.apply(await mailbox.batch(path, { flagUpdates: [update] }))
      await seen(async () => (await version()) !== before)
      assert.notEqual(await version(), before)
      const now = await listed()
      assert.deepEqual(now?.placements[0]?.flags, flags)
      assert.deepEqual(now, await store.messages.get(mailbox.account.id, message.id))
    })

    test(`counts of a folder changed ${name} are in the next list`, async () => {
      const { id } = mailbox.account
      const [before] = await store.folders.list(id)
      assert(before)
      await writer().folders.setCounts(before.id, { messages: before.messages + 7, unseen: 3 })
      await seen(async () => (await store.folders.list(id))[0]?.messages !== before.messages)
      const [now] = await store.folders.list(id)
      assert.equal(now?.messages, before.messages + 7)
      assert.deepEqual(await store.folders.byPath(id, before.path), now)
    })
  }
})
