/**
 * Secrets of one webhook: `whsec_` and base64 of 32 random bytes (Standard Webhooks). A replaced one signs along until its
 * overlap ends. Stored sealed, newest first, with the webhook's id as associated data.
 */
import { randomBytes } from 'node:crypto'
import { AppError } from '../errors.ts'
import type { Sealer } from '../secrets/seal.ts'

export interface WebhookSecret {
  readonly secret: string
  readonly createdAt: number
  /** null = the current one. */
  readonly expiresAt: number | null
}

export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

export function sealSecrets(sealer: Sealer, webhookId: string, secrets: readonly WebhookSecret[]): string {
  return sealer.seal(JSON.stringify(secrets), webhookId)
}

export function openSecrets(sealer: Sealer, webhookId: string, sealed: string): WebhookSecret[] {
  return JSON.parse(sealer.open(sealed, webhookId)) as WebhookSecret[]
}

/** A new current secret; the old one signs until now + overlap, expired ones are dropped. */
export function rotated(secrets: readonly WebhookSecret[], now: number, overlapMs: number): WebhookSecret[] {
  const old = validSecrets(secrets, now).map((one) => ({ ...one, expiresAt: one.expiresAt ?? now + overlapMs }))
  return [{ secret: newSecret(), createdAt: now, expiresAt: null }, ...validSecrets(old, now)]
}

export function validSecrets(secrets: readonly WebhookSecret[], now: number): WebhookSecret[] {
  return secrets.filter((one) => one.expiresAt === null || one.expiresAt > now)
}

export function currentSecret(secrets: readonly WebhookSecret[]): string {
  const [current] = secrets
  if (current === undefined) throw new AppError('internal', 'a webhook without a secret')
  return current.secret
}
