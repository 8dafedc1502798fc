/** Which arrivals are old mail that the index did not have: no change tells of it, historical scans have to. Pure. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { planAdded, readMessage, type Source } from '../../../engine/accounts/plan.ts'
import type { FolderCursor, MessageRecord } from '../../../engine/store/records.ts'
import { freshCursor, listedFolder } from '../../../engine/store/rows.ts'
import { accountRecord } from '../../support/records.ts'

const now = 1_700_000_000_000
const account = accountRecord({ id: 'user', developerId: 'dev' }, { id: 'acc', epoch: 1 })

/** One message that arrived a day ago, read at these UIDs. `before`: what the index has of it. */
function planned(cursor: Partial<FolderCursor>, before: MessageRecord[], source: Source, uids = [7]) {
  const path = 'Archive'
  const listed = { path, delimiter: '/', attributes: [], specialUse: null, selectable: true, messages: 1, unseen: 0 }
  const folder = { ...listedFolder(account.id, 1, null, listed), cursor: { ...freshCursor('1'), ...cursor } }
  const messageAt = (uid: number) =>
    readMessage(
      account,
      {
        ...{ uid, flags: [], modseq: '5', internalDate: now - 86_400_000, size: 100, body: null },
        headers: Buffer.from('Message-ID: <old@x.example>\r\nSubject: old\r\n\r\n'),
        ...{ emailId: null, threadId: null, labels: null },
      },
      null,
    )
  const existing = new Map(before.map((row) => [row.id, row]))
  return planAdded({ account, folder, uidValidity: '1', now }, uids.map(messageAt), existing, source).old
}

suite('old mail that the index did not have', () => {
  const [row] = planned({ liveFrom: 10 }, [], 'backfill')
  assert.ok(row)
  const elsewhere = { ...row, placements: row.placements.map((one) => ({ ...one, folderId: 'another' })) }
  const renumbered = { ...row, placements: row.placements.map((one) => ({ ...one, uidValidity: '0' })) }
  const cases: readonly (readonly [string, Partial<FolderCursor>, MessageRecord[], Source, number])[] = [
    ['is what is back-filled', { liveFrom: 10 }, [], 'backfill', 1],
    ['is what the server gave later', { liveFrom: 10 }, [], 'live', 1],
    ['is that of a folder that appears', { liveFrom: 10, appearedAt: now }, [], 'backfill', 1],
    ['is what a batch that was cut short has left', { liveFrom: 10 }, [row], 'backfill', 1],
    ['is none that is told as a change', { liveFrom: 1 }, [], 'live', 0],
    ['is none that lies in another folder', { liveFrom: 10 }, [elsewhere], 'backfill', 0],
    ['is none that lay here under another UIDVALIDITY', { liveFrom: 10 }, [renumbered], 'backfill', 0],
    ['is none of a folder that is read anew', { liveFrom: 10, remapSince: now }, [], 'backfill', 0],
    ['is none that left and is back', { liveFrom: 10 }, [{ ...row, placements: [] }], 'backfill', 0],
  ]
  for (const [name, cursor, before, source, count] of cases) {
    test(name, () => {
      assert.equal(planned(cursor, before, source).length, count)
    })
  }

  test('is one where the mail lies there twice, also of a batch that was cut short; none where one was read before', () => {
    const twice = planned({ liveFrom: 10 }, [], 'backfill', [7, 6])
    assert.deepEqual(
      twice.map(({ placements }) => placements.map(({ uid }) => uid)),
      [[7, 6]],
    )
    assert.equal(planned({ liveFrom: 10 }, twice, 'backfill', [7, 6]).length, 1)
    assert.equal(planned({ liveFrom: 10 }, [row], 'backfill', [6]).length, 0)
    assert.equal(planned({ liveFrom: 7 }, [], 'live', [7, 6]).length, 0, 'told as a change')
  })
})
