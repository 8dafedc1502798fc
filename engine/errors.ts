/**
 * AppError, the error of every failure that is expected: its code is for programs, its message for people. Never match
 * on the message. And the classification of Node's own errors.
 */
import { failureClasses as classes, type FailureClass } from '../machines/events.ts'

/** Who has to act: the caller (bad request), the remote side (mail server, receiver), or us (a bug, our store). */
export type Fault = 'caller' | 'remote' | 'us'

interface CodeFacts {
  readonly status: number
  readonly fault: Fault
  readonly retryable: boolean
}

/** Every code with its HTTP status, its fault, and whether the same call may succeed later. */
export const errorCodes = {
  // the caller
  bad_request: { status: 400, fault: 'caller', retryable: false },
  unauthorized: { status: 401, fault: 'caller', retryable: false },
  bad_signature: { status: 401, fault: 'caller', retryable: false },
  forbidden: { status: 403, fault: 'caller', retryable: false },
  not_found: { status: 404, fault: 'caller', retryable: false },
  method_not_allowed: { status: 405, fault: 'caller', retryable: false },
  conflict: { status: 409, fault: 'caller', retryable: false },
  /** Used up or too old. */
  gone: { status: 410, fault: 'caller', retryable: false },
  too_large: { status: 413, fault: 'caller', retryable: false },
  rate_limited: { status: 429, fault: 'caller', retryable: true },
  /** A limit on the number of records: a later call fails too. */
  too_many: { status: 429, fault: 'caller', retryable: false },
  private_address: { status: 400, fault: 'caller', retryable: false },
  // mail servers and receivers; among them the failure classes of an IMAP account
  auth_rejected: { status: 503, fault: 'remote', retryable: false },
  auth_unavailable: { status: 503, fault: 'remote', retryable: true },
  consent_lost: { status: 503, fault: 'remote', retryable: false },
  permission: { status: 503, fault: 'remote', retryable: false },
  throttled: { status: 503, fault: 'remote', retryable: true },
  connection_limit: { status: 503, fault: 'remote', retryable: true },
  network: { status: 503, fault: 'remote', retryable: true },
  tls: { status: 503, fault: 'remote', retryable: true },
  protocol: { status: 503, fault: 'remote', retryable: true },
  account_disabled: { status: 503, fault: 'remote', retryable: true },
  account_unavailable: { status: 503, fault: 'remote', retryable: true },
  server_refused: { status: 503, fault: 'remote', retryable: false },
  timeout: { status: 504, fault: 'remote', retryable: true },
  // us
  busy: { status: 503, fault: 'us', retryable: true },
  store_unavailable: { status: 503, fault: 'us', retryable: true },
  backup_failed: { status: 503, fault: 'us', retryable: true },
  lease_lost: { status: 503, fault: 'us', retryable: true },
  shutting_down: { status: 503, fault: 'us', retryable: true },
  internal: { status: 500, fault: 'us', retryable: false },
} as const satisfies Record<string, CodeFacts>

export type ErrorCode = keyof typeof errorCodes

export type { FailureClass }

/** The failure classes of email accounts; each is an error code. */
export const failureClasses: readonly (FailureClass & ErrorCode)[] = classes

export interface AppErrorOptions {
  /** For the log only. */
  readonly cause?: unknown
  /** Facts for programs: parameter, kind, id, baseString, connectionLog … Never secrets. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Time until the caller should try again. */
  readonly retryAfterMs?: number
}

export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly retryAfterMs: number | null

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    // Only our own faults need a stack, which costs as much as the rest of an error answer.
    const { stackTraceLimit } = Error
    if (errorCodes[code].fault !== 'us') Error.stackTraceLimit = 0
    super(message, { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.details = options.details ?? {}
    this.retryAfterMs = options.retryAfterMs ?? null
  }

  get status(): number {
    return errorCodes[this.code].status
  }

  get fault(): Fault {
    return errorCodes[this.code].fault
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable
  }
}

/** The error of every unknown id. */
export function notFound(kind: string, id: string, cause?: unknown): AppError {
  return new AppError('not_found', `${kind} ${id} is invalid`, { details: { kind, id }, cause })
}

/** The error of a missing or malformed parameter. */
export function badParameter(parameter: string, problem: string): AppError {
  return new AppError('bad_request', `${parameter}: ${problem}`, { details: { parameter } })
}

/** Throws `too_many`, which names the setting, when `there` has reached it; 0 = no limit. */
export function checkLimit<S extends string>(
  config: Readonly<Record<S, number>>,
  setting: S,
  what: string,
  there: number,
): void {
  const most = config[setting]
  if (most > 0 && there >= most)
    throw new AppError('too_many', `at the limit of ${most} ${what} (${setting}): delete one first`)
}

export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code)
}

/** The thrown value if it is an AppError, else `internal` with the value as its cause. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('internal', 'internal error', { cause: error })
}

const handshakeCodes = /^(?:ERR_(?:TLS|SSL|OSSL)_|EPROTO$)/
const certificateCodes =
  /^(?:CERT_|CRL_|ERROR_IN_C|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_)/

/** Whether an error code of Node means TLS. `UNSPECIFIED`: a certificate error that only OpenSSL has a name for. */
export function isTlsCode(code: string): boolean {
  return code === 'UNSPECIFIED' || handshakeCodes.test(code) || certificateCodes.test(code)
}

/** The error's code (ECONNREFUSED, ENOTFOUND …), or that of the first error of an AggregateError (happy eyeballs). */
export function errnoOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof AggregateError ? errnoOf(error.errors[0]) : null
}

/** Codes by which name servers answer about a host. Any other code of a look-up is a shortage of this machine. */
const nameServerCodes = /^(ENOTFOUND|ENODATA|EAI_.*)$/

/**
 * `busy` when this process or its machine has no file left to open; null = another error. In a look-up the resolver
 * turns that into codes of its own (EBUSY and EINVAL with the modules of nsswitch.conf).
 */
export function shortageOf(cause: unknown): AppError | null {
  const errno = errnoOf(cause)
  if (errno === 'EMFILE' || errno === 'ENFILE')
    return new AppError('busy', `the service has no file left for another connection (${errno})`, { cause })
  const isLookup = cause instanceof Error && 'syscall' in cause && cause.syscall === 'getaddrinfo'
  if (!isLookup || errno === null || nameServerCodes.test(errno)) return null
  return new AppError('busy', `the service cannot look up host names (${errno})`, { cause })
}
