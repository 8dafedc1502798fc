/** Mail servers: how their accounts are, how logins go, and the pace that an operator sets. */
import type { z } from 'zod'
import { type AccountPlace, type Engine, notFound, type PoolFacts } from '../../engine/index.ts'
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

/** Logins a minute at most, 0 = none, null = as configured again; until the process ends. `not_found`: no account. */
export async function setHostPace(engine: Engine, name: string, pace: number | null): Promise<HostRow> {
  const server = name.toLowerCase()
  const places = await engine.store.accounts.places({ server })
  if (places.length === 0) throw notFound('host', name)
  engine.accounts.hosts.setPace(server, pace)
  const [row] = listHosts(engine, places, factsById(engine))
  if (row === undefined) throw notFound('host', name)
  return row
}
