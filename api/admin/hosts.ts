/** Mail servers: how their accounts are, how logins go, and the pace that an operator sets. */
import type { z } from 'zod'
import type { AccountPlace, Engine, PoolFacts } from '../../engine/index.ts'
import { factsById } from './accounts.ts'
import { countBy, noActor } from './rows.ts'
import type { hostView } from './views.ts'

export type HostRow = z.input<typeof hostView>

/** Those with most accounts first. */
export async function adminHosts(engine: Engine): Promise<HostRow[]> {
  return listHosts(engine, await engine.store.accounts.places({}), factsById(engine))
}

export function listHosts(
  { accounts }: Engine,
  places: readonly AccountPlace[],
  facts: ReadonlyMap<string, PoolFacts>,
): HostRow[] {
  const byHost = Map.groupBy(places, ({ server }) => server)
  return Array.from(byHost, ([host, own]) => ({
    host,
    accounts: own.length,
    states: countBy(own, ({ id }) => facts.get(id)?.state ?? noActor),
    logins: accounts.hosts.logins(host),
    pace: accounts.hosts.pace(host),
  })).toSorted((left, right) => right.accounts - left.accounts || (left.host < right.host ? -1 : 1))
}
