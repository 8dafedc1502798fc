/** Files of older schemas, brought up to date by their first opening. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { freshCursor } from '../../engine/store/rows.ts'
import { createMailbox } from './contract/mailbox.ts'
import { sqliteFiles } from './sqlite-files.ts'

const { newPath, withStore, remove } = sqliteFiles()
after(remove)

describe('a file', () => {
  test('of an older schema knows the counts of its folders, and which are complete', async () => {
    const path = newPath()
    const folders = await withStore(path, async (store) => {
      const mailbox = await createMailbox(store)
      const added = ['\\Seen', '\\Flagged'].map((flag, index) =>
        mailbox.added('INBOX', index + 1, {}, { flags: [flag] }),
      )
      await mailbox.apply('INBOX', { added })
      await mailbox.apply('Trash', { cursorAfter: { ...freshCursor('1'), uidNext: 9, backfillBelow: 9 } })
      return store.folders.list(mailbox.account.id)
    })
    assert.deepEqual(folders[0]?.counts, { messages: 2, unseen: 1 })
    const old = new DatabaseSync(path)
    old.exec(`UPDATE folders SET doc = json_remove(doc, '$.counts', '$.completeAt')`)
    old.exec('PRAGMA user_version = 17')
    old.close()
    await withStore(path, async (store) => {
      const [inbox, archive, trash] = await store.folders.list(folders[0]?.accountId ?? '')
      assert.deepEqual(inbox, { ...folders[0], completeAt: inbox?.cursor?.comparedAt })
      assert.deepEqual([archive, trash], folders.slice(1))
    })
  })
})
