/** The account chart's parts by name: types, placeholders, actions (assign and emit only), guards, delays. */
import { assign, emit, setup, type EventObject } from 'xstate'
import type { AccountContext, AccountInput } from './account.rules.ts'
import * as rules from './account.rules.ts'
import type { AccountEmitted, AccountEvent, AccountReport, DoneAt, Failure, MailboxInput, Moment } from './events.ts'
import { callbackActor, heard, promiseActor, reportRetryMs } from './records.ts'

export type AccountTag =
  | 'ok'
  | 'disabled'
  | 'connecting'
  | 'queued'
  | 'syncing'
  | 'watching'
  | 'held'
  | 'waiting'
  | 'throttled'
  | 'paused'
  | 'stopped'

export const accountChart = setup({
  types: {
    context: {} as AccountContext,
    events: {} as AccountEvent,
    input: {} as AccountInput,
    emitted: {} as AccountEmitted,
    tags: {} as AccountTag,
    children: {} as { connect: 'connect'; sync: 'sync'; watch: 'watch'; relogin: 'relogin'; report: 'report' },
  },
  actors: {
    connect: promiseActor<DoneAt, MailboxInput>('connect'),
    sync: promiseActor<DoneAt, MailboxInput>('sync'),
    watch: callbackActor<EventObject, MailboxInput>('watch'),
    relogin: promiseActor<DoneAt, MailboxInput>('relogin'),
    report: promiseActor<unknown, AccountReport>('report'),
  },
  actions: {
    fail: assign(({ context }, { failure }: { failure: Failure }) => rules.afterFailure(context, failure)),
    refuse: assign(({ context }, { failure }: { failure: Failure }) => rules.afterRefusal(context, failure)),
    announceFailure: emit(({ context }, { failure }: { failure: Failure }) => ({
      type: 'attempt.failed',
      accountId: context.accountId,
      failure,
    })),
    announceStatus: emit(({ context }) => ({
      type: 'status.changed',
      accountId: context.accountId,
      status: context.status,
      message: context.message,
      at: context.heardAt,
    })),
    hear: assign(({ context }, { at }: { at: number }) => heard(context, at)),
    connected: assign(({ context }, { at }: { at: number }) => rules.afterConnect(context, at)),
    admitted: assign(({ context }, { at }: { at: number }) => rules.afterAdmission(context, at)),
    proved: assign(({ context }, { at }: { at: number }) => rules.afterProof(context, at)),
    synced: assign(({ context }, { at }: { at: number }) => rules.afterSync(context, at)),
    initialSyncDone: assign(({ context }, { at }: { at: number }) => rules.afterInitialSync(context, at)),
    forget: assign(({ context }, { now, jitter }: Moment) => rules.afterWake(context, now, jitter)),
    pauses: assign(({ context }, { at }: { at: number }) => rules.afterPause(context, at)),
    unpauses: assign(({ context }, { now }: Moment) => rules.afterUnpause(context, now)),
    resumed: assign(({ context }, { now, jitter }: Moment) => rules.afterResume(context, now, jitter)),
    waited: assign(({ context }) => rules.afterWait(context)),
    startDeadline: assign(({ context }) => ({ since: context.heardAt })),
    writeBegins: assign(({ context }) => ({ writing: context.revision })),
    writeDone: assign(({ context }) => ({ recorded: context.writing, reportFailures: 0 })),
    writeFailed: assign(({ context }) => ({ reportFailures: context.reportFailures + 1 })),
  },
  guards: {
    startsPaused: ({ context }) => context.resume.condition.is === 'paused',
    isDisabled: ({ context }) => context.status === 'DISABLED',
    hasProbe: ({ context }) => context.resume.retryAt !== null,
    isOk: ({ context }) => context.status === 'OK',
    rejected: ({ context }) => {
      const failureClass = context.resume.lastError?.class
      return context.status === 'DISABLED' && failureClass !== undefined && rules.isStrike(failureClass)
    },
    throttled: ({ context }) => rules.isThrottled(context, context.heardAt),
    throttledAt: ({ context }, { now }: { now: number }) => rules.isThrottled(context, now),
    mustWait: ({ context }) => (context.resume.retryAt ?? 0) > context.heardAt,
    disables: ({ context }, { failure }: { failure: Failure }) => rules.disables(context, failure),
    isRejection: (_, { failure }: { failure: Failure }) => rules.isStrike(failure.class),
    isVerdict: (_, { failure }: { failure: Failure }) => failure.decides === true && rules.isStrike(failure.class),
    isThrottling: (_, { failure }: { failure: Failure }) => failure.class === 'throttled',
    staysOnline: ({ context, event }) => event.type === 'WAKE' && event.reconnect !== true && context.refusals === 0,
    dirty: ({ context }) => context.revision !== context.recorded,
  },
  delays: {
    wait: ({ context }) => rules.waitMs(context),
    connectDeadline: ({ context }) => context.settings.connectDeadlineMs,
    syncDeadline: ({ context }) => context.settings.syncDeadlineMs,
    watchDeadline: ({ context }) => context.settings.watchDeadlineMs,
    reportDeadline: ({ context }) => context.settings.reportDeadlineMs,
    reportRetry: ({ context }) => reportRetryMs(context),
  },
})

/** A transition to `deciding` with the effect of a failure; `read` takes the failure out of the event. */
export function failing<TArgs>(read: (args: TArgs) => Failure) {
  const params = (args: TArgs) => ({ failure: read(args) })
  return {
    target: '#account.running.life.deciding',
    actions: [
      { type: 'fail', params },
      { type: 'announceFailure', params },
    ],
  } as const
}

/** After a failed login of a command connection the open session goes on, unless the account becomes DISABLED. */
export function refusing<TArgs>(read: (args: TArgs) => Failure) {
  const params = (args: TArgs) => ({ failure: read(args) })
  return [
    { guard: { type: 'disables', params }, ...failing(read) },
    {
      target: '#account.running.life.online.logins.held',
      actions: [
        { type: 'refuse', params },
        { type: 'announceFailure', params },
      ],
    },
  ] as const
}
