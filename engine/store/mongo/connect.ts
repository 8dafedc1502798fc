/** The client: its options in one place, and the patience at start. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, type Db, type MongoClientOptions } from 'mongodb'
import type { AppError } from '../../errors.ts'
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
 * rejected or the schema is newer; with `shutting_down` of `signal` when that is aborted.
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { host, name } = describeUri(options.uri)
  await prepare(options, host, name)
  const client = openClient(options.uri, clientOptions(options), host)
  return { client, db: client.db(name) }
}

async function prepare(options: ConnectOptions, host: string, name: string): Promise<void> {
  const { log, signal } = options
  for (let attempt = 0; ; attempt += 1) {
    const failure = await tryPrepare(options, host, name)
    if (failure === null) {
      if (attempt > 0) log.info({ host }, 'the database answers')
      return
    }
    const waitMs = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs)
    const facts = { host, reason: firstLine(failure.cause), retryInMs: waitMs }
    if (attempt === 0) log.warn(facts, 'the database cannot be reached; trying again until it answers')
    else log.debug({ ...facts, attempt }, 'the database still cannot be reached')
    await sleep(waitMs, undefined, signal ? { signal } : {})
  }
}

/** Building an index may take minutes, so this client has no deadline on its socket. null = done; else why it must wait. */
async function tryPrepare(options: ConnectOptions, host: string, name: string): Promise<AppError | null> {
  const client = openClient(options.uri, { ...clientOptions(options), maxPoolSize: 2, socketTimeoutMS: 0 }, host)
  try {
    const db = client.db(name)
    await db.command({ ping: 1 })
    await migrate(db, { collections: openCollections(db) }, options.log)
    await createIndexes(db, options.log)
    return null
  } catch (error) {
    const refusal = startRefusal(error, host)
    if (refusal) throw refusal
    const failure = storeError(error)
    if (failure.code !== 'store_unavailable') throw failure
    return failure
  } finally {
    await client.close()
  }
}

/** Reads the URI; nothing is sent yet. */
function openClient(uri: string, options: MongoClientOptions, host: string): MongoClient {
  try {
    return new MongoClient(uri, options)
  } catch (error) {
    throw startRefusal(error, host) ?? storeError(error)
  }
}

const uriShape = /^mongodb(?:\+srv)?:\/\/(?:[^/?]*@)?([^/?]*)(?:\/([^?]*))?/

/** Host for the log, without credentials, and the database's name: `mailroom` unless the URI names one. */
export function describeUri(uri: string): { readonly host: string; readonly name: string } {
  const match = uriShape.exec(uri)
  const name = match?.[2] ? decodeURIComponent(match[2]) : 'mailroom'
  return { host: match?.[1] ?? 'the host', name }
}
