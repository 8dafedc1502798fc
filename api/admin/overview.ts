/** The state of the whole installation, and what requires action. */
import { z } from 'zod'
import {
  type AccountPlace,
  type Engine,
  latencies,
  noActor,
  type PoolFacts,
  sampleMs,
  type Sample,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, ids, time, view } from '../examples.ts'
import { serviceVersion } from '../openapi.ts'
import { withRecords } from './accounts.ts'
import { type HostRow, hostView, listHosts } from './hosts.ts'
import { adminRoute, count, countBy, counts, factsById } from './shared.ts'

const rates = {
  events_per_second: [z.number(), 1.5],
  deliveries_per_second: [z.number(), 1.5],
  attempt_ms: [z.number(), 20, 'response time of receivers, mean of the last ten seconds'],
  latency_ms: [z.number(), 60, 'from the event to the delivered callback, likewise'],
  memory_mib: [z.number(), 210],
  loop_delay_ms: [z.number(), 3, 'the longest of the last ten seconds'],
} as const

type Rate = keyof typeof rates

function ofEachRate<T>(make: (rate: Rate) => T): Record<Rate, T> {
  const names = Object.keys(rates) as Rate[]
  return Object.fromEntries(names.map((rate) => [rate, make(rate)])) as Record<Rate, T>
}

const historyView = answer({
  until: [z.int(), time],
  every: [z.int(), 10, 'seconds between two values'],
  ...ofEachRate(() => [z.array(z.number()), [1.5, 2]] as const),
})

export const overviewView = view('AdminOverview', {
  version: [z.string(), '0.1.0'],
  started: [z.int(), time],
  ready: [z.boolean(), true],
  accounts: answer({
    total: [count, 3],
    states: [counts, { watching: 2, waiting: 1 }],
    statuses: [counts, { OK: 3, DISABLED: 0 }],
  }),
  hosts: [z.array(hostView), [], 'the twenty with most unhealthy accounts'],
  webhooks: answer({
    total: [count, 2],
    states: [counts, { idle: 2 }],
    pending: [count, 0],
    oldest: [z.int().nullable(), null],
  }),
  now: answer(rates),
  latencies: [
    z.array(answer({ seconds: [z.number().nullable(), 0.5, 'at most; null = longer'], callbacks: [count, 120] })),
    [{ seconds: 0.5, callbacks: 120 }],
    'callbacks by the time from the event to their delivery, since the start',
  ],
  history: [historyView, exampleOf(historyView), 'the last hour, oldest first'],
  attention: [
    z.array(
      answer({
        kind: [z.enum(['account', 'host', 'webhook', 'service']), 'webhook'],
        id: [z.string(), ids.webhook],
        what: [z.string(), 'https://app.example.com/callback has failed for 5 days: only probes are sent'],
        since: [z.int(), time],
      }),
    ),
    [],
    'what requires action, most urgent first, at most fifty',
  ],
})
export type Overview = z.input<typeof overviewView>
type Attention = Overview['attention'][number]

const mostAttention = 50
/** Of hosts, and of webhooks: the rest is for others. */
const mostOfKind = 20
const mostHosts = 20
/** Shorter ones are no cause for alarm. */
const longDownMs = 3_600_000
const longPauseMs = 86_400_000
const oldBackupMs = 25 * 3_600_000

export async function adminOverview(engine: Engine): Promise<Overview> {
  const places = await engine.store.accounts.places({})
  const facts = factsById(engine.accounts)
  const hosts = listHosts(engine, places)
  const known = [...facts.values()]
  const failing = countBy(
    places.filter(({ id, condition: { is } }) => is === 'down' && facts.get(id)?.lastError != null),
    ({ server }) => server,
  )
  const unwell = ({ host, states }: HostRow): number =>
    (failing[host] ?? 0) + (states['disabled'] ?? 0) + (states['dead'] ?? 0)
  const samples = engine.history.samples()
  const ready = await engine.ready()
  return {
    version: serviceVersion,
    started: seconds(performance.timeOrigin),
    ready,
    accounts: {
      total: places.length,
      states: countBy(places, ({ id }) => facts.get(id)?.state ?? noActor),
      statuses: {
        OK: known.filter(({ tags }) => tags.includes('ok')).length,
        DISABLED: known.filter(({ tags }) => tags.includes('disabled')).length,
      },
    },
    hosts: hosts
      .filter((row) => unwell(row) > 0)
      .toSorted((left, right) => unwell(right) - unwell(left))
      .slice(0, mostHosts),
    webhooks: await webhooksOf(engine),
    now: present(samples.at(-1)),
    latencies: await latencies(engine.metrics),
    history: historyOf(samples),
    attention: await attentionOf(engine, { ready, hosts, failing, places, known }),
  }
}

async function webhooksOf({ webhooks, backlog }: Engine): Promise<Overview['webhooks']> {
  const facts = webhooks.facts().filter(({ id }) => !id.startsWith('u'))
  const { pending, oldestAt } = await backlog()
  return { total: facts.length, states: countBy(facts, ({ state }) => state), pending, oldest: secondsOrNull(oldestAt) }
}

const rounded = (value: number): number => Math.round(value * 10) / 10

function present(sample: Sample | undefined): Overview['now'] {
  return {
    events_per_second: rounded(sample?.eventsPerSecond ?? 0),
    deliveries_per_second: rounded(sample?.deliveriesPerSecond ?? 0),
    attempt_ms: rounded(sample?.attemptMs ?? 0),
    latency_ms: rounded(sample?.latencyMs ?? 0),
    memory_mib: rounded(sample?.memoryMib ?? process.memoryUsage.rss() / 1_048_576),
    loop_delay_ms: rounded(sample?.loopDelayMs ?? 0),
  }
}

function historyOf(samples: readonly Sample[]): Overview['history'] {
  const rows = samples.map(present)
  return {
    until: seconds(samples.at(-1)?.at ?? Date.now()),
    every: sampleMs / 1000,
    ...ofEachRate((rate) => rows.map((row) => row[rate])),
  }
}

interface Seen {
  readonly ready: boolean
  readonly hosts: readonly HostRow[]
  /** By host: accounts that are down after a failure, whatever their actors try at this moment. */
  readonly failing: Readonly<Record<string, number>>
  readonly places: readonly AccountPlace[]
  readonly known: readonly PoolFacts[]
}

/** Most urgent kind first, within it the longest. */
async function attentionOf(engine: Engine, { ready, hosts, failing, places, known }: Seen): Promise<Attention[]> {
  const service = ready
    ? []
    : [troubledService('the store takes no writes, or the actors are not started yet', Date.now())]
  const troubled = troubledHosts(hosts, failing).toSorted(byAge)
  const ofKinds = [...troubled.slice(0, mostOfKind), ...troubledWebhooks(engine).slice(0, mostOfKind)]
  const all = [...service, ...(await troubledBackup(engine)), ...ofKinds]
  const named = new Set(troubled.map(({ id }) => id))
  const accounts = await troubledAccounts(engine, { places, known, named }, mostAttention - all.length)
  return [...all, ...accounts].slice(0, mostAttention)
}

function troubledService(what: string, at: number): Attention {
  return { kind: 'service', id: 'store', what, since: seconds(at) }
}

/** Backups are in use when there is one. A copy from SQLite to MongoDB, which has none, brings the time of the last. */
async function troubledBackup({ backups, store }: Engine): Promise<Attention[]> {
  const at = store.backup === undefined ? null : await backups.lastAt()
  const isOld = at !== null && at < Date.now() - oldBackupMs
  return isOld ? [troubledService('the newest backup is more than 25 hours old', at)] : []
}

/** A host where most accounts are down, or that an operator has stopped. */
function troubledHosts(hosts: readonly HostRow[], failing: Seen['failing']): Attention[] {
  return hosts.flatMap(({ host, accounts, pace, since }): Attention[] => {
    const down = failing[host] ?? 0
    const item = { kind: 'host', id: host, since: since ?? seconds(Date.now()) } as const
    if (pace === 0) return [{ ...item, what: `logins to ${host} are stopped by an operator` }]
    if (down < 2 || down * 2 < accounts) return []
    return [{ ...item, what: `${down} of ${accounts} accounts at ${host} cannot connect` }]
  })
}

function troubledWebhooks({ webhooks }: Engine): Attention[] {
  const known = factsById(webhooks)
  const failing = webhooks.all().flatMap(({ id, callbackUrl, active, health }): Attention[] => {
    const facts = known.get(id)
    // One that is switched off keeps its health, and gets no callbacks.
    if (!active || facts?.tags.includes('failed') !== true) return []
    const what = facts.tags.includes('abandoned') ? 'has failed for so long that only probes are sent' : 'fails'
    const why = health.lastError === null ? '' : `: ${health.lastError}`
    return [
      { kind: 'webhook', id, what: `${callbackUrl} ${what}${why}`, since: seconds(health.failingSince ?? facts.since) },
    ]
  })
  return failing.toSorted(byAge)
}

/** `named`: hosts that are named already. */
async function troubledAccounts(
  engine: Engine,
  { places, known, named }: Pick<Seen, 'places' | 'known'> & { readonly named: ReadonlySet<string> },
  room: number,
): Promise<Attention[]> {
  const dead = new Set(known.flatMap(({ id, state }) => (state === 'dead' ? [id] : [])))
  const now = Date.now()
  const first = places
    .filter(({ id, server, condition: { is, since } }) => {
      if (dead.has(id) || is === 'disabled') return true
      return is === 'down'
        ? since < now - longDownMs && !named.has(server)
        : is === 'paused' && since < now - longPauseMs
    })
    .slice(0, Math.max(0, room))
  return withRecords(engine, first, (account, { id, condition: { is, since } }): Attention => {
    const why = is === 'paused' ? undefined : (account.statusMessage ?? account.resume.lastError?.message)
    const what = dead.has(id) ? 'its actor ended by a fault of the service' : conditionWords[is]
    const words = `${account.email} at ${account.server}: ${what}${why === undefined ? '' : ` (${why})`}`
    return { kind: 'account', id, what: words, since: seconds(since) }
  })
}

const conditionWords = { up: 'up', down: 'down', disabled: 'DISABLED', paused: 'paused' } as const

function byAge(left: Attention, right: Attention): number {
  return left.since - right.since
}

export const overviewRoute = adminRoute('GET /admin/overview', {
  summary: 'Overview of the installation, and what requires action',
  response: overviewView,
  handler: (_input, { engine }) => adminOverview(engine),
})
