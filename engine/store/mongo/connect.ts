/** Connects to MongoDB: client options, retries at start, checks of the URI and of the database. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, ReadConcern, type Db, type MongoClientOptions } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import { refuseUnfinished } from '../facts.ts'
import { newId } from '../ids.ts'
import { openCollections, type Collections } from './documents.ts'
import { firstLine, startRefusal, storeError } from './errors.ts'
import { join, type JoinOptions, type Member } from './members.ts'
import { createIndexes, isCurrent, isStore, migrate, openFacts } from './schema.ts'

export interface ConnectOptions {
  readonly uri: string
  readonly pool: number
  /** Deadline of one operation. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Ends the wait for a database that is away, or that another process serves. */
  readonly signal?: AbortSignal | undefined
  /** Joins the processes at work (members.ts): a service beside others unless it must migrate, a copy alone. */
  readonly member?: Pick<JoinOptions, 'lost' | 'works' | 'patienceMs' | 'beatMs' | 'silentMs'> | undefined
}

/** `service` and `source` (of a copy) need a whole store, `source` an existing one; `target` takes any database. */
export type Role = 'service' | 'source' | 'target'

/** Longest search for a server, so the longest wait of a call while the database is away. */
const selectionMs = 5000
const firstWaitMs = 500
const longestWaitMs = 5000

/** `timeoutMS` has no effect in driver 7.8, so selection, queue and socket have a deadline each. */
function clientOptions({ pool, timeoutMs }: ConnectOptions): MongoClientOptions {
  return {
    appName: 'mailroom',
    maxPoolSize: pool,
    serverSelectionTimeoutMS: Math.min(selectionMs, timeoutMs),
    connectTimeoutMS: Math.min(selectionMs, timeoutMs),
    waitQueueTimeoutMS: timeoutMs,
    socketTimeoutMS: timeoutMs,
    // With a shorter minimum a heartbeat may be written to a socket that breaks at that moment. It then never ends
    // (driver 7.8), and the database is never found again.
    heartbeatFrequencyMS: 500,
    minHeartbeatFrequencyMS: 1500,
    ignoreUndefined: true,
    // The check of each character takes time of every read. Bytes that are no UTF-8 are read as U+FFFD.
    enableUtf8Validation: false,
  }
}

/** Options of the database override those of the URI (w, journal, j …). */
function databaseOf(client: MongoClient, name: string): Db {
  return client.db(name, {
    writeConcern: { w: 'majority', journal: true },
    readConcern: new ReadConcern('local'),
    readPreference: 'primary',
  })
}

export interface Connection {
  readonly db: Db
  /** null = this process has no record among the processes at work. */
  readonly member: Member | null
  /** Releases the member, and closes the client. */
  readonly close: () => Promise<void>
}

/**
 * Connects, waiting for a database that is away, and brings collections, indexes and schema up to date. AppError
 * `bad_request` when the URI is malformed, the login is rejected, the schema is unknown or the source of a copy is no
 * store; `conflict` when a copy into the database or a removal in the source is unfinished, or patience with another
 * process ends; `shutting_down` when `signal` aborts.
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
    await sleep(waitMs, undefined, { signal }).catch((cause: unknown) => {
      throw new AppError('shutting_down', 'stopped while the database was away', { cause })
    })
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
    // Explicitly: a client whose first operation finds no server closes for good.
    await client.connect()
    const db = databaseOf(client, name)
    const collections = openCollections(db)
    await db.command({ ping: 1 })
    // Before joining, which writes: a misspelt source stays empty.
    if (role === 'source') await checkRole(collections, facts, role)
    if (options.member) {
      const alone = async (): Promise<boolean> => role !== 'service' || !(await isCurrent(collections))
      member = await join(collections, { ...options.member, alone, name: `${host}/${name}`, log, signal })
    }
    await checkRole(collections, facts, role)
    if (role === 'source') await refuseRemoval(collections, facts)
    await prepare(options, db, collections)
    if (role === 'service' && member !== null) {
      await openFacts(collections).save('served', newId())
      await member.share()
    }
    return { db, member, close }
  } catch (error) {
    await close()
    const refusal = startRefusal(error, host)
    if (refusal) throw refusal
    const failure = storeError(error)
    if (failure.code === 'store_unavailable') return failure
    throw failure
  }
}

/** Refuses a source that is no store, and a store that a copy has not completed. Writes nothing. */
async function checkRole(collections: Collections, { host, name }: UriFacts, role: Role): Promise<void> {
  if (role === 'source' && !(await isStore(collections))) {
    throw new AppError('bad_request', `${host}/${name}: no such store`)
  }
  if (role !== 'target') await refuseUnfinished(openFacts(collections), `${host}/${name}`)
}

/** A copy has the rows that an unfinished removal left, but not the note of that removal. */
async function refuseRemoval({ removals }: Collections, { host, name }: UriFacts): Promise<void> {
  if ((await removals.findOne({ done: false })) === null) return
  const words = 'a removal was cut short: start the service on it, which ends it within about ten minutes, then copy'
  throw new AppError('conflict', `${host}/${name}: ${words}`)
}

/** Migrates and makes indexes over a client without a socket deadline, since both may take minutes. */
async function prepare(options: ConnectOptions, db: Db, collections: Collections): Promise<void> {
  const client = openClient(options.uri, { ...clientOptions(options), maxPoolSize: 2, socketTimeoutMS: 0 })
  try {
    const patient = databaseOf(client, db.databaseName)
    await migrate(patient, { collections }, options.log)
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

/** A password with a bare / or ?: its first part would be taken for the host, and shown. */
const unencoded = /^mongodb(?:\+srv)?:\/\/[^/?@]*(?:\/[^?]*@|\?[^=&]*@)/

/** Characters that no server accepts: https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions */
const forbidden = /[/\\. "$*<>:|?\0#]/
const longestNameBytes = 63

type UriFacts = ReturnType<typeof describeUri>

/**
 * Host (without credentials) and database of a URI, `mailroom` unless the URI names one. AppError `bad_request`, one
 * line without credentials, when one of them is malformed.
 */
export function describeUri(uri: string) {
  if (unencoded.test(uri)) throw wrong('a / or ? in the user name or the password has to be written %2F or %3F')
  const match = uriShape.exec(uri)
  const host = match?.[1] ?? 'the host'
  // The driver accepts these hosts, and throws later where no caller can catch it.
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
  const character = forbidden.exec(name)?.[0]
  if (character !== undefined) throw wrong(`a database name cannot have ${JSON.stringify(character)} in it`)
  if (Buffer.byteLength(name) > longestNameBytes) {
    throw wrong(`a database name cannot be longer than ${longestNameBytes} bytes`)
  }
  return name
}

function wrong(words: string, cause?: unknown): AppError {
  return new AppError('bad_request', `MONGODB_URI: ${words}`, { cause })
}
