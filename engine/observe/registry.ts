/**
 * The supervisor pool: id → root actor. Each actor is a root of its own, so a pool of thousands costs no more than its
 * members, and one that dies takes no other with it. A death is a bug: it is logged, counted, and the actor is started
 * again from its record, alone, after a back-off that doubles while it keeps dying.
 */
import type { ActorFacts } from '../../machines/view.ts'
import type { ActorView } from '../accounts/types.ts'
import { createStepRing, eventName, rootStep, toView, type InspectedEvent, type StepRing } from './inspect.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'

/** What the pool asks of an actor; XState's root actors have it. */
export interface PoolActor<TEvent, TSnapshot> {
  start(): unknown
  stop(): unknown
  send(event: TEvent): void
  getSnapshot(): TSnapshot
  subscribe(observer: { error?: (error: unknown) => void; complete?: () => void }): unknown
}

export interface RegistryClock {
  now(): number
  /** Runs `run` after `ms`; answers the way to cancel it. */
  after(ms: number, run: () => void): () => void
}

export const systemClock: RegistryClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export interface RegistryOptions<TInput, TEvent, TSnapshot> {
  /** Label of the log lines and of metrics.actorDeaths: 'account', 'webhook'. */
  readonly kind: string
  /** Makes the root actor, not started: createActor(machine, { input, inspect, systemId: 'root' }). */
  readonly create: (
    input: TInput,
    inspect: (inspected: InspectedEvent) => void,
    id: string,
  ) => PoolActor<TEvent, TSnapshot>
  /** Fresh input from the records, for the restart after a death; null = it is gone. */
  readonly load: (id: string) => Promise<TInput | null>
  readonly describe: (snapshot: TSnapshot) => ActorFacts
  /** Asks the actor to finish its work and end. */
  readonly stopEvent: TEvent
  /** After this it is ended without being asked. */
  readonly stopTimeoutMs: number
  readonly restartFirstMs: number
  readonly restartMaxMs: number
  readonly log: Pick<Logger, 'error' | 'warn'>
  readonly metrics: Pick<Metrics, 'actorDeaths'>
  readonly clock?: RegistryClock
}

export interface ActorRegistry<TInput, TEvent, TSnapshot> {
  /** Starts the actor; one of the same id is ended first, at once and unasked. */
  start(id: string, input: TInput): void
  /** Resolves when it has ended: by itself, or by force after stopTimeoutMs. It is out of the registry at once. */
  stop(id: string): Promise<void>
  /** false when there is no live actor of this id. */
  send(id: string, event: TEvent): boolean
  /** null when there is none, or it is dead and waits for its restart. */
  snapshot(id: string): TSnapshot | null
  /** The actor itself, to wait for its steps; null as above. */
  actor(id: string): PoolActor<TEvent, TSnapshot> | null
  /** Live or waiting for a restart. */
  has(id: string): boolean
  readonly size: number
  view(id: string): ActorView | null
  views(): ActorView[]
  /** How many actors have each tag; the dead ones count as 'dead'. */
  countTags(): ReadonlyMap<string, number>
  stopAll(): Promise<void>
}

interface Death {
  readonly at: number
  readonly restartAt: number
}

interface Entry<TEvent, TSnapshot> {
  readonly id: string
  readonly ring: StepRing
  actor: PoolActor<TEvent, TSnapshot> | null
  startedAt: number
  /** Deaths in close succession. */
  deaths: number
  death: Death | null
  cancelRestart: () => void
}

interface Pool<TInput, TEvent, TSnapshot> extends RegistryOptions<TInput, TEvent, TSnapshot> {
  readonly clock: RegistryClock
  readonly entries: Map<string, Entry<TEvent, TSnapshot>>
}

export function createRegistry<TInput, TEvent, TSnapshot>(
  options: RegistryOptions<TInput, TEvent, TSnapshot>,
): ActorRegistry<TInput, TEvent, TSnapshot> {
  const entries = new Map<string, Entry<TEvent, TSnapshot>>()
  const pool: Pool<TInput, TEvent, TSnapshot> = { ...options, clock: options.clock ?? systemClock, entries }
  return {
    start: (id, input) => startFresh(pool, id, input),
    stop: (id) => stopOne(pool, id),
    send: (id, event) => {
      const actor = entries.get(id)?.actor
      actor?.send(event)
      return actor !== null && actor !== undefined
    },
    snapshot: (id) => entries.get(id)?.actor?.getSnapshot() ?? null,
    actor: (id) => entries.get(id)?.actor ?? null,
    has: (id) => entries.has(id),
    get size() {
      return entries.size
    },
    view: (id) => {
      const entry = entries.get(id)
      return entry ? viewOf(pool, entry) : null
    },
    views: () => Array.from(entries.values(), (entry) => viewOf(pool, entry)),
    countTags: () => countTags(pool),
    stopAll: async () => {
      await Promise.all(Array.from(entries.keys(), (id) => stopOne(pool, id)))
    },
  }
}

function startFresh<I, E, S>(pool: Pool<I, E, S>, id: string, input: I): void {
  const old = pool.entries.get(id)
  if (old) discard(pool, old)
  const entry: Entry<E, S> = {
    id,
    ring: old?.ring ?? createStepRing(),
    actor: null,
    startedAt: 0,
    deaths: 0,
    death: null,
    cancelRestart: () => undefined,
  }
  pool.entries.set(id, entry)
  launch(pool, entry, input)
}

/** Takes an entry out and ends what it runs; its late news find another entry, or none, and are dropped. */
function discard<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>): void {
  pool.entries.delete(entry.id)
  entry.cancelRestart()
  const { actor } = entry
  entry.actor = null
  actor?.stop()
}

function launch<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>, input: I): void {
  try {
    // Inspection begins inside createActor, before there is an actor to look at.
    let made: PoolActor<E, S> | null = null
    const inspect = (inspected: InspectedEvent) => {
      if (made !== null) addStep(pool, entry, made, inspected)
    }
    const actor = pool.create(input, inspect, entry.id)
    made = actor
    entry.actor = actor
    entry.startedAt = pool.clock.now()
    entry.death = null
    actor.subscribe({
      error: (error) => {
        if (entry.actor === actor) died(pool, entry, error)
        else diedStopping(pool, entry, error)
      },
      complete: () => {
        if (entry.actor === actor) discard(pool, entry)
      },
    })
    actor.start()
  } catch (error) {
    died(pool, entry, error)
  }
}

function addStep<I, E, S>(
  pool: Pool<I, E, S>,
  entry: Entry<E, S>,
  actor: PoolActor<E, S>,
  inspected: InspectedEvent,
): void {
  const event = rootStep(inspected)
  if (event) entry.ring.add(pool.clock.now(), eventName(event), pool.describe(actor.getSnapshot()).state)
}

function died<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>, error: unknown): void {
  const at = pool.clock.now()
  // Living for twice the longest back-off ends the series.
  const inSeries = entry.deaths > 0 && at - entry.startedAt < pool.restartMaxMs * 2
  entry.deaths = inSeries ? entry.deaths + 1 : 1
  entry.actor = null
  entry.ring.add(at, 'died', 'dead')
  pool.metrics.actorDeaths.inc({ kind: pool.kind })
  const afterMs = scheduleRestart(pool, entry)
  pool.log.error({ err: error, kind: pool.kind, id: entry.id, deaths: entry.deaths, restartMs: afterMs }, 'actor died')
}

/** It was on its way out already: a bug all the same, but nothing to start again. */
function diedStopping<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>, error: unknown): void {
  pool.metrics.actorDeaths.inc({ kind: pool.kind })
  pool.log.error({ err: error, kind: pool.kind, id: entry.id }, 'actor died while it was being stopped')
}

function scheduleRestart<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>): number {
  const at = pool.clock.now()
  const afterMs = Math.min(pool.restartMaxMs, pool.restartFirstMs * 2 ** (entry.deaths - 1))
  entry.death = { at, restartAt: at + afterMs }
  entry.cancelRestart = pool.clock.after(afterMs, () => {
    void restart(pool, entry)
  })
  return afterMs
}

/** Never rejects: a record that cannot be read now is read again later. */
async function restart<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>): Promise<void> {
  const current = () => pool.entries.get(entry.id) === entry && entry.actor === null
  try {
    const input = await pool.load(entry.id)
    if (!current()) return
    if (input === null) discard(pool, entry)
    else launch(pool, entry, input)
  } catch (error) {
    if (!current()) return
    const afterMs = scheduleRestart(pool, entry)
    pool.log.warn({ err: error, kind: pool.kind, id: entry.id, restartMs: afterMs }, 'dead actor not restarted yet')
  }
}

async function stopOne<I, E, S>(pool: Pool<I, E, S>, id: string): Promise<void> {
  const entry = pool.entries.get(id)
  if (!entry) return
  const { actor } = entry
  pool.entries.delete(id)
  entry.cancelRestart()
  entry.actor = null
  if (!actor) return
  await new Promise<void>((resolve) => {
    const cancel = pool.clock.after(pool.stopTimeoutMs, resolve)
    const ended = () => {
      cancel()
      resolve()
    }
    actor.subscribe({ error: ended, complete: ended })
    actor.send(pool.stopEvent)
  })
  actor.stop()
}

function viewOf<I, E, S>(pool: Pool<I, E, S>, entry: Entry<E, S>): ActorView {
  const facts = entry.actor ? pool.describe(entry.actor.getSnapshot()) : deadFacts(entry)
  return toView(entry.id, facts, entry.ring)
}

/** What the bug was is for the log alone. */
function deadFacts<E, S>({ death, deaths }: Entry<E, S>): ActorFacts {
  return {
    tags: ['dead'],
    state: 'dead',
    next: death ? { what: 'starts again', at: death.restartAt } : null,
    lastError: death ? { class: 'internal', message: 'internal error', at: death.at } : null,
    attempt: deaths,
  }
}

function countTags<I, E, S>(pool: Pool<I, E, S>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { actor } of pool.entries.values()) {
    const tags = actor ? pool.describe(actor.getSnapshot()).tags : ['dead']
    for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1)
  }
  return counts
}
