/**
 * The supervisor pool: id → root actor. Each actor is a root, so that the pool costs no more than its actors, and a
 * death ends no other actor. A death is a bug: it is logged and counted, and the actor alone is started again from its
 * record, after a back-off that doubles while it keeps dying.
 */
import { type ActorFacts, type Taken, timerOf } from '../../machines/view.ts'
import type { Logger } from './log.ts'
import { workAs } from './loop.ts'
import type { Metrics } from './metrics.ts'
import { createStepRing, eventName, type InspectedEvent, rootStep, type StepRing, transitionsIn } from './steps.ts'
import type { ActorStep, ActorView, PoolFacts } from './steps.ts'

/** The part of XState's root actor that the pool uses. */
export interface PoolActor<TEvent, TSnapshot> {
  start(): unknown
  stop(): unknown
  send(event: TEvent | { readonly type: 'STOP' }): void
  getSnapshot(): TSnapshot
  subscribe(observer: { error?: (error: unknown) => void; complete?: () => void }): unknown
  readonly system?: { getSnapshot(): { readonly _scheduledEvents: Readonly<Record<string, ScheduledEvent>> } }
}

/** The part of an event in XState's scheduler that is read here. */
interface ScheduledEvent {
  readonly startedAt: number
  readonly delay: number
  readonly event: { readonly type: string }
}

/** The clock of the process; tests have their own. */
export const systemClock = {
  now: () => Date.now(),
  /** Calls `run` after `ms`. Returns the function that cancels it. */
  after(ms: number, run: () => void): () => void {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** Wait of an actor for its restart after its first death. */
const restartFirstMs = 1000

interface RegistryOptions<TInput, TEvent, TSnapshot> {
  /** Label of the log lines and of metrics.actorDeaths. */
  readonly kind: 'account' | 'webhook'
  /** Makes the root actor without starting it. */
  readonly create: (
    input: TInput,
    inspect: (inspected: InspectedEvent) => void,
    id: string,
  ) => PoolActor<TEvent, TSnapshot>
  /** Fresh input from the records, for the restart after a death; null = the record is gone. */
  readonly load: (id: string) => Promise<TInput | null>
  readonly describe: (snapshot: TSnapshot) => ActorFacts
  /** The paths of the active states. */
  readonly active: (snapshot: TSnapshot) => readonly string[]
  /** Called after each step. */
  readonly stepped?: (id: string, step: ActorStep) => void
  readonly stopTimeoutMs: number
  readonly restartMaxMs: number
  readonly log: Pick<Logger, 'error' | 'warn'>
  readonly metrics: Pick<Metrics, 'actorDeaths'>
  readonly clock?: typeof systemClock
}

interface Entry<TEvent, TSnapshot> {
  readonly id: string
  readonly ring: StepRing
  /** Region of the chart → the transitions of its last step. */
  readonly last: Map<string, readonly Taken[]>
  /** null = the actor is dead and waits for its restart. */
  actor: PoolActor<TEvent, TSnapshot> | null
  startedAt: number
  /** Name of the actor's state, and its start. */
  state: string
  since: number
  /** Deaths in close succession. */
  deaths: number
  death: { readonly at: number; readonly restartAt: number } | null
  cancelRestart: () => void
}

export class ActorRegistry<TInput, TEvent, TSnapshot> {
  readonly #options: RegistryOptions<TInput, TEvent, TSnapshot>
  readonly #clock: typeof systemClock
  readonly #entries = new Map<string, Entry<TEvent, TSnapshot>>()

  constructor(options: RegistryOptions<TInput, TEvent, TSnapshot>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    // Prometheus sees an increase only in a series that exists already.
    options.metrics.actorDeaths.inc({ kind: options.kind }, 0)
  }

  /** Starts the actor. An actor of the same id is stopped at once, without a STOP event. */
  start(id: string, input: TInput): void {
    const old = this.#entries.get(id)
    if (old) this.#takeOut(old)?.stop()
    const entry: Entry<TEvent, TSnapshot> = {
      id,
      ring: old?.ring ?? createStepRing(),
      last: new Map(),
      actor: null,
      startedAt: 0,
      state: '',
      since: 0,
      deaths: 0,
      death: null,
      cancelRestart: () => undefined,
    }
    this.#entries.set(id, entry)
    this.#asOwn(id, () => this.#launch(entry, input))
  }

  /** Removes the actor at once. Resolves when it has ended: by itself, or by force after stopTimeoutMs. */
  async stop(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    const actor = entry && this.#takeOut(entry)
    if (!actor) return
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(this.#options.stopTimeoutMs, resolve)
      const ended = () => {
        cancel()
        resolve()
      }
      actor.subscribe({ error: ended, complete: ended })
      actor.send({ type: 'STOP' })
    })
    actor.stop()
  }

  async stopAll(): Promise<void> {
    await Promise.all(Array.from(this.#entries.keys(), (id) => this.stop(id)))
  }

  /** false = no actor of this id is alive. */
  send(id: string, event: TEvent): boolean {
    const actor = this.actor(id)
    this.#asOwn(id, () => actor?.send(event))
    return actor !== null
  }

  /** Runs work as the actor's own, for log lines and for reports of a held event loop. */
  #asOwn(id: string, work: () => void): void {
    workAs({ kind: this.#options.kind, id }, work)
  }

  /** The actor itself, to wait for its steps; null = there is none, or it is dead and waits for its restart. */
  actor(id: string): PoolActor<TEvent, TSnapshot> | null {
    return this.#entries.get(id)?.actor ?? null
  }

  /** null as for `actor`. */
  snapshot(id: string): TSnapshot | null {
    return this.actor(id)?.getSnapshot() ?? null
  }

  view(id: string): ActorView | null {
    const entry = this.#entries.get(id)
    if (!entry) return null
    const { actor, ring, last } = entry
    const active = actor ? this.#options.active(actor.getSnapshot()) : []
    const ways = { last: [...last.values()].flat(), timers: actor ? timersOf(actor) : [] }
    return { ...this.#poolFactsOf(entry), active, steps: ring.list(), ...ways }
  }

  /** The facts of all actors, or of these ids, without steps: cheap for ten thousand actors. */
  facts(ids?: readonly string[]): PoolFacts[] {
    const entries = ids?.flatMap((id) => this.#entries.get(id) ?? []) ?? this.#entries.values()
    return Array.from(entries, (entry) => this.#poolFactsOf(entry))
  }

  /** Tag → number of actors. Dead actors have the tag 'dead'. */
  countTags(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    const tags = this.#entries.values().flatMap((entry) => this.#factsOf(entry).tags)
    for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1)
    return counts
  }

  #poolFactsOf(entry: Entry<TEvent, TSnapshot>): PoolFacts {
    return { id: entry.id, since: entry.since, ...this.#factsOf(entry) }
  }

  #step(entry: Entry<TEvent, TSnapshot>, event: string, state: string): void {
    const at = this.#clock.now()
    if (state !== entry.state) Object.assign(entry, { state, since: at })
    entry.ring.add(at, event, state)
    this.#options.stepped?.(entry.id, { at, event, state, ms: null })
  }

  /** A dead actor's error text is in the log alone. */
  #factsOf({ actor, death, deaths }: Entry<TEvent, TSnapshot>): ActorFacts {
    if (actor) return this.#options.describe(actor.getSnapshot())
    return {
      tags: ['dead'],
      state: 'dead',
      next: death ? { what: 'starts again', at: death.restartAt } : null,
      lastError: death ? { class: 'internal', message: 'internal error', at: death.at } : null,
      attempt: deaths,
    }
  }

  /** Returns the removed entry's actor, to be stopped. Its late events find another entry, or none, and are dropped. */
  #takeOut(entry: Entry<TEvent, TSnapshot>): PoolActor<TEvent, TSnapshot> | null {
    this.#entries.delete(entry.id)
    entry.cancelRestart()
    const { actor } = entry
    entry.actor = null
    return actor
  }

  #launch(entry: Entry<TEvent, TSnapshot>, input: TInput): void {
    try {
      // Inspection begins inside createActor, before the actor is returned.
      let made: PoolActor<TEvent, TSnapshot> | null = null
      let taken: readonly Taken[] = []
      const inspect = (inspected: InspectedEvent) => {
        taken = [...taken, ...transitionsIn(inspected)]
        const event = made === null ? null : rootStep(inspected)
        if (made === null || event === null) return
        // A region is named by the first two parts of a state's path, such as 'running.life'.
        const byRegion = Map.groupBy(taken, ({ from }) => from.split('.').slice(0, 2).join('.'))
        for (const [region, own] of byRegion) entry.last.set(region, own)
        taken = []
        this.#step(entry, eventName(event), this.#options.describe(made.getSnapshot()).state)
      }
      const actor = this.#options.create(input, inspect, entry.id)
      made = actor
      Object.assign(entry, { actor, startedAt: this.#clock.now(), death: null })
      actor.subscribe({
        error: (error) => this.#died(entry, error, entry.actor !== actor),
        complete: () => {
          if (entry.actor === actor) this.#takeOut(entry)?.stop()
        },
      })
      actor.start()
    } catch (error) {
      this.#died(entry, error)
    }
  }

  #died(entry: Entry<TEvent, TSnapshot>, error: unknown, wasStopping = false): void {
    const { kind, restartMaxMs, log, metrics } = this.#options
    const { id } = entry
    metrics.actorDeaths.inc({ kind })
    if (wasStopping) {
      log.error({ err: error, kind, id }, 'actor died while it was being stopped')
      return
    }
    const at = this.#clock.now()
    // A life of twice the longest back-off ends a series of deaths.
    const inSeries = entry.deaths > 0 && at - entry.startedAt < restartMaxMs * 2
    entry.deaths = inSeries ? entry.deaths + 1 : 1
    entry.actor = null
    this.#step(entry, 'died', 'dead')
    const restartMs = this.#scheduleRestart(entry)
    log.error({ err: error, kind, id, deaths: entry.deaths, restartMs }, 'actor died')
  }

  #scheduleRestart(entry: Entry<TEvent, TSnapshot>): number {
    const at = this.#clock.now()
    const afterMs = Math.min(this.#options.restartMaxMs, restartFirstMs * 2 ** (entry.deaths - 1))
    entry.death = { at, restartAt: at + afterMs }
    entry.cancelRestart = this.#clock.after(afterMs, () => void this.#restart(entry))
    return afterMs
  }

  /** Never rejects: after a failed read of the record, the restart is scheduled again. */
  async #restart(entry: Entry<TEvent, TSnapshot>): Promise<void> {
    const { id } = entry
    const current = () => this.#entries.get(id) === entry && entry.actor === null
    try {
      const input = await this.#options.load(id)
      if (!current()) return
      if (input === null) this.#takeOut(entry)
      else this.#launch(entry, input)
    } catch (error) {
      if (!current()) return
      const restartMs = this.#scheduleRestart(entry)
      const { kind, log } = this.#options
      log.warn({ err: error, kind, id, restartMs }, 'dead actor not restarted yet')
    }
  }
}

function timersOf<TEvent, TSnapshot>({ system }: PoolActor<TEvent, TSnapshot>): ActorView['timers'] {
  return Object.values(system?.getSnapshot()._scheduledEvents ?? {}).flatMap(({ event, startedAt, delay }) => {
    const timer = timerOf(event.type)
    return timer === null ? [] : [{ ...timer, at: startedAt + delay }]
  })
}
