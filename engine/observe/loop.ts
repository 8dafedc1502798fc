/**
 * All actors share one event loop. Work that may take long measures itself (`measured`): a batch of mail, a page of an
 * answer, a filter. What held the loop is reported with its owner: the actor or the call whose work it was.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Owner {
  readonly kind: 'account' | 'webhook' | 'call'
  /** Of the account or the channel; method and path of a call. */
  readonly id: string
  /** Of a call. */
  readonly requestId?: string
  /** That a call or a callback is about. */
  accountId?: string | null
}

export interface Held {
  /** null = not the work of one actor. */
  readonly owner: Owner | null
  readonly ms: number
}

const heldMs = 100

const owners = new AsyncLocalStorage<Owner>()

/** Runs `work`, and all that follows from it, as the owner's: lines of the log name it. */
export function workAs<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work)
}

/** Runs without an owner: shared work is not charged to the actor that triggered it. */
export const workAsNobody = AsyncLocalStorage.snapshot()

let report: (held: Held) => void = () => undefined

/** Reports every measured piece of work that held the loop for `heldMs` or more. Answers how to end. */
export function watchLoop(onHeld: (held: Held) => void): () => void {
  report = onHeld
  return () => (report = () => undefined)
}

/** Whose work goes on. */
export function currentOwner(): Owner | null {
  return owners.getStore() ?? null
}

/** Runs a piece of work that awaits nothing, and reports it when it held the loop. */
export function measured<T>(work: () => T, owner = currentOwner()): T {
  const began = performance.now()
  try {
    return work()
  } finally {
    const ms = performance.now() - began
    if (ms >= heldMs) report({ owner, ms })
  }
}

/** The call under way is about this account. */
export function concernsAccount(accountId: string): void {
  const owner = owners.getStore()
  if (owner?.kind === 'call') owner.accountId = accountId
}

/** What each line of the log says of the work that it was written in. */
export function workFacts(): Record<string, unknown> {
  const { kind, id, requestId, accountId } = owners.getStore() ?? {}
  const about = typeof accountId === 'string' ? { accountId } : {}
  if (kind === 'account') return { accountId: id }
  if (kind === 'webhook') return { channelId: id, ...about }
  return requestId === undefined ? about : { requestId, ...about }
}
