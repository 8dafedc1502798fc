/**
 * One email account: three regions, then `closing` and `stopped`. docs/architecture.md has the picture; this header
 * explains the unusual parts.
 *
 * life: the account's connection.
 *   starting, deciding  are left at once, by the resume record, and by the effect of the last failure.
 *   connecting.queued   waits for our own login limiter, without a deadline.
 *   online.logins       whether the command connection may log in. Its failed login counts like any other, but leaves
 *                       the open session alone, unless a rejection makes the account DISABLED.
 *   waiting.throttled   the server sets the time: WAKE does not end it, a further throttling only extends it.
 *   disabled            the account is tried again when the probe is due.
 * status: follows the context. An account stays DISABLED during a new attempt, and while it waits after a failure that
 *   says nothing about its login (network …).
 * records: calls `report` until it succeeds with all that has to survive a restart. It never delays life.
 */
import type { SnapshotFrom } from 'xstate'
import { failureOf, isThrottled, lateFailure, reportOf, startContext, type AccountContext } from './account.rules.ts'
import { accountChart, failing, refusing } from './account.setup.ts'
import type { Failure, Moment } from './events.ts'
import { recordStates } from './records.ts'

interface Args<TEvent> {
  readonly context: AccountContext
  readonly event: TEvent
}

const thrown = ({ context, event }: Args<{ readonly error: unknown }>) => failureOf(context, event.error)
const given = ({ event }: Args<{ readonly failure: Failure }>) => event.failure

const rejected = failing(thrown)
const reported = failing(given)
/** A callback actor never ends by itself, unless it has a bug. */
const ended = failing(({ context }: Args<unknown>) => failureOf(context, null))

const late = (deadline: 'connectDeadlineMs' | 'syncDeadlineMs' | 'watchDeadlineMs', message: string) =>
  failing(({ context }: Args<unknown>) => lateFailure(context, context.settings[deadline], message))
const connectLate = late('connectDeadlineMs', 'the mail server did not complete the login in time')
const syncLate = late('syncDeadlineMs', 'the mail server stopped answering while the mailbox was read')
const watchLate = late('watchDeadlineMs', 'the mail server has been silent for too long')

const at = ({ event }: Args<{ readonly at: number }>) => ({ at: event.at })
const doneAt = ({ event }: Args<{ readonly output: { readonly at: number } }>) => ({ at: event.output.at })
const moment = ({ event }: Args<Moment>) => ({ now: event.now, jitter: event.jitter })
const failure = ({ event }: Args<{ readonly failure: Failure }>) => ({ failure: event.failure })
const mailbox = ({ context }: { readonly context: AccountContext }) => ({ accountId: context.accountId })

const hear = { type: 'hear', params: at } as const
const forget = { type: 'forget', params: moment } as const
const proved = { type: 'proved', params: at } as const
const admitted = { type: 'admitted', params: at } as const
const unpauses = { type: 'unpauses', params: moment } as const
const resumed = { type: 'resumed', params: moment } as const
const connectNow = { target: '#account.running.life.connecting', reenter: true, actions: forget } as const
/** A person's check was answered by the mail server: its verdict counts, whatever is under way. */
const onCheckFailed = { guard: { type: 'isVerdict', params: failure }, ...reported } as const
const wantsNewSession = ({ event }: { readonly event: { readonly reconnect?: boolean } }) => event.reconnect === true
/** For a new session that has to wait, because the server has throttled us meanwhile. */
const toThrottled = '#account.running.life.waiting.throttled'

const connecting = accountChart.createStateConfig({
  tags: 'connecting',
  initial: 'dialing',
  invoke: {
    id: 'connect',
    src: 'connect',
    input: mailbox,
    onDone: { target: 'online', actions: { type: 'connected', params: doneAt } },
    onError: rejected,
  },
  on: {
    WAKE: [{ guard: wantsNewSession, ...connectNow }, { actions: forget }],
    CHECK_FAILED: onCheckFailed,
  },
  states: {
    dialing: {
      entry: 'startDeadline',
      after: { connectDeadline: connectLate },
      on: { 'connect.queued': { target: 'queued', actions: hear } },
    },
    queued: {
      tags: 'queued',
      on: { 'connect.dialing': { target: 'dialing', actions: hear } },
    },
  },
})

const syncing = accountChart.createStateConfig({
  tags: 'syncing',
  initial: 'progressing',
  invoke: {
    id: 'sync',
    src: 'sync',
    input: mailbox,
    onDone: { target: 'watching', actions: { type: 'synced', params: doneAt } },
    onError: rejected,
  },
  on: {
    WAKE: { guard: 'staysOnline', actions: forget },
    CHECK_FAILED: onCheckFailed,
  },
  states: {
    progressing: {
      entry: 'startDeadline',
      after: { syncDeadline: syncLate },
      on: { 'sync.progress': { target: 'progressing', reenter: true, actions: proved } },
    },
  },
})

const watching = accountChart.createStateConfig({
  tags: 'watching',
  initial: 'alive',
  invoke: { id: 'watch', src: 'watch', input: mailbox, onDone: ended, onError: rejected },
  on: {
    'watch.failed': reported,
    'watch.rotate': [
      { guard: ({ context, event }) => isThrottled(context, event.at), target: toThrottled, actions: hear },
      { target: '#account.running.life.connecting', actions: hear },
    ],
    // The open session disproves every other failure of a second login.
    CHECK_FAILED: { guard: { type: 'isRejection', params: failure }, ...reported },
  },
  states: {
    alive: {
      entry: 'startDeadline',
      after: { watchDeadline: watchLate },
      on: { 'watch.alive': { target: 'alive', reenter: true, actions: hear } },
    },
  },
})

const logins = accountChart.createStateConfig({
  initial: 'free',
  on: {
    'command.failed': refusing(given),
    'command.connected': { target: '.free', actions: admitted },
  },
  states: {
    free: {},
    held: {
      tags: 'held',
      after: { wait: { target: 'trying', actions: 'waited' } },
      on: {
        CHECK_PASSED: {
          guard: ({ context, event }) => !isThrottled(context, event.at),
          target: 'free',
          actions: admitted,
        },
      },
    },
    trying: {
      invoke: {
        id: 'relogin',
        src: 'relogin',
        input: mailbox,
        onDone: { target: 'free', actions: { type: 'admitted', params: doneAt } },
        onError: refusing(thrown),
      },
    },
  },
})

const online = accountChart.createStateConfig({
  type: 'parallel',
  on: {
    WAKE: [
      {
        guard: ({ context, event }) => wantsNewSession({ event }) && isThrottled(context, event.now),
        target: toThrottled,
        actions: { type: 'hear', params: ({ event }) => ({ at: event.now }) },
      },
      { guard: wantsNewSession, ...connectNow },
    ],
  },
  states: { mailbox: { initial: 'syncing', states: { syncing, watching } }, logins },
})

const waiting = accountChart.createStateConfig({
  tags: 'waiting',
  initial: 'backoff',
  after: { wait: { target: 'connecting', actions: 'waited' } },
  states: {
    backoff: {
      on: {
        WAKE: connectNow,
        HOST_BACK: { target: '#account.running.life.connecting', actions: resumed },
        CHECK_PASSED: { target: '#account.running.life.connecting', actions: proved },
        CHECK_FAILED: reported,
      },
    },
    throttled: {
      tags: 'throttled',
      on: {
        CHECK_FAILED: { guard: { type: 'isThrottling', params: failure }, ...reported },
      },
    },
  },
})

const disabled = accountChart.createStateConfig({
  after: { wait: { guard: 'hasProbe', target: 'connecting', actions: 'waited' } },
  on: {
    WAKE: connectNow,
    CHECK_PASSED: { target: 'connecting', actions: proved },
    CHECK_FAILED: reported,
  },
})

const paused = accountChart.createStateConfig({
  tags: 'paused',
  on: {
    RESUME: [
      { guard: { type: 'throttledAt', params: moment }, target: 'waiting.throttled', actions: unpauses },
      { target: 'connecting', actions: [unpauses, resumed] },
    ],
  },
})

const status = accountChart.createStateConfig({
  initial: 'known',
  states: {
    known: { always: [{ guard: 'isDisabled', target: 'disabled' }, { target: 'ok' }] },
    ok: { tags: 'ok', always: { guard: 'isDisabled', target: 'disabled', actions: 'announceStatus' } },
    disabled: { tags: 'disabled', always: { guard: 'isOk', target: 'ok', actions: 'announceStatus' } },
  },
})

const { records, closing } = recordStates(reportOf)

export const accountMachine = accountChart.createMachine({
  id: 'account',
  context: ({ input }) => startContext(input),
  initial: 'running',
  states: {
    running: {
      type: 'parallel',
      on: {
        STOP: [{ guard: 'dirty', target: 'closing' }, { target: 'stopped' }],
        'sync.completed': { actions: { type: 'initialSyncDone', params: at } },
      },
      states: {
        life: {
          initial: 'starting',
          on: { PAUSE: { target: '.paused', actions: { type: 'pauses', params: at } } },
          states: {
            starting: {
              always: [
                { guard: 'startsPaused', target: 'paused' },
                { guard: 'throttled', target: 'waiting.throttled' },
                { guard: 'isDisabled', target: 'disabled' },
                { guard: 'mustWait', target: 'waiting.backoff' },
                { target: 'connecting' },
              ],
            },
            connecting,
            online,
            deciding: {
              always: [
                { guard: 'rejected', target: 'disabled' },
                { guard: 'throttled', target: 'waiting.throttled' },
                { target: 'waiting.backoff' },
              ],
            },
            waiting,
            disabled,
            paused,
          },
        },
        status,
        records,
      },
    },
    closing,
    stopped: { tags: 'stopped', type: 'final' },
  },
})

export type AccountSnapshot = SnapshotFrom<typeof accountMachine>
