/** Lists without placements that are hidden, as the 2.0 API shows mail; and the number of attachments. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { HiddenPlaces, MessageQuery } from '../../../engine/store/port.ts'
import type { MessageRecord } from '../../../engine/store/records.ts'
import { createMailbox, type Subject } from './mailbox.ts'
import { attachmentRecord, epochStart } from './records.ts'

const paths = ['INBOX', 'Archive', 'Trash', 'Drafts'] as const
type Path = (typeof paths)[number]

/** In which folders a message lies, and in which of them it is flagged \Deleted. */
type Places = { readonly [P in Path]?: 'plain' | 'deleted' | undefined }

async function mailboxWith(subject: Subject, mail: readonly Places[]) {
  const mailbox = await createMailbox(subject.store, { folders: paths })
  for (const path of paths) {
    const added = mail.flatMap((places, index) => {
      const flags = places[path] === 'deleted' ? ['\\Deleted', '\\Seen'] : ['\\Seen']
      const facts = { subject: String(index), sentAt: epochStart + index, emailMessageId: `m${index}@x.com` }
      return places[path] === undefined ? [] : [mailbox.added(path, index + 1, facts, { flags })]
    })
    if (added.length > 0) await mailbox.apply(path, { added })
  }
  const ids = new Map<string, string>()
  for (const path of paths) ids.set(path, (await mailbox.folder(path)).id)
  const idOf = (path: Path): string => ids.get(path) ?? ''
  const listed = async (query: MessageQuery): Promise<string> => {
    const found = await subject.store.messages.list(mailbox.account.id, query, { limit: 100, offset: 0 })
    assert.equal(await subject.store.messages.count(mailbox.account.id, query), found.length)
    return found.map((message: MessageRecord) => message.subject).join(' ')
  }
  return { mailbox, idOf, listed }
}

export function shownContract(subject: Subject): void {
  const { store } = subject

  describe('hidden placements', () => {
    test('hide what lies only there, in every list', async () => {
      const { idOf, listed } = await mailboxWith(subject, [
        { INBOX: 'plain' },
        { Trash: 'plain' },
        { INBOX: 'plain', Trash: 'plain' },
        { Trash: 'plain', Drafts: 'plain' },
        { INBOX: 'deleted' },
        { INBOX: 'deleted', Archive: 'plain' },
        { INBOX: 'deleted', Trash: 'plain' },
      ])
      const folders = { folderIds: [idOf('Trash'), idOf('Drafts')], deleted: false }
      const both = { ...folders, deleted: true }
      const deleted = { folderIds: [], deleted: true }
      const table: readonly [MessageQuery, string][] = [
        [{}, '6 5 4 3 2 1 0'],
        [{ hidden: { folderIds: [], deleted: false } }, '6 5 4 3 2 1 0'],
        [{ hidden: folders }, '6 5 4 2 0'],
        [{ hidden: both }, '5 2 0'],
        [{ hidden: both, order: 'asc' }, '0 2 5'],
        [{ hidden: deleted }, '6 5 3 2 1 0'],
        [{ hidden: deleted, folderId: idOf('INBOX') }, '2 0'],
        [{ hidden: both, folderId: idOf('INBOX') }, '2 0'],
        [{ hidden: folders, folderId: idOf('INBOX') }, '6 5 4 2 0'],
        [{ hidden: folders, folderId: idOf('Trash') }, ''],
        [{ hidden: both, email: ['example.com'] }, '5 2 0'],
        [{ hidden: both, subject: '2' }, '2'],
        [{ hidden: both, sentFrom: epochStart + 3 }, '5'],
      ]
      for (const [query, expected] of table) assert.equal(await listed(query), expected, JSON.stringify(query))
    })

    test('follow the flags, and the places', async () => {
      const { mailbox, idOf, listed } = await mailboxWith(subject, [{ INBOX: 'plain' }])
      const hidden: HiddenPlaces = { folderIds: [idOf('Trash')], deleted: true }
      const [message] = await store.messages.list(mailbox.account.id, {}, { limit: 1, offset: 0 })
      assert(message)
      let rev = 0
      const flag = (flags: readonly string[]) =>
        mailbox.apply('INBOX', {
          flagUpdates: [{ messageId: message.id, uid: 1, flags, modseq: '0', rev: (rev += 1) }],
        })
      assert.equal(await listed({ hidden }), '0')
      await flag(['\\Deleted'])
      assert.equal(await listed({ hidden }), '')
      assert.equal(await listed({}), '0')
      await flag(['\\Flagged'])
      assert.equal(await listed({ hidden }), '0')
      const facts = { subject: '0', sentAt: epochStart, emailMessageId: 'm0@x.com' }
      await mailbox.apply('Trash', { added: [mailbox.added('Trash', 1, facts)] })
      await mailbox.apply('INBOX', { vanished: [1], vanishedAt: epochStart })
      assert.equal(await listed({ hidden }), '')
      assert.equal(await listed({ hidden: { ...hidden, folderIds: [] } }), '0')
    })

    test('make no hole in a page: the union of all pages is what is shown', async () => {
      const place = fc.option(fc.constantFrom('plain' as const, 'deleted' as const), { nil: undefined })
      const mail = fc.array(fc.record({ INBOX: place, Archive: place, Trash: place, Drafts: place }), { maxLength: 14 })
      const asked = fc.record({
        away: fc.subarray([...paths]),
        deleted: fc.boolean(),
        folder: fc.option(fc.constantFrom(...paths)),
      })
      await fc.assert(
        fc.asyncProperty(
          mail,
          asked,
          fc.integer({ min: 1, max: 5 }),
          async (letters, { away, deleted, folder }, limit) => {
            const { mailbox, idOf } = await mailboxWith(subject, letters)
            const query: MessageQuery = {
              order: 'asc',
              hidden: { folderIds: away.map(idOf), deleted },
              ...(folder === null ? {} : { folderId: idOf(folder) }),
            }
            const isShown = (places: Places): boolean =>
              paths.some(
                (path) =>
                  places[path] !== undefined &&
                  (folder === null || path === folder) &&
                  !away.includes(path) &&
                  !(deleted && places[path] === 'deleted'),
              )
            const expected = letters.flatMap((places, index) => (isShown(places) ? [String(index)] : []))
            const seen: string[] = []
            for (let offset = 0; offset <= letters.length; offset += limit) {
              const page = await store.messages.list(mailbox.account.id, query, { limit, offset })
              seen.push(...page.map((message) => message.subject))
            }
            assert.deepEqual(seen, expected)
          },
        ),
        { numRuns: 25 },
      )
    })
  })

  test('messages and attachments are counted: of live messages, all together', async () => {
    const mailbox = await createMailbox(store)
    const totals = () => store.messages.totals(mailbox.account.id)
    assert.partialDeepStrictEqual(await totals(), { messages: 0, attachments: 0 })
    const files = (many: number) => Array.from({ length: many }, (_, index) => attachmentRecord(index))
    const added = [3, 0, 2].map((many, index) => {
      const facts = { attachments: files(many), emailMessageId: `f${index}@x.com` }
      return mailbox.added('INBOX', index + 1, facts)
    })
    await mailbox.apply('INBOX', { added })
    assert.partialDeepStrictEqual(await totals(), { messages: 3, attachments: 5 })
    await mailbox.apply('INBOX', { vanished: [3], vanishedAt: epochStart })
    assert.partialDeepStrictEqual(await totals(), { messages: 2, attachments: 3 })
  })
}
