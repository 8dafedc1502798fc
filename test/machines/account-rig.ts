/** An account's chart with its actors in the test's hands. */
import { createActor } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import type { AccountInput, AccountSettings } from '../../machines/account.rules.ts'
import {
  AttemptFailed,
  type AccountEmitted,
  type AccountEvent,
  type AccountReport,
  type AccountResume,
  type DoneAt,
  type Failure,
  type FailureClass,
  type MailboxInput,
} from '../../machines/events.ts'
import { controlled, deferred, settle, simulatedTime, transitionCoverage } from './rig.ts'

const minute = 60_000
const hour = 60 * minute

export const settings: AccountSettings = {
  backoffFirstMs: 1000,
  backoffMaxMs: 5 * minute,
  authScheduleMs: [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour],
  strikes: 3,
  disabledProbeMs: 6 * hour,
  throttleDefaultMs: 5 * minute,
  throttleMaxMs: 24 * hour,
  connectDeadlineMs: 40_000,
  syncDeadlineMs: 45_000,
  watchDeadlineMs: 10 * minute,
  reportDeadlineMs: 20_000,
  reportRetryMs: 2000,
}

export const freshResume: AccountResume = {
  attempt: 0,
  strikes: 0,
  retryAt: null,
  lastError: null,
  lastConnectedAt: null,
  initialSyncAt: null,
  condition: { is: 'down', since: 0 },
}

/** Of all rigs of this process. */
export const accountCoverage = transitionCoverage(accountMachine)

export interface RigOptions {
  readonly input?: Partial<AccountInput>
  readonly resume?: Partial<AccountResume>
  /** Reports wait for the test instead of succeeding at once. */
  readonly holdReports?: boolean
}

export function accountRig(options: RigOptions = {}) {
  const { clock, now, pass } = simulatedTime()
  const connect = deferred<DoneAt, MailboxInput>(now)
  const sync = deferred<DoneAt, MailboxInput>(now)
  const watch = controlled<AccountEvent, { type: string }, MailboxInput>()
  const relogin = deferred<DoneAt, MailboxInput>(now)
  const report = deferred<unknown, AccountReport>(now, () => (options.holdReports ? undefined : true))
  const machine = accountMachine.provide({
    actors: {
      connect: connect.logic,
      sync: sync.logic,
      watch: watch.logic,
      relogin: relogin.logic,
      report: report.logic,
    },
  })
  const input: AccountInput = {
    accountId: 'a1',
    settings,
    now: now(),
    jitter: 0.5,
    status: 'OK',
    statusMessage: null,
    paused: false,
    ...options.input,
    resume: { ...freshResume, ...options.resume },
  }
  const actor = createActor(machine, { clock, input, inspect: accountCoverage.inspect })
  const emitted: AccountEmitted[] = []
  const errors: unknown[] = []
  actor.on('*', (event) => emitted.push(event))
  actor.subscribe({ error: (error) => errors.push(error) })
  actor.start()
  const failure = (failureClass: FailureClass, more: Partial<Failure> = {}): Failure => ({
    class: failureClass,
    message: `it was ${failureClass}`,
    at: now(),
    retryAfterMs: null,
    jitter: 0.5,
    ...more,
  })
  const rig = {
    actor,
    connect,
    sync,
    watch,
    relogin,
    report,
    emitted,
    errors,
    now,
    pass,
    failure,
    attemptFailed: (failureClass: FailureClass) => new AttemptFailed(failure(failureClass)),
    tags: () => [...actor.getSnapshot().tags].sort().join(' '),
    context: () => actor.getSnapshot().context,
    resume: () => actor.getSnapshot().context.resume,
    async send(event: AccountEvent) {
      actor.send(event)
      await settle()
    },
    async connected() {
      connect.last().resolve({ at: now() })
      await settle()
    },
    async synced() {
      sync.last().resolve({ at: now() })
      await settle()
    },
    async toSyncing() {
      await settle()
      await rig.connected()
    },
    async toWatching() {
      await rig.toSyncing()
      await rig.synced()
    },
    async connectFails(failureClass: FailureClass, more: Partial<Failure> = {}) {
      connect.last().reject(new AttemptFailed(failure(failureClass, more)))
      await settle()
    },
    /** As the engine tells it: the login of the command connection. */
    async commandFails(failureClass: FailureClass, more: Partial<Failure> = {}) {
      actor.send({ type: 'command.failed', failure: failure(failureClass, more) })
      await settle()
    },
    async watchFails(failureClass: FailureClass, more: Partial<Failure> = {}) {
      watch.last().sendBack({ type: 'watch.failed', failure: failure(failureClass, more) })
      await settle()
    },
  }
  return rig
}

export type AccountRig = ReturnType<typeof accountRig>
