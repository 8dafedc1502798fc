/**
 * Contacts: each email account counts its own, and what is read is the sum over the accounts of the user. Pure steps,
 * and the reads that are the same over both stores.
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
 * The contact with one more delta of its account; null = first seen now. What others call the contact is its name only
 * until there is mail from the contact; then the newest.
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

/** The name is the newest. */
export function summed([first, ...others]: readonly [StoredContact, ...StoredContact[]]): ContactRecord {
  const newestFirst = [first, ...others].toSorted((left, right) => right.lastReceivedAt - left.lastReceivedAt)
  const sum = (field: SortField): number => newestFirst.reduce((all, part) => all + part[field], 0)
  return {
    id: first.id,
    userId: first.userId,
    email: first.email,
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

/** A page of contacts of one user, by a sum and then by id. */
export interface ContactQuery extends Page {
  readonly userId: string
  readonly field: SortField
  readonly descending: boolean
  /** Folded part of the name or the address; null = any. */
  readonly text: string | null
}

/** One contact of a page: the counts of each account. */
export type ContactParts = readonly [StoredContact, ...StoredContact[]]

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
    /** `ofAccounts` = how many accounts the user has, where that is known. One has its contacts in order. */
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
    /** 2.0: by part of the name or the address that an account knows. */
    search: async (userId: string, text: string, page: Page): Promise<ContactRecord[]> => {
      const query = { userId, field: 'totalCount', descending: true, text: foldCase(text), ...page } as const
      return (await several(query)).map(summed)
    },
  }
}

/** As stores kept it that held the sums of all accounts, and beside them the part of each; null = not known whose. */
export interface SummedContact extends ContactRecord {
  readonly byAccount?: readonly (ContactCounts & { readonly accountId: string | null })[]
}

/** The contact's parts by account. Counts of no known account go to the `oldest` account; null = to none. */
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
