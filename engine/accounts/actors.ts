/**
 * The account chart's actors over one runtime: promises and callbacks that speak in the chart's events, failures as
 * plain JSON.
 */
import { type ActorRefFrom, type AnyActorRef, type EventObject, fromCallback, fromPromise } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import {
  type AccountEvent,
  type AccountReport,
  AttemptFailed,
  type ConnectInput,
  type DoneAt,
  type Failure,
  type FailureClass,
  failureClasses,
  type MailboxInput,
} from '../../machines/events.ts'
import { type AppError, isAppError, notFound, toAppError } from '../errors.ts'
import type { Runtime } from './runtime.ts'
import type { SyncDeps } from './state.ts'
import type { OutboxRecord } from '../store/records.ts'

interface ActorDeps {
  readonly sync: SyncDeps
  readonly runtimeOf: (accountId: string) => Runtime
  /** Stores what the chart says of the account: status transition with its callback, or the resume record alone. */
  readonly report: (report: AccountReport) => Promise<void>
}

/** One logic for all accounts: `provide` costs 50 KiB each time. */
export function accountLogic({ sync, runtimeOf, report }: ActorDeps) {
  const { now } = sync
  return accountMachine.provide({
    actors: {
      connect: fromPromise<DoneAt, ConnectInput>(async ({ input, signal, system }) => {
        await attempt(sync, () =>
          runtimeOf(input.accountId).connect(signal, (stage) => tell(system, { type: `connect.${stage}`, at: now() })),
        )
        return { at: now() }
      }),
      sync: fromPromise<DoneAt, MailboxInput>(async ({ input, signal, system }) => {
        await attempt(sync, () =>
          runtimeOf(input.accountId).sync(signal, () => tell(system, { type: 'sync.progress', at: now() })),
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
    .watch(stop.signal, {
      alive: () => send({ type: 'watch.alive', at: sync.now() }),
      completed: () => send({ type: 'sync.completed', at: sync.now() }),
    })
    .then(
      (end) => {
        if (end === 'rotate') send({ type: 'watch.rotate', at: sync.now() })
      },
      (error: unknown) => send({ type: 'watch.failed', failure: failureFrom(sync, error) }),
    )
  return () => stop.abort()
}

/** The chart is the root of its system. */
function tell(system: AnyActorRef['system'], event: AccountEvent): void {
  const chart = system.get('root') as ActorRefFrom<typeof accountMachine> | undefined
  chart?.send(event)
}

async function attempt(sync: SyncDeps, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new AttemptFailed(failureFrom(sync, error), error)
  }
}

const known: ReadonlySet<string> = new Set(failureClasses)
/** Codes that are no failure class of a mailbox, as the failure class that the chart knows. */
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

type ReportDeps = Pick<SyncDeps, 'store' | 'listener' | 'log'>

/** Attempts to connect follow each other at intervals; more than a few within one report are not ours. */
const claimsAtOnce = 3

/** `epochOf`: of our last claim; null while there is none. A report of an account that was taken over is dropped. */
export function createReports(
  deps: ReportDeps,
  epochOf: (accountId: string) => number | null,
): (report: AccountReport) => Promise<void> {
  /** By account: callbacks of transitions whose storing was not answered. The webhooks have not heard of them. */
  const unanswered = new Map<string, readonly OutboxRecord[]>()
  return async (report) => {
    const { accountId } = report
    for (let again = claimsAtOnce; ; again -= 1) {
      const claimed = epochOf(accountId)
      try {
        await storeReport(deps, report, claimed, unanswered)
        unanswered.delete(accountId)
        return
      } catch (error) {
        if (isAppError(error, 'not_found')) unanswered.delete(accountId)
        if (!isAppError(error, 'lease_lost')) throw error
        // A claim of our own came in between.
        if (again > 0 && (claimed === null || epochOf(accountId) !== claimed)) continue
        unanswered.delete(accountId)
        deps.log.debug({ accountId }, 'another owner has taken the account over')
        return
      }
    }
  }
}

async function storeReport(
  deps: ReportDeps,
  report: AccountReport,
  claimed: number | null,
  unanswered: Map<string, readonly OutboxRecord[]>,
): Promise<void> {
  const { store, listener } = deps
  const account = await store.accounts.get(report.accountId)
  if (account === null) throw notFound('email account', report.accountId)
  const { status, message, resume } = report
  const epoch = claimed ?? account.epoch
  const before = unanswered.get(account.id) ?? []
  let fresh: readonly OutboxRecord[] = []
  if (account.status === status) {
    await store.accounts.edit(account.id, { statusMessage: message, resume }, epoch)
  } else {
    const outbox = await listener.planStatus(account, { status, message, version: account.statusVersion + 1 })
    unanswered.set(account.id, [...before, ...outbox])
    const changed = { status, statusMessage: message, resume, outbox }
    const written = await store.accounts.transition({
      ...changed,
      accountId: account.id,
      epoch,
      fromVersion: account.statusVersion,
    })
    // Else the transition had been recorded before.
    if (written !== null) fresh = outbox
  }
  const rows = [...(await stillPending(deps, unanswered.get(account.id) ?? [], fresh)), ...fresh]
  if (rows.length > 0) listener.stored(account.id, rows, [])
}

async function stillPending(
  { store }: ReportDeps,
  rows: readonly OutboxRecord[],
  fresh: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const told = new Set(fresh.map(({ id }) => id))
  const earlier = rows.filter(({ id }) => !told.has(id))
  const stored = await Promise.all(earlier.map(({ id }) => store.outbox.get(id)))
  return stored.flatMap((row) => (row?.state === 'pending' ? [row] : []))
}
