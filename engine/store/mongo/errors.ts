/**
 * What leaves a method of the adapter is an AppError, and it leaves in time. Errors of the driver are known by class
 * and code. A duplicate key is known by the index it violates, whose name stands in the server's message alone (mongod:
 * `index: NAME dup key`, DocumentDB: `Index 'NAME'`).
 */
import {
  MongoAPIError,
  MongoBulkWriteError,
  MongoClientClosedError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoParseError,
  MongoServerClosedError,
  MongoServerError,
  MongoTopologyClosedError,
  type WriteError,
} from 'mongodb'
import { AppError } from '../../errors.ts'
import { withinTime } from '../../waits.ts'

const duplicateKey = 11000
/** The answer of a server that does not want these credentials: AuthenticationFailed, Unauthorized. */
const loginRejected = new Set([18, 13])
/**
 * The request itself is wrong: BadValue, FailedToParse, TypeMismatch, InvalidNamespace, CommandNotFound … No later try
 * mends these; every other refusal of a server (stepping down, starting, too slow, out of disk) may pass.
 */
const ourMistake = new Set([2, 9, 14, 15, 17, 20, 26, 28, 40, 48, 52, 54, 59, 66, 67, 72, 73, 85, 86, 115, 121, 10334])

/** MaxTimeMSExpired. */
const outOfTime = 50

/** WriteConflict; and of PostgreSQL, packed into numbers by DocumentDB, serialization failure and deadlock. */
const rolledBack = new Set([112, 16_777_220, 16_908_292])

const retryAfterMs = 5000

/** What a person reads when an index is violated. */
const conflicts: Readonly<Record<string, string>> = {
  developers_by_key: 'the API key exists already',
  accounts_of_user_by_label: 'the user has an email account with this label already',
  changes_by_seq: 'another writer has written the change log of this account',
  _id_: 'exists already',
}

/** Any error of a step; AppErrors pass through. */
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

function isOurMistake(error: unknown): boolean {
  if (!(error instanceof MongoError)) return !isNodeError(error)
  if (error instanceof MongoNetworkError) return false
  if (error instanceof MongoAPIError) return !isClosed(error)
  return error instanceof MongoServerError && typeof error.code === 'number' && ourMistake.has(error.code)
}

/** A read that failed so may be asked again at once: the connection broke, or the server is the primary no more. */
export function mayPass(error: unknown): boolean {
  if (error instanceof MongoNetworkError) return true
  return error instanceof MongoServerError && error.code !== outOfTime && !isOurMistake(error)
}

/** Nothing was written, and the same request may go well now. */
export function isRolledBack(error: unknown): boolean {
  return error instanceof MongoServerError && typeof error.code === 'number' && rolledBack.has(error.code)
}

/**
 * Name look-ups (mongodb+srv), sockets and TLS fail with Node's own errors, which have a code: not each comes from the
 * operating system (EPIPE of a socket that the server has ended names no system call). Wrong arguments have one too.
 */
function isNodeError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof TypeError || error instanceof RangeError)
}

/** The client was closed, or lost its server while the request was under way. */
function isClosed(error: MongoAPIError): boolean {
  return (
    error instanceof MongoNotConnectedError ||
    error instanceof MongoTopologyClosedError ||
    error instanceof MongoClientClosedError ||
    error instanceof MongoServerClosedError
  )
}

/** A unique index said no, to a single write or to all that failed of a bulk: any index, or one of these. */
export function isDuplicate(error: unknown, of?: readonly string[]): error is MongoServerError {
  if (!(error instanceof MongoServerError)) return false
  const failures = error instanceof MongoBulkWriteError ? writeErrorsOf(error) : [error]
  const isViolation = ({ code, errmsg = '' }: WriteError | MongoServerError) =>
    code === duplicateKey && (of === undefined || of.includes(indexNamed(errmsg)))
  return failures.length > 0 && failures.every(isViolation)
}

/** What failed of a bulk: a single failure is an object, several are an array. */
export function writeErrorsOf(error: MongoBulkWriteError): readonly WriteError[] {
  return [error.writeErrors].flat()
}

/** Name of the index in the message of a duplicate key error; '' when the server does not say. */
function indexNamed(message: string): string {
  const named = /index: (\S+)|Index '([^']+)'/.exec(message)
  return named?.[1] ?? named?.[2] ?? ''
}

/**
 * No later try with the same settings can succeed: the options or the login are rejected. One line for the operator.
 */
export function startRefusal(error: unknown, host: string): AppError | null {
  if (error instanceof AppError) return error
  if (rejectedLogin(error))
    return new AppError('bad_request', `MONGODB_URI: ${host} rejected the login`, { cause: error })
  if (error instanceof MongoParseError || (error instanceof MongoAPIError && !isClosed(error))) {
    return new AppError('bad_request', `MONGODB_URI: ${firstLine(error)}`, { cause: error })
  }
  if (isFileError(error)) return new AppError('bad_request', `MONGODB_URI: ${firstLine(error)}`, { cause: error })
  return null
}

/** A file that an option names (tlsCAFile …) cannot be read. */
function isFileError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('syscall' in error && error.syscall === 'open') || ('code' in error && error.code === 'EISDIR')
}

/** The rejection may be the cause of a server selection that failed. */
function rejectedLogin(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    if (at instanceof MongoServerError && typeof at.code === 'number' && loginRejected.has(at.code)) return true
  }
  return false
}

/** Words for the log: never with credentials. */
export function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return (text.split('\n')[0] ?? '').replace(/\/\/[^/@\s]*@/g, '//')
}

type Method = (...args: never[]) => Promise<unknown>
export type Methods = Readonly<Record<string, Method>>

/** A step that is rolled back this often has a server in trouble. */
const mostTries = 5

/**
 * Each method with the driver's errors turned into AppErrors and a deadline (`store_unavailable` past it). A step that
 * is given up goes on underneath: its writes are idempotent, and its caller repeats it. Methods in `unbounded` take as
 * long as there are rows.
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

/** A step is repeatable: it is taken again, from its start, when the server rolled it back for another's sake. */
async function repeated(step: () => Promise<unknown>): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      if (tries === mostTries || !isRolledBack(error)) throw storeError(error)
    }
  }
}

/** The outcome of `work`, or `store_unavailable` when it is not there in time. */
export function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return withinTime(ms, work, () => {
    throw unavailable(new Error(`no answer within ${ms} ms`))
  })
}
