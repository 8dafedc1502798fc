/**
 * Describes the machines for people and for the engine. A snapshot becomes words and times, by its tags and context,
 * never by state.value, which only the drawn chart uses. A chart becomes a tree of plain data, made from the machine
 * itself, so that pictures and lists cannot differ from it.
 */
import type { AnyStateNode, StateValue } from 'xstate'
import { accountMachine, type AccountSnapshot } from './account.machine.ts'
import type { AccountTag } from './account.setup.ts'
import { connectTokenMachine } from './connect-token.machine.ts'
import { webhookMachine, type WebhookSnapshot } from './webhook.machine.ts'
import type { WebhookTag } from './webhook.rules.ts'

interface NextStep {
  readonly what: string
  readonly at: number
}

export interface ActorFacts {
  readonly tags: readonly string[]
  /** 'watching', 'waiting' … for people; programs read tags. */
  readonly state: string
  readonly next: NextStep | null
  readonly lastError: { readonly class: string; readonly message: string; readonly at: number } | null
  readonly attempt: number
}

/** The most specific tag first. */
const accountStates = [
  'stopped',
  'paused',
  'throttled',
  'waiting',
  'queued',
  'connecting',
  'syncing',
  'watching',
  'disabled',
] as const satisfies readonly AccountTag[]

const webhookStates = [
  'stopped',
  'paused',
  'waiting',
  'probing',
  'resting',
  'recovering',
  'idle',
  'draining',
] as const satisfies readonly WebhookTag[]

/** All values of `state`; `dead`: the actor ended by a fault. */
export const shownStates = {
  account: [...accountStates, 'dead'],
  webhook: [...webhookStates, 'failing', 'dead'],
} as const

/** null when nothing is timed: watching without a held login, paused, stopped, or queued at our own login limiter. */
function nextOf(snapshot: AccountSnapshot, state: (typeof accountStates)[number]): NextStep | null {
  const { resume, since, heardAt, settings } = snapshot.context
  const retryAt = resume.retryAt ?? heardAt
  if (snapshot.hasTag('held')) return { what: 'logs in for commands again', at: retryAt }
  const steps: Partial<Record<AccountTag, NextStep>> = {
    throttled: { what: 'connects again when the server allows it', at: retryAt },
    waiting: { what: 'connects again', at: retryAt },
    connecting: { what: 'gives up this login', at: since + settings.connectDeadlineMs },
    syncing: { what: 'gives up this session unless the server answers', at: since + settings.syncDeadlineMs },
    ...(resume.retryAt === null ? {} : { disabled: { what: 'tries the login again', at: resume.retryAt } }),
  }
  return steps[state] ?? null
}

export function describeAccount(snapshot: AccountSnapshot): ActorFacts {
  const state = accountStates.find((tag) => snapshot.hasTag(tag)) ?? 'connecting'
  const { lastError, attempt } = snapshot.context.resume
  return { tags: [...snapshot.tags].sort(), state, next: nextOf(snapshot, state), lastError, attempt }
}

function webhookNextOf({ context }: WebhookSnapshot, state: (typeof webhookStates)[number]): NextStep | null {
  const { health, heardAt, settings } = context
  const tries = { what: 'tries one callback', at: health.retryAt ?? heardAt }
  const steps: Partial<Record<WebhookTag, NextStep>> = {
    waiting: tries,
    resting: tries,
    probing: { what: 'gives up this try', at: heardAt + settings.probeDeadlineMs },
    recovering: { what: 'looks for callbacks again', at: heardAt + settings.stallRetryMs },
  }
  return steps[state] ?? null
}

export function describeWebhook(snapshot: WebhookSnapshot): ActorFacts {
  const { health, roundAt } = snapshot.context
  const state = webhookStates.find((tag) => snapshot.hasTag(tag)) ?? 'draining'
  const failedAt = roundAt ?? health.failingSince ?? 0
  // While some callbacks fail and others go out, people see the failure.
  const fails = snapshot.hasTag('failed') || snapshot.hasTag('retrying')
  return {
    tags: [...snapshot.tags].sort(),
    state: fails && (state === 'idle' || state === 'draining') ? 'failing' : state,
    next: webhookNextOf(snapshot, state),
    lastError: health.lastError === null ? null : { class: 'delivery', message: health.lastError, at: failedAt },
    attempt: health.consecutiveFailures,
  }
}

/** Paths of the innermost active states, in the form of `charts`: 'running.life.waiting.backoff' … */
export function activeStates(value: StateValue, path = ''): string[] {
  const inner = (key: string): string => (path === '' ? key : `${path}.${key}`)
  if (typeof value === 'string') return [inner(value)]
  const children = Object.entries(value)
  // A region without states of its own has an empty value.
  if (children.length === 0) return [path]
  return children.flatMap(([key, child]) => (child === undefined ? [] : activeStates(child, inner(key))))
}

export interface ChartTransition {
  /** 'WAKE', 'connect done', 'after wait' …; '' = left at once. */
  readonly event: string
  /** Paths of states; none = the state does not change. */
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

export const charts = {
  account: stateOf(accountMachine.root),
  webhook: stateOf(webhookMachine.root),
  connectToken: stateOf(connectTokenMachine.root),
} as const

/** The part of XState's definition of a transition that is used here. */
interface Transition {
  readonly eventType: string
  readonly target: readonly AnyStateNode[] | undefined
  readonly guard?: unknown
}

/** A transition that has taken place. */
export interface Taken {
  readonly from: string
  readonly event: string
  readonly to: string
}

export type TransitionDefinition = Transition & { readonly source: AnyStateNode }

/** The transitions that led to a state, be it the same one again. */
export function takenOf(transitions: readonly TransitionDefinition[]): Taken[] {
  return transitions.flatMap(({ source, eventType, target = [] }) =>
    target.map((to) => ({ from: pathOf(source), event: eventText(eventType), to: pathOf(to) })),
  )
}

/** The state of a timer and its name in the chart, by the type of its event; null = the event is no timer's. */
export function timerOf(eventType: string): Omit<Taken, 'to'> | null {
  const [, delay, from] = /^xstate\.after\.([^.]+)\.[^.]+\.(.+)$/.exec(eventType) ?? []
  return delay === undefined || from === undefined ? null : { from, event: `after ${delay}` }
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
      event: eventText(transition.eventType),
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

/**
 * XState's event types in words: `xstate.init` → `start`, `xstate.after.wait.account.running` → `after wait`,
 * `xstate.done.actor.connect` → `connect done`.
 */
export function eventText(eventType: string): string {
  const [own, kind, ...rest] = eventType.split('.')
  if (own !== 'xstate') return eventType
  if (kind === 'init') return 'start'
  if (kind === 'after') return `after ${rest[0] ?? ''}`
  if (kind === 'done') return `${rest[1] ?? ''} done`
  return kind === 'error' ? `${rest[1] ?? ''} failed` : eventType
}

/** A guard is a name, a name with parameters, or a function of the machine's file. */
function guardOf(guard: unknown): string | null {
  if (guard === undefined || guard === null) return null
  if (typeof guard === 'string') return guard
  if (typeof guard === 'object' && 'type' in guard) return String(guard.type)
  return typeof guard === 'function' && guard.name !== 'guard' ? guard.name : 'condition'
}
