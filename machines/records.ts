/**
 * Parts of both charts: placeholders for the actors that engine/ supplies with `machine.provide({ actors })`, and the
 * states that store a record, `records` beside the chart's life and `closing` at its end. For these states the chart's
 * setup needs the actor `report`, the actions writeBegins, writeDone and writeFailed, the guard `dirty`, and the delays
 * reportDeadline and reportRetry.
 */
import { fromCallback, fromPromise, type EventObject } from 'xstate'
import { halfJitterMs } from './backoff.ts'

/** A chart without its actors fails by its own error paths, with this message. */
export function promiseActor<TOutput, TInput>(name: string) {
  return fromPromise<TOutput, TInput>(() => Promise.reject(new Error(`actor "${name}" is not provided`)))
}

export function callbackActor<TReceived extends EventObject, TInput>(name: string) {
  return fromCallback<TReceived, TInput>(() => {
    throw new Error(`actor "${name}" is not provided`)
  })
}

/** `heardAt`: the latest time of any event. */
export function heard(context: { readonly heardAt: number }, at: number) {
  return { heardAt: Math.max(context.heardAt, at) }
}

export interface ReportSettings {
  /** Deadline of one report, and the first wait after a failed one (doubling, up to 64 times). */
  readonly reportDeadlineMs: number
  readonly reportRetryMs: number
}

/** Part of the context. `revision` counts changes to store; `writing` is being stored, `recorded` is stored. */
export interface Recorded {
  readonly revision: number
  readonly writing: number
  readonly recorded: number
  readonly reportFailures: number
}

export const nothingRecorded: Recorded = { revision: 0, writing: 0, recorded: 0, reportFailures: 0 }

interface Reporting extends Recorded {
  readonly settings: ReportSettings
  readonly jitter: number
}

export function reportRetryMs({ settings, reportFailures, jitter }: Reporting): number {
  return halfJitterMs(reportFailures, jitter, settings.reportRetryMs, settings.reportRetryMs * 64)
}

/** `reportOf` makes the input of `report`. */
export function recordStates<TContext, TReport>(reportOf: (context: TContext) => TReport) {
  const report = {
    id: 'report',
    src: 'report',
    input: ({ context }: { readonly context: TContext }) => reportOf(context),
  } as const
  const failed = { target: 'retrying', actions: 'writeFailed' } as const
  return {
    records: {
      initial: 'clean',
      states: {
        clean: { always: { guard: 'dirty', target: 'writing' } },
        writing: {
          entry: 'writeBegins',
          invoke: { ...report, onDone: { target: 'clean', actions: 'writeDone' }, onError: failed },
          after: { reportDeadline: failed },
        },
        retrying: { after: { reportRetry: 'writing' } },
      },
    },
    closing: {
      tags: 'stopped',
      invoke: { ...report, onDone: 'stopped', onError: 'stopped' },
      after: { reportDeadline: 'stopped' },
    },
  } as const
}
