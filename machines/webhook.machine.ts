/**
 * One webhook: active or paused × healthy, retrying, failed or abandoned. Three regions, then `closing` and `stopped`.
 * docs/architecture.md has the picture; this header explains the unusual parts.
 *
 * work: sending the outbox.
 *   draining    rows go out in order. `claiming` reads the due rows of free accounts, as many as there is room for;
 *               every outcome enters `sending` again, and restarts its deadline; in `idle` nothing is due.
 *   probing     exactly one row is tried. An error of ours, or the deadline, does not count as a failure.
 *   resting     the webhook fails, and there is no row to try: none waits, or all are postponed (an unreadable body).
 *   recovering  drain ended by an error of ours (the store is unreachable).
 *   paused      the engine keeps no rows.
 *   `delivered` (a callback that was under way, or sent by hand) leads to draining from every state of `active`.
 *   ADOPT (another node has stored the health) leads to waiting or draining, by that health.
 * health: follows the context. A failing period is announced once; after abandonMs only one row is tried every probeMs,
 *   until one is delivered. row.failed (one row fails while others may succeed) counts too, but delays other rows only
 *   from then on.
 * records: calls `report` with the health until it succeeds. It never delays work.
 */
import type { SnapshotFrom } from 'xstate'
import type { Activation, Adoption, DeliveryFailure, ProbeOutput, WebhookEmitted } from './events.ts'
import { recordStates } from './records.ts'
import { startWebhookContext, webhookChart, type WebhookContext, webhookReportOf } from './webhook.rules.ts'

interface ActionArgs<TEvent> {
  readonly context: WebhookContext
  readonly event: TEvent
}

const webhook = ({ context }: { readonly context: WebhookContext }) => ({ webhookId: context.webhookId })
const at = ({ event }: ActionArgs<{ readonly at: number }>) => ({ at: event.at })
const activation = ({ event }: ActionArgs<Activation>): Activation => event
const failure = ({ event }: ActionArgs<{ readonly failure: DeliveryFailure }>) => ({ failure: event.failure })

const delivered = { type: 'delivered', params: at } as const
const activate = { type: 'activate', params: activation } as const
const adopt = { type: 'adopt', params: ({ event }: ActionArgs<Adoption>) => event } as const
const failRow = { type: 'failRow', params: failure } as const
const stalled = { target: 'waiting', actions: { type: 'stall', params: { lostMs: 0 } } } as const
const announce = <T extends WebhookEmitted['type']>(news: T) => ({ type: 'announce', params: { news } }) as const
const gone = {
  guard: 'isInactive',
  target: '#webhook.running.work.paused',
  actions: announce('gone'),
} as const

const draining = webhookChart.createStateConfig({
  tags: 'draining',
  initial: 'claiming',
  // A callback actor never ends by itself, unless it has a bug.
  invoke: { id: 'drain', src: 'drain', input: webhook, onDone: 'recovering', onError: 'recovering' },
  always: [gone, { guard: 'isAbandoned', target: 'waiting' }, { guard: 'mustWait', target: 'waiting' }],
  on: {
    'delivery.failed': { target: 'deciding', actions: { type: 'fail', params: failure } },
    delivered: { target: '.sending', actions: delivered },
    'row.failed': { target: '.sending', actions: failRow },
    ACTIVATE: { target: '.sending', actions: [activate, 'wakeDrain'] },
    ADOPT: { actions: adopt },
  },
  states: {
    claiming: {
      invoke: {
        id: 'claim',
        src: 'claim',
        input: webhook,
        onDone: 'sending',
        onError: '#webhook.running.work.active.recovering',
      },
      after: { drainDeadline: '#webhook.running.work.active.recovering' },
      on: {
        delivered: { actions: delivered },
        'row.failed': { actions: failRow },
        ACTIVATE: { actions: [activate, 'wakeDrain'] },
        WAKE: { actions: 'wakeDrain' },
      },
    },
    sending: {
      after: { drainDeadline: '#webhook.running.work.active.recovering' },
      on: {
        room: 'claiming',
        idle: { target: 'idle', actions: { type: 'hear', params: at } },
        WAKE: { actions: 'wakeDrain' },
      },
    },
    idle: {
      tags: 'idle',
      on: { room: 'claiming', WAKE: { target: 'sending', actions: 'wakeDrain' } },
    },
  },
})

interface Probed {
  readonly event: { readonly output: ProbeOutput }
}

function outcomeAt({ event: { output } }: Probed) {
  return { at: output.delivered === false ? output.failure.at : output.at }
}

function outcomeNothing(probed: Probed) {
  const { output } = probed.event
  return { ...outcomeAt(probed), next: (output.delivered === null ? output.next : undefined) ?? Infinity }
}

/** For a failed probe only. */
function outcomeFailure({ event: { output } }: Probed) {
  if (output.delivered !== false) throw new TypeError('a probe that did not fail has no failure')
  return { failure: output.failure }
}

const probing = webhookChart.createStateConfig({
  tags: 'probing',
  entry: 'clearNews',
  invoke: {
    id: 'probe',
    src: 'probe',
    input: webhook,
    onDone: [
      {
        guard: ({ event }) => event.output.delivered === true,
        target: 'draining',
        actions: { type: 'delivered', params: outcomeAt },
      },
      {
        guard: ({ event }) => event.output.delivered === false,
        target: 'deciding',
        actions: { type: 'fail', params: outcomeFailure },
      },
      { guard: 'hasNews', target: 'probing', reenter: true },
      { target: 'resting', actions: { type: 'nothingToTry', params: outcomeNothing } },
    ],
    onError: stalled,
  },
  after: {
    probeDeadline: {
      target: 'waiting',
      actions: { type: 'stall', params: ({ context }) => ({ lostMs: context.settings.probeDeadlineMs }) },
    },
  },
  on: { WAKE: { actions: 'noteNews' } },
})

const active = webhookChart.createStateConfig({
  tags: 'active',
  initial: 'starting',
  on: {
    DEACTIVATE: { target: 'paused', actions: 'deactivate' },
    delivered: { target: '.draining', actions: delivered },
    ACTIVATE: { target: '.draining', actions: activate },
    ADOPT: { target: '.starting', actions: adopt },
  },
  states: {
    starting: { always: [{ guard: 'mustWait', target: 'waiting' }, { target: 'draining' }] },
    draining,
    deciding: { always: [gone, { target: 'waiting' }] },
    waiting: { tags: 'waiting', after: { wait: { target: 'probing', actions: 'waited' } } },
    probing,
    resting: {
      tags: 'resting',
      after: { wait: { target: 'probing', actions: 'waited' } },
      on: { WAKE: 'probing' },
    },
    recovering: { tags: 'recovering', after: { stallRetry: 'draining' } },
  },
})

const health = webhookChart.createStateConfig({
  initial: 'known',
  states: {
    known: {
      always: [
        { guard: 'isAbandoned', target: 'abandoned' },
        { guard: 'isFailed', target: 'failed' },
        { guard: 'isRetrying', target: 'retrying' },
        { target: 'healthy' },
      ],
    },
    healthy: {
      tags: 'healthy',
      always: [
        { guard: 'isFailed', target: 'failed', actions: announce('failing') },
        { guard: 'isRetrying', target: 'retrying' },
      ],
    },
    retrying: {
      tags: 'retrying',
      always: [
        { guard: 'isFailed', target: 'failed', actions: announce('failing') },
        { guard: 'isHealthy', target: 'healthy' },
      ],
    },
    failed: {
      tags: 'failed',
      always: [
        { guard: 'isHealthy', target: 'healthy', actions: announce('recovered') },
        { guard: 'isAbandoned', target: 'abandoned', actions: announce('abandoned') },
      ],
    },
    abandoned: {
      tags: ['failed', 'abandoned'],
      always: { guard: 'isHealthy', target: 'healthy', actions: announce('recovered') },
    },
  },
})

const { records, closing } = recordStates(webhookReportOf)

export const webhookMachine = webhookChart.createMachine({
  id: 'webhook',
  context: ({ input }) => startWebhookContext(input),
  initial: 'running',
  states: {
    running: {
      type: 'parallel',
      on: { STOP: [{ guard: 'dirty', target: 'closing' }, { target: 'stopped' }] },
      states: {
        work: {
          initial: 'starting',
          states: {
            starting: { always: [{ guard: 'isInactive', target: 'paused' }, { target: 'active' }] },
            active,
            paused: {
              tags: 'paused',
              on: { ACTIVATE: { target: 'active.draining', actions: activate }, ADOPT: { actions: adopt } },
            },
          },
        },
        health,
        records,
      },
    },
    closing,
    stopped: { tags: 'stopped', type: 'final' },
  },
})

export type WebhookSnapshot = SnapshotFrom<typeof webhookMachine>
