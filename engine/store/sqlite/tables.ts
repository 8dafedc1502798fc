/** Tables of whole records: `doc` is the record as JSON, the columns beside it are what indexes need. */
import { definitions, type FieldOf, type Kind, type Kinds } from '../keyed.ts'
import type { MessageRecord, UserRecord } from '../records.ts'
import { conditionOf, foldCase, folderRank, goneAt, isLive, lastStatus } from '../rows.ts'
import type { Statements, Value } from './statements.ts'

type Column<R> = readonly [name: string, of: (record: R) => Value]

interface TableOptions<R> {
  /** The columns that a save may change, by default all but the key. */
  readonly changing?: readonly string[]
  /** Writes what follows from the record elsewhere; `before` = the one that a save replaces. */
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
    /** false = there is one with this key. */
    insertMissing: (sql: Statements, record: R) => write(sql, `INSERT ${values} ${over} DO NOTHING`, record) === 1,
    /** Over the one with the same key. Another one that has one of its unique values stays, and is a conflict. */
    put: (sql: Statements, record: R) => void write(sql, `INSERT ${values} ${over} DO UPDATE SET ${excluded}`, record),
    /** The record of one key, changed: writes the columns that differ, so that no other index is touched. */
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

/** NULL would not be found by `=`: nothing is ''. */
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

/** Replaces the addresses by which the user (accountId '') or one of its accounts is found; in order of its age. */
function indexAddresses(
  sql: Statements,
  user: Pick<UserRecord, 'id' | 'developerId' | 'createdAt'>,
  accountId: string,
  emails: readonly string[],
): void {
  sql.run('DELETE FROM user_addresses WHERE user_id = ? AND account_id = ?', user.id, accountId)
  for (const email of new Set(emails.map(foldCase))) {
    sql.run(
      'INSERT INTO user_addresses (developer_id, email, created_at, user_id, account_id) VALUES (?, ?, ?, ?, ?)',
      user.developerId,
      email,
      user.createdAt,
      user.id,
      accountId,
    )
  }
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
  // its facts never change, and so do their columns
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
