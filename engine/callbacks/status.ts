/**
 * Status callbacks: an email account went DISABLED (`permanent`) or is OK again (`cleared`). One per transition, named by the
 * account's status version, to the account's own URL or else to the developer's.
 */
import type { AccountRecord, OutboxRecord } from '../store/records.ts'
import { urlRow } from './rows.ts'

export interface StatusNews {
  readonly status: 'OK' | 'DISABLED'
  readonly message: string | null
  /** statusVersion of the account after the transition. */
  readonly version: number
}

export function statusRow(account: AccountRecord, news: StatusNews, url: string, at: number): OutboxRecord {
  return urlRow({
    kind: 'status',
    url,
    developerId: account.developerId,
    userId: account.userId,
    accountId: account.id,
    webhookId: null,
    event: `status:${account.id}:${news.version}`,
    data: {
      server_label: account.label,
      email_account: account.email,
      failure: news.status === 'DISABLED' ? 'permanent' : 'cleared',
      failure_message: news.message ?? '',
    },
    at,
  })
}
