/** The state of the whole installation, and what requires action. */
import { z } from 'zod'
import {
  attentionKinds,
  attentionOf,
  byAccounts,
  type Engine,
  isBareUrl,
  listHosts,
  noActor,
  sampleMs,
  type Sample,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, ids, time, view } from '../examples.ts'
import { serviceVersion } from '../openapi.ts'
import { hostView, presentHosts } from './hosts.ts'
import { adminRoute, count, countBy, counts, factsById, silent } from './shared.ts'

const rates = {
  events_per_second: [z.number(), 1.5],
  deliveries_per_second: [z.number(), 1.5],
  attempt_ms: [z.number(), 20, 'response time of receivers, mean of the last ten seconds'],
  latency_ms: [z.number(), 60, 'from the event to the delivered callback, likewise'],
  memory_mib: [z.number(), 210, 'of all nodes'],
  loop_delay_ms: [z.number(), 3, 'the longest of the last ten seconds'],
} as const

type Rate = keyof typeof rates

/** The field of a sample for each rate, and how samples of several nodes combine. `mean` is weighted by deliveries. */
const sources: Readonly<Record<Rate, readonly [of: keyof Sample, over: 'sum' | 'mean' | 'most']>> = {
  events_per_second: ['eventsPerSecond', 'sum'],
  deliveries_per_second: ['deliveriesPerSecond', 'sum'],
  attempt_ms: ['attemptMs', 'mean'],
  latency_ms: ['latencyMs', 'mean'],
  memory_mib: ['memoryMib', 'sum'],
  loop_delay_ms: ['loopDelayMs', 'most'],
}

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
  started: [z.int(), time, 'of several nodes the first'],
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
    'callbacks by the time from the event to their delivery, since the start of each node',
  ],
  history: [historyView, exampleOf(historyView), 'the last hour, oldest first'],
  attention: [
    z.array(
      answer({
        kind: [z.enum(attentionKinds), 'webhook'],
        id: [z.string(), ids.webhook],
        what: [z.string(), 'https://app.example.com/callback has failed for 5 days: only probes are sent'],
        since: [z.int(), time],
      }),
    ),
    [],
    'what requires action, most urgent first, at most fifty',
  ],
  silent,
})
export type Overview = z.input<typeof overviewView>

export async function adminOverview(engine: Engine): Promise<Overview> {
  // The actors are asked after the store, so a change in between shows in their answers.
  const places = await engine.store.accounts.places({})
  const [{ facts, silent }, { facts: channels }, figures] = await Promise.all([
    factsById(engine, 'accounts'),
    factsById(engine, 'webhooks'),
    engine.everyNode.ask('figures'),
  ])
  const hosts = listHosts(engine, places, facts)
  const known = [...facts.values()]
  const all = figures.answers.map(({ answer }) => answer)
  const history = historyOf(all.map((one) => one.samples))
  const ready = await engine.ready()
  const attention = await attentionOf(engine, { ready, hosts, places, known, channels, silent })
  const unwell = hosts
    .filter((host) => host.unwell > 0)
    .sort((left, right) => right.unwell - left.unwell || byAccounts(left, right))
  const hooks = [...channels.values()].filter(({ id }) => !isBareUrl(id))
  const { pending, oldestAt } = await engine.backlog()
  const oldest = secondsOrNull(oldestAt)
  return {
    version: serviceVersion,
    started: seconds(Math.min(...all.map(({ startedAt }) => startedAt))),
    ready,
    accounts: {
      total: places.length,
      states: countBy(places, ({ id }) => facts.get(id)?.state ?? noActor),
      statuses: {
        OK: known.filter(({ tags }) => tags.includes('ok')).length,
        DISABLED: known.filter(({ tags }) => tags.includes('disabled')).length,
      },
    },
    hosts: await presentHosts(engine, unwell.slice(0, 20)),
    webhooks: { total: hooks.length, states: countBy(hooks, ({ state }) => state), pending, oldest },
    now: ofEachRate((rate) => history[rate].at(-1) ?? (rate === 'memory_mib' ? ownMemory() : 0)),
    latencies: all.reduce<Overview['latencies']>((sum, one) => added(sum, one.latencies), []),
    history,
    attention: attention.map((one) => ({ ...one, since: seconds(one.since) })),
    silent,
  }
}

/** Adds two distributions. All nodes have the same limits in the same order. */
function added(sum: Overview['latencies'], more: Overview['latencies']): Overview['latencies'] {
  return more.map(({ seconds, callbacks }, at) => ({ seconds, callbacks: callbacks + (sum[at]?.callbacks ?? 0) }))
}

/** Combines the samples of all nodes: the newest ones of each node, those before them, and so on. */
function historyOf(ofNodes: readonly (readonly Sample[])[]): Overview['history'] {
  const most = Math.max(...ofNodes.map((samples) => samples.length))
  const together = Array.from({ length: most }, (_, at) => ofNodes.flatMap((samples) => samples.at(at - most) ?? []))
  const newest = together.at(-1)?.map(({ at }) => at) ?? [Date.now()]
  return {
    until: seconds(Math.max(...newest)),
    every: sampleMs / 1000,
    ...ofEachRate((rate) => together.map((samples) => Math.round(10 * combined(samples, ...sources[rate])) / 10)),
  }
}

function combined(samples: readonly Sample[], of: keyof Sample, over: 'sum' | 'mean' | 'most'): number {
  const sum = (value: (sample: Sample) => number): number => samples.reduce((total, one) => total + value(one), 0)
  const deliveries = sum((one) => one.deliveriesPerSecond)
  if (over === 'sum') return sum((one) => one[of])
  if (over === 'mean' && deliveries > 0) return sum((one) => one[of] * one.deliveriesPerSecond) / deliveries
  return Math.max(...samples.map((one) => one[of]))
}

const ownMemory = (): number => Math.round(process.memoryUsage.rss() / 104_857.6) / 10

export const overviewRoute = adminRoute('GET /admin/overview', {
  summary: 'Overview of the installation, and what requires action',
  response: overviewView,
  handler: (_input, { engine }) => adminOverview(engine),
})
