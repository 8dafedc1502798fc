/** From records and what the pools know to the rows of operators. */
import type { z } from 'zod'
import type { AccountRecord, ActorView, PoolFacts, WebhookRecord } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import type { accountRow, stepView, webhookRow } from './views.ts'

export type AccountRow = z.input<typeof accountRow>
export type WebhookRow = z.input<typeof webhookRow>

/** Of an actor that is not there: its record has just come, or the service is starting or ending. */
export const noActor = 'stopped'

/** `facts`: undefined = there is no actor. */
export function presentAccount(account: AccountRecord, facts: PoolFacts | null | undefined): AccountRow {
  const { id, developerId, userId, label, email, server, status, statusMessage, createdAt, resume } = account
  const { lastError } = facts ?? resume
  return {
    ...{ id, label, email, server, status },
    developer_id: developerId,
    user_id: userId,
    state: facts?.state ?? noActor,
    since: seconds(facts?.since ?? createdAt),
    failure: lastError?.class ?? null,
    message: statusMessage ?? lastError?.message ?? null,
    attempt: facts?.attempt ?? resume.attempt,
    next: presentNext(facts),
  }
}

export function presentWebhook(webhook: WebhookRecord, facts: PoolFacts | null | undefined): WebhookRow {
  const { id, developerId, userId, callbackUrl, active, health, createdAt } = webhook
  return {
    ...{ id, active },
    developer_id: developerId,
    user_id: userId,
    callback_url: callbackUrl,
    state: facts?.state ?? noActor,
    since: seconds(facts?.since ?? createdAt),
    failing_since: orNull(health.failingSince),
    failures: facts?.attempt ?? health.consecutiveFailures,
    message: health.lastError,
    next: presentNext(facts),
  }
}

function presentNext(facts: Pick<PoolFacts, 'next'> | null | undefined): AccountRow['next'] {
  const next = facts?.next ?? null
  return next && { what: next.what, at: seconds(next.at) }
}

export function presentSteps(view: Pick<ActorView, 'steps'> | null): z.input<typeof stepView>[] {
  return (view?.steps ?? []).map((step) => ({ ...step, at: step.at / 1000 }))
}

export function orNull(at: number | null | undefined): number | null {
  return at === null || at === undefined ? null : seconds(at)
}

export function countBy<T>(all: Iterable<T>, name: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) {
    const key = name(one)
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

/** 2026-11-22 14:30:00 UTC. `at`: milliseconds since 1970. */
export function utc(at: number): string {
  return `${new Date(at).toISOString().replace('T', ' ').slice(0, 19)} UTC`
}
