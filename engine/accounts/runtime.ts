/**
 * What one account's actor does: logs in, reads, watches, and keeps the sockets. The chart (machines/account.machine.ts) says
 * when; this says how. One runtime per actor, and nobody else holds its sessions.
 */
import { AppError } from '../errors.ts'
import { attend } from './attend.ts'
import type { Loans } from '../loans.ts'
import { claimAccount, closeConnection, openConnection, type Connection, type ConnectionDeps } from './connection.ts'
import { firstRead } from './first-read.ts'
import type { LoginStage } from './login.ts'
import type { PushRecords } from './pushes.ts'

export interface RuntimeDeps extends ConnectionDeps {
  /** Bounds how many accounts back-fill at the same time, in turns by developer and account. */
  readonly backfilling: Loans
  readonly pushes: PushRecords
}

export interface Runtime {
  /** Claims the account and logs in. Every earlier owner's writes are refused from here on. */
  connect(signal: AbortSignal, stage: LoginStage): Promise<void>
  /** Folder list, INBOX caught up and its first page read: usable from then on. */
  sync(signal: AbortSignal, progress: () => void): Promise<void>
  /** Resolves when stopped or when the session has to be renewed; rejects with what ended it. */
  watch(signal: AbortSignal, alive: () => void, completed: () => void): Promise<'stopped' | 'rotate'>
  /** Opens the command connection, when it is not open, in the bounded time of a command. */
  relogin(): Promise<void>
  /** Of the last claim; null before the first one and while one is under way. */
  epoch(): number | null
  /** For commands: what is live now, or null. */
  live(): Pick<Connection, 'state' | 'link'> | null
  /** Closes every socket. */
  close(): Promise<void>
}

/** The connection and the claim of the newest attempt. */
interface Holder {
  open: Connection | null
  epoch: number | null
}

export function createRuntime(deps: RuntimeDeps, accountId: string): Runtime {
  const { sync, backfilling, pushes } = deps
  const holder: Holder = { open: null, epoch: null }
  return {
    async connect(signal, stage) {
      await release(holder, holder.open)
      holder.epoch = null
      const account = await claimAccount(sync, accountId)
      holder.epoch = account.epoch
      const connection = await openConnection(deps, account, signal, stage)
      if (signal.aborted) await closeConnection(connection)
      signal.throwIfAborted()
      holder.open = connection
    },
    sync: (signal, progress) => owning(holder, signal, (connection) => firstRead(sync, connection, signal, progress)),
    watch: (signal, alive, completed) =>
      owning(holder, signal, (connection) =>
        attend({ sync, backfilling, pushes, alive, completed }, connection, signal),
      ),
    relogin: async () => connectionOf(holder).link.run('api', () => Promise.resolve()),
    epoch: () => holder.epoch,
    live: () => holder.open,
    close: () => release(holder, holder.open),
  }
}

/** Closes this attempt's connections, and no other's: an old attempt may end after a new one has begun. */
async function release(holder: Holder, mine: Connection | null): Promise<void> {
  if (holder.open === mine) holder.open = null
  if (mine !== null) await closeConnection(mine)
}

function connectionOf({ open }: Holder): Connection {
  if (open === null) throw new AppError('network', 'the connection is closed')
  return open
}

/** Work over the open connection, which does not outlive a failure or the signal. */
async function owning<T>(
  holder: Holder,
  signal: AbortSignal,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const mine = connectionOf(holder)
  const drop = () => void release(holder, mine)
  signal.addEventListener('abort', drop, { once: true })
  try {
    return await work(mine)
  } catch (error) {
    await release(holder, mine)
    throw error
  } finally {
    signal.removeEventListener('abort', drop)
  }
}
