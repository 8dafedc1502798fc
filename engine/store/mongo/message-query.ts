/**
 * A MessageQuery as a filter. Address, thread, attachment and folder conditions are keys of the message (rows.ts), so that
 * one multikey index serves every mix of them in (sentAt, _id) order; subject and ids are compared beside it.
 */
import type { Filter } from 'mongodb'
import type { MessageQuery } from '../port.ts'
import { queryKeys, subjectNeedle } from '../rows.ts'
import { between, containing } from './conditions.ts'
import type { MessageDoc } from './documents.ts'

export function messageFilter(accountId: string, query: MessageQuery): Filter<MessageDoc> {
  const { all, none } = queryKeys(query)
  const needle = subjectNeedle(query)
  const sentAt = between(query.sentFrom, query.sentUntil)
  // the narrowest first: the index's bounds come from the first condition on keys
  const conditions: Filter<MessageDoc>[] = all.map((keys) => ({ keys: { $in: keys } }))
  if (none.length > 0) conditions.push({ keys: { $nin: none } })
  return {
    accountId,
    live: true,
    ...(conditions.length > 0 ? { $and: conditions } : {}),
    ...(sentAt ? { sentAt } : {}),
    ...(query.ids ? { _id: { $in: [...query.ids] } } : {}),
    ...(needle === null ? {} : { subjectKey: containing(needle) }),
  }
}

export function messageOrder({ order }: MessageQuery): { readonly sentAt: 1 | -1; readonly _id: 1 | -1 } {
  return order === 'asc' ? { sentAt: 1, _id: 1 } : { sentAt: -1, _id: -1 }
}
