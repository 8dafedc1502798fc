/** Planning, as tables: which arrival is told as what, which flags are news, when a message is deleted. Pure. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { planAdded, planFlags, planGone, readMessage, type PlanContext } from '../../../engine/accounts/plan.ts'
import type { FetchedMessage } from '../../../engine/accounts/session-types.ts'
import type { FolderCursor, FolderRecord, MessageRecord, SpecialUse } from '../../../engine/store/records.ts'
import { freshCursor, newMessage } from '../../../engine/store/rows.ts'
import { accountRecord } from '../../support/records.ts'

const now = 1_700_000_000_000
const account = accountRecord({ id: 'user', developerId: 'dev' }, { id: 'acc', epoch: 1 })

function folder(path: string, specialUse: SpecialUse | null = null, cursor: Partial<FolderCursor> = {}): FolderRecord {
  return {
    id: `id of ${path}`,
    accountId: 'acc',
    path,
    delimiter: '/',
    attributes: [],
    specialUse,
    selectable: true,
    ...{ messages: 0, unseen: 0, counts: { messages: 0, unseen: 0 }, completeAt: null },
    cursor: { ...freshCursor('1'), ...cursor },
    epoch: 1,
    failures: 0,
    parkedUntil: null,
  }
}

function contextOf(at: FolderRecord): PlanContext {
  return { account, folder: at, uidValidity: '1', now }
}

function fetched(uid: number, subject = 'hello', over: Partial<FetchedMessage> = {}): FetchedMessage {
  return {
    uid,
    flags: [],
    modseq: '5',
    internalDate: now - 1000,
    size: 100,
    body: null,
    headers: Buffer.from(`Message-ID: <${subject}@x.example>\r\nSubject: ${subject}\r\nFrom: a@x.example\r\n\r\n`),
    emailId: null,
    threadId: null,
    ...over,
  }
}

const reading = (one: FetchedMessage) => readMessage(account, one, null)
/** Nobody has written since the server was asked. */
const inbox = folder('INBOX', '\\Inbox')
const archive = folder('Archive', '\\Archive')

/** The row as it is after the message was found there. */
function rowAt(at: FolderRecord, uid: number, over: Partial<FetchedMessage> = {}): MessageRecord {
  const { added } = planAdded(contextOf(at), [reading(fetched(uid, 'hello', over))], new Map(), 'live')
  const [one] = added
  assert(one)
  return newMessage('acc', one, now)
}

const rows = (...all: readonly MessageRecord[]) => new Map(all.map((row) => [row.id, row]))

suite('arrivals', () => {
  const kinds: readonly (readonly [string, FolderRecord, readonly string[], string])[] = [
    ['in INBOX', inbox, [], 'received'],
    ['in a folder of the user’s', folder('Bills'), [], 'received'],
    ['in Junk', folder('Junk', '\\Junk'), [], 'received'],
    ['in Sent', folder('Sent', '\\Sent'), ['\\Seen'], 'sent'],
    ['in Drafts', folder('Drafts', '\\Drafts'), [], 'draft'],
    ['a draft elsewhere', folder('Bills'), ['\\Draft'], 'draft'],
  ]
  for (const [name, at, flags, kind] of kinds) {
    test(`${name}: ${kind}`, () => {
      const { changes } = planAdded(contextOf(at), [reading(fetched(1, 'hello', { flags }))], new Map(), 'live')
      assert.deepEqual(
        changes.map(({ change }) => [change.kind, change.first, change.path, change.uid]),
        [[kind, true, at.path, 1]],
      )
    })
  }

  test('known from another folder: folder_added, not first, with all its folders', () => {
    const { changes } = planAdded(contextOf(archive), [reading(fetched(4))], rows(rowAt(inbox, 1)), 'live')
    assert.deepEqual(
      changes.map(({ change }) => [change.kind, change.first, change.folders]),
      [['folder_added', false, ['INBOX', 'Archive']]],
    )
  })

  test('flags and mod-sequence are kept and told; those that the server leaves out are none', () => {
    const plan = (over: Partial<FetchedMessage>) => {
      const { added, changes } = planAdded(contextOf(inbox), [reading(fetched(1, 'hello', over))], new Map(), 'live')
      const { placement } = added[0] ?? assert.fail()
      const { change } = changes[0] ?? assert.fail()
      assert.deepEqual(change.flags, placement.flags)
      return [placement.flags, placement.modseq, change.kind]
    }
    const flags = ['\\Seen', '\\Recent', '\\Flagged', '\\Seen']
    assert.deepEqual(plan({ flags, modseq: '7' }), [['\\Flagged', '\\Seen'], '7', 'received'])
    assert.deepEqual(plan({ flags: null, modseq: null }), [[], '0', 'received'])
  })

  test('one mail twice in a batch: one message with two places', () => {
    const { added, changes } = planAdded(
      contextOf(inbox),
      [reading(fetched(1)), reading(fetched(2))],
      new Map(),
      'live',
    )
    assert.equal(added[0]?.id, added[1]?.id)
    assert.deepEqual(
      changes.map(({ change }) => change.kind),
      ['received', 'folder_added'],
    )
  })

  const sinceRemap = { remapSince: now - 10_000, liveFrom: 10 }
  const appeared = { appearedAt: now - 10_000, liveFrom: 10 }
  const old = { internalDate: now - 20_000 }
  const thatMoment = { internalDate: now - 10_000 }
  const earlier = { internalDate: account.createdAt - 3_600_000 }
  const tellings: readonly (readonly [
    string,
    Partial<FolderCursor>,
    'live' | 'backfill',
    number,
    object,
    boolean,
    boolean,
  ])[] = [
    ['history', { liveFrom: 10 }, 'backfill', 5, {}, false, false],
    ['history found late', { liveFrom: 10 }, 'live', 5, earlier, false, false],
    ['new mail at a UID given again', { liveFrom: 10 }, 'live', 5, {}, false, true],
    ['history that is known from elsewhere', { liveFrom: 10 }, 'backfill', 5, {}, true, false],
    ['back-fill from where live mail begins', { liveFrom: 10 }, 'backfill', 10, {}, false, false],
    ['new mail', { liveFrom: 10 }, 'live', 10, {}, false, true],
    ['renumbered: known', sinceRemap, 'backfill', 5, {}, true, false],
    ['renumbered: unknown and old', sinceRemap, 'backfill', 5, old, false, false],
    ['renumbered: unknown and new', sinceRemap, 'backfill', 5, {}, false, true],
    ['renumbered: unknown and of that moment', sinceRemap, 'backfill', 5, thatMoment, false, true],
    ['renumbered: above UIDNEXT', sinceRemap, 'live', 10, old, true, true],
    ['new folder: known from elsewhere', appeared, 'backfill', 5, old, true, true],
    ['new folder: unknown and old', appeared, 'backfill', 5, old, false, false],
    ['new folder: unknown and of that moment', appeared, 'backfill', 5, thatMoment, false, true],
    ['new folder: unknown and new', appeared, 'backfill', 5, {}, false, true],
  ]
  for (const [name, cursor, source, uid, over, known, told] of tellings) {
    test(`${name}: ${told ? 'told' : 'not told'}, and the same again where a new row alone was stored`, () => {
      const context = contextOf(folder('Bills', null, cursor))
      const read = [reading(fetched(uid, 'hello', over))]
      const before = known ? rows(rowAt(archive, 1, over)) : new Map<string, MessageRecord>()
      const { added, changes } = planAdded(context, read, before, source)
      const [one] = added
      assert(one)
      assert.equal(changes.length, told ? 1 : 0)
      assert.equal(one.firstChangeId !== null, told)
      const again = planAdded(context, read, known ? before : rows(newMessage('acc', one, now)), source)
      assert.deepEqual(again.changes, changes)
    })
  }

  test('new folder: mail that lies in it twice is not known from elsewhere', () => {
    const context = contextOf(folder('Bills', null, appeared))
    const read = [6, 5].map((uid) => reading(fetched(uid, 'hello', old)))
    const { added, changes } = planAdded(context, read, new Map(), 'backfill')
    assert.deepEqual([added.length, changes.length], [2, 0])
  })

  test('new folder: what was told as deleted, and is back there, is told', () => {
    const context = contextOf(folder('Bills', null, appeared))
    const deleted = { ...rowAt(archive, 1, old), placements: [] }
    const { changes } = planAdded(context, [reading(fetched(5, 'hello', old))], rows(deleted), 'backfill')
    assert.equal(changes[0]?.change.kind, 'folder_added')
  })
})

suite('flags', () => {
  const row = rowAt(inbox, 1)
  const known = new Map([[1, { uid: 1, messageId: row.id, flags: ['\\Seen'], modseq: '5', rev: 2 }]])
  const seen = (flags: readonly string[], modseq: string | null = '6', uid = 1) => [{ uid, flags, modseq }]
  const news: readonly (readonly [string, ReturnType<typeof seen>, number])[] = [
    ['others', seen(['\\Flagged']), 1],
    ['the same, in another order, with \\Recent', seen(['\\Recent', '\\Seen']), 0],
    ['of an unknown UID', seen(['\\Flagged'], '6', 9), 0],
    ['without a modseq', seen([], null), 1],
  ]
  for (const [name, flags, told] of news) {
    test(`${name}: ${told === 1 ? 'told' : 'nothing'}`, () => {
      const { updates, changes } = planFlags(contextOf(inbox), flags, known, rows(row))
      assert.equal(changes.length, told)
      assert.deepEqual(
        updates.map((update) => update.rev),
        told === 1 ? [3] : [],
      )
    })
  }

  test('two keywords are not one that is spelled of both', () => {
    const two = new Map([[1, { uid: 1, messageId: row.id, flags: ['$a', 'b'], modseq: '5', rev: 2 }]])
    assert.equal(planFlags(contextOf(inbox), seen(['$ab']), two, rows(row)).changes.length, 1)
    const one = new Map([[1, { uid: 1, messageId: row.id, flags: ['$ab'], modseq: '5', rev: 2 }]])
    assert.equal(planFlags(contextOf(inbox), seen(['$a', 'b']), one, rows(row)).changes.length, 1)
  })

  test('what is told is the state after it, with the message’s folders; what is stored has its mod-sequence', () => {
    const { updates, changes } = planFlags(contextOf(inbox), seen(['b', '\\Seen', 'a']), known, rows(row))
    const flags = ['\\Seen', 'a', 'b']
    assert.deepEqual(updates, [{ messageId: row.id, uid: 1, flags, modseq: '6', rev: 3 }])
    const { change, message } = changes[0] ?? assert.fail()
    assert.equal(message, row)
    const { kind, first, folderId, path, folders, uid, uidValidity } = change
    assert.deepEqual(
      { kind, first, folderId, path, folders, uid, uidValidity, flags: change.flags },
      {
        kind: 'flags_changed',
        first: false,
        folderId: inbox.id,
        path: 'INBOX',
        folders: ['INBOX'],
        uid: 1,
        uidValidity: '1',
        flags,
      },
    )
    const without = planFlags(contextOf(inbox), seen([], null), known, rows(row))
    assert.equal(without.updates[0]?.modseq, '5', 'a server without mod-sequences')
  })

  test('a message whose row is not at hand is updated, and nothing told', () => {
    const { updates, changes } = planFlags(contextOf(inbox), seen([]), known, new Map())
    assert.deepEqual([updates.length, changes.length], [1, 0])
  })
})

suite('disappearances', () => {
  const gone = { folderId: inbox.id, path: 'INBOX', uidValidity: '1', uid: 1, at: now }
  const folders = new Map([inbox, archive].map((one) => [one.id, one]))
  const here = rowAt(archive, 4)
  const nowhere = { ...here, placements: [] }
  test('lies elsewhere: removed from the folder', () => {
    assert.equal(planGone(account, folders, here, gone, true, now).change.kind, 'folder_removed')
  })
  test('tells where it was, and where it still lies, with its flags there', () => {
    const seen = { ...here, placements: here.placements.map((one) => ({ ...one, flags: ['\\Seen'] })) }
    const { change, message } = planGone(account, folders, seen, gone, true, now + 5)
    assert.equal(message, seen)
    const { first, folderId, path, uid, uidValidity, flags, at } = change
    assert.deepEqual(
      { first, folderId, path, uid, uidValidity, flags, folders: change.folders, at },
      {
        first: false,
        folderId: inbox.id,
        path: 'INBOX',
        uid: 1,
        uidValidity: '1',
        flags: ['\\Seen'],
        folders: ['Archive'],
        at: now + 5,
      },
    )
    assert.deepEqual(planGone(account, folders, nowhere, gone, true, now).change.flags, [])
  })
  test('of a folder by its name now, or by the last that is known when it has gone', () => {
    const renamed = new Map([[inbox.id, { ...inbox, path: 'Old' }]])
    assert.equal(planGone(account, renamed, here, gone, true, now).change.path, 'Old')
    assert.equal(planGone(account, new Map(), here, gone, true, now).change.path, 'INBOX')
  })
  test('lies nowhere: deleted, once', () => {
    assert.equal(planGone(account, folders, nowhere, gone, true, now).change.kind, 'deleted')
    assert.equal(planGone(account, folders, nowhere, gone, false, now).change.kind, 'folder_removed')
  })
})

test('every event of a place has its own id, the same event always the same', () => {
  // A server that names a wrong UID for our own move lets two mails have one place, one after the other.
  const mails = [rowAt(inbox, 1), rowAt(inbox, 1, { size: 101 })]
  const arrivals = [100, 101].flatMap((size) =>
    [inbox, archive].flatMap((at) =>
      ['1', '2'].flatMap((uidValidity) =>
        [1, 2].flatMap((uid) => {
          const read = [reading(fetched(uid, 'hello', { size }))]
          return planAdded({ ...contextOf(at), uidValidity }, read, new Map(), 'live').changes
        }),
      ),
    ),
  )
  const flagged = (flags: readonly string[], rev: number) =>
    mails.flatMap((row) => {
      const known = new Map([[1, { uid: 1, messageId: row.id, flags: [], modseq: '5', rev }]])
      return planFlags(contextOf(inbox), [{ uid: 1, flags, modseq: '6' }], known, rows(row)).changes
    })
  const gone = mails.flatMap((row) =>
    [1, 2].map((uid) => {
      const place = { folderId: inbox.id, path: 'INBOX', uidValidity: '1', uid, at: now }
      return planGone(account, new Map(), row, place, true, now)
    }),
  )
  const all = () => [...arrivals, ...flagged(['a'], 0), ...flagged(['a'], 1), ...gone].map(({ change }) => change.id)
  assert.equal(new Set(all()).size, 24)
  assert.deepEqual(all(), all())
})
