/**
 * The schema of commit 6e85fa0, the migrations since, which PRAGMA user_version counts, and the facts of the file. A
 * released migration is never edited. `doc` is the whole record as JSON; the other columns are for indexes. A missing
 * account, user or webhook is '' in a column, since `=` does not find NULL.
 */
import { splitContact, type SummedContact } from '../contacts.ts'
import { checkVersion, type Facts } from '../facts.ts'
import type { MessageRecord } from '../records.ts'
import { areWide, foldCase, messageKeys } from '../rows.ts'
import type { Database } from './database.ts'
import { changeKeys, keyRows } from './messages.ts'
import type { Statements } from './statements.ts'

const people = `
CREATE TABLE developers (id TEXT PRIMARY KEY, api_key TEXT NOT NULL UNIQUE, doc TEXT NOT NULL);

CREATE TABLE users (id TEXT PRIMARY KEY, developer_id TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE INDEX users_of_developer ON users (developer_id, created_at, id);
-- every address a user is found by: its own (account_id '') and those of its accounts
CREATE TABLE user_addresses (
  developer_id TEXT NOT NULL, email TEXT NOT NULL, created_at INTEGER NOT NULL, user_id TEXT NOT NULL, account_id TEXT NOT NULL,
  PRIMARY KEY (developer_id, email, created_at, user_id, account_id)) WITHOUT ROWID;
CREATE INDEX addresses_of_user ON user_addresses (user_id, account_id);

CREATE TABLE accounts (
  id TEXT PRIMARY KEY, user_id TEXT NOT NULL, label TEXT NOT NULL, status TEXT NOT NULL, epoch INTEGER NOT NULL,
  created_at INTEGER NOT NULL, developer_id TEXT NOT NULL, server TEXT NOT NULL, email_key TEXT NOT NULL,
  condition TEXT NOT NULL, since INTEGER NOT NULL, doc TEXT NOT NULL, UNIQUE (user_id, label));
CREATE INDEX accounts_of_user ON accounts (user_id, created_at, id);
CREATE INDEX accounts_by_status ON accounts (user_id, status, created_at, id);
-- for operators: covering indexes
CREATE INDEX accounts_of_server ON accounts (server, since, id, condition, developer_id, label, email_key);
CREATE INDEX accounts_of_developer ON accounts (developer_id, since, id, condition, server);
CREATE INDEX accounts_by_condition ON accounts (since, id, condition, server, developer_id, label, email_key);

CREATE TABLE tokens (
  token TEXT PRIMARY KEY, developer_id TEXT NOT NULL, user_id TEXT NOT NULL, account_id TEXT NOT NULL,
  version TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE INDEX tokens_of_developer ON tokens (developer_id, created_at, token);
CREATE INDEX tokens_of_user ON tokens (user_id, created_at, token);
CREATE INDEX tokens_of_account ON tokens (account_id, created_at, token);
CREATE INDEX tokens_by_expiry ON tokens (json_extract(doc, '$.expiresAt'));

CREATE TABLE providers (
  developer_id TEXT NOT NULL, consumer_key TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL,
  PRIMARY KEY (developer_id, consumer_key));
CREATE INDEX providers_by_age ON providers (developer_id, created_at, consumer_key);

CREATE TABLE nonces (
  api_key TEXT NOT NULL, nonce TEXT NOT NULL, timestamp INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  PRIMARY KEY (api_key, nonce, timestamp)) WITHOUT ROWID;
CREATE INDEX nonces_by_expiry ON nonces (expires_at);

CREATE TABLE calls (
  id TEXT PRIMARY KEY, developer_id TEXT NOT NULL, user_id TEXT NOT NULL, at INTEGER NOT NULL, method TEXT NOT NULL,
  path TEXT NOT NULL, status INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE INDEX calls_by_age ON calls (at);

CREATE TABLE operators (id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE TABLE settings (id TEXT PRIMARY KEY, doc TEXT NOT NULL);
`

const mail = `
CREATE TABLE folders (
  id TEXT PRIMARY KEY, account_id TEXT NOT NULL, rank INTEGER NOT NULL, path TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX folders_of_account ON folders (account_id, rank, path);

-- doc is last: what stands before it is read without the pages it overflows to
CREATE TABLE messages (
  id TEXT PRIMARY KEY, account_id TEXT NOT NULL, live INTEGER NOT NULL, sent_at INTEGER NOT NULL, gone_at INTEGER,
  attachments INTEGER NOT NULL, email_message_id TEXT, hosted_message_id TEXT, subject_key TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX messages_of_account ON messages (account_id, live, sent_at, id);
CREATE INDEX messages_by_message_id ON messages (account_id, email_message_id, live, sent_at, id)
  WHERE email_message_id IS NOT NULL;
CREATE INDEX messages_by_hosted_id ON messages (account_id, hosted_message_id, live, sent_at, id)
  WHERE hosted_message_id IS NOT NULL;
CREATE INDEX messages_gone ON messages (account_id, gone_at, id) WHERE gone_at IS NOT NULL;
CREATE TABLE placements (
  folder_id TEXT NOT NULL, uid_validity TEXT NOT NULL, uid INTEGER NOT NULL, message_id TEXT NOT NULL, flags TEXT NOT NULL,
  modseq TEXT NOT NULL, rev INTEGER NOT NULL, generation INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (folder_id, uid_validity, uid)) WITHOUT ROWID;
-- the keys of live messages, see rows.ts
CREATE TABLE message_keys (
  account_id TEXT NOT NULL, key TEXT NOT NULL, sent_at INTEGER NOT NULL, message_id TEXT NOT NULL,
  PRIMARY KEY (account_id, key, sent_at, message_id)) WITHOUT ROWID;

CREATE TABLE changes (
  id TEXT PRIMARY KEY, account_id TEXT NOT NULL, seq INTEGER NOT NULL, message_id TEXT NOT NULL, at INTEGER NOT NULL,
  doc TEXT NOT NULL, UNIQUE (account_id, seq));
CREATE INDEX changes_of_message ON changes (account_id, message_id, seq);
CREATE INDEX changes_by_age ON changes (at);

CREATE TABLE contacts (
  id TEXT PRIMARY KEY, user_id TEXT NOT NULL, total_count INTEGER NOT NULL, direct_count INTEGER NOT NULL,
  indirect_count INTEGER NOT NULL, search_key TEXT NOT NULL, doc TEXT NOT NULL);
-- which messages have been counted
CREATE TABLE contact_marks (account_id TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (account_id, key)) WITHOUT ROWID;
`

const callbacks = `
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY, developer_id TEXT NOT NULL, user_id TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE INDEX webhooks_of_owner ON webhooks (developer_id, user_id, created_at, id);
CREATE INDEX webhooks_of_user ON webhooks (user_id, created_at, id);
CREATE TABLE scans (
  webhook_id TEXT NOT NULL, account_id TEXT NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (webhook_id, account_id));
CREATE INDEX scans_of_account ON scans (account_id);

CREATE TABLE outbox (
  id TEXT PRIMARY KEY, channel_id TEXT NOT NULL, webhook_id TEXT NOT NULL, developer_id TEXT NOT NULL, user_id TEXT NOT NULL,
  account_id TEXT NOT NULL, message_id TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, lane INTEGER NOT NULL,
  created_at INTEGER NOT NULL, seq INTEGER NOT NULL, finished_at INTEGER, last_status INTEGER, doc TEXT NOT NULL);
CREATE INDEX outbox_pending ON outbox (channel_id, lane, created_at, seq, id, account_id) WHERE state = 'pending';
CREATE INDEX outbox_pending_of_account ON outbox (channel_id, account_id, lane, created_at, seq, id)
  WHERE state = 'pending';
CREATE INDEX outbox_of_webhook ON outbox (webhook_id, state, created_at, id);
CREATE INDEX outbox_of_developer ON outbox (developer_id, created_at, id);
CREATE INDEX outbox_of_account ON outbox (account_id, created_at, id);
CREATE INDEX outbox_of_message ON outbox (message_id, created_at, id) WHERE message_id <> '';
CREATE INDEX outbox_of_user ON outbox (user_id) WHERE account_id = '' AND user_id <> '';
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE finished_at IS NOT NULL;
-- callbacks of other kinds than message: few among very many
CREATE INDEX outbox_notices_of_developer ON outbox (developer_id, kind, created_at, id) WHERE kind <> 'message';
CREATE INDEX outbox_notices_of_account ON outbox (account_id, kind, created_at, id) WHERE kind <> 'message';
CREATE INDEX outbox_notices_of_webhook ON outbox (webhook_id, kind, created_at, id) WHERE kind <> 'message';
`

/** The schema of commit 6e85fa0; its tables are changed by the migrations. */
export const oldest = { version: 13, script: people + mail + callbacks } as const

/** Folds the keys past `mostAddressKeys` (rows.ts), of mail to thousands of people. */
function foldKeys(sql: Statements): void {
  for (const [id] of sql.tuples('SELECT id FROM messages WHERE live = 1 AND octet_length(doc) > 5000')) {
    const message = sql.doc('SELECT doc FROM messages WHERE id = ?', id ?? null) as MessageRecord
    const keys = messageKeys(message)
    if (!areWide(keys)) continue
    changeKeys(sql, keyRows.remove, message, messageKeys(message, Infinity))
    changeKeys(sql, keyRows.insert, message, keys)
  }
}

/** A path may have 2 kB, so it is stored in the record alone. */
const callPaths = `
ALTER TABLE calls DROP COLUMN path;
ALTER TABLE calls ADD COLUMN path TEXT AS (json_extract(doc, '$.path')) VIRTUAL;
`

const audit = `
CREATE TABLE audit (id TEXT PRIMARY KEY, at INTEGER NOT NULL, target TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX audit_by_age ON audit (at, id);
CREATE INDEX audit_of_target ON audit (target, at, id);
`

/** Stores counts and `completeAt` in folder records. */
const folderFacts = `
UPDATE folders SET doc = json_set(doc,
  '$.counts', json((SELECT json_object('messages', count(*), 'unseen', count(*) FILTER (WHERE NOT EXISTS
    (SELECT 1 FROM json_each(p.flags) WHERE value = '\\Seen'))) FROM placements p WHERE p.folder_id = folders.id)),
  '$.completeAt', CASE WHEN json_extract(doc, '$.cursor.backfillBelow') <= 1
    THEN json_extract(doc, '$.cursor.comparedAt') END)
  WHERE json_extract(doc, '$.counts') IS NULL;
`

/** Stores `completeAt` in account records, and indexes the folders that are not complete. */
const accountFacts = `
CREATE INDEX IF NOT EXISTS folders_to_read ON folders (account_id)
  WHERE json_extract(doc, '$.selectable') AND json_extract(doc, '$.completeAt') IS NULL;
UPDATE accounts SET doc = json_set(doc, '$.completeAt', (SELECT max(json_extract(f.doc, '$.completeAt')) FROM folders f
  WHERE f.account_id = accounts.id))
  WHERE json_extract(doc, '$.completeAt') IS NULL AND NOT EXISTS (SELECT 1 FROM folders f WHERE f.account_id = accounts.id
    AND json_extract(f.doc, '$.selectable') AND json_extract(f.doc, '$.completeAt') IS NULL);
`

const contactTable = `
CREATE TABLE account_contacts (
  account_id TEXT NOT NULL, id TEXT NOT NULL, user_id TEXT NOT NULL, total_count INTEGER NOT NULL,
  direct_count INTEGER NOT NULL, indirect_count INTEGER NOT NULL, search_key TEXT NOT NULL, doc TEXT NOT NULL,
  PRIMARY KEY (account_id, id));
`
const contactIndexes = `
DROP TABLE contacts;
ALTER TABLE account_contacts RENAME TO contacts;
CREATE INDEX contacts_by_total ON contacts (user_id, total_count, id);
CREATE INDEX contacts_by_direct ON contacts (user_id, direct_count, id);
CREATE INDEX contacts_by_indirect ON contacts (user_id, indirect_count, id);
CREATE INDEX contacts_of_user ON contacts (user_id, id, account_id);
`

/** Splits the contacts of a user into the counts of each email account. */
function contactsByAccount(sql: Statements): void {
  sql.script(contactTable)
  const insert = `INSERT INTO account_contacts SELECT ?1 ->> '$.accountId', ?1 ->> '$.id', ?1 ->> '$.userId',
    ?1 ->> '$.totalCount', ?1 ->> '$.directCount', ?1 ->> '$.indirectCount', ?2, ?1`
  const oldestAccount = 'SELECT id FROM accounts WHERE user_id = ? ORDER BY created_at, id LIMIT 1'
  for (const [id] of sql.tuples('SELECT id FROM contacts')) {
    const contact = sql.doc('SELECT doc FROM contacts WHERE id = ?', id ?? null) as SummedContact
    const [oldest = null] = sql.texts(oldestAccount, contact.userId)
    for (const part of splitContact(contact, oldest))
      sql.run(insert, JSON.stringify(part), foldCase(`${part.name}\n${part.email}`))
  }
  sql.script(contactIndexes)
}

/** For operators: callbacks of all developers by time and state, by a covering index. */
const outboxByAge = 'CREATE INDEX IF NOT EXISTS outbox_by_age ON outbox (created_at, id, state)'

/** The index of the developer's calls names their users: an index by user would cost page writes with each batch. */
const callsOfUser = `
DROP INDEX IF EXISTS calls_of_user;
DROP INDEX IF EXISTS calls_of_developer;
CREATE INDEX calls_of_developer ON calls (developer_id, at, id, user_id);
`

/** Migration n leads from schema version 13 + n to 14 + n. */
export const migrations: readonly (string | ((sql: Statements) => void))[] = [
  // an unused table
  'DROP TABLE IF EXISTS mail_versions',
  '',
  callPaths,
  audit,
  folderFacts,
  contactsByAccount,
  accountFacts,
  outboxByAge,
  callsOfUser,
  foldKeys,
]

export const newest = oldest.version + migrations.length

/** AppError `bad_request`, one line, when the schema is too new or too old for this Mailroom. */
export function checkSchema(name: string, version: number): void {
  checkVersion(name, version, { oldest: oldest.version, newest })
}

/** Brings the schema of an empty file, or of an older one, up to date. AppErrors as checkSchema. */
export async function migrate(database: Database, path: string): Promise<void> {
  await database.write(() => {
    const version = database.number('PRAGMA user_version')
    const isEmpty = version === 0
    if (isEmpty) database.script(oldest.script)
    else checkSchema(path, version)
    for (const step of migrations.slice(isEmpty ? 0 : version - oldest.version)) {
      if (typeof step === 'string') database.script(step)
      else step(database)
    }
    database.script(factsTable)
    database.script(`PRAGMA user_version = ${newest}`)
  })
}

/** Facts about the file: `identity`, `served`, `copy`, `probe`, and `removal <account|user> <id>`. */
const factsTable = 'CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID'

export function readFact(sql: Statements, name: string): string | null {
  return sql.texts('SELECT value FROM facts WHERE name = ?', name)[0] ?? null
}

/** Names of facts with the prefix. */
export function factsLike(sql: Statements, prefix: string): string[] {
  return sql.texts('SELECT name FROM facts WHERE instr(name, ?) = 1', prefix)
}

/** null deletes the fact. */
export function saveFact(sql: Statements, name: string, value: string | null): void {
  if (value === null) sql.run('DELETE FROM facts WHERE name = ?', name)
  else sql.run('INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)', name, value)
}

export function openFacts(db: Database): Facts {
  return {
    read: (name) => db.read(() => readFact(db, name)),
    save: (name, value) => db.write(() => saveFact(db, name, value)),
  }
}

/** Writes and syncs to disk. Rejects when there is no space for `room` more bytes. */
export async function probeWrite(db: Database, room: number, now: () => number): Promise<void> {
  const save = (value: string): Promise<void> => db.write(() => saveFact(db, 'probe', value))
  if (room > 0) await save('.'.repeat(room))
  await save(String(now()))
}
