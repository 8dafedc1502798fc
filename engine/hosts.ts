/** Mail servers by what their accounts do, over all nodes. */
import type { Accounts } from './accounts/index.ts'
import { noActor } from './observe/metrics.ts'
import type { PoolFacts } from './observe/steps.ts'
import type { AccountPlace } from './store/port.ts'

/** Times are in ms since 1970. */
export interface HostFacts {
  readonly host: string
  accounts: number
  /** Of each account. */
  readonly states: string[]
  /** When the first of its accounts that are down or disabled became so; null = none is. */
  since: number | null
  /** Accounts that are down after a failure, whatever their actors try at this moment. */
  failing: number
  /** Those, and those that are disabled or without an actor by a fault. */
  unwell: number
  /** Logins a minute; null = as configured. */
  readonly pace: number | null
}

/**
 * Hosts of these accounts, and those with a pace: it holds for new accounts when the last one has gone. `places`: those
 * that are in their condition for longest first.
 */
export function listHosts(
  { accounts }: { readonly accounts: Pick<Accounts, 'hosts'> },
  places: readonly AccountPlace[],
  facts: ReadonlyMap<string, PoolFacts>,
): HostFacts[] {
  const paced = new Set(accounts.hosts.paced())
  const hosts = new Map<string, HostFacts>()
  const of = (host: string): HostFacts => {
    const known = hosts.get(host)
    if (known !== undefined) return known
    const pace = paced.has(host) ? accounts.hosts.pace(host) : null
    const row = { host, accounts: 0, states: [], since: null, failing: 0, unwell: 0, pace }
    hosts.set(host, row)
    return row
  }
  for (const { id, server, condition } of places) {
    const [row, seen] = [of(server), facts.get(id)]
    const state = seen?.state ?? noActor
    row.accounts += 1
    row.states.push(state)
    if (condition.is === 'down' || condition.is === 'disabled') row.since ??= condition.since
    const fails = condition.is === 'down' && seen?.lastError != null
    row.failing += Number(fails)
    row.unwell += Number(fails) + Number(state === 'disabled' || state === 'dead')
  }
  for (const host of paced) of(host)
  return [...hosts.values()]
}

/** Hosts with most accounts come first. */
export function byAccounts(left: HostFacts, right: HostFacts): number {
  return right.accounts - left.accounts || (left.host < right.host ? -1 : 1)
}
