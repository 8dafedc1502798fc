/** Lists of messages: every filter with hits and misses, order, and pages. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { MessageQuery } from '../../../engine/store/port.ts'
import type { MessageFacts } from '../../../engine/store/records.ts'
import { createMailbox, type Mailbox, type Subject } from './mailbox.ts'
import { addressed, attachmentRecord, epochStart, messageFacts } from './records.ts'

/** Subjects of the answer, oldest first: tests name their messages by subject. */
async function subjects({ store }: Subject, mailbox: Mailbox, query: MessageQuery): Promise<string[]> {
  const found = await store.messages.list(mailbox.account.id, { order: 'asc', ...query }, { limit: 100, offset: 0 })
  assert.equal(await store.messages.count(mailbox.account.id, query), found.length)
  return found.map((message) => message.subject)
}

function aged(subject: string, age: number, patch: Partial<MessageFacts> = {}): MessageFacts {
  return messageFacts({ subject, sentAt: epochStart + age, ...patch })
}

export function filtersContract(subject: Subject): void {
  const { store } = subject

  describe('filters', () => {
    test('addresses: whole, domains and parent domains, per field', async () => {
      const mailbox = await createMailbox(store)
      await mailbox.fill('INBOX', [
        addressed({ from: ['Alice@x.com'], to: ['bob@mail.y.co.uk'] }, { subject: '1', sentAt: epochStart + 1 }),
        addressed({ from: ['carol@sub.x.com'], cc: ['alice@X.com'] }, { subject: '2', sentAt: epochStart + 2 }),
        addressed(
          { from: ['dave@notx.com'], bcc: ['alice@x.com', 'erin@z.org'] },
          { subject: '3', sentAt: epochStart + 3 },
        ),
        addressed({ sender: ['alice@x.com'], replyTo: ['alice@x.com'] }, { subject: '4', sentAt: epochStart + 4 }),
      ])
      const table: readonly [MessageQuery, string[]][] = [
        [{ from: ['alice@x.com'] }, ['1']],
        [{ from: ['ALICE@X.COM'] }, ['1']],
        [{ from: ['lice@x.com'] }, []],
        [{ from: ['x.com'] }, ['1', '2']],
        [{ from: ['@x.com'] }, ['1', '2']],
        [{ from: ['sub.x.com'] }, ['2']],
        [{ from: ['com'] }, ['1', '2', '3']],
        [{ from: ['.com'] }, ['1', '2', '3']],
        [{ from: ['org'] }, []],
        [{ from: ['alice@x.com', 'dave@notx.com'] }, ['1', '3']],
        [{ from: ['alice@x.com', 'x.com'] }, ['1', '2']],
        [{ to: ['co.uk'] }, ['1']],
        [{ to: ['bob@mail.y.co.uk'] }, ['1']],
        [{ to: ['bob@y.co.uk'] }, []],
        [{ cc: ['alice@x.com'] }, ['2']],
        [{ bcc: ['z.org'] }, ['3']],
        [{ email: ['alice@x.com'] }, ['1', '2', '3']],
        [{ email: ['z.org', 'uk'] }, ['1', '3']],
        [{ email: ['nobody@x.com'] }, []],
        [{ email: ['x.com'], from: ['notx.com'] }, ['3']],
        [{ from: ['com'], to: ['uk'] }, ['1']],
        [{ from: ['com'], cc: ['com'], bcc: ['com'] }, []],
        [{ from: [] }, []],
        [{ from: ["x' OR 1=1 --", '$ne'] }, []],
      ]
      for (const [query, expected] of table) {
        assert.deepEqual(await subjects(subject, mailbox, query), expected, JSON.stringify(query))
      }
    })

    test('each of 3,000 recipients is found, in every field, with every other filter', async () => {
      const mailbox = await createMailbox(store)
      const { id: folderId } = await mailbox.folder('INBOX')
      const many = (field: string) => Array.from({ length: 1000 }, (_, n) => `r${n}@${field}${n}.example`)
      const lists = { from: ['a@b.example'], to: many('to'), cc: many('cc'), bcc: [...many('bcc'), 'last@last.test'] }
      const last = { bcc: ['last@last.test'] }
      await mailbox.fill('INBOX', [
        addressed(lists, { subject: 'wide 1', sentAt: epochStart + 1, attachments: [attachmentRecord(0)] }),
        addressed(last, { subject: 'few', sentAt: epochStart + 2 }),
        addressed(lists, { subject: 'wide 3', sentAt: epochStart + 3 }),
        addressed({ ...lists, bcc: ['astray@last.test.example'] }, { subject: 'astray', sentAt: epochStart + 4 }),
      ])
      const wide = ['wide 1', 'wide 3']
      const table: readonly [MessageQuery, string[]][] = [
        [{ to: ['r999@to999.example'] }, [...wide, 'astray']],
        [{ bcc: ['r999@bcc999.example'] }, wide],
        [{ bcc: ['bcc999.example'] }, wide],
        [{ bcc: ['r998@bcc999.example'] }, []],
        [{ bcc: ['99@bcc999.example'] }, []],
        [{ cc: ['r999@bcc999.example'] }, []],
        [{ email: ['last@last.test'] }, ['wide 1', 'few', 'wide 3']],
        [{ email: ['test'] }, ['wide 1', 'few', 'wide 3']],
        [{ ...last, email: ['last.test'] }, ['wide 1', 'few', 'wide 3']],
        [{ ...last, from: ['b.example'] }, wide],
        [{ ...last, from: ['nobody@b.example'] }, []],
        [{ ...last, subject: 'WIDE' }, wide],
        [{ ...last, hasAttachments: true }, ['wide 1']],
        [{ ...last, hasAttachments: false, folderId }, ['few', 'wide 3']],
        [{ ...last, sentFrom: epochStart + 2 }, ['few', 'wide 3']],
        [{ ...last, hidden: { folderIds: [folderId], deleted: false } }, []],
        [{ email: [...many('none').slice(0, 99), 'last.test'] }, ['wide 1', 'few', 'wide 3']],
      ]
      for (const [query, expected] of table)
        assert.deepEqual(await subjects(subject, mailbox, query), expected, JSON.stringify(query).slice(0, 200))
      const [page] = await store.messages.list(mailbox.account.id, last, { limit: 1, offset: 1 })
      assert.equal(page?.subject, 'few')
      await mailbox.apply('INBOX', { vanished: [1, 3], vanishedAt: epochStart })
      assert.deepEqual(await subjects(subject, mailbox, last), ['few'])
    })

    test('many alternatives at once', async () => {
      const mailbox = await createMailbox(store)
      const facts = Array.from({ length: 60 }, (_, age) =>
        addressed(
          { from: [`u${age}@many.example`], to: ['list@x.com'] },
          { subject: `${age}`, sentAt: epochStart + age },
        ),
      )
      await mailbox.fill('INBOX', facts)
      const from = Array.from({ length: 55 }, (_, age) => `u${age}@many.example`)
      assert.equal((await subjects(subject, mailbox, { from })).length, 55)
      assert.equal((await subjects(subject, mailbox, { email: from, to: ['x.com'] })).length, 55)
      const page = await store.messages.list(mailbox.account.id, { from }, { limit: 2, offset: 1 })
      assert.deepEqual(
        page.map((message) => message.subject),
        ['53', '52'],
      )
    })

    test('subject: any part, without case, in any script', async () => {
      const mailbox = await createMailbox(store)
      await mailbox.fill('INBOX', [aged('Rechnung ÄRZTE 100%', 1), aged('ПРИВЕТ мир', 2), aged('Cafe\u0301 a_b', 3)])
      const table: readonly [string, string[]][] = [
        ['ärzte', ['Rechnung ÄRZTE 100%']],
        ['rechnung', ['Rechnung ÄRZTE 100%']],
        ['привет', ['ПРИВЕТ мир']],
        ['МИР', ['ПРИВЕТ мир']],
        ['CAFÉ', ['Cafe\u0301 a_b']],
        ['100%', ['Rechnung ÄRZTE 100%']],
        ['a_b', ['Cafe\u0301 a_b']],
        ['a.b', []],
        ['.*', []],
        ['(', []],
        ['zzz', []],
      ]
      for (const [part, expected] of table) {
        assert.deepEqual(await subjects(subject, mailbox, { subject: part }), expected, part)
      }
      assert.equal((await subjects(subject, mailbox, { subject: '' })).length, 3)
      const { id } = await mailbox.folder('INBOX')
      assert.deepEqual(await subjects(subject, mailbox, { subject: 'мир', folderId: id }), ['ПРИВЕТ мир'])
      assert.deepEqual(await subjects(subject, mailbox, { subject: 'мир', email: ['x.com'] }), [])
    })

    test('dates are inclusive on both sides', async () => {
      const mailbox = await createMailbox(store)
      await mailbox.fill(
        'INBOX',
        [1, 2, 3, 4].map((age) => aged(String(age), age)),
      )
      const between = (from: number, until: number) => ({ sentFrom: epochStart + from, sentUntil: epochStart + until })
      assert.deepEqual(await subjects(subject, mailbox, between(2, 3)), ['2', '3'])
      assert.deepEqual(await subjects(subject, mailbox, { sentFrom: epochStart + 4 }), ['4'])
      assert.deepEqual(await subjects(subject, mailbox, { sentUntil: epochStart }), [])
      const { id } = await mailbox.folder('INBOX')
      assert.deepEqual(await subjects(subject, mailbox, { ...between(2, 2), folderId: id }), ['2'])
      assert.deepEqual(await subjects(subject, mailbox, { ...between(1, 3), email: ['example.com'] }), ['1', '2', '3'])
    })

    test('folder, thread, attachments and ids, alone and together', async () => {
      const mailbox = await createMailbox(store)
      const attachments = [attachmentRecord(0)]
      const inbox = await mailbox.fill('INBOX', [
        aged('1', 1, { threadId: 'a'.repeat(16), attachments }),
        aged('2', 2, { threadId: 'b'.repeat(16) }),
      ])
      await mailbox.fill('Archive', [aged('3', 3, { threadId: 'a'.repeat(16), attachments }), aged('4', 4)])
      const [{ id: inboxId }, { id: archiveId }] = [await mailbox.folder('INBOX'), await mailbox.folder('Archive')]
      const table: readonly [MessageQuery, string[]][] = [
        [{}, ['1', '2', '3', '4']],
        [{ folderId: inboxId }, ['1', '2']],
        [{ folderId: '0'.repeat(24) }, []],
        [{ threadId: 'a'.repeat(16) }, ['1', '3']],
        [{ threadId: 'a'.repeat(16), folderId: archiveId }, ['3']],
        [{ threadIds: ['a'.repeat(16), 'b'.repeat(16), 'c'.repeat(16)] }, ['1', '2', '3']],
        [{ threadIds: ['b'.repeat(16), 'b'.repeat(16)] }, ['2']],
        [{ threadIds: [] }, []],
        [{ hasAttachments: true }, ['1', '3']],
        [{ hasAttachments: false }, ['2', '4']],
        [{ hasAttachments: false, folderId: archiveId }, ['4']],
        [{ hasAttachments: true, threadId: 'b'.repeat(16) }, []],
        [{ ids: [...inbox, '0'.repeat(24), ...inbox] }, ['1', '2']],
        [{ ids: inbox, hasAttachments: true }, ['1']],
        [{ ids: inbox, folderId: archiveId }, []],
        [{ ids: [] }, []],
        [{ ids: inbox, subject: '2', sentFrom: epochStart + 2 }, ['2']],
      ]
      for (const [query, expected] of table) {
        assert.deepEqual(await subjects(subject, mailbox, query), expected, JSON.stringify(query))
      }
    })

    test('a message in two folders is listed once, and in each', async () => {
      const mailbox = await createMailbox(store)
      const facts = aged('both', 1)
      const [id] = await mailbox.fill('INBOX', [facts])
      await mailbox.fill('Archive', [facts, aged('one', 2)])
      assert(id)
      assert.equal((await mailbox.message(id)).placements.length, 2)
      assert.deepEqual(await subjects(subject, mailbox, {}), ['both', 'one'])
      assert.deepEqual(await subjects(subject, mailbox, { email: ['com', 'org'] }), ['both', 'one'])
      for (const path of ['INBOX', 'Archive']) {
        const { id: folderId } = await mailbox.folder(path)
        assert((await subjects(subject, mailbox, { folderId })).includes('both'))
      }
    })

    test('accounts do not see each other', async () => {
      const [mine, other] = [await createMailbox(store), await createMailbox(store)]
      const ids = await other.fill('INBOX', [aged('secret', 1)])
      const { id: folderId } = await other.folder('INBOX')
      for (const query of [{}, { ids }, { folderId }, { email: ['com'] }, { subject: 'secret' }]) {
        assert.deepEqual(await subjects(subject, mine, query), [])
      }
    })
  })
}

export function pagingContract(subject: Subject): void {
  const { store } = subject

  describe('order and pages', () => {
    test('of a limit of 0 are empty, in every list', async () => {
      const mailbox = await createMailbox(store)
      const { account, user, developer } = mailbox
      const one = mailbox.added('INBOX', 1, { attachments: [attachmentRecord(0)] })
      const { changes, outbox } = mailbox.event(one)
      const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
      const contacts = [{ userId: user.id, email: 'a@x.com', name: '', key: `${one.id}:r`, ...counts }]
      await mailbox.apply('INBOX', { added: [one], changes, outbox, contacts })
      const { developerId } = account
      const none = { limit: 0, offset: 0 }
      const lists = {
        users: await store.users.list(developerId, {}, none),
        'users by status': await store.users.list(developerId, { status: 'OK' }, none),
        'users by address': await store.users.list(developerId, { email: account.email }, none),
        accounts: await store.accounts.page(null, 0),
        messages: await store.messages.list(account.id, {}, none),
        older: await store.messages.older(account.id, null, 0),
        gone: await store.messages.gone(account.id, epochStart * 2, 0),
        picked: await store.messages.picked(account.id, {}, none, (message) => [message]),
        changes: await store.changes.since(account.id, 0, 0),
        webhooks: await store.webhooks.page(null, 0),
        pending: await store.outbox.pending(outbox[0]?.channelId ?? '', [], 0),
        deliveries: await store.outbox.list({ accountId: account.id }, none),
        contacts: await store.contacts.list(user.id, 'total_count', 'desc', none),
        'contacts found': await store.contacts.search(user.id, 'a', none),
        calls: await store.calls.list({ developerId: developer.id }, none),
      }
      assert.deepEqual(lists, Object.fromEntries(Object.keys(lists).map((name) => [name, []])))
      assert.equal((await store.outbox.requeue({ accountId: account.id }, epochStart, 0)).count, 0)
    })

    test('newest first unless asked otherwise; equal dates by id', async () => {
      const mailbox = await createMailbox(store)
      const ids = await mailbox.fill('INBOX', [aged('a', 2), aged('b', 1), aged('c', 2), aged('d', 2)])
      const same = [ids[0], ids[2], ids[3]].sort()
      const ascending = [ids[1], ...same]
      const { id: folderId } = await mailbox.folder('INBOX')
      for (const query of [{}, { folderId }, { email: ['com'] }, { ids }]) {
        const list = async (order?: 'asc' | 'desc') => {
          const sorted = order ? { ...query, order } : query
          const found = await store.messages.list(mailbox.account.id, sorted, { limit: 9, offset: 0 })
          return found.map((message) => message.id)
        }
        assert.deepEqual(await list('asc'), ascending)
        assert.deepEqual(await list('desc'), [...ascending].reverse())
        assert.deepEqual(await list(), [...ascending].reverse())
      }
    })

    test('the union of all pages is the whole answer, and the whole answer is what matches', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(letter, { maxLength: 25 }),
          query,
          fc.integer({ min: 1, max: 7 }),
          async (mail, asked, limit) => {
            const mailbox = await createMailbox(store, { folders: ['INBOX', 'Archive'] })
            const facts = mail.map(({ from, to, cc, age, word, attached }) =>
              addressed(
                { from: [from], to, cc },
                { sentAt: epochStart + age, subject: word, attachments: attached ? [attachmentRecord(0)] : [] },
              ),
            )
            const inInbox = new Set(
              await mailbox.fill(
                'INBOX',
                facts.filter((_, index) => index % 2 === 0),
              ),
            )
            const ids = [
              ...inInbox,
              ...(await mailbox.fill(
                'Archive',
                facts.filter((_, index) => index % 2 === 1),
              )),
            ]
            const { inbox, ...rest } = asked
            const { id: folderId } = await mailbox.folder('INBOX')
            const wanted: MessageQuery = inbox ? { ...rest, folderId } : rest
            const whole = await store.messages.byIds(mailbox.account.id, ids)
            const expected = whole
              .filter((message) => (!inbox || inInbox.has(message.id)) && matches(message, rest))
              .sort((a, b) => a.sentAt - b.sentAt || (a.id < b.id ? -1 : 1))
              .map((message) => message.id)
            if (wanted.order !== 'asc') expected.reverse()
            const seen: string[] = []
            for (let offset = 0; offset <= mail.length; offset += limit) {
              const page = await store.messages.list(mailbox.account.id, wanted, { limit, offset })
              seen.push(...page.map((message) => message.id))
            }
            assert.deepEqual(seen, expected)
            assert.equal(await store.messages.count(mailbox.account.id, wanted), expected.length)
          },
        ),
        { numRuns: 40 },
      )
    })
  })
}

const pool = ['ann@x.com', 'bob@x.com', 'cat@sub.x.com', 'dan@y.org', 'eve@Z.NET']
const words = ['Invoice', 'Größe', 'hello']
const someAddresses = fc.subarray(pool)

const letter = fc.record({
  from: fc.constantFrom(...pool),
  to: someAddresses,
  cc: someAddresses,
  age: fc.integer({ min: 0, max: 9 }),
  word: fc.constantFrom(...words),
  attached: fc.boolean(),
})

const terms = fc.subarray([...pool, 'x.com', 'com', 'org', 'nowhere.example'], { minLength: 1, maxLength: 3 })

const query = fc.record(
  {
    inbox: fc.boolean(),
    email: terms,
    from: terms,
    to: terms,
    cc: terms,
    subject: fc.constantFrom('INVOICE', 'größe', 'o', 'zzz'),
    hasAttachments: fc.boolean(),
    sentFrom: fc.integer({ min: epochStart, max: epochStart + 9 }),
    sentUntil: fc.integer({ min: epochStart, max: epochStart + 9 }),
    order: fc.constantFrom('asc' as const, 'desc' as const),
  },
  { requiredKeys: [] },
)

/** The meaning of a query said once more, without keys. */
function matches(facts: MessageFacts, asked: MessageQuery): boolean {
  const { from, to, cc, bcc } = facts.addresses
  const any = (lists: readonly { readonly email: string }[], wanted?: readonly string[]): boolean =>
    !wanted ||
    lists.some(({ email }) =>
      wanted.some((term) => {
        const [address, name] = [email.toLowerCase(), term.toLowerCase()]
        const domain = address.slice(address.indexOf('@') + 1)
        return name.includes('@') ? address === name : domain === name || domain.endsWith(`.${name}`)
      }),
    )
  return (
    any(from, asked.from) &&
    any(to, asked.to) &&
    any(cc, asked.cc) &&
    any([...from, ...to, ...cc, ...bcc], asked.email) &&
    (asked.subject === undefined || facts.subject.toLowerCase().includes(asked.subject.toLowerCase())) &&
    (asked.hasAttachments === undefined || asked.hasAttachments === facts.attachments.length > 0) &&
    facts.sentAt >= (asked.sentFrom ?? 0) &&
    facts.sentAt <= (asked.sentUntil ?? Infinity)
  )
}
