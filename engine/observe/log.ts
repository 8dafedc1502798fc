/**
 * The one logger. JSON lines on stdout, each with the ids of the work that it was written in (loop.ts). Secrets never
 * get this far, and the redaction below is the second net.
 */
import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino'
import type { Config } from '../config.ts'
import { workFacts } from './loop.ts'

export type Logger = Pick<PinoLogger, 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'> & {
  child(bindings: Record<string, unknown>): Logger
}

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

const quiet = (): void => undefined

/** Says nothing; for tests. */
export const silentLogger: Logger = {
  fatal: quiet,
  error: quiet,
  warn: quiet,
  info: quiet,
  debug: quiet,
  trace: quiet,
  child: () => silentLogger,
}
