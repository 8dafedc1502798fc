/**
 * The last steps of an actor, for the operators' console: what came in, and where it led. A step holds the event's
 * name, a failure's class and the state's name; never a message, an address or any other content, so there is no secret
 * to leak.
 */
import type { ActorView } from '../accounts/types.ts'

export const stepLimit = 100

/** What an inspector hears; the part of XState's inspection events that is read here. */
export interface InspectedEvent {
  readonly type: string
  readonly rootId: string
  readonly actorRef: { readonly sessionId: string }
  readonly event?: { readonly type: string }
}

interface Step {
  readonly at: number
  /** How long ago the first of equal steps was. A small number needs no room of its own. */
  readonly sinceMs: number
  readonly event: string
  readonly state: string
  /** Equal steps in a row are one with a count, so that a stream of progress does not push out all else. */
  readonly times: number
}

export type StepRing = ReturnType<typeof createStepRing>

export function createStepRing(limit = stepLimit) {
  const steps: Step[] = []
  return {
    add(at: number, event: string, state: string): void {
      const last = steps.at(-1)
      const repeated = last?.event === event && last.state === state
      if (repeated) steps.pop()
      else if (steps.length >= limit) steps.shift()
      steps.push({
        at,
        sinceMs: repeated ? at - last.at + last.sinceMs : 0,
        event,
        state,
        times: repeated ? last.times + 1 : 1,
      })
    },
    /** Oldest first. */
    list: (): ActorView['steps'] =>
      steps.map(({ at, sinceMs, event, state, times }, index) => {
        const next = steps[index + 1]
        const ms = next ? next.at - next.sinceMs - (at - sinceMs) : null
        return { at, event: times > 1 ? `${event} ×${times}` : event, state, ms }
      }),
  }
}

/** The inspected event when it is a step of the root actor itself, else null: children's steps are not kept. */
export function rootStep(inspected: InspectedEvent): { readonly type: string } | null {
  if (inspected.type !== '@xstate.snapshot' || inspected.actorRef.sessionId !== inspected.rootId) return null
  return inspected.event ?? null
}

/** XState's own names in words: ['xstate.done.actor.connect', 'connect done'] … */
const ownNames: readonly (readonly [RegExp, (name: string) => string])[] = [
  [/^xstate\.init$/, () => 'start'],
  [/^xstate\.done\.actor\.([\w-]+)$/, (name) => `${name} done`],
  [/^xstate\.error\.actor\.([\w-]+)$/, (name) => `${name} failed`],
  [/^xstate\.after\.([\w-]+)\./, (name) => `after ${name}`],
]

/**
 * An event's name for a step, with the class of the failure it brings. Names of an unexpected shape are not repeated.
 */
export function eventName(event: { readonly type: string }): string {
  const failureClass = failureClassOf(event)
  return failureClass === null ? baseName(event.type) : `${baseName(event.type)}: ${failureClass}`
}

function baseName(type: string): string {
  for (const [pattern, words] of ownNames) {
    const match = pattern.exec(type)
    if (match) return words(match[1] ?? '')
  }
  return /^[\w.-]{1,64}$/.test(type) ? type : 'event'
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
