/** The charts as trees of plain data, made from the machines themselves: for pictures and lists that cannot drift. */
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import { accountMachine } from './account.machine.ts'
import { webhookMachine } from './webhook.machine.ts'

export interface ChartTransition {
  /** 'WAKE', 'connect done', 'after wait' …; '' = left at once. */
  readonly event: string
  /** Paths of states; none = it stays where it is. */
  readonly targets: readonly string[]
  /** The condition's name; null = always. */
  readonly guard: string | null
}

export interface ChartState {
  /** 'running.life.waiting.backoff'; '' = the chart as a whole. */
  readonly path: string
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Path of the child that is entered first; null unless compound. */
  readonly initial: string | null
  readonly children: readonly ChartState[]
  readonly transitions: readonly ChartTransition[]
  /** Names of the actors that run while it is active. */
  readonly invokes: readonly string[]
  /** Names of its timers. */
  readonly after: readonly string[]
}

export const charts = { account: stateOf(root(accountMachine)), webhook: stateOf(root(webhookMachine)) } as const

function root(machine: AnyStateMachine): AnyStateNode {
  return machine.root
}

/** Of XState's definition of a transition. */
interface Transition {
  readonly eventType: string
  readonly target: readonly AnyStateNode[] | undefined
  readonly guard?: unknown
}

function stateOf(node: AnyStateNode): ChartState {
  const transitions: readonly Transition[] = [...node.transitions.values(), node.always ?? []].flat()
  const after: readonly Transition[] = node.after
  return {
    path: pathOf(node),
    type: node.type,
    initial: node.type === 'compound' ? (node.initial.target.map(pathOf)[0] ?? null) : null,
    children: Object.values(node.states).map(stateOf),
    transitions: transitions.map((transition) => ({
      event: eventOf(transition.eventType),
      targets: (transition.target ?? []).map(pathOf),
      guard: guardOf(transition.guard),
    })),
    invokes: node.invoke.map(({ id }) => id),
    after: [...new Set(after.map(({ eventType }) => eventType.split('.')[2] ?? ''))],
  }
}

function pathOf({ path }: AnyStateNode): string {
  return path.join('.')
}

/** `xstate.after.wait.account.running` → `after wait`, `xstate.done.actor.connect` → `connect done`. */
function eventOf(eventType: string): string {
  const [own, kind, ...rest] = eventType.split('.')
  if (own !== 'xstate') return eventType
  if (kind === 'after') return `after ${rest[0] ?? ''}`
  return `${rest[1] ?? ''} ${kind === 'done' ? 'done' : 'failed'}`
}

/** A guard is a name, a name with parameters, or a function of the machine's file. */
function guardOf(guard: unknown): string | null {
  if (guard === undefined || guard === null) return null
  if (typeof guard === 'string') return guard
  if (typeof guard === 'object' && 'type' in guard) return String(guard.type)
  return typeof guard === 'function' && guard.name !== 'guard' ? guard.name : 'condition'
}
