/** The state of the whole installation, and what requires action. */
import { z } from 'zod'
import {
  attentionKinds,
  attentionOf,
  type Engine,
  latencies,
  noActor,
  sampleMs,
  type Sample,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, ids, time, view } from '../examples.ts'
import { serviceVersion } from '../openapi.ts'
import { byAccounts, hostView, listHosts, presentHost } from './hosts.ts'
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
        kind: [z.enum(attentionKinds), 'webhook'],
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

const mostHosts = 20

export async function adminOverview(engine: Engine): Promise<Overview> {
  const places = await engine.store.accounts.places({})
  const facts = factsById(engine.accounts)
  const hosts = listHosts(engine, places, facts)
  const known = [...facts.values()]
  const samples = engine.history.samples()
  const ready = await engine.ready()
  const attention = await attentionOf(engine, { ready, hosts, places, known })
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
      .filter(({ unwell }) => unwell > 0)
      .sort((left, right) => right.unwell - left.unwell || byAccounts(left, right))
      .slice(0, mostHosts)
      .map((row) => presentHost(engine, row)),
    webhooks: await webhooksOf(engine),
    now: present(samples.at(-1)),
    latencies: await latencies(engine.metrics),
    history: historyOf(samples),
    attention: attention.map((one) => ({ ...one, since: seconds(one.since) })),
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

export const overviewRoute = adminRoute('GET /admin/overview', {
  summary: 'Overview of the installation, and what requires action',
  response: overviewView,
  handler: (_input, { engine }) => adminOverview(engine),
})
