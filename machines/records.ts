/**
 * The states by which a chart has its record stored: `records` beside its life, `closing` at its end. The chart's setup
 * has the actor `report`, the actions writeBegins, writeDone and writeFailed, the guard `dirty`, the delays
 * reportDeadline and reportRetry.
 */

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
