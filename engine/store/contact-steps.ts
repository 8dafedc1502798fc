/**
 * How a contact counts, and how it forgets an account. Beside the sums a stored contact holds what each account has counted, so
 * that the part of an account that is removed can go. Pure; both adapters use it through rows.ts, which re-exports it.
 */
import { contactId } from './ids.ts'
import type { ContactCounts, ContactDelta, ContactPart, ContactRecord, StoredContact } from './records.ts'

/** The contact with one more delta of this account. null = first seen now. */
export function contactMerge(accountId: string): (stored: StoredContact | null, delta: ContactDelta) => StoredContact {
  return (stored, delta) => {
    const parts = stored ? partsOf(stored) : []
    const own = parts.find((part) => part.accountId === accountId)
    const part = { accountId, ...counted(own ?? nothing, delta) }
    const byAccount = own ? parts.map((one) => (one === own ? part : one)) : [...parts, part]
    if (stored) return { ...stored, ...counted(stored, delta), byAccount }
    const { userId, email } = delta
    const id = contactId(userId, email)
    return { id, userId, email: email.toLowerCase(), ...counted(nothing, delta), byAccount }
  }
}

/** The newest name that is not empty is the name: what others call the contact only until there is mail from the contact. */
function counted(before: ContactCounts, delta: ContactDelta): ContactCounts {
  const newer = delta.receivedAt > 0 && delta.receivedAt >= before.lastReceivedAt
  return {
    name: delta.name !== '' && (newer || before.name === '') ? delta.name : before.name,
    totalCount: before.totalCount + delta.total,
    directCount: before.directCount + delta.direct,
    indirectCount: before.indirectCount + delta.indirect,
    lastReceivedAt: Math.max(before.lastReceivedAt, delta.receivedAt),
  }
}

const nothing: ContactCounts = {
  name: '',
  totalCount: 0,
  directCount: 0,
  indirectCount: 0,
  lastReceivedAt: Number.NEGATIVE_INFINITY,
}

/** What is known of each account, and as one more part what the sums have beyond that: counted before accounts were told apart. */
function partsOf(contact: StoredContact): readonly ContactPart[] {
  const parts = contact.byAccount ?? []
  const rest = (of: (counts: ContactCounts) => number): number =>
    parts.reduce((left, part) => left - of(part), of(contact))
  const [totalCount, directCount, indirectCount] = [
    rest((counts) => counts.totalCount),
    rest((counts) => counts.directCount),
    rest((counts) => counts.indirectCount),
  ]
  if (totalCount === 0 && directCount === 0 && indirectCount === 0) return parts
  const { name, lastReceivedAt } = contact
  return [...parts, { accountId: null, name, totalCount, directCount, indirectCount, lastReceivedAt }]
}

/** The contact as the other accounts have counted it; null = there is nothing of others in it. */
export function withoutAccount(contact: StoredContact, accountId: string): StoredContact | null {
  const parts = partsOf(contact)
  const byAccount = parts.filter((part) => part.accountId !== accountId)
  if (byAccount.length === parts.length) return contact
  if (byAccount.length === 0) return null
  const newestFirst = byAccount.toSorted((left, right) => right.lastReceivedAt - left.lastReceivedAt)
  const sum = (of: (counts: ContactCounts) => number): number => byAccount.reduce((all, part) => all + of(part), 0)
  return {
    ...contact,
    name: newestFirst.find(({ name }) => name !== '')?.name ?? '',
    totalCount: sum((counts) => counts.totalCount),
    directCount: sum((counts) => counts.directCount),
    indirectCount: sum((counts) => counts.indirectCount),
    lastReceivedAt: Math.max(...byAccount.map((part) => part.lastReceivedAt)),
    byAccount,
  }
}

/** As it leaves the store. */
export function plainContact(contact: StoredContact): ContactRecord {
  const { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt } = contact
  return { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt }
}
