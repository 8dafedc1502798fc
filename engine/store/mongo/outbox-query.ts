/** Filters over the outbox. A delivery log is led by the narrowest owner that is named. */
import type { Filter } from 'mongodb'
import type { DeliveryQuery } from '../port.ts'
import type { OutboxState } from '../records.ts'
import { between } from './conditions.ts'
import type { OutboxDoc } from './documents.ts'

const states = ['pending', 'delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]
export const finishedStates = ['delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]

export const sendingOrder = { lane: 1, createdAt: 1, seq: 1, _id: 1 } as const
export const newestFirst = { createdAt: -1, _id: -1 } as const
export const oldestFirst = { createdAt: 1, _id: 1 } as const

export function pendingFilter(channelId: string, exceptAccounts: readonly string[] = []): Filter<OutboxDoc> {
  const open = exceptAccounts.length === 0 ? {} : { accountId: { $nin: [...exceptAccounts] } }
  return { state: 'pending', channelId, ...open }
}

/** `of` narrows the states that may be answered. */
export function deliveryFilter(query: DeliveryQuery, of: readonly OutboxState[] = states): Filter<OutboxDoc> {
  const { webhookId, developerId, accountId, messageId, kind } = query
  const created = between(query.createdFrom, query.createdUntil)
  const status = between(query.statusFrom, query.statusTo)
  return {
    ...(messageId === undefined ? {} : { messageId }),
    ...(webhookId === undefined ? {} : { webhookId }),
    ...(accountId === undefined ? {} : { accountId }),
    ...(developerId === undefined ? {} : { developerId }),
    ...(kind === undefined ? {} : { kind }),
    ...(created ? { createdAt: created } : {}),
    ...(status ? { lastStatus: status } : {}),
    state: { $in: of.filter((state) => query.states?.includes(state) ?? true) },
  }
}
