/**
 * The effect of each failure and success on an account: pure functions from context to context. The figures come from
 * settings; by class:
 * - network, tls, protocol, connection_limit, auth_unavailable: exponential back-off with full jitter;
 * - auth_rejected, consent_lost, permission ("strikes"): the slow schedule, and DISABLED at the set number in a row;
 * - throttled: the server's own hint, and no attempt before it.
 * "In a row" means without a success between: a network failure between two rejections leaves their count alone.
 */
import { fullJitterMs, hintedMs, scheduleMs, stirred, timerMs } from './backoff.ts'
import {
  AttemptFailed,
  failureClasses,
  type AccountReport,
  type AccountResume,
  type AccountStatus,
  type Condition,
  type Failure,
  type FailureClass,
} from './events.ts'
import { heard, nothingRecorded, type Recorded, type ReportSettings } from './records.ts'

/** All delays in milliseconds. */
export interface AccountSettings extends ReportSettings {
  /** First and longest wait of the exponential back-off. */
  readonly backoffFirstMs: number
  readonly backoffMaxMs: number
  /** Waits after the first, second … strike. */
  readonly authScheduleMs: readonly number[]
  readonly strikes: number
  readonly disabledProbeMs: number
  /** Throttled without a hint, and the longest hint that is believed. */
  readonly throttleDefaultMs: number
  readonly throttleMaxMs: number
  /** From `connect.dialing` (or the start of connect) to its outcome. */
  readonly connectDeadlineMs: number
  /** Longest silence of sync, and of watch. */
  readonly syncDeadlineMs: number
  readonly watchDeadlineMs: number
}

export interface AccountInput {
  readonly accountId: string
  readonly settings: AccountSettings
  readonly now: number
  readonly jitter: number
  readonly status: AccountStatus
  readonly statusMessage: string | null
  readonly paused: boolean
  readonly resume: AccountResume
}

export interface AccountContext extends Recorded, Pick<AccountInput, 'accountId' | 'settings' | 'status' | 'jitter'> {
  readonly message: string | null
  readonly resume: KnownResume
  /** The latest time of any event. */
  readonly heardAt: number
  /** When the deadline in force began to count. */
  readonly since: number
  /** Failed logins in a row of the command connection, while the session that watches is open. */
  readonly refusals: number
}

type KnownResume = AccountResume & Required<Pick<AccountResume, 'condition'>>
type Known = KnownResume['condition']
type Part = Partial<AccountContext>

const strikeClasses: ReadonlySet<FailureClass> = new Set<FailureClass>(['auth_rejected', 'consent_lost', 'permission'])

export function isStrike(failureClass: FailureClass): boolean {
  return strikeClasses.has(failureClass)
}

export function startContext(input: AccountInput): AccountContext {
  const { accountId, settings, status, statusMessage, resume, now, jitter } = input
  const condition = startCondition(input)
  const probeAt = status === 'DISABLED' ? now + settings.disabledProbeMs : null
  return {
    accountId,
    settings,
    status,
    message: statusMessage,
    resume: { ...resume, condition, retryAt: resume.retryAt ?? probeAt },
    heardAt: now,
    since: now,
    jitter,
    refusals: 0,
    ...nothingRecorded,
    revision: condition === resume.condition ? 0 : 1,
  }
}

/** By the record; the best guess for a record of an earlier version, and after a pause that was cut short. */
function startCondition({ paused, status, resume, now }: AccountInput): Known {
  const { condition: known, lastError, lastConnectedAt } = resume
  if (paused) return pausedSince(known, now)
  if (known !== undefined) return known.is === 'paused' ? unpaused(known, now) : known
  if (status === 'DISABLED') return { is: 'disabled', since: lastError?.at ?? now }
  if (lastError !== null) return { is: 'down', since: lastError.at }
  return lastConnectedAt === null ? { is: 'down', since: now } : { is: 'up', since: lastConnectedAt }
}

function pausedSince(before: Known | undefined, at: number): Known {
  if (before?.is === 'paused') return before
  return { is: 'paused', since: at, ...(before === undefined || before.is === 'up' ? {} : { before }) }
}

/** A condition that lasts keeps the time of its begin. */
function become({ resume }: AccountContext, is: Condition['is'], at: number): Pick<KnownResume, 'condition'> {
  const { condition } = resume
  return { condition: condition.is === is ? condition : { is, since: at } }
}

/** Time until retryAt; at most the longest wait of the settings, in case the record's clock ran ahead. */
export function waitMs({ resume, heardAt, settings }: AccountContext): number {
  const longest = Math.max(settings.disabledProbeMs, settings.throttleMaxMs * 1.1, ...settings.authScheduleMs)
  return timerMs(Math.min((resume.retryAt ?? heardAt) - heardAt, longest))
}

/** The server has throttled us, and the time of that is not over. */
export function isThrottled({ resume }: AccountContext, now: number): boolean {
  return resume.lastError?.class === 'throttled' && (resume.retryAt ?? 0) > now
}

/** A change that has to be recorded. */
function changed(context: AccountContext, at: number, change: Part): Part {
  return { ...heard(context, at), ...change, revision: context.revision + 1 }
}

function strikesWith({ resume, settings }: AccountContext, failure: Failure): number {
  if (!isStrike(failure.class)) return resume.strikes
  return Math.max(resume.strikes + 1, failure.decides === true ? settings.strikes : 0)
}

export function disables(context: AccountContext, failure: Failure): boolean {
  const enough = context.status === 'DISABLED' || strikesWith(context, failure) >= context.settings.strikes
  return isStrike(failure.class) && enough
}

export function afterFailure(context: AccountContext, failure: Failure): Part {
  const strikes = strikesWith(context, failure)
  const attempt = context.resume.attempt + 1
  const isDisabling = disables(context, failure)
  const { class: failureClass, message, at } = failure
  const status = isDisabling ? 'DISABLED' : context.status
  const next = { attempt, strikes, ...become(context, status === 'DISABLED' ? 'disabled' : 'down', at) }
  const retryAt = Math.max(at + delayMs(context, failure, next), pendingAt(context, at))
  // While the server throttles us, another failure changes neither the reason nor the time of the wait.
  const keepsWait = failureClass !== 'throttled' && isThrottled(context, at)
  const wait = keepsWait ? {} : { retryAt, lastError: { class: failureClass, message, at } }
  return changed(context, at, {
    status,
    message: keepsWait && !isDisabling ? context.message : message,
    resume: { ...context.resume, ...next, ...wait },
    jitter: failure.jitter,
    refusals: 0,
  })
}

/**
 * End of a wait that a further failure never shortens: a throttling, and the wait after a rejected login beside the
 * open session.
 */
function pendingAt(context: AccountContext, at: number): number {
  const { lastError, retryAt } = context.resume
  const isRejected = context.refusals > 0 && lastError !== null && isStrike(lastError.class)
  return isRejected || isThrottled(context, at) ? (retryAt ?? 0) : 0
}

/** The login of a command connection failed. `attempt` counts attempts to be online, `refusals` these. */
export function afterRefusal(context: AccountContext, failure: Failure): Part {
  const { resume, refusals } = context
  const failed = afterFailure({ ...context, resume: { ...resume, attempt: refusals } }, failure)
  return {
    ...failed,
    refusals: refusals + 1,
    resume: { ...(failed.resume ?? resume), attempt: resume.attempt, condition: resume.condition },
  }
}

/** A login beside the open session succeeded. */
export function afterAdmission(context: AccountContext, at: number): Part {
  return context.refusals === 0 ? heard(context, at) : { ...afterProof({ ...context, refusals: 0 }, at), refusals: 0 }
}

function delayMs(
  context: AccountContext,
  failure: Failure,
  { attempt, strikes }: Pick<AccountResume, 'attempt' | 'strikes'>,
): number {
  const { settings } = context
  if (disables(context, failure)) return settings.disabledProbeMs
  if (failure.class === 'throttled') {
    return hintedMs(failure.retryAfterMs ?? settings.throttleDefaultMs, settings.throttleMaxMs, failure.jitter)
  }
  const own = isStrike(failure.class)
    ? scheduleMs(settings.authScheduleMs, strikes)
    : fullJitterMs(attempt, failure.jitter, settings.backoffFirstMs, settings.backoffMaxMs)
  // Another class may bring a hint too (a token endpoint's Retry-After): the longer of both waits counts.
  return Math.max(own, timerMs(Math.min(failure.retryAfterMs ?? 0, settings.throttleMaxMs)))
}

/** The login succeeded. The state that follows decides what is recorded. */
export function afterConnect(context: AccountContext, at: number): Part {
  return { ...heard(context, at), refusals: 0, resume: { ...context.resume, lastConnectedAt: at } }
}

/**
 * The server answers commands: clears strikes, error and DISABLED. `attempt` stays until the sync is complete, so that
 * a server that accepts the login and then drops the session is not tried ever faster. The failure of a newer login
 * (`refusals`) stays: this older session does not disprove it.
 */
export function afterProof(context: AccountContext, at: number): Part {
  const { resume, status, message, refusals } = context
  const back = status === 'DISABLED' ? become(context, 'down', at) : {}
  if (refusals > 0) {
    if (status === 'OK') return heard(context, at)
    return changed(context, at, { status: 'OK', resume: { ...resume, ...back, strikes: 0 } })
  }
  const clear = status === 'OK' && message === null && resume.strikes === 0 && resume.lastError === null
  if (clear) return heard(context, at)
  const healthy = { ...resume, ...back, strikes: 0, retryAt: null, lastError: null }
  return changed(context, at, { status: 'OK', message: null, resume: healthy })
}

/** The sync is complete: the account is up, earlier failures are cleared. Always recorded, for lastConnectedAt. */
export function afterSync(context: AccountContext, at: number): Part {
  const { resume = context.resume, ...proof } = afterProof(context, at)
  const rest = context.refusals > 0 ? {} : { strikes: 0, retryAt: null, lastError: null }
  return changed(context, at, { ...proof, resume: { ...resume, ...become(context, 'up', at), attempt: 0, ...rest } })
}

/** All folders have been read for the first time. A second call changes nothing. */
export function afterInitialSync(context: AccountContext, at: number): Part {
  if (context.resume.initialSyncAt !== null) return heard(context, at)
  return changed(context, at, { resume: { ...context.resume, initialSyncAt: at } })
}

/** A person asked for an attempt now: all counts start anew. DISABLED stays until a success. */
export function afterWake(context: AccountContext, now: number, jitter: number): Part {
  const resume = { ...context.resume, attempt: 0, strikes: 0, retryAt: null }
  return changed(context, now, { jitter, refusals: 0, resume })
}

export function afterPause(context: AccountContext, at: number): Part {
  return inCondition(context, pausedSince(context.resume.condition, at), at)
}

/** The pause is over: the condition before it comes back. */
export function afterUnpause(context: AccountContext, at: number): Part {
  return inCondition(context, unpaused(context.resume.condition, at), at)
}

function inCondition(context: AccountContext, condition: Known, at: number): Part {
  return changed(context, at, { resume: { ...context.resume, condition } })
}

function unpaused({ before }: Known, at: number): Known {
  return before ?? { is: 'down', since: at }
}

/** An attempt now, without forgetting earlier failures. */
export function afterResume(context: AccountContext, now: number, jitter: number): Part {
  return { ...heard(context, now), jitter, resume: { ...context.resume, retryAt: null } }
}

/** The wait is over. Not recorded: the recorded retryAt is in the past. */
export function afterWait(context: AccountContext): Part {
  const { resume } = context
  return { ...heard(context, resume.retryAt ?? context.heardAt), resume: { ...resume, retryAt: null } }
}

/** A deadline passed. Its time and random number follow from the context. */
export function lateFailure(context: AccountContext, deadlineMs: number, message: string): Failure {
  return ownFailure(context, 'network', message, context.since + deadlineMs)
}

/** The failure that an actor rejected with. Another error is a bug of the actor, whose text developers do not see. */
export function failureOf(context: AccountContext, error: unknown): Failure {
  if (error instanceof AttemptFailed && failureClasses.includes(error.failure.class)) return error.failure
  return ownFailure(context, 'protocol', 'internal error while reading the mailbox', context.heardAt)
}

function ownFailure({ jitter }: AccountContext, failureClass: FailureClass, message: string, at: number): Failure {
  return { class: failureClass, message, at, retryAfterMs: null, jitter: stirred(jitter) }
}

export function reportOf({ accountId, status, message, resume }: AccountContext): AccountReport {
  return { accountId, status, message, resume }
}
