/** Developers: few, found by API key on every call. */
import type { DeveloperStore } from '../port.ts'
import type { DeveloperRecord } from '../records.ts'
import type { Database } from './database.ts'

export function createDevelopers(db: Database): DeveloperStore {
  const get = (id: string) => db.doc('SELECT doc FROM developers WHERE id = ?', id) as DeveloperRecord | null
  const edit = (id: string, patch: Partial<DeveloperRecord>) =>
    db.write(() => {
      const developer = get(id)
      if (!developer) return
      db.run('UPDATE developers SET doc = ? WHERE id = ?', JSON.stringify({ ...developer, ...patch }), id)
    })
  return {
    create: (developer) =>
      db.write(() => {
        const { id, apiKey } = developer
        db.run('INSERT INTO developers (id, api_key, doc) VALUES (?, ?, ?)', id, apiKey, JSON.stringify(developer))
      }),
    get: (id) => db.read(() => get(id)),
    byKey: (apiKey) =>
      db.read(() => db.doc('SELECT doc FROM developers WHERE api_key = ?', apiKey) as DeveloperRecord | null),
    count: () => db.read(() => db.number('SELECT count(*) FROM developers')),
    first: () => db.read(() => db.doc('SELECT doc FROM developers ORDER BY id LIMIT 1') as DeveloperRecord | null),
    setStatusCallbackUrl: (id, statusCallbackUrl) => edit(id, { statusCallbackUrl }),
    setSecret: (id, sealedSecret) => edit(id, { sealedSecret }),
  }
}
