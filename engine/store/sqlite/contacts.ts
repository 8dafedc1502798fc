/** Contacts in SQLite; the counts of each email account. */
import { contactId } from '../ids.ts'
import type { KeyedCollections } from '../aggregates.ts'
import { contactReads, withDelta, type ContactParts, type ContactQuery } from '../contacts.ts'
import type { ContactStore } from '../port.ts'
import type { ContactDelta } from '../records.ts'
import type { Database } from './database.ts'
import type { Statements } from './statements.ts'
import { columnOf, tables } from './tables.ts'

/** A mark says that the message of a key is counted. The result is the keys that had none. */
const mark = `INSERT INTO contact_marks (account_id, key) SELECT ?1, value FROM json_each(?2) WHERE true
  ON CONFLICT DO NOTHING RETURNING key`

/** Adds each delta once per contact and key. */
export function countContacts(sql: Statements, accountId: string, deltas: readonly ContactDelta[]): void {
  if (deltas.length === 0) return
  const keys = new Set(deltas.map(({ key }) => key))
  const fresh = new Set(sql.texts(mark, accountId, JSON.stringify([...keys])))
  const uncounted = deltas.filter(({ key }) => fresh.has(key))
  for (const [id, own] of Map.groupBy(uncounted, ({ userId, email }) => contactId(userId, email))) {
    const before = tables.contacts.get(sql, accountId, id)
    let contact = before
    for (const delta of new Map(own.map((one) => [one.key, one])).values())
      contact = withDelta(accountId, contact, delta)
    if (contact === null) continue
    if (before) tables.contacts.save(sql, before, contact)
    else tables.contacts.insert(sql, contact)
  }
}

/** One page of contacts, each as the records of all accounts. `found`: filters by a part of the name or address. */
export function contactPage(field: ContactQuery['field'], descending: boolean, found: boolean): string {
  const order = `total ${descending ? 'DESC' : 'ASC'}, id ${descending ? 'DESC' : 'ASC'}`
  const some = 'AND id IN (SELECT id FROM contacts WHERE user_id = ?1 AND instr(search_key, ?4) > 0)'
  return `SELECT (SELECT json_group_array(json(doc)) FROM contacts WHERE user_id = ?1 AND id = p.id)
    FROM (SELECT id, sum(${columnOf(field)}) AS total FROM contacts WHERE user_id = ?1 ${found ? some : ''}
      GROUP BY id ORDER BY ${order} LIMIT ?2+0 OFFSET ?3) p ORDER BY ${order}`
}

export function createContacts(db: Database, keyed: KeyedCollections): ContactStore {
  const pageOf = async (query: ContactQuery): Promise<ContactParts[]> => {
    const { userId, field, descending, text, limit, offset } = query
    const found = await db.readLong({
      sql: contactPage(field, descending, text !== null),
      values: [userId, limit, offset, ...(text === null ? [] : [text])],
      owner: { sql: 'SELECT developer_id FROM users WHERE id = ?', values: [userId] },
      walk: { sql: 'SELECT id FROM contacts WHERE user_id = ?', values: [userId] },
    })
    return found as ContactParts[]
  }
  return contactReads(keyed, pageOf)
}
