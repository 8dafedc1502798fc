/** Filters over the outbox. A delivery log is led by the narrowest owner that is named. */
import type { Filter } from 'mongodb'
import type { OutboxKey, RequeueQuery } from '../port.ts'
import type { OutboxState } from '../records.ts'
import { between, type OutboxDoc } from './documents.ts'

const states = ['pending', 'delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]
const finishedStates = ['delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]

export const sendingOrder = { lane: 1, createdAt: 1, seq: 1, _id: 1 } as const
export const newestFirst = { createdAt: -1, _id: -1 } as const
export const oldestFirst = { createdAt: 1, _id: 1 } as const

/** '' names the rows without an account. */
function idsOf(accounts: readonly string[]): (string | null)[] {
  return accounts.map((account) => (account === '' ? null : account))
}

export function pendingFilter(
  channelId: string,
  exceptAccounts: readonly string[] = [],
  exceptHistorical: readonly string[] = [],
): Filter<OutboxDoc> {
  const open = exceptAccounts.length === 0 ? {} : { accountId: { $nin: idsOf(exceptAccounts) } }
  const held = exceptHistorical.length === 0 ? {} : { $nor: [{ lane: 1, accountId: { $in: idsOf(exceptHistorical) } }] }
  return { state: 'pending', channelId, ...open, ...held } as Filter<OutboxDoc>
}

/** `of` narrows the states that may be answered. */
export function deliveryFilter(query: RequeueQuery, of: readonly OutboxState[] = states): Filter<OutboxDoc> {
  const { webhookId, developerId, accountId, messageId, kind } = query
  const created = between(query.createdFrom, query.createdUntil)
  const status = between(query.statusFrom, query.statusTo)
  const finished = between(undefined, query.finishedUntil)
  return {
    ...(messageId === undefined ? {} : { messageId }),
    ...(webhookId === undefined ? {} : { webhookId }),
    ...(accountId === undefined ? {} : { accountId }),
    ...(developerId === undefined ? {} : { developerId }),
    ...(kind === undefined ? {} : { kind }),
    // what the partial indexes of notices ask for: all but messages name their URL
    ...(kind === undefined || kind === 'message' ? {} : { url: { $gte: '' } }),
    ...(created ? { createdAt: created } : {}),
    ...(status ? { lastStatus: status } : {}),
    ...(finished ? { finishedAt: finished } : {}),
    state: { $in: of.filter((state) => query.states?.includes(state) ?? true) },
  }
}

/** One batch of rows that can be set back, behind a place in the order. */
export function requeueFilter({ ids, ...query }: RequeueQuery, after: OutboxKey | null): Filter<OutboxDoc> {
  const named =
    ids === undefined ? deliveryFilter(query, finishedStates) : { ...deliveryFilter(query), _id: { $in: [...ids] } }
  if (after === null) return named
  const { createdAt, id } = after
  const behind = { $or: [{ createdAt: { $gt: createdAt } }, { _id: { $gt: id } }] }
  return { ...named, createdAt: { ...between(createdAt, query.createdUntil) }, ...behind }
}
