/** The email addresses of a user: those that its email accounts bring, and others that the developer has added. */
import type { Config } from './config.ts'
import { checkLimit } from './errors.ts'
import type { Store } from './store/port.ts'
import type { AccountRecord } from './store/records.ts'

/** `too_many` where `email` is one more than `there` may be. */
export function checkAddress(config: Config, there: readonly string[], email: string): void {
  if (!there.includes(email.toLowerCase()))
    checkLimit(config, 'MAILROOM_ADDRESSES_PER_USER', 'email addresses of one account', there.length)
}

/** The address of an account that is gone, or has another one: it stays when the user or another account has it. */
export async function forgetAddress(store: Store, { developerId, userId, email }: AccountRecord): Promise<void> {
  const user = await store.users.get(developerId, userId)
  if (user === null || user.emailAddresses.indexOf(email) <= 0) return
  const others = await store.accounts.listByUser(userId)
  if (others.some((other) => other.email === email)) return
  await store.users.editAddresses(userId, (list) => list.filter((address, index) => index === 0 || address !== email))
  // Of an account that was made meanwhile.
  const again = (await store.accounts.listByUser(userId)).some((other) => other.email === email)
  if (again) await store.users.addAddress(userId, email)
}
