/**
 * The effect of each outcome on a webhook's health: pure functions from context to context. `consecutiveFailures`
 * counts failed rounds in a row; any success makes it 0. At `announceAfter` the failure is announced: once per failing
 * period, which ends with a success or ACTIVATE. A period of `abandonMs` is announced once more: from then on only
 * probes are sent. A 410 is always announced, and sets the webhook inactive.
 *
 * At the end the chart's parts by name: types, placeholders, actions, guards, delays.
 */
import { assign, emit, sendTo, setup } from 'xstate'
import { scheduleMs, spreadMs, stirred, timerMs } from './backoff.ts'
import type {
  Activation,
  Adoption,
  DeliveryFailure,
  DrainEvent,
  FailureAnnouncement,
  FailureNews,
  ProbeOutput,
  WebhookEmitted,
  WebhookEvent,
  WebhookHealth,
  WebhookInput,
  WebhookReport,
} from './events.ts'
import {
  callbackActor,
  heard,
  nothingRecorded,
  promiseActor,
  type Recorded,
  type ReportSettings,
  reportRetryMs,
} from './records.ts'

/** All delays in milliseconds. */
export interface WebhookSettings extends ReportSettings {
  /** Waits after the first, second … failed round. */
  readonly scheduleMs: readonly number[]
  readonly jitterPercent: number
  readonly retryAfterMaxMs: number
  /** Longest time between two tries of a failing webhook. */
  readonly probeMs: number
  /** After failing for this long a webhook gets only probes. */
  readonly abandonMs: number
  /** Failed rounds in a row until the failure is announced. */
  readonly announceAfter: number
  /** Longest silence of drain while it has work, and longest time of a probe: more than any callback may take. */
  readonly drainDeadlineMs: number
  readonly probeDeadlineMs: number
  /** Wait before drain or probe starts again after an error of ours (the store is unreachable). */
  readonly stallRetryMs: number
  /** Shortest time between two reports that change nothing but lastSuccessAt. */
  readonly successReportMs: number
}

export interface WebhookMachineInput {
  readonly webhookId: string
  readonly settings: WebhookSettings
  readonly now: number
  readonly jitter: number
  readonly active: boolean
  readonly health: WebhookHealth
}

export interface WebhookContext extends Omit<WebhookMachineInput, 'now'>, Recorded {
  /** The latest time of any event. */
  readonly heardAt: number
  /** Time of the last counted failure: attempts that began before it belong to its round. */
  readonly roundAt: number | null
  /** New rows came during a probe. */
  readonly woken: boolean
  readonly announcements: readonly FailureAnnouncement[]
  /** When the receiver answered 410; null = it did not. */
  readonly goneAt: number | null
  /** lastSuccessAt of the last report that was due to it. */
  readonly successReportedAt: number | null
  readonly report: WebhookReport | null
}

type Part = Partial<WebhookContext>

export function startWebhookContext({ now, ...input }: WebhookMachineInput): WebhookContext {
  return {
    ...input,
    heardAt: now,
    roundAt: null,
    woken: false,
    announcements: [],
    goneAt: null,
    successReportedAt: input.health.lastSuccessAt,
    ...nothingRecorded,
    report: null,
  }
}

function afterDelivered(context: WebhookContext, at: number): Part {
  const { health, settings, successReportedAt } = context
  const wasHealthy = health.consecutiveFailures === 0 && !health.failure && health.retryAt === null
  const isStale = at - (successReportedAt ?? -Infinity) >= settings.successReportMs
  return {
    ...heard(context, at),
    health: { ...recovered(health), lastSuccessAt: at },
    ...(!wasHealthy || isStale ? { revision: context.revision + 1, successReportedAt: at } : {}),
  }
}

function recovered(health: WebhookHealth): WebhookHealth {
  return {
    ...health,
    failure: false,
    consecutiveFailures: 0,
    retryAt: null,
    lastError: null,
    failingSince: null,
    abandonedAt: null,
  }
}

/** The attempt began before the last counted failure, so both belong to one round. */
function isSameRound({ roundAt }: WebhookContext, { startedAt = Infinity }: DeliveryFailure): boolean {
  return roundAt !== null && startedAt < roundAt
}

/** The receiver as a whole failed: count it, and wait before one row is tried. */
function afterDeliveryFailure(context: WebhookContext, failure: DeliveryFailure): Part {
  return withWait(context, failure, counted(context, failure))
}

/** One row failed: count it unless its round is counted; the other rows go on, unless the webhook is abandoned. */
function afterRowFailure(context: WebhookContext, failure: DeliveryFailure): Part {
  if (isSameRound(context, failure) && failure.permanent === undefined) return heard(context, failure.at)
  const part = counted(context, failure)
  return isAbandoned(part) ? withWait(context, failure, part) : part
}

type Counted = Part & { readonly health: WebhookHealth }

function counted(context: WebhookContext, failure: DeliveryFailure): Counted {
  const health = failedHealth(context, failure)
  const gone = failure.permanent === 'gone'
  const news = newsOf(context.health, health, gone)
  const { message, at, jitter } = failure
  const failureVersion = health.failureVersion + (news === null ? 0 : 1)
  const announced = news === null ? [] : [{ version: failureVersion, news, message, at }]
  return {
    ...heard(context, at),
    ...(gone ? { active: false, goneAt: at } : {}),
    health: { ...health, failureVersion },
    announcements: [...context.announcements, ...announced],
    roundAt: at,
    jitter,
    revision: context.revision + 1,
  }
}

function failedHealth(context: WebhookContext, failure: DeliveryFailure): WebhookHealth {
  const { health, settings } = context
  const { at, message, permanent } = failure
  const consecutiveFailures = health.consecutiveFailures + (isSameRound(context, failure) ? 0 : 1)
  const failingSince = health.failingSince ?? at
  const abandonedAt = health.abandonedAt ?? (at - failingSince >= settings.abandonMs ? at : null)
  const fails = permanent !== undefined || abandonedAt !== null || consecutiveFailures >= settings.announceAfter
  return {
    ...health,
    failure: health.failure || fails,
    consecutiveFailures,
    retryAt: null,
    lastError: message,
    failingSince,
    abandonedAt,
  }
}

/** The most important news of a failure; null = none. */
function newsOf(before: WebhookHealth, after: WebhookHealth, gone: boolean): FailureNews | null {
  if (gone) return 'gone'
  if (after.abandonedAt !== null && !isAbandoned({ health: before })) return 'abandoned'
  return after.failure && !before.failure ? 'failing' : null
}

/** Records of older versions have no field abandonedAt. */
function isAbandoned({ health }: Pick<WebhookContext, 'health'>): boolean {
  return (health.abandonedAt ?? null) !== null
}

function withWait(context: WebhookContext, failure: DeliveryFailure, part: Counted): Part {
  const retryAt = failure.at + retryDelayMs(context, failure, part.health.consecutiveFailures)
  return { ...part, health: { ...part.health, retryAt: part.active === false ? null : retryAt } }
}

/** By the schedule with jitter, at most probeMs; a Retry-After may lengthen the delay up to retryAfterMaxMs. */
function retryDelayMs({ settings }: WebhookContext, failure: DeliveryFailure, nth: number): number {
  const planned = spreadMs(scheduleMs(settings.scheduleMs, nth), settings.jitterPercent, failure.jitter)
  const asked = Math.min(failure.retryAfterMs ?? 0, settings.retryAfterMaxMs)
  return Math.max(Math.min(planned, settings.probeMs), timerMs(asked))
}

/** An error of ours while the receiver is failing moves only the time of the next try. */
function afterStall(context: WebhookContext, lostMs: number): Part {
  const { health, settings, jitter } = context
  const now = context.heardAt + lostMs
  return {
    heardAt: now,
    jitter: stirred(jitter),
    health: { ...health, retryAt: now + spreadMs(settings.stallRetryMs, settings.jitterPercent, jitter) },
  }
}

interface Nothing {
  readonly at: number
  readonly next: number
}

/** The probe found no row to send: the next probe is after probeMs, or when the first postponed row is due. */
function afterNothing(context: WebhookContext, { at, next }: Nothing): Part {
  const { health, settings } = context
  return {
    ...heard(context, at),
    health: { ...health, retryAt: Math.min(at + settings.probeMs, Math.max(next, at + settings.stallRetryMs)) },
    revision: context.revision + 1,
  }
}

/** active=1 ends the failing period. A 410 that is not stored yet is dropped. */
function afterActivate(context: WebhookContext, { now, jitter, scheduleMs }: Activation): Part {
  return {
    ...heard(context, now),
    ...(scheduleMs === undefined ? {} : { settings: { ...context.settings, scheduleMs } }),
    active: true,
    goneAt: null,
    jitter,
    health: recovered(context.health),
    revision: context.revision + 1,
  }
}

/** active=0 by the developer: health stays, and no try is due. */
function afterDeactivate({ health, revision }: WebhookContext): Part {
  return { active: false, health: { ...health, retryAt: null }, revision: revision + 1 }
}

/** Another node has stored this health and has announced it. A 410 of this node still has to be stored. */
function afterAdopt(context: WebhookContext, { health, at }: Adoption): Part {
  return {
    ...heard(context, at),
    health,
    roundAt: health.consecutiveFailures === 0 ? context.roundAt : at,
    announcements: context.goneAt === null ? [] : context.announcements,
  }
}

/** Time until retryAt; at most the longest wait of the settings, in case the record's clock ran ahead. */
function webhookWaitMs({ health, heardAt, settings }: WebhookContext): number {
  const longest = Math.max(settings.probeMs, settings.retryAfterMaxMs, settings.stallRetryMs * 2)
  return timerMs(Math.min((health.retryAt ?? heardAt) - heardAt, longest))
}

export function webhookReportOf(context: WebhookContext): WebhookReport {
  const { webhookId, health, announcements, goneAt } = context
  return { webhookId, health, announcements, goneAt }
}

/** The report is stored; news since then still has to be. */
function afterReport(context: WebhookContext): Part {
  const { report, announcements, goneAt } = context
  const stored = new Set(report?.announcements.map(({ version }) => version))
  return {
    recorded: context.writing,
    report: null,
    reportFailures: 0,
    announcements: announcements.filter(({ version }) => !stored.has(version)),
    goneAt: goneAt === report?.goneAt ? null : goneAt,
  }
}

export type WebhookTag =
  | 'active'
  | 'paused'
  | 'healthy'
  | 'retrying'
  | 'failed'
  | 'abandoned'
  | 'draining'
  | 'idle'
  | 'waiting'
  | 'probing'
  | 'resting'
  | 'recovering'
  | 'stopped'

export const webhookChart = setup({
  types: {
    context: {} as WebhookContext,
    events: {} as WebhookEvent,
    input: {} as WebhookMachineInput,
    emitted: {} as WebhookEmitted,
    tags: {} as WebhookTag,
    children: {} as { drain: 'drain'; claim: 'claim'; probe: 'probe'; report: 'report' },
  },
  actors: {
    drain: callbackActor<DrainEvent, WebhookInput>('drain'),
    claim: promiseActor<unknown, WebhookInput>('claim'),
    probe: promiseActor<ProbeOutput, WebhookInput>('probe'),
    report: promiseActor<unknown, WebhookReport>('report'),
  },
  actions: {
    hear: assign(({ context }, { at }: { at: number }) => heard(context, at)),
    delivered: assign(({ context }, { at }: { at: number }) => afterDelivered(context, at)),
    fail: assign(({ context }, { failure }: { failure: DeliveryFailure }) => afterDeliveryFailure(context, failure)),
    failRow: assign(({ context }, { failure }: { failure: DeliveryFailure }) => afterRowFailure(context, failure)),
    nothingToTry: assign(({ context }, nothing: Nothing) => afterNothing(context, nothing)),
    stall: assign(({ context }, { lostMs }: { lostMs: number }) => afterStall(context, lostMs)),
    waited: assign(({ context }) => heard(context, context.health.retryAt ?? context.heardAt)),
    activate: assign(({ context }, activation: Activation) => afterActivate(context, activation)),
    deactivate: assign(({ context }) => afterDeactivate(context)),
    adopt: assign(({ context }, adoption: Adoption) => afterAdopt(context, adoption)),
    noteNews: assign({ woken: true }),
    clearNews: assign({ woken: false }),
    wakeDrain: sendTo('drain', { type: 'WAKE' }),
    writeBegins: assign(({ context }) => ({ writing: context.revision, report: webhookReportOf(context) })),
    writeDone: assign(({ context }) => afterReport(context)),
    writeFailed: assign(({ context }) => ({ reportFailures: context.reportFailures + 1 })),
    announce: emit(({ context: { webhookId, health, heardAt: at } }, { news }: { news: WebhookEmitted['type'] }) => ({
      type: news,
      webhookId,
      message: health.lastError,
      at,
    })),
  },
  guards: {
    isInactive: ({ context }) => !context.active,
    mustWait: ({ context }) => context.health.retryAt !== null,
    isAbandoned: ({ context }) => isAbandoned(context),
    isFailed: ({ context }) => context.health.failure,
    isRetrying: ({ context }) => context.health.consecutiveFailures > 0,
    isHealthy: ({ context }) => !context.health.failure && context.health.consecutiveFailures === 0,
    hasNews: ({ context }) => context.woken,
    dirty: ({ context }) => context.revision !== context.recorded,
  },
  delays: {
    wait: ({ context }) => webhookWaitMs(context),
    stallRetry: ({ context }) => context.settings.stallRetryMs,
    drainDeadline: ({ context }) => context.settings.drainDeadlineMs,
    probeDeadline: ({ context }) => context.settings.probeDeadlineMs,
    reportDeadline: ({ context }) => context.settings.reportDeadlineMs,
    reportRetry: ({ context }) => reportRetryMs(context),
  },
})
