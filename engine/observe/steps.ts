/**
 * The last steps of each actor, for the operators' console. A step holds the event's name, a failure's class and the
 * state's name; never a message, an address or other content, so that no secret can leak.
 */
import { type ActorFacts, eventText, type Taken, takenOf, type TransitionDefinition } from '../../machines/view.ts'

export const stepLimit = 100

/** An actor in a list of all actors. */
export interface PoolFacts extends ActorFacts {
  readonly id: string
  /** Start of the actor's state, or of the actor before its first step. */
  readonly since: number
}

export interface ActorStep {
  readonly at: number
  readonly event: string
  readonly state: string
  /** Time until the next step; null = this is the last step. */
  readonly ms: number | null
}

export interface ActorView extends PoolFacts {
  /** Paths of the active states ('running.life.waiting.backoff'); [] for a dead actor. */
  readonly active: readonly string[]
  /** The last 100 steps, oldest first. */
  readonly steps: readonly ActorStep[]
  /** The last transitions of each region of the chart. */
  readonly last: readonly Taken[]
  readonly timers: readonly (Omit<Taken, 'to'> & { readonly at: number })[]
}

/** The part of XState's inspection events that is read here. */
export interface InspectedEvent {
  readonly type: string
  readonly rootId: string
  readonly actorRef: { readonly sessionId: string }
  readonly event?: { readonly type: string }
  readonly _transitions?: readonly TransitionDefinition[]
}

/** The kept form of each definition. All actors share the few definitions. */
const kept = new WeakMap<TransitionDefinition, readonly Taken[]>()

/** The transitions of a microstep of the root actor; [] for other events. */
export function transitionsIn({ type, rootId, actorRef, _transitions: all = [] }: InspectedEvent): readonly Taken[] {
  if (type !== '@xstate.microstep' || actorRef.sessionId !== rootId) return []
  return all.flatMap((transition) => kept.getOrInsertComputed(transition, () => takenOf([transition])))
}

/** The few names of events and states. A step holds their indexes in this list. */
const names: string[] = []
const places = new Map<string, number>()

function placeOf(name: string): number {
  return places.getOrInsertComputed(name, () => names.push(name) - 1)
}

/** Figures of a step: times of the first and the last of equal steps, their number, event and state. */
const width = 5

export type StepRing = ReturnType<typeof createStepRing>

/** Keeps steps in one array of numbers: objects would take three times the memory. */
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
      // Equal steps in a row become one step with a count, so that progress events do not push out all others.
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

/** The event of a root actor's step; null for other inspection events, such as children's steps. */
export function rootStep(inspected: InspectedEvent): { readonly type: string } | null {
  if (inspected.type !== '@xstate.snapshot' || inspected.actorRef.sessionId !== inspected.rootId) return null
  return inspected.event ?? null
}

/** An event's name for a step, with the class of its failure. A name of an unexpected shape becomes 'event'. */
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
