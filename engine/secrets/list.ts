/**
 * The secrets of a developer or a webhook: the current secret first, then replaced secrets, each until its overlap
 * ends. They are sealed as one value, with the record's id as associated data.
 */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Sealer } from './seal.ts'

/** Times in ms since 1970. `expiresAt`: null = the current secret. */
const kept = z.object({ secret: z.string(), createdAt: z.number(), expiresAt: z.number().nullable() })
const list = z.array(kept).min(1)

export type Secret = Readonly<z.infer<typeof kept>>

export function sealSecrets(sealer: Sealer, recordId: string, secrets: readonly Secret[]): string {
  return sealer.seal(JSON.stringify(secrets), recordId)
}

/** Throws `internal` without the key that sealed them. */
export function openSecrets(sealer: Sealer, recordId: string, sealed: string): readonly Secret[] {
  const text = sealer.open(sealed, recordId)
  // Older versions sealed a developer's secret alone, without a list.
  if (!text.startsWith('[{')) return [onlySecret(text, 0)]
  return list.parse(JSON.parse(text))
}

/** [] without the key that sealed them. */
export function keptSecrets(sealer: Sealer, recordId: string, sealed: string): readonly Secret[] {
  return sealer.opens(sealed, recordId) ? openSecrets(sealer, recordId, sealed) : []
}

export const onlySecret = (secret: string, createdAt: number): Secret => ({ secret, createdAt, expiresAt: null })

/** Makes `secret` the current secret. The others are valid for `overlapMs` at most; expired secrets are dropped. */
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
