/** OAuth nonces, remembered until they expire. One that has expired counts as new again. They come with every call and do not wait for the disk. */
import type { NonceStore } from '../port.ts'
import type { Database } from './database.ts'

/** Expired nonces that go with each new one: more than come, so that they never pile up. */
const sweep = 4

export const nonceSweep = `DELETE FROM nonces WHERE (api_key, nonce, timestamp) IN
  (SELECT api_key, nonce, timestamp FROM nonces WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`

export function createNonces(db: Database, now: () => number): NonceStore {
  return {
    remember: (apiKey, nonce, timestamp, expiresAt) =>
      db.writeUnsynced(() => {
        const time = now()
        const added = db.run(
          `INSERT INTO nonces (api_key, nonce, timestamp, expires_at) VALUES (?, ?, ?, ?)
           ON CONFLICT (api_key, nonce, timestamp) DO UPDATE SET expires_at = excluded.expires_at
           WHERE nonces.expires_at <= ?`,
          apiKey,
          nonce,
          timestamp,
          expiresAt,
          time,
        )
        db.run(nonceSweep, time, sweep)
        return added === 1
      }),
  }
}
