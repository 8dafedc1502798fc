/** Mail servers: states of their accounts, outcomes of logins, and the limit of logins that an operator sets. */
import { z } from 'zod'
import { byAccounts, type Engine, type HostFacts, listHosts, notFound } from '../../engine/index.ts'
import { secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, time, view } from '../examples.ts'
import { filledText, integerOrNone, optional } from '../values.ts'
import { adminRoute, count, countBy, counts, factsById, paging, silent, total } from './shared.ts'

export const hostView = view('AdminHost', {
  host: [z.string(), 'imap.example.com'],
  accounts: [count, 120],
  states: [counts, { watching: 118, waiting: 2 }],
  since: [z.int().nullable(), time, 'since when the first of its accounts is down or disabled; null = none is'],
  logins: [counts, { ok: 4, network: 1 }, 'in the last minute, by outcome'],
  pace: [z.int().nullable(), null, 'logins a minute at most, as set by an operator; 0 = stopped; null = as configured'],
})
export type HostRow = z.input<typeof hostView>

const hostList = answer({ total, hosts: [z.array(hostView), [exampleOf(hostView)]], silent })

export const hostQuery = z.object({ q: optional(filledText, 'part of the name', 'gmail'), ...paging })

/** A page of the hosts, those with most accounts first. */
export async function adminHosts(
  engine: Engine,
  { q = '', limit, offset }: z.output<typeof hostQuery>,
): Promise<z.input<typeof hostList>> {
  const part = q.toLowerCase()
  const places = await engine.store.accounts.places({})
  const { facts, silent } = await factsById(engine, 'accounts')
  const found = listHosts(engine, places, facts).filter(({ host }) => host.includes(part))
  const page = found.sort(byAccounts).slice(offset, offset + limit)
  return { total: found.length, hosts: await presentHosts(engine, page), silent }
}

/** Adds the logins of the last minute, summed over all nodes: each node logs in for its own accounts. */
export async function presentHosts({ everyNode }: Engine, rows: readonly HostFacts[]): Promise<HostRow[]> {
  const names = rows.map(({ host }) => host)
  const { answers } = await everyNode.ask('logins', names)
  return rows.map(({ host, accounts, since, pace, states }, at) => ({
    ...{ host, accounts, pace, since: secondsOrNull(since) },
    states: countBy(states, (state) => state),
    logins: summed(answers.map(({ answer }) => answer[at] ?? {})),
  }))
}

function summed(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const [name, value] of all.flatMap(Object.entries<number>)) sums[name] = (sums[name] ?? 0) + value
  return sums
}

/** `pace`: logins a minute at most; null = as configured. Throws `not_found` for a host without accounts and pace. */
export async function setHostPace(engine: Engine, name: string, pace: number | null): Promise<HostRow> {
  const server = name.toLowerCase()
  const places = await engine.store.accounts.places({ server })
  const { facts } = await factsById(engine, 'accounts')
  const row = listHosts(engine, places, facts).find(({ host }) => host === server)
  if (row === undefined) throw notFound('host', name)
  await engine.settings.pace(server, pace)
  const [presented] = await presentHosts(engine, [{ ...row, pace }])
  return presented as HostRow
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
