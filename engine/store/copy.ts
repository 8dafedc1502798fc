/**
 * `npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]`: copies all records from one store to
 * another, with progress, and verifies the counts. No engine may run on either store. The target stores the source and
 * the position after every page, so that an interrupted copy resumes; it restarts when the source was served meanwhile.
 */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeDataDir } from '../data-dir.ts'
import { AppError, isAppError } from '../errors.ts'
import { silentLogger, type Logger } from '../observe/log.ts'
import type { DeveloperRecord } from './records.ts'
import { openLocked } from './sqlite/file.ts'
import { openSqliteTransfer } from './sqlite/transfer.ts'
import type { ExportedPage, StoreTransfer, TransferName } from './transfer.ts'

/** Records that may expire during a copy, so that their counts may differ. */
const expiring: ReadonlySet<TransferName> = new Set(['nonces', 'tokens'])

/** In the order of the copy: records come before those that refer to them. */
export const transferNames = [
  'developers',
  'users',
  'accounts',
  'folders',
  'messages',
  'changes',
  'webhooks',
  'scans',
  'outbox',
  'contacts',
  'tokens',
  'providers',
  'operators',
  'settings',
  'nonces',
  'calls',
  'audit',
] as const satisfies readonly TransferName[]

export interface CopyOptions {
  readonly from: StoreTransfer
  readonly to: StoreTransfer
  /** Copies into a target with records: replaces records with the same id, keeps the others. */
  readonly intoExisting: boolean
  readonly progress: (step: CopyStep) => void
  readonly pageSize?: number
}

export interface CopyStep {
  readonly collection: TransferName
  readonly copied: number
  readonly total: number
}

export type Counts = Readonly<Record<TransferName, number>>

interface Note {
  readonly source: string
  readonly sourceId: string
  /** Absent in notes of earlier versions. */
  readonly served?: string | null
  readonly intoExisting: boolean
  readonly collection: TransferName
  readonly after: string | null
  readonly copied: number
}

const defaultPageSize = 500

export async function countAll(store: StoreTransfer): Promise<Counts> {
  const counts: [TransferName, number][] = []
  for (const name of transferNames) counts.push([name, await store.count(name)])
  return Object.fromEntries(counts) as Counts
}

/**
 * Copies and verifies. Returns the counts of the source. AppError `conflict` when the target is not empty (without
 * `intoExisting`), or is the target of an unfinished copy from another source; `internal` when the counts differ.
 */
export async function copyStore(options: CopyOptions): Promise<Counts> {
  const { from, to } = options
  const note = await startOf(options)
  await copyCollection(options, note)
  for (const collection of transferNames.slice(transferNames.indexOf(note.collection) + 1)) {
    await copyCollection(options, await saved(to, { ...note, collection, after: null, copied: 0 }))
  }
  const counts = await verify(from, to, note.intoExisting)
  await to.saveProgress(null)
  return counts
}

/** The position of an interrupted copy, or the start: for a new copy, or when the source was served meanwhile. */
async function startOf({ from, to, intoExisting }: CopyOptions): Promise<Note> {
  const begun = { collection: transferNames[0], after: null, copied: 0 }
  const [sourceId, served] = [await from.identity(), await from.served()]
  const text = await to.progress()
  if (text !== null) {
    const note = JSON.parse(text) as Note
    if (note.sourceId !== sourceId) {
      throw new AppError('conflict', `${to.name} is the target of an unfinished copy from ${note.source}`)
    }
    return note.served === served ? note : saved(to, { ...note, served, ...begun })
  }
  const held = Object.entries(await countAll(to)).filter(([, count]) => count > 0)
  if (held.length > 0 && !intoExisting) {
    const what = held.map(([name, count]) => `${count} ${name}`).join(', ')
    throw new AppError('conflict', `${to.name} is not empty (${what}); --into-existing copies into it all the same`)
  }
  await refuseSharedKeys(from, to)
  return saved(to, { source: from.name, sourceId, served, intoExisting, ...begun })
}

/** AppError `conflict` when two developers have the same API key: neither replaces the other. */
async function refuseSharedKeys(from: StoreTransfer, to: StoreTransfer): Promise<void> {
  const there = new Map<string, string>()
  for await (const { id, apiKey } of developersOf(to)) there.set(apiKey, id)
  if (there.size === 0) return
  for await (const { id, apiKey } of developersOf(from)) {
    const other = there.get(apiKey) ?? id
    if (other === id) continue
    const words = `developer ${id} of ${from.name} and developer ${other} of ${to.name} have the same API key`
    throw new AppError('conflict', words)
  }
}

async function* developersOf(store: StoreTransfer): AsyncGenerator<DeveloperRecord> {
  for (let after: string | null = null; ;) {
    const page: ExportedPage<DeveloperRecord> = await store.export('developers', after, defaultPageSize)
    yield* page.records
    if (page.next === null) return
    after = page.next
  }
}

async function saved(to: StoreTransfer, note: Note): Promise<Note> {
  await to.saveProgress(JSON.stringify(note))
  return note
}

async function copyCollection(options: CopyOptions, begun: Note): Promise<void> {
  const { from, to, progress, pageSize = defaultPageSize } = options
  const { collection } = begun
  const total = await from.count(collection)
  let { after, copied } = begun
  for (;;) {
    const page = await from.export(collection, after, pageSize)
    if (page.records.length > 0) {
      await to.import(collection, page.records).catch((cause: unknown) => {
        if (!isAppError(cause, 'conflict')) throw cause
        throw new AppError('conflict', `${collection} cannot be copied into ${to.name}: ${cause.message}`, { cause })
      })
      copied += page.records.length
      progress({ collection, copied, total })
    }
    if (page.next === null) return
    after = page.next
    await saved(to, { ...begun, after, copied })
  }
}

async function verify(from: StoreTransfer, to: StoreTransfer, intoExisting: boolean): Promise<Counts> {
  const [source, target] = [await countAll(from), await countAll(to)]
  const wrong = transferNames
    .filter((name) => !expiring.has(name))
    .filter((name) => (intoExisting ? target[name] < source[name] : target[name] !== source[name]))
  if (wrong.length === 0) return source
  const what = wrong.map((name) => `${name}: ${source[name]} there, ${target[name]} here`).join('; ')
  throw new AppError('internal', `the copy is not whole (is a service running on either side?): ${what}`)
}

const usage = `usage: npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]
  a URI is mongodb://… or mongodb+srv://…; a path is a data directory, or an SQLite file that is there or ends in .sqlite
  stop the service first; a copy that was cut short goes on when it is started again`

/** The longest wait for an unreachable database. */
const patienceMs = 60_000
const timeoutMs = 60_000

/** Runs one command. Returns the exit status. `say` prints a line. */
export async function runStoreCommand(args: readonly string[], say: (line: string) => void): Promise<number> {
  try {
    const { from, to, intoExisting } = await readArgs(args)
    await copy(from, to, intoExisting, say)
    return 0
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    say(error.message)
    return 1
  }
}

const options = {
  from: { type: 'string' },
  to: { type: 'string' },
  'into-existing': { type: 'boolean', default: false },
} as const

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (cause) {
    throw new AppError('bad_request', usage, { cause })
  }
}

async function readArgs(args: readonly string[]) {
  const { values, positionals } = parsed(args)
  const { from, to } = values
  if (positionals.join() !== 'copy' || from === undefined || to === undefined) throw new AppError('bad_request', usage)
  for (const [option, store] of Object.entries({ '--from': from, '--to': to })) {
    // a path of this form would become a directory
    if (!isUri(store) && /^[a-z+]+:\//i.test(store)) {
      throw new AppError('bad_request', `${option}: expected mongodb://…, mongodb+srv://… or a path`)
    }
  }
  if ((await nameOf(from, '--from')) === (await nameOf(to, '--to'))) {
    throw new AppError('bad_request', '--from and --to are the same store')
  }
  return { from, to, intoExisting: values['into-existing'] }
}

async function copy(from: string, to: string, intoExisting: boolean, say: (line: string) => void): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const source = stack.adopt(await open(from, '--from', say), (store) => store.close())
  const target = stack.adopt(await open(to, '--to', say), (store) => store.close())
  const started = performance.now()
  const counts = await copyStore({ from: source, to: target, intoExisting, progress: throttled(say) }).catch(goesOn)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  for (const name of transferNames) say(`${name.padEnd(12)}${counts[name]}`)
  say(`copied and verified from ${source.name} to ${target.name} in ${seconds} s`)
}

function goesOn(error: unknown): never {
  if (!isAppError(error, 'store_unavailable')) throw error
  const words = `${error.message}; the copy goes on where it was when the same command is run again`
  throw new AppError('store_unavailable', words, { cause: error })
}

/** Prints at most one line a second, and one at the end of each collection with records. */
function throttled(say: (line: string) => void) {
  let last = 0
  return ({ collection, copied, total }: CopyStep) => {
    const now = performance.now()
    if (total === 0 || (copied < total && now - last < 1000)) return
    last = now
    say(`${collection}: ${copied} of ${total}`)
  }
}

function isUri(store: string): boolean {
  return /^mongodb(\+srv)?:\/\//.test(store)
}

type Option = '--from' | '--to'

/** The same name for all spellings of one store. */
async function nameOf(store: string, option: Option): Promise<string> {
  if (isUri(store)) return hostAndName(store, option)
  const path = fileOf(store)
  return existsSync(path) ? realpathSync(path) : resolve(path)
}

/** The SQLite file. A path that does not exist is a data directory, unless it ends in .sqlite. */
function fileOf(store: string): string {
  const isFile = statSync(store, { throwIfNoEntry: false })?.isFile() ?? store.endsWith('.sqlite')
  return isFile ? store : join(store, 'mailroom.sqlite')
}

async function open(store: string, option: Option, say: (line: string) => void): Promise<StoreTransfer> {
  const role = option === '--from' ? 'source' : 'target'
  if (isUri(store)) return openMongo(store, option, role, say)
  const path = fileOf(store)
  if (role === 'source' && !existsSync(path)) throw new AppError('bad_request', `${store}: no such store`)
  if (path !== store) makeDataDir(store, option)
  return openLocked(path, () => openSqliteTransfer(path, role))
}

async function openMongo(
  uri: string,
  option: Option,
  role: 'source' | 'target',
  say: (line: string) => void,
): Promise<StoreTransfer> {
  const { openMongoTransfer } = await import('./mongo/transfer.ts')
  const signal = AbortSignal.timeout(patienceMs)
  return openMongoTransfer({ uri, role, timeoutMs, log: warnings(say), signal }).catch(inWordsOf(option))
}

/** Loads the driver only for a MongoDB store. */
async function hostAndName(uri: string, option: Option): Promise<string> {
  const { describeUri } = await import('./mongo/connect.ts')
  try {
    const { host, name } = describeUri(uri)
    return `${host}/${name}`
  } catch (error) {
    return inWordsOf(option)(error)
  }
}

/** Rewrites errors of a service start, so that they name the option. */
function inWordsOf(option: Option): (error: unknown) => never {
  return (cause) => {
    if (isAppError(cause, 'shutting_down')) {
      const words = `${option}: the database did not answer within ${patienceMs / 1000} s`
      throw new AppError('store_unavailable', words, { cause })
    }
    if (!isAppError(cause, 'bad_request')) throw cause
    throw new AppError('bad_request', cause.message.replace(/^MONGODB_URI: /, `${option}: `), { cause })
  }
}

/** A logger that prints warnings and errors alone. */
function warnings(say: (line: string) => void): Logger {
  const warn = (facts: unknown, text?: unknown): void => say(`${String(text)} ${JSON.stringify(facts)}`)
  return { ...silentLogger, warn, error: warn }
}
