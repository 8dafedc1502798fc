/** Charts on a simulated clock, with every invoked actor in the test's hands. */
import { setImmediate } from 'node:timers/promises'
import { SimulatedClock, fromCallback, fromPromise, type AnyStateMachine, type InspectionEvent } from 'xstate'

/** The simulated clock starts at 0; this is when that was. */
export const startOfTime = 1_700_000_000_000

/** One run of a promise actor. */
export interface Call<TOutput, TInput> {
  readonly input: TInput
  readonly at: number
  readonly signal: AbortSignal
  readonly resolve: (output: TOutput) => void
  readonly reject: (error: unknown) => void
}

/** A promise actor that does what the test says; `calls` has every run, oldest first. */
export function deferred<TOutput, TInput>(now: () => number, answer?: (input: TInput) => TOutput | undefined) {
  const calls: Call<TOutput, TInput>[] = []
  const logic = fromPromise<TOutput, TInput>(({ input, signal }) => {
    const { promise, resolve, reject } = Promise.withResolvers<TOutput>()
    calls.push({ input, at: now(), signal, resolve, reject })
    const given = answer?.(input)
    if (given !== undefined) resolve(given)
    return promise
  })
  return { logic, calls, last: () => last(calls) }
}

/** One run of a callback actor. */
export interface Run<TSent, TInput> {
  readonly input: TInput
  readonly received: string[]
  stopped: boolean
  readonly sendBack: (event: TSent) => void
}

export function controlled<TSent extends { type: string }, TReceived extends { type: string }, TInput>() {
  const runs: Run<TSent, TInput>[] = []
  const logic = fromCallback<TReceived, TInput>(({ input, sendBack, receive }) => {
    const run: Run<TSent, TInput> = { input, received: [], stopped: false, sendBack }
    receive((event) => run.received.push(event.type))
    runs.push(run)
    return () => {
      run.stopped = true
    }
  })
  return { logic, runs, last: () => last(runs) }
}

function last<T>(list: readonly T[]): T {
  const item = list.at(-1)
  if (item === undefined) throw new Error('nothing there yet')
  return item
}

export function simulatedTime() {
  const clock = new SimulatedClock()
  return {
    clock,
    now: () => startOfTime + clock.now(),
    /** Lets promises settle, moves the clock (never back), lets promises settle. */
    pass: async (ms: number): Promise<void> => {
      await settle()
      clock.increment(Math.max(ms, 0))
      await settle()
    },
  }
}

/** Promises are settled when the event loop turns. */
export async function settle(): Promise<void> {
  await setImmediate()
}

/** Which transitions of a chart the tests have taken, and which there are. */
export function transitionCoverage(machine: AnyStateMachine) {
  const taken = new Set<string>()
  return {
    inspect: (event: InspectionEvent): void => {
      if (event.type !== '@xstate.microstep') return
      for (const transition of event._transitions) taken.add(transitionName(transition))
    },
    size: transitionsOf(machine.root).length,
    untaken: () =>
      transitionsOf(machine.root)
        .map(transitionName)
        .filter((name) => !taken.has(name))
        .sort(),
  }
}

type Node = AnyStateMachine['root']
type Transition = NonNullable<Node['always']>[number]

function transitionsOf(node: Node): Transition[] {
  const own = [...node.transitions.values(), node.always ?? []].flat()
  return [...own, ...Object.values(node.states).flatMap(transitionsOf)]
}

/** The same for the same transition of any copy of the chart. */
function transitionName(transition: Transition): string {
  const { source } = transition
  const eventType = String(transition.eventType)
  const always = source.always?.indexOf(transition) ?? -1
  if (always >= 0) return `${source.id} always #${always}`
  return `${source.id} ${eventType} #${source.transitions.get(eventType)?.indexOf(transition) ?? -1}`
}
