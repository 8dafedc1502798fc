/**
 * Sealing of credentials: AES-256-GCM, key from MAILROOM_SECRET, the record's id as associated data, so that a sealed
 * value moved to another record does not open. Format: `v2.<key id>.<iv>.<tag>.<ciphertext>`, base64url; the key id is
 * the beginning of a hash of the key. Values of the older form `v1.<iv>.<tag>.<ciphertext>` open too.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { AppError } from '../errors.ts'

export interface Sealer {
  /** Of the key that seals. */
  readonly keyId: string
  seal(plain: string, recordId: string): string
  /** Throws `internal` when the value was sealed with a key that is not here, or for another record. */
  open(sealed: string, recordId: string): string
  /** The key that a value names; 'v1' = it names none. */
  keyOf(sealed: string): string
}

/** `former`: keys that seal nothing new (MAILROOM_SECRET_OLD). */
export function createSealer(key: Buffer, former: readonly Buffer[] = []): Sealer {
  const all = [key, ...former]
  const keyId = idOf(key)
  return {
    keyId,
    seal(plain, recordId) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(recordId))
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      const parts = [iv, cipher.getAuthTag(), sealed]
      return ['v2', keyId, ...parts.map((part) => part.toString('base64url'))].join('.')
    },
    open(sealed, recordId) {
      const id = keyIdOf(sealed)
      const keys = id === unnamed ? all : all.filter((one) => idOf(one) === id)
      let cause: unknown = new Error(`no key ${id}`)
      for (const one of keys) {
        try {
          return opened(one, sealed.split('.').slice(id === unnamed ? 1 : 2), recordId)
        } catch (error) {
          cause = error
        }
      }
      throw new AppError(
        'internal',
        'a sealed value does not open: it was sealed with neither MAILROOM_SECRET nor a key of MAILROOM_SECRET_OLD',
        { cause },
      )
    },
    keyOf: keyIdOf,
  }
}

/** In place of a key id. */
const unnamed = 'v1'

function keyIdOf(sealed: string): string {
  return /^v2\.([0-9a-f]{8})\./.exec(sealed)?.[1] ?? unnamed
}

function idOf(key: Buffer): string {
  return createHash('sha256').update('mailroom/key-id/').update(key).digest('hex').slice(0, 8)
}

function opened(key: Buffer, parts: readonly string[], recordId: string): string {
  const [iv, tag, data] = parts
  if (iv === undefined || tag === undefined || data === undefined || parts.length > 3) throw new Error('malformed')
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url')).setAAD(Buffer.from(recordId))
  decipher.setAuthTag(Buffer.from(tag, 'base64url'))
  return decipher.update(Buffer.from(data, 'base64url'), undefined, 'utf8') + decipher.final('utf8')
}

/** 32 bytes as hex or base64 are taken as they are; anything else is a pass phrase and goes through scrypt. */
export function keyFrom(secret: string): Buffer {
  if (/^[0-9a-f]{64}$/i.test(secret)) return Buffer.from(secret, 'hex')
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(secret)) return Buffer.from(secret, 'base64')
  if (secret.length < 8) throw new AppError('bad_request', 'MAILROOM_SECRET: a pass phrase needs at least 8 characters')
  return scryptSync(secret, 'mailroom/credentials/v1', 32, { N: 16384, r: 8, p: 1 })
}

/** Time depends on the length alone. */
export function sameText(expected: string, given: string): boolean {
  const a = Buffer.from(expected)
  const b = Buffer.from(given)
  return a.length === b.length && timingSafeEqual(a, b)
}
