/** 2.0: the initial sync of a source is complete; POSTed once to the callback_url that the source was created with. */
import type { AccountRecord, OutboxRecord } from '../store/records.ts'
import { urlRow } from './rows.ts'

/** null when nobody asked. */
export function syncRow(account: AccountRecord, at: number): OutboxRecord | null {
  const url = account.options.callbackUrl
  if (url === null) return null
  return urlRow({
    kind: 'sync',
    url,
    developerId: account.developerId,
    userId: account.userId,
    accountId: account.id,
    webhookId: null,
    event: `sync:${account.id}`,
    data: { server_label: account.label, email_account: account.email, sync: 'completed' },
    at,
  })
}
