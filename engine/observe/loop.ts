/**
 * All actors share one event loop. Work that may take long (a step of the embedded store, a message, a filter, a list)
 * runs in `measured`, which reports work that held the loop, with its owner: an actor or an API call.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Owner {
  readonly kind: 'account' | 'webhook' | 'call'
  /** Id of the account or the channel; method and path of a call. */
  readonly id: string
  /** Only of a call. */
  readonly requestId?: string
  /** The account of a call or a callback. */
  accountId?: string | null
}

export interface Held {
  /** null = shared work. */
  readonly owner: Owner | null
  readonly ms: number
}

const heldMs = 100

const owners = new AsyncLocalStorage<Owner>()

/** Runs `work`, and all work that it starts, as the owner's; log lines name the owner. */
export function workAs<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work)
}

/** Runs without an owner: shared work is not charged to the actor that triggered it. */
export const workAsNobody = AsyncLocalStorage.snapshot()

let report: (held: Held) => void = () => undefined

/** Reports measured work that held the loop for `heldMs` or more. Returns the function that ends this. */
export function watchLoop(onHeld: (held: Held) => void): () => void {
  report = onHeld
  return () => (report = () => undefined)
}

/** Owner of the work that runs now; null = shared work. */
export function currentOwner(): Owner | null {
  return owners.getStore() ?? null
}

/** Runs synchronous work, and reports it when it held the loop. */
export function measured<T>(work: () => T, owner = currentOwner()): T {
  const began = performance.now()
  try {
    return work()
  } finally {
    const ms = performance.now() - began
    if (ms >= heldMs) report({ owner, ms })
  }
}

/** Notes the account of the API call under way. */
export function concernsAccount(accountId: string): void {
  const owner = owners.getStore()
  if (owner?.kind === 'call') owner.accountId = accountId
}

/** Fields that each log line gets from the owner of its work. */
export function workFacts(): Record<string, unknown> {
  const { kind, id, requestId, accountId } = owners.getStore() ?? {}
  const about = typeof accountId === 'string' ? { accountId } : {}
  if (kind === 'account') return { accountId: id }
  if (kind === 'webhook') return { channelId: id, ...about }
  return requestId === undefined ? about : { requestId, ...about }
}
