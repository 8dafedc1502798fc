/** A row of the outbox with nothing in it but its place in line. */
import { urlRow } from '../../../engine/webhooks/callbacks.ts'
import type { OutboxRecord } from '../../../engine/store/records.ts'

export function laneRow(account: string, seq: number, lane: 0 | 1 = 0): OutboxRecord {
  const base = urlRow({
    kind: 'sync',
    url: 'http://x',
    developerId: 'd',
    userId: null,
    accountId: account,
    webhookId: null,
    event: `${account}${lane}${seq}`,
    data: {},
    at: 1,
  })
  return { ...base, seq, lane }
}
