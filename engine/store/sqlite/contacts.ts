/** Contacts of a user, counted as mail arrives. */
import { contactId } from '../ids.ts'
import { contactReads, type KeyedCollections } from '../aggregates.ts'
import type { ContactStore } from '../port.ts'
import type { ContactDelta, StoredContact } from '../records.ts'
import { contactMerge, foldCase, plainContact, withoutAccount } from '../rows.ts'
import type { Database, Statements } from './database.ts'
import { tables } from './tables.ts'

/** Adds each delta once per contact and key: the mark shows that its message was counted. */
export function countContacts(sql: Statements, accountId: string, deltas: readonly ContactDelta[]): void {
  const changed = new Map<string, StoredContact>()
  const stored = new Map<string, StoredContact | null>()
  const mark = 'INSERT INTO contact_marks (account_id, key) VALUES (?, ?) ON CONFLICT DO NOTHING'
  const fresh = new Set([...new Set(deltas.map(({ key }) => key))].filter((key) => sql.run(mark, accountId, key) === 1))
  const counted = new Set<string>()
  const merge = contactMerge(accountId)
  for (const delta of deltas) {
    if (!fresh.has(delta.key)) continue
    const id = contactId(delta.userId, delta.email)
    const once = `${id} ${delta.key}`
    if (counted.has(once)) continue
    counted.add(once)
    if (!stored.has(id)) stored.set(id, tables.contacts.get(sql, id))
    changed.set(id, merge(changed.get(id) ?? stored.get(id) ?? null, delta))
  }
  for (const [id, contact] of changed) {
    const before = stored.get(id)
    if (before) tables.contacts.save(sql, before, contact)
    else tables.contacts.insert(sql, contact)
  }
}

/** Contacts looked through in one transaction. */
const stepContacts = 500

/** By id, which no count changes: none is passed over, also while others count. */
export const contactsInSteps = 'SELECT doc FROM contacts WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?+0'

/** Takes an account's part out of the contacts after this id; answers the last one's id, null = no more. */
export function uncountSome(sql: Statements, userId: string, accountId: string, after: string): string | null {
  const contacts = sql.docs(contactsInSteps, userId, after, stepContacts) as StoredContact[]
  for (const contact of contacts) {
    const left = withoutAccount(contact, accountId)
    if (left === null) sql.run('DELETE FROM contacts WHERE id = ?', contact.id)
    else if (left !== contact) tables.contacts.save(sql, contact, left)
  }
  return contacts.length < stepContacts ? null : (contacts.at(-1)?.id ?? null)
}

export const contactSearch = `SELECT doc FROM contacts WHERE user_id = ? AND instr(search_key, ?) > 0
  ORDER BY total_count DESC, id DESC LIMIT ?+0 OFFSET ?`

export function createContacts(db: Database, keyed: KeyedCollections): ContactStore {
  return {
    ...contactReads(keyed),
    count: (accountId, deltas) =>
      db.write(() => {
        if (tables.accounts.get(db, accountId)) countContacts(db, accountId, deltas)
      }),
    search: async (userId, text, { limit, offset }) => {
      const found = await db.readLong({
        sql: contactSearch,
        values: [userId, foldCase(text), limit, offset],
        owner: { sql: 'SELECT developer_id FROM users WHERE id = ?', values: [userId] },
        walk: { sql: 'SELECT id FROM contacts WHERE user_id = ?', values: [userId] },
      })
      return (found as StoredContact[]).map(plainContact)
    },
  }
}
