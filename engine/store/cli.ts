/** `npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]` */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeDataDir } from '../data-dir.ts'
import { AppError, isAppError } from '../errors.ts'
import { silentLogger, type Logger } from '../observe/log.ts'
import { copyStore, transferNames, type CopyStep, type StoreTransfer } from './copy.ts'
import { describeUri } from './mongo/uri.ts'
import { lockStore } from './sqlite/file.ts'
import { openSqliteTransfer } from './sqlite/transfer.ts'

const usage = `usage: npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]
  a URI is mongodb://… or mongodb+srv://…; a path is a data directory, or an SQLite file that is there or ends in .sqlite
  stop the service first; a copy that was cut short goes on when it is started again`

/** How long a database that is away is waited for. */
const patienceMs = 60_000
const timeoutMs = 60_000

/** Runs one command; answers the exit status. What it has to say goes to `say`, line by line. */
export async function runStoreCommand(args: readonly string[], say: (line: string) => void): Promise<number> {
  try {
    const { from, to, intoExisting } = readArgs(args)
    await copy(from, to, intoExisting, say)
    return 0
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    say(error.message)
    return 1
  }
}

function readArgs(args: readonly string[]) {
  const { values, positionals } = parsed(args)
  const { from, to } = values
  if (positionals.join() !== 'copy' || from === undefined || to === undefined) throw new AppError('bad_request', usage)
  for (const [option, store] of [['--from', from] as const, ['--to', to] as const]) {
    // else it would become a directory of that name
    if (!isUri(store) && /^[a-z+]+:\//i.test(store)) {
      throw new AppError('bad_request', `${option}: expected mongodb://…, mongodb+srv://… or a path`)
    }
  }
  if (nameOf(from, '--from') === nameOf(to, '--to')) {
    throw new AppError('bad_request', '--from and --to are the same store')
  }
  return { from, to, intoExisting: values['into-existing'] }
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

/** At most one line a second, and one at the end of each collection that has anything. */
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

/** What two spellings of one store have in common. */
function nameOf(store: string, option: Option): string {
  if (isUri(store)) return hostAndName(store, option)
  const path = fileOf(store)
  return existsSync(path) ? realpathSync(path) : resolve(path)
}

/** A path that is not there yet is a data directory, unless it ends like the file in one. */
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
  const release = lockStore(path)
  try {
    const transfer = await openSqliteTransfer(path, role)
    return { ...transfer, close: () => transfer.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

async function openMongo(
  uri: string,
  option: Option,
  role: 'source' | 'target',
  say: (line: string) => void,
): Promise<StoreTransfer> {
  const { openMongoTransfer } = await import('./mongo/transfer.ts')
  const signal = AbortSignal.timeout(patienceMs)
  try {
    return await openMongoTransfer({ uri, role, timeoutMs, log: warnings(say), signal })
  } catch (error) {
    if (!isAppError(error, 'shutting_down')) throw inWordsOf(option, error)
    const words = `${option}: the database did not answer within ${patienceMs / 1000} s`
    throw new AppError('store_unavailable', words, { cause: error })
  }
}

function hostAndName(uri: string, option: Option): string {
  try {
    const { host, name } = describeUri(uri)
    return `${host}/${name}`
  } catch (error) {
    throw inWordsOf(option, error)
  }
}

/** Whoever copies has set no variable: what is wrong is the option. */
function inWordsOf(option: Option, error: unknown): unknown {
  if (!isAppError(error, 'bad_request')) return error
  return new AppError('bad_request', error.message.replace(/^MONGODB_URI: /, `${option}: `), { cause: error })
}

/** Of the log of a start only what a person has to know. */
function warnings(say: (line: string) => void): Logger {
  const warn = (facts: unknown, text?: unknown): void => say(`${String(text)} ${JSON.stringify(facts)}`)
  return { ...silentLogger, warn, error: warn }
}
