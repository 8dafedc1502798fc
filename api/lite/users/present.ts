/** Users from records to the wire. */
import type { z } from 'zod'
import type { AccountRecord, UserRecord } from '../../../engine/index.ts'
import { presentAccount } from '../email_accounts/present.ts'
import { seconds, type LiteUrls } from '../urls.ts'
import type { createAnswer, userView } from './schema.ts'

export function presentUser(
  user: UserRecord,
  accounts: readonly AccountRecord[],
  urls: LiteUrls,
): z.input<typeof userView> {
  return {
    id: user.id,
    username: user.emailAddresses[0] ?? user.id,
    created: seconds(user.createdAt),
    suspended: 0,
    password_expired: 0,
    first_name: user.firstName,
    last_name: user.lastName,
    email_addresses: [...user.emailAddresses],
    email_accounts: accounts.map((account) => presentAccount(account, urls)),
    ...(user.statusCallbackUrl ? { status_callback_url: user.statusCallbackUrl } : {}),
    resource_url: urls.user(user),
  }
}

/** The same reference under the 2.0 name and the lite name. */
export function presentCreated(
  user: UserRecord,
  account: AccountRecord | null,
  urls: LiteUrls,
): z.input<typeof createAnswer> {
  const reference = account === null ? null : { label: account.label, resource_url: urls.account(account) }
  return {
    success: true,
    id: user.id,
    resource_url: urls.user(user),
    ...(reference === null ? {} : { source: reference, email_account: reference }),
  }
}
