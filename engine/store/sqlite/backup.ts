/** Copies of the whole file while it is in use, and what has to be in one that is to take its place. */
import { DatabaseSync, backup } from 'node:sqlite'
import { AppError } from '../../errors.ts'
import type { AccountRecord, ConnectTokenRecord, DeveloperRecord } from '../records.ts'
import { keepPrivate, storeError } from './file.ts'
import { migrations } from './schema.ts'

/** Of one step; the event loop goes on meanwhile. */
const pagesAtOnce = 500

/**
 * Copies the store as it is now to `target`, over a connection of its own: its read transaction keeps later writes out
 * of the copy, and holds none of them up.
 */
export async function backupFile(path: string, target: string): Promise<void> {
  let source: DatabaseSync | null = null
  try {
    keepPrivate(target)
    source = new DatabaseSync(path, { readOnly: true })
    source.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    await backup(source, target, { rate: pagesAtOnce })
  } catch (error) {
    throw storeError(error)
  } finally {
    source?.close()
  }
}

/** How two installations differ: each has its own first developer. */
export type StoreOwner = Pick<DeveloperRecord, 'id' | 'sealedSecret'>

/**
 * Whose store the file is; null = it has no developer yet. `bad_request`, naming it `name`, when it is no whole store,
 * or a newer Mailroom's. It is opened for writing: what lies beside it, in its -wal, is in the file afterwards.
 */
export function inspectFile(path: string, name = path): StoreOwner | null {
  const unfit = (words: string, cause?: unknown): AppError => new AppError('bad_request', `${name} ${words}`, { cause })
  let db: DatabaseSync | null = null
  try {
    db = new DatabaseSync(path)
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
    if (version > migrations.length)
      throw unfit(`has schema version ${version}, newer than the ${migrations.length} this Mailroom knows`)
    const check = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (check !== 'ok') throw unfit(`is damaged: ${String(check)}`)
    const tables = db.prepare(
      `SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('developers', 'outbox', 'messages')`,
    )
    if (version === 0 || tables.get()?.['n'] !== 3) throw unfit('is no store of Mailroom')
    const row = db.prepare('SELECT doc FROM developers ORDER BY id LIMIT 1').get()
    return row === undefined ? null : (JSON.parse(String(row['doc'])) as StoreOwner)
  } catch (error) {
    throw error instanceof AppError ? error : unfit(`cannot be read: ${(error as Error).message}`, error)
  } finally {
    db?.close()
  }
}

/**
 * Developers' keys and tokens of operators that are revoked in the file `from` are so in the file `to`. Answers those
 * that were in force there.
 */
export function keepRevoked(to: string, from: string): string[] {
  const [target, source] = [new DatabaseSync(to), new DatabaseSync(from)]
  try {
    const hasTable = (db: DatabaseSync, table: string): boolean =>
      db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get(table) !== undefined
    return (['developers', 'operators'] as const).flatMap((table) => {
      if (!hasTable(source, table) || !hasTable(target, table)) return []
      const revokedAt = `json_extract(doc, '$.revokedAt')`
      const gone = source.prepare(`SELECT id, ${revokedAt} AS at FROM ${table} WHERE ${revokedAt} IS NOT NULL`).all()
      const revoke = target.prepare(
        `UPDATE ${table} SET doc = json_set(doc, '$.revokedAt', ?) WHERE id = ? AND ${revokedAt} IS NULL`,
      )
      const again = gone.filter(({ id, at }) => revoke.run(Number(at), String(id)).changes === 1)
      return again.map(({ id }) => `${table === 'developers' ? 'developer' : 'token'} ${String(id)}`)
    })
  } finally {
    target.close()
    source.close()
  }
}

/** Where a credential is used, and as whom: it is never moved to another place. */
const placeOfCredential = ['authType', 'providerKey', 'server', 'username'] as const

/**
 * Email accounts with OAuth in the file `to` take the refresh token of the file `from`, null = there is none: providers
 * rotate it, and end the consent when they see an old one. Answers how many took it. For each account that finds none
 * there, the connect token that `lost` makes is stored in `to`.
 */
export function keepConsents(to: string, from: string | null, lost: (account: AccountRecord) => ConnectTokenRecord) {
  const [target, source] = [new DatabaseSync(to), from === null ? null : new DatabaseSync(from)]
  try {
    const newer = source?.prepare('SELECT doc FROM accounts WHERE id = ?')
    const save = target.prepare('UPDATE accounts SET doc = ? WHERE id = ?')
    const add = target.prepare('INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)')
    let kept = 0
    const made: ConnectTokenRecord[] = []
    target.exec('BEGIN')
    for (const row of target
      .prepare(`SELECT doc FROM accounts WHERE json_extract(doc, '$.authType') = 'oauth2'`)
      .all()) {
      const account = JSON.parse(String(row['doc'])) as AccountRecord
      const found = JSON.parse(String(newer?.get(account.id)?.['doc'] ?? 'null')) as AccountRecord | null
      if (found !== null && placeOfCredential.every((field) => found[field] === account[field])) {
        if (found.sealedCredential === account.sealedCredential) continue
        save.run(JSON.stringify({ ...account, sealedCredential: found.sealedCredential }), account.id)
        kept += 1
        continue
      }
      const token = lost(account)
      const { developerId, userId, accountId, version, createdAt } = token
      add.run(token.token, developerId, userId, accountId, version, createdAt, JSON.stringify(token))
      made.push(token)
    }
    target.exec('COMMIT')
    return { kept, made }
  } finally {
    target.close()
    source?.close()
  }
}
