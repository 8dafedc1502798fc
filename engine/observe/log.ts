/**
 * The one logger. JSON lines on stdout, each with the ids of the work that it was written in (loop.ts). Secrets never
 * get this far, and the redaction below is the second net.
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

/** `destination`: instead of stdout. */
export function createLogger(config: Pick<Config, 'MAILROOM_LOG_LEVEL'>, destination?: DestinationStream): Logger {
  const options = {
    level: config.MAILROOM_LOG_LEVEL,
    base: null,
    // What the line itself says goes before.
    mixin: workFacts,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: '[redacted]' },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}

/** Says nothing. */
export const silentLogger: Logger = pino({ level: 'silent' }, { write: () => undefined })
