/**
 * Contacts: each email account counts its own; reads return the sum over the user's accounts. Pure steps, and the reads
 * that are the same in both stores.
 */
import type { KeyedCollections } from './aggregates.ts'
import { contactId } from './ids.ts'
import type { ContactSort, Page } from './port-types.ts'
import { foldCase } from './rows.ts'
import type { ContactCounts, ContactDelta, ContactRecord, StoredContact } from './records.ts'

const nothingCounted: ContactCounts = {
  name: '',
  totalCount: 0,
  directCount: 0,
  indirectCount: 0,
  lastReceivedAt: Number.NEGATIVE_INFINITY,
}

/**
 * Adds a delta to the account's counts of a contact (null = a new contact). The newest mail from the contact gives the
 * name; until then, mail of others does.
 */
export function withDelta(accountId: string, stored: StoredContact | null, delta: ContactDelta): StoredContact {
  const { userId, email } = delta
  const before = stored ?? { ...nothingCounted, id: contactId(userId, email), userId, email: email.toLowerCase() }
  const newer = delta.receivedAt > 0 && delta.receivedAt >= before.lastReceivedAt
  return {
    ...before,
    accountId,
    name: delta.name !== '' && (newer || before.name === '') ? delta.name : before.name,
    totalCount: before.totalCount + delta.total,
    directCount: before.directCount + delta.direct,
    indirectCount: before.indirectCount + delta.indirect,
    lastReceivedAt: Math.max(before.lastReceivedAt, delta.receivedAt),
  }
}

/** The counts of one contact by account. */
export type ContactParts = readonly [StoredContact, ...StoredContact[]]

/** The sum over the accounts, with the newest name. */
export function summed(parts: ContactParts): ContactRecord {
  const [{ id, userId, email }] = parts
  const newestFirst = parts.toSorted((left, right) => right.lastReceivedAt - left.lastReceivedAt)
  const sum = (field: SortField): number => newestFirst.reduce((all, part) => all + part[field], 0)
  return {
    ...{ id, userId, email },
    name: newestFirst.find(({ name }) => name !== '')?.name ?? '',
    totalCount: sum('totalCount'),
    directCount: sum('directCount'),
    indirectCount: sum('indirectCount'),
    lastReceivedAt: Math.max(...newestFirst.map(({ lastReceivedAt }) => lastReceivedAt)),
  }
}

const sortFields = {
  total_count: 'totalCount',
  direct_count: 'directCount',
  indirect_count: 'indirectCount',
} as const

export type SortField = (typeof sortFields)[ContactSort]

/** A page of a user's contacts, by a sum and then by id. */
export interface ContactQuery extends Page {
  readonly userId: string
  readonly field: SortField
  readonly descending: boolean
  /** A folded part of the name or the address; null = any. */
  readonly text: string | null
}

/** `several` reads a page over several accounts, which no index has in order. */
export function contactReads(
  { accounts, contacts }: KeyedCollections,
  several: (query: ContactQuery) => Promise<ContactParts[]>,
) {
  return {
    get: async (userId: string, id: string): Promise<ContactRecord | null> => {
      const [first, ...others] = await contacts.list({ userId, id }, { by: ['accountId'] })
      return first === undefined ? null : summed([first, ...others])
    },
    /** `ofAccounts`: the number of the user's accounts, if known. An index has the contacts of one account in order. */
    list: async (
      userId: string,
      sortBy: ContactSort,
      order: 'asc' | 'desc',
      page: Page,
      ofAccounts?: number,
    ): Promise<ContactRecord[]> => {
      const field = sortFields[sortBy]
      const descending = order === 'desc'
      if ((ofAccounts ?? (await accounts.count({ userId }))) > 1)
        return (await several({ userId, field, descending, text: null, ...page })).map(summed)
      return (await contacts.list({ userId }, { by: [field, 'id'], descending, ...page })).map((one) => summed([one]))
    },
    /** For 2.0: contacts with `text` in a name or an address. */
    search: async (userId: string, text: string, page: Page): Promise<ContactRecord[]> => {
      const query = { userId, field: 'totalCount', descending: true, text: foldCase(text), ...page } as const
      return (await several(query)).map(summed)
    },
  }
}

/** The record of older stores: the sums over all accounts, and the part of each account (null = unknown account). */
export interface SummedContact extends ContactRecord {
  readonly byAccount?: readonly (ContactCounts & { readonly accountId: string | null })[]
}

/** Splits an older record by account. Counts of unknown accounts go to the `oldest` account; null = are dropped. */
export function splitContact({ byAccount = [], ...sums }: SummedContact, oldest: string | null): StoredContact[] {
  const known = byAccount.map((part) => ({ ...sums, ...part, accountId: part.accountId ?? oldest }))
  const rest = (field: SortField): number => sums[field] - known.reduce((all, part) => all + part[field], 0)
  const counts = {
    totalCount: rest('totalCount'),
    directCount: rest('directCount'),
    indirectCount: rest('indirectCount'),
  }
  const all = Object.values(counts).some((count) => count !== 0)
    ? [...known, { ...sums, ...counts, accountId: oldest }]
    : known
  const owned = all.flatMap((part) => (part.accountId === null ? [] : [{ ...part, accountId: part.accountId }]))
  return [...Map.groupBy(owned, ({ accountId }) => accountId)].flatMap(([accountId, [first, ...others]]) =>
    first === undefined ? [] : [{ ...summed([first, ...others]), accountId }],
  )
}
