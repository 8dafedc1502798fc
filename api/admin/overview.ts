/** The state of the whole installation, and what in it needs a person. */
import type { z } from 'zod'
import { type Engine, type PoolFacts, sampleMs, type Sample } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { serviceVersion } from '../openapi.ts'
import { factsById, recordsOf } from './accounts.ts'
import { listHosts, type HostRow } from './hosts.ts'
import { countBy, noActor, orNull } from './rows.ts'
import type { overviewView } from './views.ts'

export type Overview = z.input<typeof overviewView>
type Attention = Overview['attention'][number]

const mostAttention = 50
const mostHosts = 20
/** Of channels with callbacks that wait, so many are asked how many. */
const mostChannels = 200

/** States of accounts with which all is well. */
const wellStates: ReadonlySet<string> = new Set(['watching', 'syncing', 'connecting', 'queued', 'paused'])

export async function adminOverview(engine: Engine): Promise<Overview> {
  const facts = factsById(engine)
  const places = await engine.store.accounts.places({})
  const hosts = listHosts(engine, places, facts)
  const known = [...facts.values()]
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
    history: historyOf(samples),
    attention: await attentionOf(engine, ready, hosts, known),
  }
}

function unwell({ accounts, states }: HostRow): number {
  const well = Object.entries(states).filter(([state]) => wellStates.has(state))
  return accounts - well.reduce((sum, [, count]) => sum + count, 0)
}

async function webhooksOf({ webhooks, store }: Engine): Promise<Overview['webhooks']> {
  const facts = webhooks.facts()
  const channels = (await store.outbox.channels()).slice(0, mostChannels)
  const backlogs = await Promise.all(channels.map((channel) => store.outbox.backlog(channel)))
  const oldest = Math.min(...backlogs.map(({ oldestAt }) => oldestAt ?? Infinity))
  return {
    total: facts.length,
    states: countBy(facts, ({ state }) => state),
    pending: backlogs.reduce((sum, { pending }) => sum + pending, 0),
    oldest: orNull(oldest === Infinity ? null : oldest),
  }
}

const rounded = (value: number): number => Math.round(value * 10) / 10

function present(sample: Sample | undefined): Overview['now'] {
  return {
    events_per_second: rounded(sample?.eventsPerSecond ?? 0),
    deliveries_per_second: rounded(sample?.deliveriesPerSecond ?? 0),
    delivery_ms: rounded(sample?.deliveryMs ?? 0),
    memory_mib: rounded(sample?.memoryMib ?? process.memoryUsage.rss() / 1_048_576),
    loop_delay_ms: rounded(sample?.loopDelayMs ?? 0),
  }
}

function historyOf(samples: readonly Sample[]): Overview['history'] {
  const rows = samples.map(present)
  return {
    until: seconds(samples.at(-1)?.at ?? Date.now()),
    every: sampleMs / 1000,
    events_per_second: rows.map((row) => row.events_per_second),
    deliveries_per_second: rows.map((row) => row.deliveries_per_second),
    delivery_ms: rows.map((row) => row.delivery_ms),
    memory_mib: rows.map((row) => row.memory_mib),
    loop_delay_ms: rows.map((row) => row.loop_delay_ms),
  }
}

/** Most urgent kind first, within it the longest. */
async function attentionOf(
  engine: Engine,
  ready: boolean,
  hosts: readonly HostRow[],
  accounts: readonly PoolFacts[],
): Promise<Attention[]> {
  const now = seconds(Date.now())
  const service: Attention[] = ready
    ? []
    : [
        {
          kind: 'service',
          id: 'store',
          what: 'the store takes no writes, or the actors are not started yet',
          since: now,
        },
      ]
  const all = [...service, ...troubledHosts(hosts, now), ...(await troubledWebhooks(engine))]
  const room = mostAttention - all.length
  return [...all, ...(await troubledAccounts(engine, accounts, room))].slice(0, mostAttention)
}

/** A host where most accounts are down, or that an operator has stopped. */
function troubledHosts(hosts: readonly HostRow[], now: number): Attention[] {
  return hosts.flatMap((row): Attention[] => {
    const { host, accounts, states, pace } = row
    const waiting = (states['waiting'] ?? 0) + (states['throttled'] ?? 0)
    if (pace === 0)
      return [{ kind: 'host', id: host, what: `logins to ${host} are stopped by an operator`, since: now }]
    if (waiting < 2 || waiting * 2 < accounts) return []
    return [
      { kind: 'host', id: host, what: `${waiting} of ${accounts} accounts at ${host} cannot connect`, since: now },
    ]
  })
}

async function troubledWebhooks({ webhooks, store }: Engine): Promise<Attention[]> {
  const failing = webhooks.facts().filter(({ tags, id }) => tags.includes('failed') && !id.startsWith('u'))
  const items = failing.slice(0, mostAttention).map(async ({ id, tags, since }): Promise<Attention[]> => {
    const webhook = await store.webhooks.get(id)
    if (webhook === null) return []
    const { callbackUrl, health } = webhook
    const what = tags.includes('abandoned') ? 'has failed for so long that only probes are sent' : 'fails'
    const why = health.lastError === null ? '' : `: ${health.lastError}`
    return [{ kind: 'webhook', id, what: `${callbackUrl} ${what}${why}`, since: seconds(health.failingSince ?? since) }]
  })
  return (await Promise.all(items)).flat().toSorted(byAge)
}

async function troubledAccounts(engine: Engine, accounts: readonly PoolFacts[], room: number): Promise<Attention[]> {
  const down = accounts.filter(({ tags, state }) => tags.includes('disabled') || state === 'dead')
  const first = down.toSorted((left, right) => left.since - right.since).slice(0, Math.max(0, room))
  const records = await recordsOf(
    engine,
    first.map(({ id }) => id),
  )
  return first.flatMap(({ id, since, state, lastError }): Attention[] => {
    const account = records.get(id)
    if (account === undefined) return []
    const what = state === 'dead' ? 'its actor ended by a fault of the service' : 'DISABLED'
    const why = account.statusMessage ?? lastError?.message
    const words = `${account.email} at ${account.server}: ${what}${why === undefined ? '' : ` (${why})`}`
    return [{ kind: 'account', id, what: words, since: seconds(since) }]
  })
}

function byAge(left: Attention, right: Attention): number {
  return left.since - right.since
}
