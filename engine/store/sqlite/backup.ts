/**
 * Copies the file of a store while the store is in use. Checks a copy before it replaces the store, and carries
 * revocations and refresh tokens over to the copy.
 */
import { DatabaseSync, backup } from 'node:sqlite'
import { AppError } from '../../errors.ts'
import type { AccountRecord, ConnectTokenRecord, DeveloperRecord } from '../records.ts'
import { keepPrivate, storeError } from './file.ts'
import { checkSchema } from './schema.ts'

/** Pages of one step; the event loop runs between steps. */
const pagesAtOnce = 500

/**
 * Copies the current state of the store to `target`. The read transaction of a second connection keeps later writes out
 * of the copy without blocking them.
 */
export async function backupFile(path: string, target: string): Promise<void> {
  try {
    keepPrivate(target)
    using source = new DatabaseSync(path, { readOnly: true })
    source.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    await backup(source, target, { rate: pagesAtOnce })
  } catch (error) {
    throw storeError(error)
  }
}

/** Identifies an installation by its first developer. */
export type StoreOwner = Pick<DeveloperRecord, 'id' | 'sealedSecret'>

/**
 * Returns the owner of the store in the file; null = the store has no developer yet. AppError `bad_request`, with
 * `name` for the file, when the file is no complete store, or its schema is unknown. The file is opened for writing, so
 * that its -wal is merged into it.
 */
export function inspectFile(path: string, name = path): StoreOwner | null {
  const unfit = (words: string, cause?: unknown): AppError => new AppError('bad_request', `${name} ${words}`, { cause })
  try {
    using db = new DatabaseSync(path)
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
    if (version === 0) throw unfit('is no store of Mailroom')
    checkSchema(name, version)
    const check = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (check !== 'ok') throw unfit(`is damaged: ${String(check)}`)
    const row = db.prepare('SELECT doc FROM developers ORDER BY id LIMIT 1').get()
    return row === undefined ? null : (JSON.parse(String(row['doc'])) as StoreOwner)
  } catch (error) {
    throw error instanceof AppError ? error : unfit(`cannot be read: ${(error as Error).message}`, error)
  }
}

/**
 * Revokes in the file `to` the developers' keys and operators' tokens that are revoked in the file `from`. Returns
 * those that were valid in `to`.
 */
export function keepRevoked(to: string, from: string): string[] {
  using target = new DatabaseSync(to)
  using source = new DatabaseSync(from)
  return (['developers', 'operators'] as const).flatMap((table) => {
    const revokedAt = `json_extract(doc, '$.revokedAt')`
    const revoked = source.prepare(`SELECT id, ${revokedAt} AS at FROM ${table} WHERE ${revokedAt} IS NOT NULL`).all()
    const revoke = target.prepare(
      `UPDATE ${table} SET doc = json_set(doc, '$.revokedAt', ?) WHERE id = ? AND ${revokedAt} IS NULL`,
    )
    const again = revoked.filter(({ id, at }) => revoke.run(Number(at), String(id)).changes === 1)
    return again.map(({ id }) => `${table === 'developers' ? 'developer' : 'token'} ${String(id)}`)
  })
}

/** Where a credential is used, and as whom: no credential moves to another server or user. */
const placeOfCredential = ['authType', 'providerKey', 'server', 'username'] as const

const oauthAccounts = `SELECT doc FROM accounts WHERE json_extract(doc, '$.authType') = 'oauth2'`

/**
 * Gives the OAuth accounts of the file `to` the refresh tokens of the file `from` (null = there is no such file):
 * providers rotate refresh tokens, and end the consent when an old one is used. For each account without a match in
 * `from`, stores the connect token that `lost` makes. Returns these tokens, and how many accounts took a refresh token.
 */
export function keepConsents(to: string, from: string | null, lost: (account: AccountRecord) => ConnectTokenRecord) {
  using target = new DatabaseSync(to)
  using source = from === null ? null : new DatabaseSync(from)
  const newer = source?.prepare('SELECT doc FROM accounts WHERE id = ?')
  const save = target.prepare('UPDATE accounts SET doc = ? WHERE id = ?')
  const add = target.prepare('INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)')
  let kept = 0
  const made: ConnectTokenRecord[] = []
  target.exec('BEGIN')
  for (const row of target.prepare(oauthAccounts).all()) {
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
}
