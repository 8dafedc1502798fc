/** Accounts without their user: what a creation that was cut short leaves when its process ends before it is taken back. */
import type { AccountRecord } from '../store/records.ts'
import type { Store } from '../store/port.ts'

/** An account whose user is still missing after this is left over; a younger one may wait for a user that is being made. */
const orphanMs = 3_600_000
const pageSize = 500

/** Without those whose user is not there; what is left over of them is removed. */
export async function withOwner(store: Store, page: readonly AccountRecord[], now: number): Promise<AccountRecord[]> {
  const users = new Set(await store.users.existing([...new Set(page.map((account) => account.userId))]))
  for (const { id, userId, createdAt } of page) {
    if (!users.has(userId) && createdAt < now - orphanMs) await store.accounts.remove(id)
  }
  return page.filter((account) => users.has(account.userId))
}

/** Looks through a page of all accounts. Answers how many it had for removal, and where the next one starts; null = from the start. */
export async function removeOrphans(
  store: Store,
  after: string | null,
  now: number,
): Promise<{ readonly orphans: number; readonly next: string | null }> {
  const page = await store.accounts.page(after, pageSize)
  const owned = await withOwner(store, page, now)
  const next = page.length < pageSize ? null : (page.at(-1)?.id ?? null)
  return { orphans: page.length - owned.length, next }
}
