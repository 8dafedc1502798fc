/**
 * What an outcome does to a webhook's health: pure functions from context to context.
 * `consecutiveFailures` counts failed rounds in a row; any success makes it 0. At `announceAfter` the failure is announced: once
 * per failing period, which ends with a success or ACTIVATE.
 */
import { halfJitterMs, scheduleMs, spreadMs, stirred, timerMs } from './backoff.ts'
import type { Deactivation, DeliveryFailure, FailureAnnouncement, WebhookHealthState, WebhookReport } from './events.ts'

/** All delays in milliseconds. */
export interface WebhookSettings {
  /** Waits after the first, second … failed round. */
  readonly scheduleMs: readonly number[]
  readonly jitterPercent: number
  readonly retryAfterMaxMs: number
  /** A failing webhook is tried at least this often. */
  readonly probeMs: number
  /** Failing for this long makes it inactive. */
  readonly abandonMs: number
  /** Failed rounds in a row until the failure is announced. */
  readonly announceAfter: number
  /** Longest silence of drain while it has work, and the longest time of a probe: more than any callback may take. */
  readonly drainDeadlineMs: number
  readonly probeDeadlineMs: number
  /** Wait before drain or probe starts again after an error of ours (the store is away). */
  readonly stallRetryMs: number
  /** lastSuccessAt by itself is stored at most this often. */
  readonly successReportMs: number
  /** Deadline of one report, and the first wait after a failed one (doubling, up to 64 times). */
  readonly reportDeadlineMs: number
  readonly reportRetryMs: number
}

export interface WebhookMachineInput {
  readonly webhookId: string
  readonly settings: WebhookSettings
  readonly now: number
  readonly jitter: number
  readonly active: boolean
  readonly health: WebhookHealthState
}

export interface WebhookContext {
  readonly webhookId: string
  readonly settings: WebhookSettings
  readonly active: boolean
  readonly health: WebhookHealthState
  /** The latest time that anyone told. */
  readonly heardAt: number
  readonly jitter: number
  /** When the last counted failure happened: attempts that began before it belong to its round. */
  readonly roundAt: number | null
  /** New rows came while a probe was under way. */
  readonly woken: boolean
  /** To be stored and not stored yet. */
  readonly announcements: readonly FailureAnnouncement[]
  readonly deactivation: Deactivation | null
  /** lastSuccessAt as last marked for storing. */
  readonly successReportedAt: number | null
  readonly revision: number
  readonly writing: number
  readonly recorded: number
  /** What the report under way holds. */
  readonly report: WebhookReport | null
  readonly reportFailures: number
}

type Part = Partial<WebhookContext>

export function startWebhookContext(input: WebhookMachineInput): WebhookContext {
  return {
    webhookId: input.webhookId,
    settings: input.settings,
    active: input.active,
    health: input.health,
    heardAt: input.now,
    jitter: input.jitter,
    roundAt: null,
    woken: false,
    announcements: [],
    deactivation: null,
    successReportedAt: input.health.lastSuccessAt,
    revision: 0,
    writing: 0,
    recorded: 0,
    report: null,
    reportFailures: 0,
  }
}

/** Time went on. */
export function webhookHeard(context: WebhookContext, at: number): Part {
  return { heardAt: Math.max(context.heardAt, at) }
}

/** Any success ends the failing period. */
export function afterDelivered(context: WebhookContext, at: number): Part {
  const { health, settings, successReportedAt } = context
  const wasHealthy = health.consecutiveFailures === 0 && !health.failure && health.retryAt === null
  const stale = successReportedAt === null || at - successReportedAt >= settings.successReportMs
  const store = !wasHealthy || stale
  return {
    ...webhookHeard(context, at),
    health: {
      ...health,
      failure: false,
      consecutiveFailures: 0,
      retryAt: null,
      lastError: null,
      lastSuccessAt: at,
      failingSince: null,
    },
    ...(store ? { revision: context.revision + 1, successReportedAt: at } : {}),
  }
}

/** The attempt began before the last counted failure was known: the same round. */
export function isSameRound(context: WebhookContext, failure: DeliveryFailure): boolean {
  const { roundAt } = context
  return failure.startedAt !== undefined && roundAt !== null && failure.startedAt < roundAt
}

/** The receiver as a whole failed: count it, and wait before one row is tried. */
export function afterDeliveryFailure(context: WebhookContext, failure: DeliveryFailure): Part {
  const part = counted(context, failure)
  const { health } = part
  const retryAt = failure.at + retryDelayMs(context, failure, health.consecutiveFailures)
  return { ...part, health: { ...health, retryAt: part.active === false ? null : retryAt } }
}

/** One row failed: count it unless its round is counted; the other rows go on. */
export function afterRowFailure(context: WebhookContext, failure: DeliveryFailure): Part {
  if (isSameRound(context, failure) && failure.permanent === undefined) return webhookHeard(context, failure.at)
  return counted(context, failure)
}

function counted(context: WebhookContext, failure: DeliveryFailure): Part & { readonly health: WebhookHealthState } {
  const { health, settings } = context
  const consecutiveFailures = health.consecutiveFailures + (isSameRound(context, failure) ? 0 : 1)
  const failingSince = health.failingSince ?? failure.at
  const deactivation = deactivationOf(failure, failingSince, settings)
  const fails = health.failure || failure.permanent !== undefined || consecutiveFailures >= settings.announceAfter
  const announced = (fails || deactivation !== null) && !health.failure
  const failureVersion = health.failureVersion + (announced ? 1 : 0)
  const { message, at } = failure
  return {
    ...webhookHeard(context, at),
    ...(deactivation ? { active: false, deactivation } : {}),
    health: {
      ...health,
      failure: health.failure || announced,
      consecutiveFailures,
      retryAt: null,
      lastError: message,
      failingSince,
      failureVersion,
    },
    announcements: announced
      ? [...context.announcements, { version: failureVersion, message, at }]
      : context.announcements,
    roundAt: at,
    jitter: failure.jitter,
    revision: context.revision + 1,
  }
}

function deactivationOf(
  failure: DeliveryFailure,
  failingSince: number,
  settings: WebhookSettings,
): Deactivation | null {
  if (failure.permanent === 'gone') return { reason: 'gone', at: failure.at }
  return failure.at - failingSince >= settings.abandonMs ? { reason: 'abandoned', at: failure.at } : null
}

/** Along the schedule with jitter, never rarer than probeMs; a Retry-After may lengthen it up to retryAfterMaxMs. */
function retryDelayMs({ settings }: WebhookContext, failure: DeliveryFailure, nth: number): number {
  const planned = spreadMs(scheduleMs(settings.scheduleMs, nth), settings.jitterPercent, failure.jitter)
  const asked = Math.min(failure.retryAfterMs ?? 0, settings.retryAfterMaxMs)
  return Math.max(Math.min(planned, settings.probeMs), timerMs(asked))
}

/** An error of ours while the receiver is failing: it says nothing about the receiver, so only the time moves. */
export function afterStall(context: WebhookContext, lostMs: number): Part {
  const { health, settings, jitter } = context
  const now = context.heardAt + lostMs
  return {
    heardAt: now,
    jitter: stirred(jitter),
    health: { ...health, retryAt: now + spreadMs(settings.stallRetryMs, settings.jitterPercent, jitter) },
  }
}

/** Nothing to try: look again in time. */
export function afterNothing(context: WebhookContext, at: number): Part {
  const { health, settings } = context
  return {
    ...webhookHeard(context, at),
    health: { ...health, retryAt: at + settings.probeMs },
    revision: context.revision + 1,
  }
}

/** The wait is over. */
export function afterWebhookWait(context: WebhookContext): Part {
  return webhookHeard(context, context.health.retryAt ?? context.heardAt)
}

/** active=1: the failing period ends here. A deactivation that is not stored yet is void. */
export function afterActivate(context: WebhookContext, now: number, jitter: number): Part {
  const { health } = context
  return {
    ...webhookHeard(context, now),
    active: true,
    deactivation: null,
    jitter,
    health: {
      ...health,
      failure: false,
      consecutiveFailures: 0,
      retryAt: null,
      lastError: null,
      failingSince: null,
    },
    revision: context.revision + 1,
  }
}

/** active=0 by the developer: health stays as it is, no try is due. */
export function afterDeactivate(context: WebhookContext): Part {
  const { health } = context
  return { active: false, health: { ...health, retryAt: null }, revision: context.revision + 1 }
}

/** How long until retryAt. A record from a clock that ran ahead is not believed beyond the longest wait there is. */
export function webhookWaitMs({ health, heardAt, settings }: WebhookContext): number {
  const longest = Math.max(settings.probeMs, settings.retryAfterMaxMs, settings.stallRetryMs * 2)
  return timerMs(Math.min((health.retryAt ?? heardAt) - heardAt, longest))
}

export function beginReport(context: WebhookContext): Part {
  return { writing: context.revision, report: webhookReportOf(context) }
}

export function webhookReportOf(context: WebhookContext): WebhookReport {
  const { webhookId, health, announcements, deactivation } = context
  return { webhookId, health, announcements, deactivation }
}

/** What was in the report is stored; what came meanwhile stays to be stored. */
export function afterReport(context: WebhookContext): Part {
  const { report, announcements, deactivation } = context
  const stored = new Set(report?.announcements.map(({ version }) => version))
  return {
    recorded: context.writing,
    report: null,
    reportFailures: 0,
    announcements: announcements.filter(({ version }) => !stored.has(version)),
    deactivation: deactivation?.at === report?.deactivation?.at ? null : deactivation,
  }
}

export function webhookReportRetryMs({ settings, reportFailures, jitter }: WebhookContext): number {
  return halfJitterMs(reportFailures, jitter, settings.reportRetryMs, settings.reportRetryMs * 64)
}
