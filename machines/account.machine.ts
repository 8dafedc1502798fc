/**
 * One email account: three regions, then `closing` and `stopped`. docs/architecture.md has the picture; here is the
 * reason of what is odd in it.
 *
 * life: what the account's connection does.
 *   starting, deciding  left at once: as the resume record says, and as the last failure has changed the context.
 *   connecting.queued   waits for our own login limiter, so no deadline.
 *   online.logins       whether the command connection may log in. A login of its own that fails counts like any other,
 *                       and leaves alone the session that is open, until a rejection makes the account DISABLED.
 *   waiting.throttled   the server's own time: WAKE does not end it, a further throttling only extends it.
 *   disabled            tried again when the probe is due.
 * status: follows the context. An account stays DISABLED while it is tried anew, and while it waits after a try that
 *   said nothing about its login (network …).
 * records: whatever has to survive a restart is given to `report` until it succeeds. It never holds up life.
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

const rejected = failing(({ context, event }: Args<{ readonly error: unknown }>) => failureOf(context, event.error))
/** A callback actor does not end by itself; if it does, that is a bug of the actor. */
const ended = failing(({ context }: Args<unknown>) => failureOf(context, null))
const reported = failing(({ event }: Args<{ readonly failure: Failure }>) => event.failure)
const connectLate = failing(({ context }: Args<unknown>) =>
  lateFailure(context, context.settings.connectDeadlineMs, 'the mail server did not complete the login in time'),
)
const syncLate = failing(({ context }: Args<unknown>) =>
  lateFailure(context, context.settings.syncDeadlineMs, 'the mail server stopped answering while the mailbox was read'),
)
const watchLate = failing(({ context }: Args<unknown>) =>
  lateFailure(context, context.settings.watchDeadlineMs, 'the mail server has been silent for too long'),
)

const at = ({ event }: Args<{ readonly at: number }>) => ({ at: event.at })
const doneAt = ({ event }: Args<{ readonly output: { readonly at: number } }>) => ({ at: event.output.at })
const moment = ({ event }: Args<Moment>) => ({ now: event.now, jitter: event.jitter })
const failure = ({ event }: Args<{ readonly failure: Failure }>) => ({ failure: event.failure })
const mailbox = ({ context }: { readonly context: AccountContext }) => ({ accountId: context.accountId })

const hear = { type: 'hear', params: at } as const
const forget = { type: 'forget', params: moment } as const
const proved = { type: 'proved', params: at } as const
const connectNow = { target: '#account.running.life.connecting', reenter: true, actions: forget } as const
/** Whatever is under way: a person asked, and the mail server has answered. */
const onCheckFailed = { guard: { type: 'isVerdict', params: failure }, ...reported } as const
const wantsNewSession = ({ event }: { readonly event: { readonly reconnect?: boolean } }) => event.reconnect === true
/** A session is given up for a new one, which has to wait where the server has asked for peace meanwhile. */
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
    // The open session speaks against every other failure of a second login.
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
    'command.failed': refusing(({ event }: Args<{ readonly failure: Failure }>) => event.failure),
    'command.connected': { target: '.free', actions: { type: 'admitted', params: at } },
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
          actions: { type: 'admitted', params: at },
        },
      },
    },
    trying: {
      invoke: {
        id: 'relogin',
        src: 'relogin',
        input: mailbox,
        onDone: { target: 'free', actions: { type: 'admitted', params: doneAt } },
        onError: refusing(({ context, event }: Args<{ readonly error: unknown }>) => failureOf(context, event.error)),
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
        HOST_BACK: { target: '#account.running.life.connecting', actions: { type: 'resumed', params: moment } },
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
      {
        guard: { type: 'throttledAt', params: moment },
        target: 'waiting.throttled',
        actions: { type: 'unpauses', params: moment },
      },
      {
        target: 'connecting',
        actions: [
          { type: 'unpauses', params: moment },
          { type: 'resumed', params: moment },
        ],
      },
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
