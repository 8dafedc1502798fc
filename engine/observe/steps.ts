/**
 * The last steps of each actor, for the operators' console: what came in, and where it led. A step holds the event's
 * name, a failure's class and the state's name; never a message, an address or any other content, so there is no secret
 * to leak.
 */
import { type ActorFacts, eventText, type Taken, takenOf, type TransitionDefinition } from '../../machines/view.ts'

export const stepLimit = 100

/** What a list of all actors says of each. */
export interface PoolFacts extends ActorFacts {
  readonly id: string
  /** In this state since then; of one that has just been started, since its start. */
  readonly since: number
}

export interface ActorStep {
  readonly at: number
  readonly event: string
  readonly state: string
  /** Until the next step; null = it is the last one. */
  readonly ms: number | null
}

export interface ActorView extends PoolFacts {
  /** The states of its chart that are active, as paths ('running.life.waiting.backoff'); none while it is dead. */
  readonly active: readonly string[]
  /** The last 100 steps, oldest first, without secrets. */
  readonly steps: readonly ActorStep[]
  /** The last transitions of each region of its chart. */
  readonly last: readonly Taken[]
  readonly timers: readonly (Omit<Taken, 'to'> & { readonly at: number })[]
}

/** What an inspector hears; the part of XState's inspection events that is read here. */
export interface InspectedEvent {
  readonly type: string
  readonly rootId: string
  readonly actorRef: { readonly sessionId: string }
  readonly event?: { readonly type: string }
  readonly _transitions?: readonly TransitionDefinition[]
}

/** Of each definition what is kept: there are few, and every actor shares them. */
const kept = new WeakMap<TransitionDefinition, readonly Taken[]>()

/** Of a microstep of the root actor itself. */
export function transitionsIn({ type, rootId, actorRef, _transitions: all = [] }: InspectedEvent): readonly Taken[] {
  if (type !== '@xstate.microstep' || actorRef.sessionId !== rootId) return []
  return all.flatMap((transition) => kept.getOrInsertComputed(transition, () => takenOf([transition])))
}

/** Names of events and states: there are few. A step holds their places in this list. */
const names: string[] = []
const places = new Map<string, number>()

function placeOf(name: string): number {
  return places.getOrInsertComputed(name, () => names.push(name) - 1)
}

/** Figures of a step: when the first and the last of equal steps were, how many, event and state. */
const width = 5

export type StepRing = ReturnType<typeof createStepRing>

/** In one array of numbers: as objects the steps take three times the room. */
export function createStepRing(limit = stepLimit) {
  const figures = new Float64Array(limit * width)
  let count = 0
  const step = (index: number): [number, number, number, number, number] => {
    const [first = 0, last = 0, times = 0, event = 0, state = 0] = figures.subarray(index * width, (index + 1) * width)
    return [first, last, times, event, state]
  }
  return {
    add(at: number, event: string, state: string): void {
      const [eventPlace, statePlace] = [placeOf(event), placeOf(state)]
      const [first, , times, lastEvent, lastState] = step(count - 1)
      // Equal steps in a row are one with a count, so that a stream of progress does not push out all else.
      if (times > 0 && lastEvent === eventPlace && lastState === statePlace) {
        figures.set([first, at, times + 1], (count - 1) * width)
        return
      }
      if (count === limit) figures.copyWithin(0, width)
      else count += 1
      figures.set([at, at, 1, eventPlace, statePlace], (count - 1) * width)
    },
    /** Oldest first. */
    list: (): ActorView['steps'] =>
      Array.from({ length: count }, (_, index) => {
        const [first, at, times, event, state] = step(index)
        const name = names[event] ?? ''
        const ms = index + 1 < count ? step(index + 1)[0] - first : null
        return { at, event: times > 1 ? `${name} ×${times}` : name, state: names[state] ?? '', ms }
      }),
  }
}

/** The inspected event when it is a step of the root actor itself, else null: children's steps are not kept. */
export function rootStep(inspected: InspectedEvent): { readonly type: string } | null {
  if (inspected.type !== '@xstate.snapshot' || inspected.actorRef.sessionId !== inspected.rootId) return null
  return inspected.event ?? null
}

/**
 * An event's name for a step, with the class of the failure it brings. Names of an unexpected shape are not repeated.
 */
export function eventName(event: { readonly type: string }): string {
  const name = /^[\w.-]{1,100}$/.test(event.type) ? eventText(event.type) : 'event'
  const failureClass = failureClassOf(event)
  return failureClass === null ? name : `${name}: ${failureClass}`
}

function failureClassOf(event: object): string | null {
  const failure = field(event, 'failure') ?? field(field(event, 'error'), 'failure')
  const failureClass = field(failure, 'class') ?? field(failure, 'permanent')
  return typeof failureClass === 'string' && /^[a-z_]{1,32}$/.test(failureClass) ? failureClass : null
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}
