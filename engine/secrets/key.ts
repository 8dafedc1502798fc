/** Where the key that seals credentials comes from: MAILROOM_SECRET, or the file `secret` in the data directory. */
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { makeDataDir } from '../data-dir.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import { keyFrom } from './seal.ts'

type Settings = Pick<Config, 'MAILROOM_SECRET' | 'MAILROOM_DATA_DIR'>

/** Those that seal nothing new. */
export function formerKeys({ MAILROOM_SECRET_OLD: old }: Pick<Config, 'MAILROOM_SECRET_OLD'>): Buffer[] {
  return old === null ? [] : [keyFrom(old)]
}

export function secretFile(config: Pick<Settings, 'MAILROOM_DATA_DIR'>): string {
  return join(config.MAILROOM_DATA_DIR, 'secret')
}

/**
 * null when there is neither the setting nor the file. AppError `bad_request` (one line) when the file cannot be read.
 */
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

/** Makes the file, with mode 0600. AppError `bad_request` when it cannot be written, or is there by now. */
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
