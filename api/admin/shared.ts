/** Schemas and helpers of all routes of the admin API. Times are Unix timestamps in seconds, durations milliseconds. */
import { z } from 'zod'
import { type ActorView, type Engine, notFound, type PoolFacts } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { answer, time } from '../examples.ts'
import { defineRoute } from '../route.ts'
import { limitOf, offset } from '../values.ts'

/** A route of the admin API. Its `scope` is 'read' when absent. */
export const adminRoute: typeof defineRoute = (at, definition) => ({
  ...defineRoute(at, definition),
  auth: 'operator',
  tag: 'Admin',
})

export const paging = { limit: limitOf(50, 200), offset }

export const count = z.int().min(0)
export const counts = z.record(z.string(), count)
/** A field of each list that has pages. */
export const total = [count, 1, 'that match, on all pages'] as const
export const developerId = [z.string(), '4a1b2c3d4e5f60718293a4b5'] as const

export const nextView = answer({
  what: [z.string(), 'connects again'],
  at: [z.int(), time + 40],
}).nullable()

export function presentNext(facts: Pick<PoolFacts, 'next'> | null | undefined): z.input<typeof nextView> {
  const next = facts?.next ?? null
  return next && { what: next.what, at: seconds(next.at) }
}

export const stepView = answer({
  at: [z.number(), time],
  event: [z.string(), 'connect failed: network'],
  state: [z.string(), 'waiting'],
  ms: [z.int().nullable(), 1200, 'how long it stayed there; null = it still does'],
})
export type StepRow = z.input<typeof stepView>

const from = [z.string(), 'running.life.connecting', 'path of a state'] as const
const event = [z.string(), 'connect failed'] as const

/** Fields of an actor in full: its last transitions in the state chart, and its running timers. */
export const wayFields = {
  last: [
    z.array(answer({ from, event, to: [z.string(), 'running.life.deciding'] })),
    [],
    'the transitions of the last step of each region of the chart',
  ],
  timers: [z.array(answer({ from, event: [z.string(), 'after wait'], at: [z.int(), time] })), []],
} as const

/** `view`: null = this node has no such actor. */
export function presentActor(view: Pick<ActorView, 'tags' | 'steps' | 'last' | 'timers'> | null) {
  const { tags = [], steps = [], last = [], timers = [] } = view ?? {}
  return {
    tags: [...tags],
    steps: steps.map((step) => ({ ...step, at: step.at / 1000 })),
    last: [...last],
    timers: timers.map((timer) => ({ ...timer, at: seconds(timer.at) })),
  }
}

/** Throws `not_found` when the record is null. */
export async function found<T>(kind: string, id: string, record: Promise<T | null>): Promise<T> {
  const known = await record
  if (known === null) throw notFound(kind, id)
  return known
}

/** A field of each list that needs answers of all nodes. */
export const silent = [
  z.array(z.string()),
  [],
  'addresses of the nodes that did not answer: what they know is missing',
] as const

/** The states of the actors of accounts, or of webhooks, on all nodes. `ids`: only of these. */
export async function factsById({ everyNode }: Engine, of: 'accounts' | 'webhooks', ids?: readonly string[]) {
  const { answers, silent } = await everyNode.ask(of, ids)
  const facts = new Map<string, PoolFacts>()
  for (const { answer } of answers) {
    for (const one of answer) {
      const known = facts.get(one.id)
      if (known === undefined || troubleOf(one) > troubleOf(known)) facts.set(one.id, one)
    }
  }
  return { facts, silent }
}

/** Each node has an actor for an application-wide webhook: factsById takes the actor with the highest rank. */
function troubleOf({ tags, state }: PoolFacts): number {
  return ['idle', 'retrying', 'failed', 'dead'].findLastIndex((tag) => tags.includes(tag)) + Number(state !== 'idle')
}

export function countBy<T>(all: Iterable<T>, name: (one: T) => string): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(all, name)].map(([one, those]) => [one, those.length]))
}
