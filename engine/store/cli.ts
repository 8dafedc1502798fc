/** `npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]` */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AppError } from '../errors.ts'
import { silentLogger, type Logger } from '../observe/log.ts'
import { copyStore } from './copy.ts'
import { lockStore } from './sqlite/lock.ts'
import { openSqliteTransfer } from './sqlite/transfer.ts'
import { transferNames, type StoreTransfer } from './transfer.ts'

const usage = `usage: npm run store -- copy --from <uri|path> --to <uri|path> [--into-existing]
  a URI is mongodb://… or mongodb+srv://…; a path is a data directory or an SQLite file
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

function readArgs(args: readonly string[]): {
  readonly from: string
  readonly to: string
  readonly intoExisting: boolean
} {
  const options = {
    from: { type: 'string' },
    to: { type: 'string' },
    'into-existing': { type: 'boolean', default: false },
  } as const
  const read = () => {
    try {
      return parseArgs({ args: [...args], options, allowPositionals: true })
    } catch (cause) {
      throw new AppError('bad_request', usage, { cause })
    }
  }
  const { values, positionals } = read()
  const { from, to } = values
  if (positionals.length !== 1 || positionals[0] !== 'copy' || from === undefined || to === undefined) {
    throw new AppError('bad_request', usage)
  }
  if (from === to) throw new AppError('bad_request', '--from and --to are the same store')
  return { from, to, intoExisting: values['into-existing'] }
}

async function copy(from: string, to: string, intoExisting: boolean, say: (line: string) => void): Promise<void> {
  const source = await open(from, true, say)
  try {
    const target = await open(to, false, say)
    try {
      const started = performance.now()
      const step = throttled(say)
      const counts = await copyStore({ from: source, to: target, intoExisting, progress: step })
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      for (const name of transferNames) say(`${name.padEnd(12)}${counts[name]}`)
      say(`copied and verified from ${source.name} to ${target.name} in ${seconds} s`)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** At most one line a second, and one at the end of each collection that has anything. */
function throttled(say: (line: string) => void) {
  let last = 0
  return ({
    collection,
    copied,
    total,
  }: {
    readonly collection: string
    readonly copied: number
    readonly total: number
  }) => {
    const now = performance.now()
    const whole = copied >= total
    if (total === 0 || (!whole && now - last < 1000)) return
    last = now
    say(`${collection}: ${copied} of ${total}`)
  }
}

function isUri(store: string): boolean {
  return /^mongodb(\+srv)?:\/\//.test(store)
}

async function open(store: string, mustExist: boolean, say: (line: string) => void): Promise<StoreTransfer> {
  if (isUri(store)) {
    const { openMongoTransfer } = await import('./mongo/transfer.ts')
    const signal = AbortSignal.timeout(patienceMs)
    return openMongoTransfer({ uri: store, timeoutMs, log: warnings(say), signal })
  }
  const path = existsSync(store) && statSync(store).isDirectory() ? join(store, 'mailroom.sqlite') : store
  if (mustExist && !existsSync(path)) throw new AppError('bad_request', `${path}: no such store`)
  const release = lockStore(path)
  try {
    const transfer = await openSqliteTransfer(path)
    return { ...transfer, close: () => transfer.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

/** Of the log of a start only what a person has to know. */
function warnings(say: (line: string) => void): Logger {
  const warn = (facts: unknown, text?: unknown): void => say(`${String(text)} ${JSON.stringify(facts)}`)
  return { ...silentLogger, warn, error: warn }
}
