/**
 * The logger: JSON lines on stdout, each with the ids of the work's owner (loop.ts). Callers log no secrets; the
 * redaction of known keys is a second safeguard.
 */
import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino'
import type { Config } from '../config.ts'
import { workFacts } from './loop.ts'

export type Logger = Pick<PinoLogger, 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'>

const secretKeys = [
  'password',
  'secret',
  'token',
  'refreshToken',
  'accessToken',
  'authorization',
  'sealedCredential',
  'sealedSecret',
]

/** `destination` replaces stdout. */
export function createLogger(config: Pick<Config, 'MAILROOM_LOG_LEVEL'>, destination?: DestinationStream): Logger {
  const options = {
    level: config.MAILROOM_LOG_LEVEL,
    base: null,
    // The line's own fields override these.
    mixin: workFacts,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: '[redacted]' },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}

export const silentLogger: Logger = pino({ level: 'silent' }, { write: () => undefined })
