/** The account chart's parts by name: types, placeholders, actions (assign and emit only), guards, delays. */
import { assign, emit, setup, type EventObject } from 'xstate'
import {
  afterAdmission,
  afterConnect,
  afterEnd,
  afterFailure,
  afterInitialSync,
  afterProof,
  afterRefusal,
  afterResume,
  afterSync,
  afterWait,
  afterWake,
  disables,
  heard,
  isStrike,
  isThrottled,
  waitMs,
  type AccountContext,
  type AccountInput,
} from './account.rules.ts'
import type {
  AccountEmitted,
  AccountEvent,
  AccountReport,
  ConnectInput,
  DoneAt,
  Failure,
  MailboxInput,
  Moment,
} from './events.ts'
import { callbackActor, promiseActor, reportRetryMs } from './records.ts'

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
    connect: promiseActor<DoneAt, ConnectInput>('connect'),
    sync: promiseActor<DoneAt, MailboxInput>('sync'),
    watch: callbackActor<EventObject, MailboxInput>('watch'),
    relogin: promiseActor<DoneAt, MailboxInput>('relogin'),
    report: promiseActor<unknown, AccountReport>('report'),
  },
  actions: {
    fail: assign(({ context }, { failure }: { failure: Failure }) => afterFailure(context, failure)),
    refuse: assign(({ context }, { failure }: { failure: Failure }) => afterRefusal(context, failure)),
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
    connected: assign(({ context }, { at }: { at: number }) => afterConnect(context, at)),
    admitted: assign(({ context }, { at }: { at: number }) => afterAdmission(context, at)),
    proved: assign(({ context }, { at }: { at: number }) => afterProof(context, at)),
    synced: assign(({ context }, { at }: { at: number }) => afterSync(context, at)),
    initialSyncDone: assign(({ context }, { at }: { at: number }) => afterInitialSync(context, at)),
    forget: assign(({ context }, { now, jitter }: Moment) => afterWake(context, now, jitter)),
    resumed: assign(({ context }, { now, jitter }: Moment) => afterResume(context, now, jitter)),
    waited: assign(({ context }) => afterWait(context)),
    ends: assign(({ context }) => afterEnd(context)),
    startDeadline: assign(({ context }) => ({ since: context.heardAt })),
    handOver: assign({ handover: true }),
    keepNoSession: assign({ handover: false }),
    writeBegins: assign(({ context }) => ({ writing: context.revision })),
    writeDone: assign(({ context }) => ({ recorded: context.writing, reportFailures: 0 })),
    writeFailed: assign(({ context }) => ({ reportFailures: context.reportFailures + 1 })),
  },
  guards: {
    startsPaused: ({ context }) => context.startPaused,
    isDisabled: ({ context }) => context.status === 'DISABLED',
    hasProbe: ({ context }) => context.resume.retryAt !== null,
    isOk: ({ context }) => context.status === 'OK',
    rejected: ({ context }) => {
      const failureClass = context.resume.lastError?.class
      return context.status === 'DISABLED' && failureClass !== undefined && isStrike(failureClass)
    },
    throttled: ({ context }) => isThrottled(context, context.heardAt),
    throttledAt: ({ context }, { now }: { now: number }) => isThrottled(context, now),
    mustWait: ({ context }) => context.resume.retryAt !== null && context.resume.retryAt > context.heardAt,
    disables: ({ context }, { failure }: { failure: Failure }) => disables(context, failure),
    isRejection: (_, { failure }: { failure: Failure }) => isStrike(failure.class),
    isVerdict: (_, { failure }: { failure: Failure }) => failure.decides === true && isStrike(failure.class),
    isThrottling: (_, { failure }: { failure: Failure }) => failure.class === 'throttled',
    staysOnline: ({ context, event }) => event.type === 'WAKE' && event.reconnect !== true && context.refusals === 0,
    hasLastWords: ({ context }) => context.revision !== context.recorded || (context.resume.deaths ?? 0) > 0,
    dirty: ({ context }) => context.revision !== context.recorded,
  },
  delays: {
    wait: ({ context }) => waitMs(context),
    connectDeadline: ({ context }) => context.settings.connectDeadlineMs,
    syncDeadline: ({ context }) => context.settings.syncDeadlineMs,
    watchDeadline: ({ context }) => context.settings.watchDeadlineMs,
    reportDeadline: ({ context }) => context.settings.reportDeadlineMs,
    reportRetry: ({ context }) => reportRetryMs(context),
  },
})

/** A transition to `deciding`, with what the failure at hand does. */
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

/** The login of a command connection failed: the open session goes on, unless this makes the account DISABLED. */
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
