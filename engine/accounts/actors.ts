/** The account chart's actors over one runtime: promises and callbacks that speak in the chart's events, failures as plain JSON. */
import { fromCallback, fromPromise, type AnyActorRef, type EventObject } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import {
  AttemptFailed,
  failureClasses,
  type AccountEvent,
  type AccountReport,
  type ConnectInput,
  type DoneAt,
  type Failure,
  type FailureClass,
  type MailboxInput,
} from '../../machines/events.ts'
import { type AppError, toAppError } from '../errors.ts'
import type { Runtime } from './runtime.ts'
import type { SyncDeps } from './state.ts'

export interface ActorDeps {
  readonly sync: SyncDeps
  readonly runtimeOf: (accountId: string) => Runtime
  /** Stores the chart's word on the account: status transition with its callback, or the resume record alone. */
  readonly report: (report: AccountReport) => Promise<void>
}

/** One logic for all accounts: `provide` costs 50 KiB each time. */
export function accountLogic({ sync, runtimeOf, report }: ActorDeps) {
  const { now } = sync
  return accountMachine.provide({
    actors: {
      connect: fromPromise<DoneAt, ConnectInput>(async ({ input, signal, self }) => {
        await attempt(sync, () =>
          runtimeOf(input.accountId).connect(signal, (stage) => tell(self, { type: `connect.${stage}`, at: now() })),
        )
        return { at: now() }
      }),
      sync: fromPromise<DoneAt, MailboxInput>(async ({ input, signal, self }) => {
        await attempt(sync, () =>
          runtimeOf(input.accountId).sync(signal, () => tell(self, { type: 'sync.progress', at: now() })),
        )
        return { at: now() }
      }),
      watch: fromCallback<EventObject, MailboxInput>(({ input, sendBack }) =>
        watchActor(sync, runtimeOf(input.accountId), sendBack),
      ),
      relogin: fromPromise<DoneAt, MailboxInput>(async ({ input }) => {
        await attempt(sync, () => runtimeOf(input.accountId).relogin())
        return { at: now() }
      }),
      report: fromPromise<unknown, AccountReport>(({ input }) => report(input)),
    },
  })
}

function watchActor(sync: SyncDeps, runtime: Runtime, sendBack: (event: AccountEvent) => void): () => void {
  const stop = new AbortController()
  const send = (event: AccountEvent): void => {
    if (!stop.signal.aborted) sendBack(event)
  }
  runtime
    .watch(
      stop.signal,
      () => send({ type: 'watch.alive', at: sync.now() }),
      () => send({ type: 'sync.completed', at: sync.now() }),
    )
    .then(
      (end) => {
        if (end === 'rotate') send({ type: 'watch.rotate', at: sync.now() })
      },
      (error: unknown) => send({ type: 'watch.failed', failure: failureFrom(sync, error) }),
    )
  return () => stop.abort()
}

/** An actor speaks to the chart that invoked it. */
function tell(self: { readonly _parent?: AnyActorRef | undefined }, event: AccountEvent): void {
  self._parent?.send(event)
}

async function attempt(sync: SyncDeps, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new AttemptFailed(failureFrom(sync, error), error)
  }
}

const known: ReadonlySet<string> = new Set(failureClasses)
/** Codes that are no failure class of a mailbox, in the chart's words. */
const classOf: Partial<Record<AppError['code'], FailureClass>> = {
  private_address: 'permission',
  server_refused: 'protocol',
  internal: 'protocol',
}

export function failureFrom(sync: Pick<SyncDeps, 'log' | 'now'>, thrown: unknown): Failure {
  const error = toAppError(thrown)
  if (error.code === 'internal') sync.log.error({ err: error.cause ?? error }, 'a bug in an account actor')
  const failureClass = known.has(error.code) ? (error.code as FailureClass) : (classOf[error.code] ?? 'network')
  return {
    class: failureClass,
    message: error.message,
    at: sync.now(),
    retryAfterMs: error.retryAfterMs,
    jitter: Math.random(),
  }
}
