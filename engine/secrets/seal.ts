/**
 * Sealing of credentials: AES-256-GCM, key from MAILROOM_SECRET, the record's id as associated data, so that a sealed
 * value moved to another record does not open. Format: `v1.<iv>.<tag>.<ciphertext>`, base64url.
 */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import { AppError } from '../errors.ts'

export type Sealer = ReturnType<typeof createSealer>

export function createSealer(key: Buffer) {
  return {
    seal(plain: string, recordId: string): string {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(recordId))
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      const parts = [iv, cipher.getAuthTag(), sealed]
      return ['v1', ...parts.map((part) => part.toString('base64url'))].join('.')
    },
    /** Throws `internal` when the value was sealed with another secret or for another record. */
    open(sealed: string, recordId: string): string {
      try {
        const [version, iv, tag, data] = sealed.split('.')
        if (version !== 'v1' || iv === undefined || tag === undefined || data === undefined)
          throw new Error('malformed')
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url')).setAAD(
          Buffer.from(recordId),
        )
        decipher.setAuthTag(Buffer.from(tag, 'base64url'))
        return decipher.update(Buffer.from(data, 'base64url'), undefined, 'utf8') + decipher.final('utf8')
      } catch (cause) {
        throw new AppError(
          'internal',
          'a sealed value does not open: MAILROOM_SECRET is not the one it was sealed with',
          { cause },
        )
      }
    },
  }
}

/** 32 bytes as hex or base64 are taken as they are; anything else is a pass phrase and goes through scrypt. */
export function keyFrom(secret: string): Buffer {
  if (/^[0-9a-f]{64}$/i.test(secret)) return Buffer.from(secret, 'hex')
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(secret)) return Buffer.from(secret, 'base64')
  if (secret.length < 8) throw new AppError('bad_request', 'MAILROOM_SECRET: a pass phrase needs at least 8 characters')
  return scryptSync(secret, 'mailroom/credentials/v1', 32, { N: 16384, r: 8, p: 1 })
}
