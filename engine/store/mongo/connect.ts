/** The client: its options in one place, and the patience at start. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, type Db, type MongoClientOptions } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import { openCollections } from './documents.ts'
import { firstLine, startRefusal, storeError } from './errors.ts'
import { createIndexes } from './indexes.ts'
import { migrate } from './schema.ts'

export interface ConnectOptions {
  readonly uri: string
  /** Connections at most. */
  readonly pool: number
  /** Deadline of one operation. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Ends the waiting for a database that is away. */
  readonly signal?: AbortSignal
}

/** Longest wait for a server to be found; answers while the database is away take this long at most. */
const selectionMs = 5000
const firstWaitMs = 500
const longestWaitMs = 5000

/** The driver's own `timeoutMS` does nothing in this version: selection, queue and socket have a deadline each. */
function clientOptions({ pool, timeoutMs }: ConnectOptions): MongoClientOptions {
  return {
    appName: 'mailroom',
    maxPoolSize: pool,
    serverSelectionTimeoutMS: Math.min(selectionMs, timeoutMs),
    connectTimeoutMS: Math.min(selectionMs, timeoutMs),
    waitQueueTimeoutMS: timeoutMs,
    socketTimeoutMS: timeoutMs,
    writeConcern: { w: 'majority', journal: true },
    readPreference: 'primary',
    ignoreUndefined: true,
  }
}

export interface Connection {
  readonly client: MongoClient
  readonly db: Db
}

/**
 * Connects and brings collections, indexes and schema up to date. A database that is away is waited for, with one warning
 * that names the host and quiet repeats. Rejects at once with AppError `bad_request` when the URI cannot be read, the login is
 * rejected or the schema is newer; with `shutting_down` when `signal` is aborted.
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { log, signal } = options
  const { host, name } = describeUri(options.uri)
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await tryConnect(options, host, name)
    if ('client' in outcome) {
      if (attempt > 0) log.info({ host }, 'the database answers')
      return outcome
    }
    const waitMs = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs)
    const facts = { host, reason: firstLine(outcome.cause), retryInMs: waitMs }
    if (attempt === 0) log.warn(facts, 'the database cannot be reached; trying again until it answers')
    else log.debug({ ...facts, attempt }, 'the database still cannot be reached')
    await pause(waitMs, signal)
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {})
  } catch (cause) {
    throw new AppError('shutting_down', 'stopped while the database was away', { cause })
  }
}

/** The open client, or why the database must be waited for. */
async function tryConnect(options: ConnectOptions, host: string, name: string): Promise<Connection | AppError> {
  const client = openClient(options.uri, clientOptions(options))
  try {
    await prepare(options, name)
    // now: a client whose first operation finds no server closes for good
    await client.connect()
    await client.db(name).command({ ping: 1 })
    return { client, db: client.db(name) }
  } catch (error) {
    await client.close()
    const refusal = startRefusal(error, host)
    if (refusal) throw refusal
    const failure = storeError(error)
    if (failure.code !== 'store_unavailable') throw failure
    return failure
  }
}

/** Schema and indexes. Building an index may take minutes, so the client for it has no deadline on its socket. */
async function prepare(options: ConnectOptions, name: string): Promise<void> {
  const client = openClient(options.uri, { ...clientOptions(options), maxPoolSize: 2, socketTimeoutMS: 0 })
  try {
    const db = client.db(name)
    await db.command({ ping: 1 })
    await migrate(db, { collections: openCollections(db) }, options.log)
    await createIndexes(db, options.log)
  } finally {
    await client.close()
  }
}

/** Reads the URI; nothing is sent yet. */
function openClient(uri: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(uri, options)
  } catch (cause) {
    throw new AppError('bad_request', `MONGODB_URI: ${firstLine(cause)}`, { cause })
  }
}

const uriShape = /^mongodb(?:\+srv)?:\/\/(?:[^/?]*@)?([^/?]*)(?:\/([^?]*))?/

/** Host for the log, without credentials, and the database's name: `mailroom` unless the URI names one. */
export function describeUri(uri: string): { readonly host: string; readonly name: string } {
  const match = uriShape.exec(uri)
  const name = match?.[2] ? decodeURIComponent(match[2]) : 'mailroom'
  return { host: match?.[1] ?? 'the host', name }
}
