/** Mail servers: how their accounts are, how logins go, and the pace that an operator sets. */
import { z } from 'zod'
import { type AccountPlace, countHosts, type Engine, notFound } from '../../engine/index.ts'
import { secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, time, view } from '../examples.ts'
import { filledText, integerOrNone, optional } from '../values.ts'
import { adminRoute, count, counts, paging, total } from './shared.ts'

export const hostView = view('AdminHost', {
  host: [z.string(), 'imap.example.com'],
  accounts: [count, 120],
  states: [counts, { watching: 118, waiting: 2 }],
  since: [z.int().nullable(), time, 'since when the first of its accounts is down or disabled; null = none is'],
  logins: [counts, { ok: 4, network: 1 }, 'in the last minute, by outcome'],
  pace: [z.int().nullable(), null, 'logins a minute at most, as set by an operator; 0 = stopped; null = as configured'],
})
export type HostRow = z.input<typeof hostView>

const hostList = answer({ total, hosts: [z.array(hostView), [exampleOf(hostView)]] })

export const hostQuery = z.object({ q: optional(filledText, 'part of the name', 'gmail'), ...paging })

/** A page of them, those with most accounts first. */
export async function adminHosts(
  engine: Engine,
  { q = '', limit, offset }: z.output<typeof hostQuery>,
): Promise<z.input<typeof hostList>> {
  const part = q.toLowerCase()
  const found = listHosts(engine, await engine.store.accounts.places({})).filter(({ host }) => host.includes(part))
  return { total: found.length, hosts: found.slice(offset, offset + limit).map(presentHost) }
}

/**
 * Hosts of these accounts, and those with a pace: it holds for new accounts when the last one has gone. `places`: those
 * that are in their condition for longest first. Times are in ms since 1970.
 */
export function listHosts({ accounts }: Engine, places: readonly AccountPlace[]) {
  const down = places.filter(({ condition: { is } }) => is === 'down' || is === 'disabled')
  const since = new Map(down.toReversed().map(({ server, condition }) => [server, condition.since]))
  const known = countHosts(places, accounts.facts())
  const hosts = new Set([...known.keys(), ...accounts.hosts.paced()])
  return Array.from(hosts, (host) => {
    const states = Object.fromEntries(known.get(host) ?? [])
    return {
      host,
      accounts: Object.values(states).reduce((sum, number) => sum + number, 0),
      states,
      since: since.get(host) ?? null,
      logins: accounts.hosts.logins(host),
      pace: accounts.hosts.pace(host),
    }
  }).toSorted((left, right) => right.accounts - left.accounts || (left.host < right.host ? -1 : 1))
}

type HostFacts = ReturnType<typeof listHosts>[number]

export function presentHost(host: HostFacts): HostRow {
  return { ...host, since: secondsOrNull(host.since) }
}

/** Logins a minute at most, 0 = none, null = as configured again. `not_found`: neither an account nor a pace. */
export async function setHostPace(engine: Engine, name: string, pace: number | null): Promise<HostRow> {
  const server = name.toLowerCase()
  const row = listHosts(engine, await engine.store.accounts.places({ server })).find(({ host }) => host === server)
  if (row === undefined) throw notFound('host', name)
  await engine.settings.pace(server, pace)
  return presentHost({ ...row, pace })
}

export const mostPace = 6000
const pace = integerOrNone(0, mostPace, 'logins a minute at most; 0 = none, empty = as configured')

export const hostRoutes = [
  adminRoute('GET /admin/hosts', {
    summary: 'List mail servers, those first with most accounts: accounts by state, and the logins of the last minute',
    query: hostQuery,
    response: hostList,
    handler: ({ query }, { engine }) => adminHosts(engine, query),
  }),
  adminRoute('PUT /admin/hosts/{host}', {
    scope: 'act',
    summary: 'Slow down or stop the logins at a mail server, or free them',
    body: z.object({ pace }),
    response: hostView,
    handler: ({ path, body }, { engine }) => setHostPace(engine, path.host, body.pace),
  }),
]
