/**
 * What people and the engine read off a snapshot: words and times derived from tags and context, never from
 * state.value, which is for the drawn chart alone.
 */
import type { StateValue } from 'xstate'
import type { AccountSnapshot } from './account.machine.ts'
import type { AccountTag } from './account.setup.ts'
import type { WebhookSnapshot } from './webhook.machine.ts'
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

/** The most telling tag first. */
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

/**
 * null when nothing is timed: watching with nothing in the way, paused, stopped, set aside, or at our own login
 * limiter.
 */
export function nextOf(snapshot: AccountSnapshot): NextStep | null {
  const { resume, since, heardAt, settings } = snapshot.context
  if (snapshot.hasTag('held')) return { what: 'logs in for commands again', at: resume.retryAt ?? heardAt }
  switch (accountStateOf(snapshot)) {
    case 'throttled':
      return { what: 'connects again when the server allows it', at: resume.retryAt ?? heardAt }
    case 'waiting':
      return { what: 'connects again', at: resume.retryAt ?? heardAt }
    case 'disabled':
      return resume.retryAt === null ? null : { what: 'tries the login again', at: resume.retryAt }
    case 'connecting':
      return { what: 'gives up this login', at: since + settings.connectDeadlineMs }
    case 'syncing':
      return { what: 'gives up this session unless the server answers', at: since + settings.syncDeadlineMs }
    default:
      return null
  }
}

function accountStateOf(snapshot: AccountSnapshot) {
  return accountStates.find((tag) => snapshot.hasTag(tag)) ?? 'connecting'
}

export function describeAccount(snapshot: AccountSnapshot): ActorFacts {
  return {
    tags: [...snapshot.tags].sort(),
    state: accountStateOf(snapshot),
    next: nextOf(snapshot),
    lastError: snapshot.context.resume.lastError,
    attempt: snapshot.context.resume.attempt,
  }
}

export function webhookNextOf(snapshot: WebhookSnapshot): NextStep | null {
  const { health, heardAt, settings } = snapshot.context
  switch (webhookStateOf(snapshot)) {
    case 'waiting':
    case 'resting':
      return { what: 'tries one callback', at: health.retryAt ?? heardAt }
    case 'probing':
      return { what: 'gives up this try', at: heardAt + settings.probeDeadlineMs }
    case 'recovering':
      return { what: 'looks for callbacks again', at: heardAt + settings.stallRetryMs }
    default:
      return null
  }
}

function webhookStateOf(snapshot: WebhookSnapshot) {
  return webhookStates.find((tag) => snapshot.hasTag(tag)) ?? 'draining'
}

export function describeWebhook(snapshot: WebhookSnapshot): ActorFacts {
  const { health, roundAt } = snapshot.context
  const failedAt = roundAt ?? health.failingSince ?? 0
  return {
    tags: [...snapshot.tags].sort(),
    state: webhookStateOf(snapshot),
    next: webhookNextOf(snapshot),
    lastError: health.lastError === null ? null : { class: 'delivery', message: health.lastError, at: failedAt },
    attempt: health.consecutiveFailures,
  }
}

/** The paths of the innermost active states, as charts.ts has them: 'running.life.waiting.backoff' … */
export function activeStates(value: StateValue, path = ''): string[] {
  const inner = (key: string): string => (path === '' ? key : `${path}.${key}`)
  if (typeof value === 'string') return [inner(value)]
  const children = Object.entries(value)
  // A region without states of its own has an empty value.
  if (children.length === 0) return [path]
  return children.flatMap(([key, child]) => (child === undefined ? [] : activeStates(child, inner(key))))
}
