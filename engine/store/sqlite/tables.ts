/** Tables of records: `doc` is the whole record as JSON, the other columns are for indexes. */
import { definitions, type FieldOf, type Kind, type Kinds } from '../keyed.ts'
import type { MessageRecord, UserRecord } from '../records.ts'
import { conditionOf, foldCase, folderRank, goneAt, isLive, lastStatus } from '../rows.ts'
import type { Statements, Value } from './statements.ts'

type Column<R> = readonly [name: string, of: (record: R) => Value]

interface TableOptions<R> {
  /** The columns that `save` may change. Default: all but the key. */
  readonly changing?: readonly string[]
  /** Writes rows of other tables that depend on the record. `before`: the record that `save` replaces. */
  readonly follow?: (sql: Statements, record: R, before: R | null) => void
}

function createTable<R>(
  name: string,
  keys: number,
  columns: readonly Column<R>[],
  { changing = columns.slice(keys).map(([column]) => column), follow = () => undefined }: TableOptions<R> = {},
) {
  const names = columns.map(([column]) => column)
  const key = columns.slice(0, keys)
  const same = key.map(([column]) => `${column} = ?`).join(' AND ')
  const values = `INTO ${name} (${names.join()},doc) VALUES (${names.map(() => '?').join()},?)`
  const over = `ON CONFLICT (${names.slice(0, keys).join()})`
  const excluded = [...names.slice(keys), 'doc'].map((column) => `${column} = excluded.${column}`).join()
  const watched = columns.filter(([column]) => changing.includes(column))
  const write = (sql: Statements, text: string, record: R): number => {
    const written = sql.run(text, ...columns.map(([, of]) => of(record)), JSON.stringify(record))
    if (written === 1) follow(sql, record, null)
    return written
  }
  return {
    name,
    get: (sql: Statements, ...of: readonly Value[]) =>
      sql.doc(`SELECT doc FROM ${name} WHERE ${same}`, ...of) as R | null,
    insert: (sql: Statements, record: R) => void write(sql, `INSERT ${values}`, record),
    /** false = the key exists. */
    insertMissing: (sql: Statements, record: R) => write(sql, `INSERT ${values} ${over} DO NOTHING`, record) === 1,
    /** Replaces the record with the same key. A unique value of another record is a `conflict`. */
    put: (sql: Statements, record: R) => void write(sql, `INSERT ${values} ${over} DO UPDATE SET ${excluded}`, record),
    /** Writes a changed record: only the columns that differ, so that only their indexes are written. */
    save: (sql: Statements, before: R, after: R): void => {
      const changed = watched.filter(([, of]) => of(before) !== of(after))
      const set = changed.map(([column]) => `${column} = ?,`).join('')
      const some = [...changed.map(([, of]) => of(after)), JSON.stringify(after), ...key.map(([, of]) => of(after))]
      sql.run(`UPDATE ${name} SET ${set}doc = ? WHERE ${same}`, ...some)
      follow(sql, after, before)
    },
  }
}

export type Table<R> = ReturnType<typeof createTable<R>>

const columnNames = new Map<string, string>()

/** createdAt → created_at */
export function columnOf(field: string): string {
  const known = columnNames.get(field)
  if (known !== undefined) return known
  const column = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  columnNames.set(field, column)
  return column
}

/** An absent value is '': `=` does not find NULL. */
export function columnValue(value: unknown): Value {
  return (value ?? '') as Value
}

function fieldColumns<R>(...fields: readonly FieldOf<R>[]): readonly Column<R>[] {
  return fields.map((field) => [columnOf(field), (record) => columnValue(record[field])])
}

function keyedTable<K extends Kind>(
  kind: K,
  options?: TableOptions<Kinds[K]>,
  more: readonly Column<Kinds[K]>[] = [],
): Table<Kinds[K]> {
  const { key, fields } = definitions[kind]
  return createTable(kind, key.length, [...fieldColumns<Kinds[K]>(...key, ...fields), ...more], options)
}

const addressInsert = `INSERT INTO user_addresses (developer_id, email, created_at, user_id, account_id)
  VALUES (?, ?, ?, ?, ?)`

/** Replaces the addresses in the index of users that are the user's own (accountId '') or its account's. */
function indexAddresses(
  sql: Statements,
  { id, developerId, createdAt }: Pick<UserRecord, 'id' | 'developerId' | 'createdAt'>,
  accountId: string,
  emails: readonly string[],
): void {
  sql.run('DELETE FROM user_addresses WHERE user_id = ? AND account_id = ?', id, accountId)
  for (const email of new Set(emails.map(foldCase)))
    sql.run(addressInsert, developerId, email, createdAt, id, accountId)
}

const users = keyedTable('users', {
  follow: (sql, user, before) => {
    if (user.emailAddresses !== before?.emailAddresses) indexAddresses(sql, user, '', user.emailAddresses)
  },
})

const accounts = keyedTable(
  'accounts',
  {
    follow: (sql, { id, userId, developerId, email, createdAt }, before) => {
      if (email === before?.email) return
      const user = users.get(sql, userId) ?? { id: userId, developerId, createdAt }
      indexAddresses(sql, user, id, [email])
    },
  },
  [
    ['email_key', ({ email }) => foldCase(email)],
    ['condition', (account) => conditionOf(account).is],
    ['since', (account) => conditionOf(account).since],
  ],
)

const kinds = Object.keys(definitions) as Kind[]

export const tables = {
  ...(Object.fromEntries(kinds.map((kind) => [kind, keyedTable(kind)])) as unknown as {
    readonly [K in Kind]: Table<Kinds[K]>
  }),
  users,
  accounts,
  folders: keyedTable('folders', {}, [['rank', ({ path }) => folderRank(path)]]),
  // the facts of a message never change
  messages: createTable<MessageRecord>(
    'messages',
    1,
    [
      ...fieldColumns<MessageRecord>('id', 'accountId', 'sentAt'),
      ['live', (message) => (isLive(message) ? 1 : 0)],
      ['gone_at', goneAt],
      ['attachments', ({ attachments }) => attachments.length],
      ['email_message_id', ({ emailMessageId }) => emailMessageId],
      ['hosted_message_id', ({ hostedMessageId }) => hostedMessageId],
      ['subject_key', ({ subject }) => foldCase(subject)],
    ],
    { changing: ['live', 'gone_at'] },
  ),
  outbox: keyedTable('outbox', { changing: ['state', 'finished_at', 'last_status'] }, [
    ['finished_at', ({ finishedAt }) => finishedAt],
    ['last_status', lastStatus],
  ]),
  contacts: keyedTable('contacts', {}, [['search_key', ({ name, email }) => foldCase(`${name}\n${email}`)]]),
}
