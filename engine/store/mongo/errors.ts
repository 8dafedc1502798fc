/**
 * Turns errors of the driver into AppErrors, and gives each method of the store a deadline. Driver errors are told
 * apart by class and code. The index of a duplicate key is named only in the server's message (mongod: `index: NAME dup
 * key`, DocumentDB: `Index 'NAME'`).
 */
import { MongoAPIError, MongoBulkWriteError, MongoClientClosedError, MongoError, MongoNetworkError } from 'mongodb'
import { MongoNotConnectedError, MongoParseError, MongoServerClosedError, MongoServerError } from 'mongodb'
import { MongoTopologyClosedError, type WriteError } from 'mongodb'
import { AppError } from '../../errors.ts'
import { withinTime } from '../../scheduling.ts'

const duplicateKey = 11000
/** The server rejects the credentials: AuthenticationFailed, Unauthorized. */
const loginRejected = new Set([18, 13])
/**
 * The request itself is wrong, and fails again: BadValue, FailedToParse, TypeMismatch, InvalidNamespace,
 * CommandNotFound … Every other error of a server (stepping down, starting, too slow, out of disk) may pass.
 */
const ourMistake = new Set([2, 9, 14, 15, 17, 20, 26, 28, 40, 48, 52, 54, 59, 66, 67, 72, 73, 85, 86, 115, 121, 10334])

/** MaxTimeMSExpired. */
const outOfTime = 50

/** WriteConflict; DocumentDB's numbers for PostgreSQL's serialization failure and deadlock. */
const rolledBack = new Set([112, 16_777_220, 16_908_292])

/** InternalError: FerretDB gives it, with PostgreSQL's text, for a deadlock of findAndModify. */
const internal = new Set([1])

const retryAfterMs = 5000

/** Error text by violated index. */
const conflicts: Readonly<Record<string, string>> = {
  developers_by_key: 'the API key exists already',
  accounts_of_user_by_label: 'the user has an email account with this label already',
  changes_by_seq: 'another writer has written the change log of this account',
}

/** The AppError for any thrown value; AppErrors pass through. */
export function storeError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isDuplicate(error)) {
    const index = indexNamed(error.message)
    return new AppError('conflict', conflicts[index] ?? 'exists already', { cause: error, details: { index } })
  }
  if (isOurMistake(error)) return new AppError('internal', 'the database refused a request', { cause: error })
  return unavailable(error)
}

export function unavailable(cause: unknown): AppError {
  return new AppError('store_unavailable', 'the database cannot be reached or is too slow', { cause, retryAfterMs })
}

/** Whether the server answered with one of these error codes. */
export function hasCode(error: unknown, codes: ReadonlySet<number>): boolean {
  return error instanceof MongoServerError && typeof error.code === 'number' && codes.has(error.code)
}

function isOurMistake(error: unknown): boolean {
  if (!(error instanceof MongoError)) return !isNodeError(error)
  if (error instanceof MongoAPIError) return !isClosed(error)
  return hasCode(error, ourMistake)
}

/** Whether a failed read may be sent again at once: the connection broke, or the server is no longer the primary. */
export function mayPass(error: unknown): boolean {
  if (error instanceof MongoNetworkError) return true
  return error instanceof MongoServerError && error.code !== outOfTime && !isOurMistake(error)
}

/** Whether the server rolled the request back for another one: nothing was written, and a repeat may succeed. */
export function isRolledBack(error: unknown): boolean {
  return hasCode(error, rolledBack) || (hasCode(error, internal) && /deadlock detected/.test(firstLine(error)))
}

/**
 * Whether Node itself failed, in a name look-up (mongodb+srv), a socket or TLS. These errors have a `code`, and not
 * always a `syscall` (EPIPE has none). Errors of wrong arguments have a `code` too.
 */
function isNodeError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof TypeError || error instanceof RangeError)
}

const closedErrors = [MongoNotConnectedError, MongoTopologyClosedError, MongoClientClosedError, MongoServerClosedError]

/** Whether the client was closed, or lost its server during the request. */
function isClosed(error: MongoAPIError): boolean {
  return closedErrors.some((kind) => error instanceof kind)
}

/** Whether each failed write, alone or in a bulk, violates a unique index: any index, or one of `of`. */
export function isDuplicate(error: unknown, of?: readonly string[]): error is MongoServerError {
  if (!(error instanceof MongoServerError)) return false
  const failures = error instanceof MongoBulkWriteError ? writeErrorsOf(error) : [error]
  const isViolation = ({ code, errmsg = '' }: WriteError | MongoServerError) =>
    code === duplicateKey && (of === undefined || of.includes(indexNamed(errmsg)))
  return failures.length > 0 && failures.every(isViolation)
}

/** The failed writes of a bulk; the driver gives a single one without an array. */
export function writeErrorsOf(error: MongoBulkWriteError): readonly WriteError[] {
  return [error.writeErrors].flat()
}

/** Index name in the message of a duplicate key error; '' = the server names none. */
function indexNamed(message: string): string {
  const named = /index: (\S+)|Index '([^']+)'/.exec(message)
  return named?.[1] ?? named?.[2] ?? ''
}

/** AppError for a start that fails again with the same settings (options or login rejected); null = may pass. */
export function startRefusal(error: unknown, host: string): AppError | null {
  if (error instanceof AppError) return error
  if (rejectedLogin(error))
    return new AppError('bad_request', `MONGODB_URI: ${host} rejected the login`, { cause: error })
  const isBadUri = error instanceof MongoParseError || (error instanceof MongoAPIError && !isClosed(error))
  if (!isBadUri && !isFileError(error)) return null
  return new AppError('bad_request', `MONGODB_URI: ${firstLine(error)}`, { cause: error })
}

/** Whether a file that an option names (tlsCAFile …) cannot be read. */
function isFileError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('syscall' in error && error.syscall === 'open') || ('code' in error && error.code === 'EISDIR')
}

/** Also finds the rejection as the cause of a failed server selection. */
function rejectedLogin(error: unknown): boolean {
  return hasCode(error, loginRejected) || (error instanceof Error && rejectedLogin(error.cause))
}

/** First line of the message, without credentials. */
export function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return (text.split('\n')[0] ?? '').replace(/\/\/[^/@\s]*@/g, '//')
}

type Method = (...args: never[]) => Promise<unknown>
export type Methods = Readonly<Record<string, Method>>

/** Tries of a step that the server rolls back. */
const mostTries = 5

/**
 * The same methods, with AppErrors only and a deadline (`store_unavailable` after it). Work goes on after the deadline:
 * its writes are idempotent, so the caller may repeat it. Methods in `unbounded` have no deadline.
 */
export function guarded<T extends { readonly [K in keyof T]: Method }>(
  aggregate: T,
  deadlineMs: number,
  unbounded: readonly (keyof T & string)[] = [],
): T {
  const methods = Object.entries<Method>(aggregate).map(([name, method]) => {
    const free = (unbounded as readonly string[]).includes(name)
    const call = (...args: never[]): Promise<unknown> => {
      const work = repeated(() => method(...args))
      return free ? work : within(work, deadlineMs)
    }
    return [name, call] as const
  })
  return Object.fromEntries(methods) as unknown as T
}

/** Repeats the whole step when the server rolled back a write of it. */
async function repeated(step: () => Promise<unknown>): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      if (tries === mostTries || !isRolledBack(error)) throw storeError(error)
    }
  }
}

/** Settles as `work` does, or rejects with `store_unavailable` after `ms`. */
export function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return withinTime(ms, work, () => {
    throw unavailable(new Error(`no answer within ${ms} ms`))
  })
}
