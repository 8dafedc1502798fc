/** Folders as the server lists them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { folderId } from '../../../engine/store/ids.ts'
import { createMailbox, listed, moved, rejectsWith, type Subject } from './mailbox.ts'
import { messageFacts } from './records.ts'

export function foldersContract({ store, clock }: Subject): void {
  describe('folders', () => {
    test('are listed INBOX first, then by path', async () => {
      const paths = ['Zoo', 'Archive', 'INBOX', 'Archive/2024', 'Ärger']
      const { account } = await createMailbox(store, { folders: paths })
      const folders = await store.folders.list(account.id)
      assert.deepEqual(
        folders.map((folder) => folder.path),
        ['INBOX', 'Archive', 'Archive/2024', 'Zoo', 'Ärger'],
      )
      const expected = {
        id: folderId(account.id, 'INBOX'),
        accountId: account.id,
        ...listed('INBOX'),
        counts: { messages: 0, unseen: 0 },
        cursor: null,
        completeAt: null,
        epoch: 1,
        failures: 0,
        parkedUntil: null,
      }
      assert.deepEqual(folders[0], expected)
      assert.deepEqual(await store.folders.byPath(account.id, 'INBOX'), expected)
      assert.equal(await store.folders.byPath(account.id, 'Nowhere'), null)
    })

    test('one that is listed with a cursor is complete, unless it is stored already', async () => {
      const { account, folder } = await createMailbox(store)
      const opened = { ...moved(null, { uidNext: 7, exists: 0, backfillBelow: 0 }), syncedAt: 1234 }
      const both = ['Archive', 'Empty'].map((path) => ({ ...listed(path), opened }))
      await store.folders.reconcile(account.id, 1, both, false)
      const { cursor, completeAt } = await folder('Empty')
      assert.deepEqual({ cursor, completeAt }, { cursor: opened, completeAt: 1234 })
      const before = await folder('Archive')
      assert.deepEqual([before.cursor, before.completeAt], [null, null])
    })

    test('a new listing keeps how far a folder was read, and counts it does not know', async () => {
      const mailbox = await createMailbox(store)
      await mailbox.fill('Archive', [messageFacts()])
      await mailbox.apply('Archive', { cursorAfter: moved(null, { uidNext: 9, backfillBelow: 9, exists: 4 }) })
      const { id } = await mailbox.folder('Archive')
      await store.folders.setParked(id, 2, 12_345)
      const attributes = ['\\HasChildren']
      const again = [listed('Archive', { attributes, messages: null, unseen: 7, specialUse: '\\Archive' })]
      const folders = await store.folders.reconcile(mailbox.account.id, 1, again, false)
      const archive = folders.find((folder) => folder.id === id)
      assert(archive)
      const { messages, unseen, failures, parkedUntil, specialUse, cursor } = archive
      assert.deepEqual(
        {
          messages,
          unseen,
          failures,
          parkedUntil,
          specialUse,
          uidNext: cursor?.uidNext,
          attributes: archive.attributes,
        },
        { messages: 4, unseen: 7, failures: 2, parkedUntil: 12_345, specialUse: '\\Archive', uidNext: 9, attributes },
      )
      assert.equal(folders.length, 3, 'what is not listed stays when the listing is not complete')
    })

    test('a folder missing from a complete listing goes, and what lay in it is gone', async () => {
      const mailbox = await createMailbox(store)
      const ids = await mailbox.fill('Trash', [messageFacts(), messageFacts()])
      const [kept] = ids
      assert(kept)
      const both = mailbox.added('INBOX', 77, { emailMessageId: (await mailbox.message(kept)).emailMessageId })
      assert.equal(both.id, kept)
      await mailbox.apply('INBOX', { added: [both] })
      const trash = await mailbox.folder('Trash')
      clock.now += 5
      const left = [listed('INBOX'), listed('Archive')]
      const folders = await store.folders.reconcile(mailbox.account.id, 1, left, true)
      assert.deepEqual(
        folders.map((folder) => folder.path),
        ['INBOX', 'Archive'],
      )
      assert.equal(await store.folders.byPath(mailbox.account.id, 'Trash'), null)
      assert.deepEqual(await store.messages.knownUids(trash.id, '1', 0, 1000), [])
      assert.equal(await store.messages.count(mailbox.account.id, { folderId: trash.id }), 0)
      assert.equal(await store.messages.count(mailbox.account.id), 1)
      const message = await mailbox.message(kept)
      assert.deepEqual(
        message.placements.map((there) => there.path),
        ['INBOX'],
      )
      const gone = await store.messages.gone(mailbox.account.id, clock.now + 1, 10)
      assert.deepEqual(gone.map((one) => one.id).sort(), [...ids].sort())
      assert.deepEqual(
        message.gone.map(({ path, at }) => ({ path, at })),
        [{ path: 'Trash', at: clock.now }],
      )
    })

    test('counts are the rows of the folder, whatever a batch does and however often', async () => {
      const mailbox = await createMailbox(store)
      const { id } = await mailbox.folder('INBOX')
      const added = [1, 2, 3, 4].map((uid) =>
        mailbox.added('INBOX', uid, {}, { flags: uid % 2 === 0 ? ['\\Seen'] : [] }),
      )
      const flags = (uid: number, rev: number, ...flags: string[]) => {
        return { flagUpdates: [{ messageId: added[uid - 1]?.id ?? '', uid, flags, modseq: '5', rev }] }
      }
      const other = mailbox.added('INBOX', 1)
      const elsewhere = { ...mailbox.added('Archive', 9).placement, flags: ['\\Seen'] }
      const batches = [
        ['INBOX', { added }],
        ['INBOX', { added: added.slice(0, 2) }],
        ['INBOX', flags(1, 1, '\\Seen')],
        ['INBOX', flags(1, 1, '\\Seen')],
        ['INBOX', flags(2, 1)],
        ['INBOX', { vanished: [2, 3, 7] }],
        ['INBOX', { added: [other] }],
        ['Archive', { added: added.slice(3).map((one) => ({ ...one, placement: elsewhere })) }],
      ] as const
      for (const [index, [path, patch]] of batches.entries()) {
        await mailbox.apply(path, patch)
        for (const folder of await store.folders.list(mailbox.account.id)) {
          const rows = await store.messages.knownUids(folder.id, '1', 0, 99)
          const unseen = rows.filter(({ flags }) => !flags.includes('\\Seen')).length
          assert.deepEqual(folder.counts, { messages: rows.length, unseen }, `batch ${index}, ${folder.path}`)
        }
      }
      // Numbered anew: complete no more, and its placements leave the index.
      await mailbox.apply('INBOX', {
        cursorAfter: moved(null, { uidValidity: '2', uidNext: 8, backfillBelow: 8, exists: 6 }),
      })
      const before = await mailbox.folder('INBOX')
      const { counts, completeAt, messages, unseen } = before
      assert.deepEqual([completeAt, messages, unseen], [null, 6, counts.unseen])
      assert.equal(counts.messages, 2)
      await store.sync.forgetPlacements(mailbox.account.id, 1, id, '2', 100)
      await mailbox.apply('INBOX', { added: [mailbox.added('INBOX', 1, {}, { uidValidity: '2' })] })
      assert.deepEqual((await mailbox.folder('INBOX')).counts, { messages: 1, unseen: 1 })
    })

    test('make the account complete when all that hold mail are, and incomplete when one is so no more', async () => {
      const mailbox = await createMailbox(store, { folders: ['INBOX', 'Archive'] })
      const { id, epoch } = mailbox.account
      const since = async () => (await store.accounts.get(id))?.completeAt ?? null
      const read = (path: string) => mailbox.apply(path, { cursorAfter: moved(null, { uidNext: 9 }) })
      const list = (...paths: string[]) =>
        store.folders.reconcile(
          id,
          epoch,
          paths.map((path) => listed(path)),
          true,
        )
      assert.equal((await read('INBOX')).turned, false)
      assert.equal(await since(), null)
      assert.equal((await read('Archive')).turned, true)
      assert.equal(await since(), clock.now)
      await list('INBOX', 'Archive')
      assert.equal(await since(), clock.now)
      // A new one, which is read, and one that is removed before it was.
      for (const left of [
        ['INBOX', 'Archive', 'New'],
        ['INBOX', 'Archive'],
      ]) {
        await list('INBOX', 'Archive', 'New')
        assert.equal(await since(), null)
        if (left.length === 3) await read('New')
        await list(...left)
        assert.equal(await since(), clock.now)
        await list('INBOX', 'Archive')
      }
      const held = [listed('INBOX'), listed('Archive'), listed('Parent', { selectable: false })]
      await store.folders.reconcile(id, epoch, held, true)
      assert.equal(await since(), clock.now)
      // Numbered anew, and read to its end.
      const anew = { uidValidity: '2', uidNext: 9, backfillBelow: 9 }
      assert.equal((await mailbox.apply('INBOX', { cursorAfter: moved(null, anew) })).turned, true)
      assert.equal(await since(), null)
      await mailbox.apply('INBOX', { cursorAfter: moved(null, { ...anew, backfillBelow: 0 }) })
      assert.equal(await since(), clock.now)
      await store.sync.replaceMailbox(id, { server: 'imap.other.example' }, clock.now)
      assert.equal(await since(), null)
    })

    test('of another owner are not touched', async () => {
      const mailbox = await createMailbox(store)
      await store.accounts.claim(mailbox.account.id)
      await rejectsWith(store.folders.reconcile(mailbox.account.id, 1, [listed('New')], true), 'lease_lost')
      assert.equal((await store.folders.list(mailbox.account.id)).length, 3)
      assert.equal(await store.folders.byPath(mailbox.account.id, 'New'), null)
    })

    test('reported counts and parking are set alone', async () => {
      const mailbox = await createMailbox(store)
      const inbox = await mailbox.folder('INBOX')
      await store.folders.setReported(inbox.id, { messages: 10, unseen: 3 })
      await store.folders.setParked(inbox.id, 3, 99)
      const expected = { ...inbox, messages: 10, unseen: 3, failures: 3, parkedUntil: 99 }
      assert.deepEqual(await mailbox.folder('INBOX'), expected)
      await store.folders.setParked(inbox.id, 0, null)
      assert.deepEqual(await mailbox.folder('INBOX'), { ...expected, failures: 0, parkedUntil: null })
      await store.folders.setReported('0'.repeat(24), { messages: 1, unseen: 1 })
    })
  })
}
