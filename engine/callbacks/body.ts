/** What a callback to a bare URL says, apart from timestamp, token and signature. */
import type { OutboxRecord } from '../store/records.ts'

export function urlCallbackBody(row: OutboxRecord): Readonly<Record<string, unknown>> {
  const user = row.userId === null ? {} : { account_id: row.userId, user_id: row.userId }
  return { ...user, ...row.data }
}
