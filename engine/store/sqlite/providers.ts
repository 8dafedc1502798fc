/** OAuth providers that a developer has registered. */
import type { ProviderStore } from '../port.ts'
import type { OAuthProviderRecord } from '../records.ts'
import type { Database } from './database.ts'

export const providerList = 'SELECT doc FROM providers WHERE developer_id = ? ORDER BY created_at, consumer_key'

export function createProviders(db: Database): ProviderStore {
  return {
    put: (provider) =>
      db.write(() => {
        const { developerId, consumerKey, createdAt } = provider
        db.run(
          `INSERT INTO providers (developer_id, consumer_key, created_at, doc) VALUES (?, ?, ?, ?)
           ON CONFLICT (developer_id, consumer_key) DO UPDATE SET created_at = excluded.created_at, doc = excluded.doc`,
          developerId,
          consumerKey,
          createdAt,
          JSON.stringify(provider),
        )
      }),
    get: (developerId, consumerKey) =>
      db.read(() => {
        const select = 'SELECT doc FROM providers WHERE developer_id = ? AND consumer_key = ?'
        return db.doc(select, developerId, consumerKey) as OAuthProviderRecord | null
      }),
    list: (developerId) => db.read(() => db.docs(providerList, developerId) as OAuthProviderRecord[]),
    remove: (developerId, consumerKey) =>
      db.write(() => {
        const sql = 'DELETE FROM providers WHERE developer_id = ? AND consumer_key = ?'
        return db.run(sql, developerId, consumerKey) === 1
      }),
  }
}
