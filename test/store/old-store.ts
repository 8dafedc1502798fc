/**
 * Stores as commit 6e85fa0 left them, with as many messages as wanted: SQLite's schema 13, MongoDB's 3. Folders have
 * the server's counts alone, and a contact the sums of all accounts with the part of each.
 */
import { DatabaseSync } from 'node:sqlite'
import type { Db } from 'mongodb'
import { splitContact, summed, type SummedContact } from '../../engine/store/contacts.ts'
import { contactId, folderId, messageId } from '../../engine/store/ids.ts'
import { messageDoc } from '../../engine/store/mongo/messages.ts'
import type { AccountRecord, MessageRecord, Placement } from '../../engine/store/records.ts'
import { foldCase, freshCursor, messageKeys, newMessage } from '../../engine/store/rows.ts'
import { oldest } from '../../engine/store/sqlite/schema.ts'
import { accountRecord, developerRecord, epochStart, messageFacts, userRecord } from './contract/records.ts'

const mongoVersion = 3

export type OldStore = ReturnType<typeof oldStore>

/** One user with two accounts. The first has all mail in INBOX, each tenth in Archive too; Trash is being read. */
export function oldStore(count: number) {
  const developer = developerRecord()
  const user = userRecord(developer.id)
  const accounts = [accountRecord(user, { epoch: 1 }), accountRecord(user, { epoch: 1 })] as const
  const [first, second] = accounts
  const folders = accounts.flatMap(({ id }) => ['INBOX', 'Archive', 'Trash'].map((path) => oldFolder(id, path, count)))
  const messages = Array.from({ length: count }, (_, index) => oldMessage(first, index + 1))
  const contacts = Array.from({ length: Math.ceil(count / 10) }, (_, index) => oldContact(first, second, index))
  const unseen = count - Math.floor(count / 3)
  const archived = messages.flatMap(({ placements }) => placements.slice(1))
  const counts = {
    INBOX: { messages: count, unseen },
    Archive: { messages: archived.length, unseen: archived.filter(({ flags }) => !flags.includes('\\Seen')).length },
    Trash: { messages: 0, unseen: 0 },
  }
  return { developer, user, accounts, folders, messages, contacts, counts }
}

function oldFolder(accountId: string, path: string, count: number) {
  const isRead = path !== 'Trash'
  const cursor = { ...freshCursor('1'), uidNext: count + 1, exists: count, comparedAt: epochStart }
  return {
    id: folderId(accountId, path),
    accountId,
    path,
    delimiter: '/',
    attributes: [],
    specialUse: path === 'INBOX' ? '\\Inbox' : null,
    selectable: true,
    messages: count + 1,
    unseen: 7,
    cursor: { ...cursor, backfillBelow: isRead ? 0 : 50 },
    epoch: 1,
    failures: 0,
    parkedUntil: null,
  }
}

function oldMessage({ id: accountId }: AccountRecord, uid: number): MessageRecord {
  const identity = `mid:${uid}`
  const flags = uid % 3 === 0 ? ['$Label', '\\Seen'] : ['\\Flagged']
  const at = (path: string): Placement => {
    const place = { folderId: folderId(accountId, path), path, uidValidity: '1', uid }
    // A field of that time, which nothing reads any more.
    return { ...place, flags, modseq: '1', rev: 0, ...{ quiet: false } }
  }
  const facts = messageFacts()
  const added = { id: messageId(accountId, identity), identity, facts, placement: at('INBOX'), firstChangeId: null }
  const message = newMessage(accountId, added, epochStart)
  return uid % 10 === 0 ? { ...message, placements: [...message.placements, at('Archive')] } : message
}

/** Each fourth is known to the second account too; each fifth was counted before parts were kept. */
function oldContact(first: AccountRecord, second: AccountRecord, index: number): SummedContact {
  const email = `p${index}@example.com`
  const counts = { totalCount: 1 + (index % 50), directCount: index % 7, indirectCount: 1 }
  const part = (accountId: string) => ({ accountId, name: `P ${index}`, ...counts, lastReceivedAt: epochStart + index })
  const parts = index % 4 === 0 ? [part(first.id), { ...part(second.id), lastReceivedAt: 0 }] : [part(first.id)]
  const of = { id: contactId(first.userId, email), userId: first.userId, email }
  const [one, ...others] = parts.map((own) => ({ ...of, ...own }))
  if (one === undefined) throw new Error('a contact without a part')
  return { ...summed([one, ...others]), ...(index % 5 === 0 ? {} : { byAccount: parts }) }
}

/** What each account has counted, as it has to be found afterwards. */
export function contactsOf({ contacts, accounts }: OldStore, accountIds: readonly string[]) {
  return contacts.flatMap((contact) => {
    const [one, ...others] = splitContact(contact, accounts[0].id).filter(({ accountId }) =>
      accountIds.includes(accountId),
    )
    return one === undefined ? [] : [summed([one, ...others])]
  })
}

export function writeSqlite(path: string, { developer, user, accounts, folders, messages, contacts }: OldStore): void {
  const database = new DatabaseSync(path)
  database.exec(oldest.script)
  // Unused by then, and not in the schema of a new file.
  database.exec(`CREATE TABLE mail_versions (account_id TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
    ALTER TABLE messages ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX contacts_of_user ON contacts (user_id, id);
    CREATE INDEX calls_of_user ON calls (developer_id, user_id, at, id)`)
  const into = (table: string, row: Readonly<Record<string, string | number | null>>): void => {
    const names = Object.keys(row)
    database
      .prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => '?').join()})`)
      .run(...Object.values(row))
  }
  const doc = (record: object): { readonly doc: string } => ({ doc: JSON.stringify(record) })
  database.exec('BEGIN')
  into('developers', { id: developer.id, api_key: developer.apiKey, ...doc(developer) })
  into('users', { id: user.id, developer_id: user.developerId, created_at: user.createdAt, ...doc(user) })
  for (const account of accounts) {
    const { id, userId, label, status, epoch, createdAt, developerId, server } = account
    into('accounts', {
      ...{ id, user_id: userId, label, status, epoch, created_at: createdAt, developer_id: developerId, server },
      ...{ email_key: account.email, condition: 'down', since: createdAt, ...doc(account) },
    })
  }
  for (const folder of folders) {
    const { id, accountId, path } = folder
    into('folders', { id, account_id: accountId, rank: path === 'INBOX' ? 0 : 1, path, ...doc(folder) })
  }
  for (const message of messages) {
    const { id, accountId, sentAt, emailMessageId, subject } = message
    const columns = { live: 1, attachments: 0, email_message_id: emailMessageId, subject_key: foldCase(subject) }
    into('messages', { id, account_id: accountId, sent_at: sentAt, ...columns, ...doc(message) })
    for (const { folderId, uidValidity, uid, flags, modseq, rev } of message.placements) {
      const place = { folder_id: folderId, uid_validity: uidValidity, uid, message_id: id }
      into('placements', { ...place, flags: JSON.stringify(flags), modseq, rev })
    }
    for (const key of messageKeys(message))
      into('message_keys', { account_id: accountId, key, sent_at: sentAt, message_id: id })
  }
  for (const contact of contacts) {
    const { id, userId, totalCount, directCount, indirectCount, name, email } = contact
    const sums = { total_count: totalCount, direct_count: directCount, indirect_count: indirectCount }
    into('contacts', { id, user_id: userId, ...sums, search_key: foldCase(`${name}\n${email}`), ...doc(contact) })
  }
  database.exec(`COMMIT; PRAGMA user_version = ${oldest.version}`)
  database.close()
}

export async function writeMongo(db: Db, { developer, user, accounts, folders, messages, contacts }: OldStore) {
  const rows = <R extends { readonly id: string }>(records: readonly R[], more: (record: R) => object = () => ({})) =>
    records.map((record) => {
      const { id: _id, ...fields } = record
      return { _id, ...fields, ...more(record) }
    })
  const into = async (name: string, docs: readonly object[]): Promise<void> => {
    await db.collection(name).insertMany(docs)
  }
  await into('developers', rows([developer]))
  await into(
    'users',
    rows([user], ({ emailAddresses }) => ({ addressKeys: emailAddresses })),
  )
  await into(
    'accounts',
    rows(accounts, ({ email }) => ({ emailKey: email })),
  )
  await into('folders', rows(folders))
  await into(
    'messages',
    messages.map((message) => messageDoc(message)),
  )
  await into(
    'contacts',
    rows(contacts, ({ name, email }) => {
      return { searchKey: foldCase(`${name}\n${email}`), v: 1, applied: accounts.map(({ id }) => `${id} m ${email}:r`) }
    }),
  )
  await db.collection('contacts').createIndexes([{ key: { 'byAccount.accountId': 1 }, name: 'contacts_of_account' }])
  await db.collection<{ _id: string }>('meta').insertOne({ _id: 'schema', version: mongoVersion } as never)
}
