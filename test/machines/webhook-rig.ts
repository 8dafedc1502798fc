/** A webhook's chart with its actors in the test's hands. */
import { createActor } from 'xstate'
import type {
  DeliveryFailure,
  DrainEvent,
  ProbeOutput,
  WebhookEmitted,
  WebhookEvent,
  WebhookHealth,
  WebhookInput,
  WebhookReport,
} from '../../machines/events.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'
import type { WebhookMachineInput, WebhookSettings } from '../../machines/webhook.rules.ts'
import { controlled, deferred, settle, simulatedTime, transitionCoverage } from './rig.ts'

const minute = 60_000
const hour = 60 * minute

export const settings: WebhookSettings = {
  scheduleMs: [5000, 5 * minute, 30 * minute, 2 * hour, 5 * hour],
  jitterPercent: 20,
  retryAfterMaxMs: hour,
  probeMs: hour,
  abandonMs: 120 * hour,
  announceAfter: 3,
  drainDeadlineMs: 5 * minute,
  probeDeadlineMs: minute,
  stallRetryMs: 10_000,
  successReportMs: minute,
  reportDeadlineMs: 20_000,
  reportRetryMs: 2000,
}

export const healthy: WebhookHealth = {
  failure: false,
  consecutiveFailures: 0,
  retryAt: null,
  lastError: null,
  lastSuccessAt: null,
  failingSince: null,
  abandonedAt: null,
  failureVersion: 0,
}

/** Of all rigs of this process. */
export const webhookCoverage = transitionCoverage(webhookMachine)

export interface RigOptions {
  readonly input?: Partial<WebhookMachineInput>
  readonly health?: Partial<WebhookHealth>
  /** Reports wait for the test instead of succeeding at once. */
  readonly holdReports?: boolean
  /** So do claims. */
  readonly holdClaims?: boolean
}

export function webhookRig(options: RigOptions = {}) {
  const { clock, now, pass } = simulatedTime()
  const drain = controlled<WebhookEvent, DrainEvent, WebhookInput>()
  const claim = deferred<unknown, WebhookInput>(now, () => (options.holdClaims ? undefined : true))
  const probe = deferred<ProbeOutput, WebhookInput>(now)
  const report = deferred<unknown, WebhookReport>(now, () => (options.holdReports ? undefined : true))
  const machine = webhookMachine.provide({
    actors: { drain: drain.logic, claim: claim.logic, probe: probe.logic, report: report.logic },
  })
  const input: WebhookMachineInput = {
    webhookId: 'w1',
    settings,
    now: now(),
    jitter: 0.5,
    active: true,
    ...options.input,
    health: { ...healthy, ...options.health },
  }
  const actor = createActor(machine, { clock, input, inspect: webhookCoverage.inspect })
  const emitted: WebhookEmitted[] = []
  const errors: unknown[] = []
  actor.on('*', (event) => emitted.push(event))
  actor.subscribe({ error: (error) => errors.push(error) })
  actor.start()
  const failure = (more: Partial<DeliveryFailure> = {}): DeliveryFailure => ({
    message: 'HTTP 500',
    at: now(),
    retryAfterMs: null,
    jitter: 0.5,
    ...more,
  })
  const rig = {
    actor,
    drain,
    claim,
    probe,
    report,
    emitted,
    errors,
    now,
    pass,
    failure,
    tags: () => [...actor.getSnapshot().tags].sort().join(' '),
    context: () => actor.getSnapshot().context,
    health: () => actor.getSnapshot().context.health,
    announced: () => emitted.filter(({ type }) => type === 'failing'),
    /** Announcements in the reports, each once, however often its report was repeated. */
    told: () => {
      const all = report.calls.flatMap(({ input }) => input.announcements)
      return [...new Map(all.map((one) => [one.version, one])).values()]
    },
    async send(event: WebhookEvent) {
      actor.send(event)
      await settle()
    },
    adopts: (health: WebhookHealth) => rig.send({ type: 'ADOPT', health, at: now() }),
    async drains(event: WebhookEvent) {
      drain.last().sendBack(event)
      await settle()
    },
    async deliveryFails(more: Partial<DeliveryFailure> = {}) {
      await rig.drains({ type: 'delivery.failed', failure: failure(more) })
    },
    async rowFails(more: Partial<DeliveryFailure> = {}) {
      await rig.drains({ type: 'row.failed', failure: failure(more) })
    },
    async probes(output: ProbeOutput) {
      probe.last().resolve(output)
      await settle()
    },
    async probeFails(more: Partial<DeliveryFailure> = {}) {
      await rig.probes({ delivered: false, failure: failure(more) })
    },
    /** Lets the wait pass that is under way. */
    async untilProbe() {
      await pass((actor.getSnapshot().context.health.retryAt ?? now()) - now())
    },
  }
  return rig
}

export type WebhookRig = ReturnType<typeof webhookRig>
