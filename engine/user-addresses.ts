/** The email addresses of a user: those of its email accounts, and those that the developer has added. */
import type { Config } from './config.ts'
import { checkLimit } from './errors.ts'
import type { Store } from './store/port.ts'
import type { AccountRecord } from './store/records.ts'

/** Throws `too_many` when the user is at the limit and `email` is new. */
export function checkAddress(config: Config, there: readonly string[], email: string): void {
  if (!there.includes(email.toLowerCase()))
    checkLimit(config, 'MAILROOM_ADDRESSES_PER_USER', 'email addresses of one account', there.length)
}

/** Removes the former address of an account, unless it is the user's first address or that of another account. */
export async function forgetAddress(store: Store, { developerId, userId, email }: AccountRecord): Promise<void> {
  const user = await store.users.get(developerId, userId)
  if (user === null || user.emailAddresses.indexOf(email) <= 0) return
  const others = await store.accounts.listByUser(userId)
  if (others.some((other) => other.email === email)) return
  await store.users.editAddresses(userId, (list) => list.filter((address, index) => index === 0 || address !== email))
  // An account with this address may have been added meanwhile.
  const again = (await store.accounts.listByUser(userId)).some((other) => other.email === email)
  if (again) await store.users.addAddress(userId, email)
}
