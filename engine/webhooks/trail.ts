/** The trail of a message: the events that were seen of it, and what each webhook of its account made of them. */
import type { AccountRecord, MessageRecord } from '../store/records.ts'
import type { Store } from '../store/port.ts'
import type { Webhooks } from './index.ts'

const mostWebhooks = 20
const mostCallbacks = 10
const mostEvents = 20

interface Sources {
  readonly store: Store
  readonly webhooks: Pick<Webhooks, 'of' | 'explain'>
}

/** Callbacks are the newest ten of each webhook; `others`: of webhooks that are gone. No text of the mail is read. */
export async function messageTrail(
  { store, webhooks }: Sources,
  account: AccountRecord,
  message: MessageRecord,
  signal: AbortSignal,
) {
  // An operator's question costs the user none of the calls to the mail server.
  const asking = { signal, reads: () => undefined, texts: false }
  const hearing = webhooks.of(account)
  const ways = []
  for (const webhook of hearing.slice(0, mostWebhooks)) {
    const { matched, verdicts, deliveries } = await webhooks.explain(webhook, account, message, asking)
    ways.push({ webhook, matched, verdicts, callbacks: deliveries.slice(0, mostCallbacks) })
  }
  const rows = await store.outbox.list({ messageId: message.id, accountId: account.id }, { limit: 100, offset: 0 })
  const known = new Set<string | null>(hearing.map(({ id }) => id))
  return {
    changes: (await store.changes.ofMessage(account.id, message.id)).slice(-mostEvents),
    ways,
    more: hearing.length - ways.length,
    others: rows.filter(({ webhookId }) => !known.has(webhookId)).slice(0, mostCallbacks),
  }
}
