/** Callbacks of a burst: first arrivals, repetitions, and whether each account's came in the order of its UIDs. */
import { part, type Callback, type CallbackReceiver } from '../../support/callbacks.ts'
import type { Json } from '../../support/service.ts'
import { benchId } from './mail.ts'

export interface OrderedArrivals {
  /** Ids of messages that were told at least once. */
  readonly first: ReadonlySet<string>
  readonly total: number
  readonly repeated: number
  readonly outOfOrder: number
  readonly withoutBody: number
  /** When the last message was told for the first time. */
  readonly lastFirstAt: number | null
}

export function trackOrder(receiver: CallbackReceiver): OrderedArrivals {
  const state = {
    first: new Set<string>(),
    total: 0,
    repeated: 0,
    outOfOrder: 0,
    withoutBody: 0,
    lastFirstAt: null as number | null,
  }
  const lastUid = new Map<string, number>()
  receiver.onCallback((callback) => {
    const message = part(callback.body, 'message_data')
    const id = benchId(message['email_message_id'])
    if (id === null) return
    state.total++
    if (state.first.has(id)) {
      state.repeated++
      return
    }
    state.first.add(id)
    state.lastFirstAt = callback.at
    if (!hasBody(message)) state.withoutBody++
    const account = accountOf(callback)
    const uid = uidOf(message)
    if (!(uid > (lastUid.get(account) ?? 0))) state.outOfOrder++
    lastUid.set(account, uid)
  })
  return state
}

function accountOf(callback: Callback): string {
  return String(callback.body['account_id'])
}

function entries(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : []
}

/** UID of its place in INBOX; NaN, which is in no order, when the callback does not say. */
function uidOf(message: Json): number {
  return Number(entries(message['sources'])[0]?.['uid'])
}

function hasBody(message: Json): boolean {
  return entries(message['bodies']).some(
    ({ content }) => typeof content === 'string' && content.includes('quick brown fox'),
  )
}
