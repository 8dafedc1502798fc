/** The webhook chart's parts by name: types, placeholders, actions (assign, emit, sendTo), guards, delays. */
import { assign, emit, sendTo, setup } from 'xstate'
import type {
  Activation,
  DeliveryFailure,
  DrainEvent,
  ProbeOutput,
  WebhookEmitted,
  WebhookEvent,
  WebhookInput,
  WebhookReport,
} from './events.ts'
import { callbackActor, promiseActor } from './placeholders.ts'
import {
  afterActivate,
  afterDeactivate,
  afterDelivered,
  afterDeliveryFailure,
  afterNothing,
  afterReport,
  afterRowFailure,
  afterStall,
  afterWebhookWait,
  beginReport,
  isAbandoned,
  webhookHeard,
  webhookReportRetryMs,
  webhookWaitMs,
  type WebhookContext,
  type WebhookMachineInput,
} from './webhook.rules.ts'

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

type Emitted = WebhookEmitted['type']

function newsOf({ webhookId, health, heardAt: at }: WebhookContext, type: Emitted): WebhookEmitted {
  return { type, webhookId, message: health.lastError, at }
}

export const webhookChart = setup({
  types: {
    context: {} as WebhookContext,
    events: {} as WebhookEvent,
    input: {} as WebhookMachineInput,
    emitted: {} as WebhookEmitted,
    tags: {} as WebhookTag,
    children: {} as { drain: 'drain'; probe: 'probe'; report: 'report' },
  },
  actors: {
    drain: callbackActor<DrainEvent, WebhookInput>('drain'),
    probe: promiseActor<ProbeOutput, WebhookInput>('probe'),
    report: promiseActor<unknown, WebhookReport>('report'),
  },
  actions: {
    hear: assign(({ context }, { at }: { at: number }) => webhookHeard(context, at)),
    delivered: assign(({ context }, { at }: { at: number }) => afterDelivered(context, at)),
    fail: assign(({ context }, { failure }: { failure: DeliveryFailure }) => afterDeliveryFailure(context, failure)),
    failRow: assign(({ context }, { failure }: { failure: DeliveryFailure }) => afterRowFailure(context, failure)),
    nothingToTry: assign(({ context }, { at }: { at: number }) => afterNothing(context, at)),
    stall: assign(({ context }, { lostMs }: { lostMs: number }) => afterStall(context, lostMs)),
    waited: assign(({ context }) => afterWebhookWait(context)),
    activate: assign(({ context }, activation: Activation) => afterActivate(context, activation)),
    deactivate: assign(({ context }) => afterDeactivate(context)),
    noteNews: assign({ woken: true }),
    clearNews: assign({ woken: false }),
    wakeDrain: sendTo('drain', { type: 'WAKE' }),
    writeBegins: assign(({ context }) => beginReport(context)),
    writeDone: assign(({ context }) => afterReport(context)),
    writeFailed: assign(({ context }) => ({ reportFailures: context.reportFailures + 1 })),
    announce: emit(({ context }, { news }: { news: Emitted }) => newsOf(context, news)),
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
    reportRetry: ({ context }) => webhookReportRetryMs(context),
  },
})
