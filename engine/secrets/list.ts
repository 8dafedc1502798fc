/**
 * The secrets of a developer or a webhook: the current one first, then those that it replaced, each until its overlap
 * ends. They are sealed as one value, with the record's id as associated data.
 */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Sealer } from './seal.ts'

export interface Secret {
  readonly secret: string
  /** In ms since 1970. */
  readonly createdAt: number
  /** null = the current one. */
  readonly expiresAt: number | null
}

const list = z.array(z.object({ secret: z.string(), createdAt: z.number(), expiresAt: z.number().nullable() })).min(1)

export function sealSecrets(sealer: Sealer, recordId: string, secrets: readonly Secret[]): string {
  return sealer.seal(JSON.stringify(secrets), recordId)
}

/** Throws `internal` when the key that sealed them is not here. */
export function openSecrets(sealer: Sealer, recordId: string, sealed: string): readonly Secret[] {
  const text = sealer.open(sealed, recordId)
  // A developer's secret was once sealed by itself.
  if (!text.startsWith('[{')) return [onlySecret(text, 0)]
  return list.parse(JSON.parse(text))
}

/** None when that key is lost. */
export function keptSecrets(sealer: Sealer, recordId: string, sealed: string): readonly Secret[] {
  return sealer.opens(sealed, recordId) ? openSecrets(sealer, recordId, sealed) : []
}

export const onlySecret = (secret: string, createdAt: number): Secret => ({ secret, createdAt, expiresAt: null })

/** `secret` is the current one; those before are good until now + overlap at most, expired ones are dropped. */
export function rotated(secrets: readonly Secret[], secret: string, now: number, overlapMs: number): Secret[] {
  const until = now + overlapMs
  const replaced = secrets.map((one) => ({ ...one, expiresAt: Math.min(one.expiresAt ?? until, until) }))
  return [onlySecret(secret, now), ...validSecrets(replaced, now)]
}

export function validSecrets(secrets: readonly Secret[], now: number): Secret[] {
  return secrets.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
}

export function currentSecret(secrets: readonly Secret[]): string {
  const [current] = secrets
  if (current === undefined) throw new AppError('internal', 'a record without a secret')
  return current.secret
}
