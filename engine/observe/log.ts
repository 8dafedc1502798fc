/** The one logger. JSON lines on stdout; secrets never get this far, and the redaction below is the second net. */
import { pino, type Logger as PinoLogger } from 'pino'
import type { Config } from '../config.ts'

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

export function createLogger(config: Pick<Config, 'MAILROOM_LOG_LEVEL'>): Logger {
  return pino({
    level: config.MAILROOM_LOG_LEVEL,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: '[redacted]' },
  })
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
