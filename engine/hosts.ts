/** Mail servers, with the states of their accounts on all nodes. */
import type { Accounts } from './accounts/index.ts'
import { noActor } from './observe/metrics.ts'
import type { PoolFacts } from './observe/steps.ts'
import type { AccountPlace, Store } from './store/port.ts'

export interface HostFacts {
  readonly host: string
  accounts: number
  /** The state of each account. */
  readonly states: string[]
  /**
   * First time, in ms since 1970, at which an account went down or DISABLED and has stayed so; null = no such account.
   */
  since: number | null
  /** Number of accounts that are down after a failure, even while their actors try to connect. */
  failing: number
  /** Number of failing, disabled and dead accounts. */
  unwell: number
  /** Logins a minute; null = as configured. */
  readonly pace: number | null
}

/**
 * The hosts of these accounts, and every host with a pace, which new accounts will have. Precondition: `places` are
 * sorted by the time of their condition, the oldest first.
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

/** The hosts of this process' accounts; of those without an actor only if all accounts are its own. */
export async function ownHosts(accounts: Pick<Accounts, 'hosts' | 'facts'>, store: Store): Promise<HostFacts[]> {
  const facts = new Map(accounts.facts().map((one) => [one.id, one]))
  const places = await store.accounts.places({})
  const own = store.nodes.ownsAll() ? places : places.filter(({ id }) => facts.has(id))
  return listHosts({ accounts }, own, facts)
}

/** Order: most accounts first, then by name. */
export function byAccounts(left: HostFacts, right: HostFacts): number {
  return right.accounts - left.accounts || (left.host < right.host ? -1 : 1)
}
