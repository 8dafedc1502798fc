/** The client: its options in one place, the patience at start, and what its URI says. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, ReadConcern, type Db, type MongoClientOptions } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import { openCollections } from './documents.ts'
import { firstLine, startRefusal, storeError } from './errors.ts'
import { join, type JoinOptions, type Member } from './members.ts'
import { copyNote, createIndexes, isCurrent, isStore, migrate, noteServed } from './schema.ts'

export interface ConnectOptions {
  readonly uri: string
  readonly pool: number
  /** Deadline of one operation in milliseconds. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Ends the waiting for a database that is away, or that another process serves. */
  readonly signal?: AbortSignal | undefined
  /**
   * For who works in the database: a service beside others, unless the schema has to be changed; a copy alone. It waits
   * for its turn before anything is looked at or written. See members.ts.
   */
  readonly member?: Pick<JoinOptions, 'lost' | 'works' | 'patienceMs' | 'beatMs' | 'silentMs'> | undefined
}

/** Service and source need a whole store, the source one that is there already; the target may be anything. */
export type Role = 'service' | 'source' | 'target'

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
    // Within 1.5 s, never at once: a look at the database that begins in the moment in which all connections break is
    // written to a dead socket and never ends (driver 7.8), and without one the database is not found again.
    heartbeatFrequencyMS: 500,
    minHeartbeatFrequencyMS: 1500,
    ignoreUndefined: true,
  }
}

/** Given to the database, since the URI may say otherwise in several words (w, journal, j …). */
function databaseOf(client: MongoClient, name: string): Db {
  return client.db(name, {
    writeConcern: { w: 'majority', journal: true },
    readConcern: new ReadConcern('local'),
    readPreference: 'primary',
  })
}

export interface Connection {
  readonly db: Db
  /** null = nobody is told of this process. */
  readonly member: Member | null
  /** Hands over to the next process that waits, and closes the client. */
  readonly close: () => Promise<void>
}

/**
 * Brings collections, indexes and schema up to date. A database that is away is waited for, with one warning that names
 * the host. AppError `bad_request` when the URI cannot be read, the login is rejected, the schema is newer or the
 * source of a copy is no store; `conflict` when the copy into it is unfinished, a removal in the source is, or
 * patience with another process ends; `shutting_down` when `signal` is aborted.
 */
export async function connect(options: ConnectOptions, role: Role = 'service'): Promise<Connection> {
  const { log, signal } = options
  const facts = describeUri(options.uri)
  const { host } = facts
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await tryConnect(options, facts, role)
    if ('db' in outcome) {
      if (attempt > 0) log.info({ host }, 'the database answers')
      return outcome
    }
    const waitMs = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs)
    const line = { host, reason: firstLine(outcome.cause), retryInMs: waitMs }
    if (attempt === 0) log.warn(line, 'the database cannot be reached; trying again until it answers')
    else log.debug({ ...line, attempt }, 'the database still cannot be reached')
    await pause(waitMs, signal)
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch (cause) {
    throw new AppError('shutting_down', 'stopped while the database was away', { cause })
  }
}

async function tryConnect(options: ConnectOptions, facts: UriFacts, role: Role): Promise<Connection | AppError> {
  const { log, signal } = options
  const { host, name } = facts
  const client = openClient(options.uri, clientOptions(options))
  let member: Member | null = null
  const close = async (): Promise<void> => {
    await member?.release()
    await client.close()
  }
  try {
    // now: a client whose first operation finds no server closes for good
    await client.connect()
    const db = databaseOf(client, name)
    await db.command({ ping: 1 })
    // a misspelt source is not even written to to be alone in it
    if (role === 'source') await checkRole(db, facts, role)
    if (options.member) {
      const collections = openCollections(db)
      const alone = async (): Promise<boolean> => role !== 'service' || !(await isCurrent(collections))
      member = await join(collections, { ...options.member, alone, name: `${host}/${name}`, log, signal })
    }
    await checkRole(db, facts, role)
    if (role === 'source') await refuseRemoval(db, facts)
    await prepare(options, db)
    if (role === 'service' && member !== null) {
      await noteServed(openCollections(db))
      await member.share()
    }
    return { db, member, close }
  } catch (error) {
    await close()
    const refusal = startRefusal(error, host)
    if (refusal) throw refusal
    const failure = storeError(error)
    if (failure.code !== 'store_unavailable') throw failure
    return failure
  }
}

/** Before anything is written: a misspelt source stays as it is not, and half a store is none. */
async function checkRole(db: Db, { host, name }: UriFacts, role: Role): Promise<void> {
  const collections = openCollections(db)
  if (role === 'source' && !(await isStore(collections))) {
    throw new AppError('bad_request', `${host}/${name}: no such store`)
  }
  if (role !== 'target' && (await copyNote(collections)) !== null) {
    throw new AppError(
      'conflict',
      `${host}/${name} is the target of an unfinished copy: run the same copy again until it is whole`,
    )
  }
}

/** Its note is not copied, and what it would have taken is: asked when no other process can be at it. */
async function refuseRemoval(db: Db, { host, name }: UriFacts): Promise<void> {
  if ((await openCollections(db).removals.findOne({ done: false })) === null) return
  const words = 'a removal was cut short: start the service on it, which ends it within about ten minutes, then copy'
  throw new AppError('conflict', `${host}/${name}: ${words}`)
}

/** A migration and the building of an index may take minutes: they alone have no deadline on the socket. */
async function prepare(options: ConnectOptions, db: Db): Promise<void> {
  const client = openClient(options.uri, { ...clientOptions(options), maxPoolSize: 2, socketTimeoutMS: 0 })
  try {
    const patient = databaseOf(client, db.databaseName)
    await migrate(patient, { collections: openCollections(db) }, options.log)
    await createIndexes(db, patient, options.log)
  } finally {
    await client.close()
  }
}

function openClient(uri: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(uri, options)
  } catch (cause) {
    throw new AppError('bad_request', `MONGODB_URI: ${firstLine(cause)}`, { cause })
  }
}

const uriShape = /^mongodb(?:\+srv)?:\/\/(?:[^/?]*@)?([^/?]*)(?:\/([^?]*))?/

/** A password with a / or a ? in it: what is taken for the host is its beginning, which must not be shown. */
const unencoded = /^mongodb(?:\+srv)?:\/\/[^/?@]*(?:\/[^?]*@|\?[^=&]*@)/

/** What no server takes: https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions */
const forbidden = /[/\\. "$*<>:|?\0#]/
const longestNameBytes = 63

interface UriFacts {
  /** For the log, without credentials. */
  readonly host: string
  /** The database's name: `mailroom` unless the URI names one. */
  readonly name: string
}

/**
 * What the driver does not say, or finds wrong too late. AppError `bad_request`, one line without credentials, when
 * host or database cannot be what they are written as.
 */
export function describeUri(uri: string): UriFacts {
  if (unencoded.test(uri)) throw wrong('a / or ? in the user name or the password has to be written %2F or %3F')
  const match = uriShape.exec(uri)
  const host = match?.[1] ?? 'the host'
  // the driver accepts these, and throws later where it cannot be caught
  if (match && host.split(',').some((one) => one === '' || one.startsWith(':'))) throw wrong('a host has no name')
  return { host, name: databaseName(match?.[2] ?? '') }
}

function databaseName(encoded: string): string {
  if (encoded === '') return 'mailroom'
  let name: string
  try {
    name = decodeURIComponent(encoded)
  } catch (cause) {
    throw wrong('the database name has a broken % sequence', cause)
  }
  if (forbidden.test(name))
    throw wrong(`a database name cannot have ${JSON.stringify(forbidden.exec(name)?.[0])} in it`)
  if (Buffer.byteLength(name) > longestNameBytes) {
    throw wrong(`a database name cannot be longer than ${longestNameBytes} bytes`)
  }
  return name
}

function wrong(words: string, cause?: unknown): AppError {
  return new AppError('bad_request', `MONGODB_URI: ${words}`, { cause })
}
