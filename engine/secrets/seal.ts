/**
 * Sealing of credentials: AES-256-GCM with a key from MAILROOM_SECRET, or from the file `secret` in the data directory.
 * The record's id is associated data, so that a sealed value does not open in another record. Format:
 * `v2.<key id>.<iv>.<tag>.<ciphertext>`, base64url; the key id is the beginning of a hash of the key. Values of the
 * older form `v1.<iv>.<tag>.<ciphertext>` open too.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  scryptSync,
  timingSafeEqual,
} from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Credential } from '../accounts/types.ts'
import type { Config } from '../config.ts'
import { makeDataDir } from '../data-dir.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord } from '../store/records.ts'

export type Sealer = ReturnType<typeof createSealer>

/** `key` seals and opens; `former` keys only open (MAILROOM_SECRET_OLD). */
export function createSealer(key: Buffer, former: readonly Buffer[] = []) {
  const all = [key, ...former]
  const keyId = idOf(key)
  const ids = new Set(all.map(idOf))
  function open(sealed: string, recordId: string): string {
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
  }
  return {
    /** Id of `key`. */
    keyId,
    /** A key for another purpose, derived from `key`. */
    derive: (purpose: string): Buffer => derived(key, purpose),
    /** The same, derived from the former keys. */
    deriveFormer: (purpose: string): Buffer[] => former.map((one) => derived(one, purpose)),
    seal(plain: string, recordId: string): string {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(recordId))
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      const parts = [iv, cipher.getAuthTag(), sealed]
      return ['v2', keyId, ...parts.map((part) => part.toString('base64url'))].join('.')
    },
    /** Throws `internal` without the key that sealed the value, and for another record's value. */
    open,
    /** true = the key that sealed the value is here. */
    opens(sealed: string, recordId: string): boolean {
      const id = keyIdOf(sealed)
      if (id !== unnamed) return ids.has(id)
      try {
        open(sealed, recordId)
        return true
      } catch {
        return false
      }
    },
    /** Id of the key that sealed the value; 'v1' = the value has none. */
    keyOf: keyIdOf,
  }
}

function derived(key: Buffer, purpose: string): Buffer {
  return createHmac('sha256', key).update(`mailroom/${purpose}`).digest()
}

/** Stands for the key id of a value of the older form. */
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

/** 32 bytes as hex or base64 are the key; any other text is a pass phrase, and scrypt derives the key. */
export function keyFrom(secret: string): Buffer {
  if (/^[0-9a-f]{64}$/i.test(secret)) return Buffer.from(secret, 'hex')
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(secret)) return Buffer.from(secret, 'base64')
  if (secret.length < 8) throw new AppError('bad_request', 'MAILROOM_SECRET: a pass phrase needs at least 8 characters')
  return scryptSync(secret, 'mailroom/credentials/v1', 32, { N: 16384, r: 8, p: 1 })
}

type Settings = Pick<Config, 'MAILROOM_SECRET' | 'MAILROOM_DATA_DIR'>

/** The keys that only open. */
export function formerKeys({ MAILROOM_SECRET_OLD: old }: Pick<Config, 'MAILROOM_SECRET_OLD'>): Buffer[] {
  return old === null ? [] : [keyFrom(old)]
}

export function secretFile(config: Pick<Settings, 'MAILROOM_DATA_DIR'>): string {
  return join(config.MAILROOM_DATA_DIR, 'secret')
}

/** null without the setting and the file. Throws `bad_request` (one line) when the file cannot be read. */
export function readKey(config: Settings, log: Logger): Buffer | null {
  if (config.MAILROOM_SECRET !== null) return keyFrom(config.MAILROOM_SECRET)
  makeDataDir(config.MAILROOM_DATA_DIR)
  const file = secretFile(config)
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found === undefined) return null
    if ((found.mode & 0o077) !== 0) log.warn({ file }, 'the secret can be read by others: chmod 600')
    return keyFrom(readFileSync(file, 'utf8').trim())
  } catch (error) {
    if (error instanceof AppError)
      throw new AppError('bad_request', `${file}: too short to be the secret`, { cause: error })
    throw new AppError('bad_request', `MAILROOM_DATA_DIR: cannot read ${file}: ${wordsOf(error)}`, { cause: error })
  }
}

/** Makes the file, with mode 0600. Throws `bad_request` when it cannot be written, or exists. */
export function makeKey(config: Settings): Buffer {
  const file = secretFile(config)
  const secret = randomBytes(32).toString('hex')
  try {
    writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    throw new AppError('bad_request', `MAILROOM_DATA_DIR: cannot write ${file}: ${wordsOf(cause)}`, { cause })
  }
  return keyFrom(secret)
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function sealCredential(sealer: Sealer, accountId: string, credential: Credential): string {
  return sealer.seal(JSON.stringify(credential), accountId)
}

/** Throws `internal` without the key that sealed the credential. */
export function openCredential(sealer: Sealer, account: Pick<AccountRecord, 'id' | 'sealedCredential'>): Credential {
  return JSON.parse(sealer.open(account.sealedCredential, account.id)) as Credential
}

/**
 * Stores the credential with the provider's new refresh token, unless the account has got another credential meanwhile.
 * A credential that was only sealed again is the same credential.
 */
export async function keepRotated(
  { sealer, store }: { readonly sealer: Sealer; readonly store: Pick<Store, 'accounts' | 'sealed'> },
  account: AccountRecord,
  newest: Credential,
): Promise<void> {
  const former = JSON.stringify(openCredential(sealer, account))
  const sealed = sealCredential(sealer, account.id, newest)
  for (let known: AccountRecord | null = account; known !== null; known = await store.accounts.get(account.id)) {
    if (JSON.stringify(openCredential(sealer, known)) !== former) return
    if (await store.sealed.account(account.id, known.sealedCredential, sealed)) return
  }
}

/** Compares in a time that depends only on the length. */
export function sameText(expected: string, given: string): boolean {
  const a = Buffer.from(expected)
  const b = Buffer.from(given)
  return a.length === b.length && timingSafeEqual(a, b)
}
