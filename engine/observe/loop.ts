/**
 * All actors share one event loop. This file knows whose work it does: what an actor runs, opens and waits for is
 * started `as` its work, and Node hands that on to every callback of it. Work that holds the loop is reported with its
 * owner; a thread beside the loop keeps a note of the account at work meanwhile, in case that the process does not
 * survive it.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker, workerData } from 'node:worker_threads'
import type { Accounts } from '../accounts/index.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'

export interface Owner {
  readonly kind: 'account' | 'webhook' | 'call'
  /** Of the account or the channel; method and path of a call. */
  readonly id: string
  /** Of a call. */
  readonly requestId?: string
  /** That a call or a callback is about. */
  accountId?: string | null
}

export interface Held {
  /** null = not the work of one actor. */
  readonly owner: Owner | null
  /** Processor time of the main thread. */
  readonly ms: number
}

const heldMs = 100
/** How often the processor's clock is read at most: as much of a turn may belong to the one before it. */
const readEveryMs = 20
const beatMs = 100
const idBytes = 128

const owners = new AsyncLocalStorage<Owner>()

/** Runs `work`, and all that follows from it, as the owner's. */
export function workAs<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work)
}

/** Nobody's work: what many share must not count as the work of whoever happens to start it. */
export const workAsNobody = AsyncLocalStorage.snapshot()

/** Of the loop that is watched. */
let begins: () => void = () => undefined

/** Its owner's work goes on in the middle of a turn, without a callback of its own: a batch after its wait. */
export function workGoesOn(): void {
  begins()
}

/** The call under way is about this account. */
export function concernsAccount(accountId: string): void {
  const owner = owners.getStore()
  if (owner?.kind === 'call') owner.accountId = accountId
}

/** What each line of the log says of the work that it was written in. */
export function workFacts(): Record<string, unknown> {
  const { kind, id, requestId, accountId } = owners.getStore() ?? {}
  const about = typeof accountId === 'string' ? { accountId } : {}
  if (kind === 'account') return { accountId: id }
  if (kind === 'webhook') return { channelId: id, ...about }
  return requestId === undefined ? about : { requestId, ...about }
}

const processorMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Reports every turn of at least `heldMs`, after it. The note lies in `directory`. Answers how to end. */
export function watchLoop(directory: string, onHeld: (held: Held) => void): () => Promise<void> {
  const note = createNote(directory)
  let owner: Owner | undefined
  let readAt = performance.now()
  let used = processorMs()
  const before = (): void => {
    const at = performance.now()
    if (at - readAt >= readEveryMs) {
      const now = processorMs()
      const held = { owner: owner ?? null, ms: now - used }
      readAt = at
      used = now
      // A hook must not throw.
      if (held.ms >= heldMs) setImmediate(onHeld, held)
    }
    owner = owners.getStore()
    note.turn(owner)
  }
  begins = before
  const beat = setInterval(() => undefined, beatMs).unref()
  // Callbacks are enough, and cost nothing to watch; promises go on within them.
  const hook = createHook({ before, trackPromises: false }).enable()
  return async () => {
    hook.disable()
    begins = () => undefined
    clearInterval(beat)
    await note.end()
  }
}

interface NoteInput {
  readonly heldFile: string
  /** Int32 [turns so far, bytes of the account's id or 0], then the id. */
  readonly shared: SharedArrayBuffer
}

/** Tells the thread beside the loop, in memory that both share. */
function createNote(directory: string) {
  const shared = new SharedArrayBuffer(8 + idBytes)
  const figures = new Int32Array(shared, 0, 2)
  const id = Buffer.from(shared, 8)
  const file = heldFileIn(directory)
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { heldFile: file, shared } satisfies NoteInput,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  })
  worker.unref()
  let last: Owner | undefined
  return {
    turn(owner: Owner | undefined): void {
      if (owner !== last) figures[1] = owner?.kind === 'account' ? id.write(owner.id) : 0
      last = owner
      Atomics.add(figures, 0, 1)
    },
    async end(): Promise<void> {
      await worker.terminate()
      if (existsSync(file)) rmSync(file)
    },
  }
}

/** A turn that lasts for a whole step is noted. The loop has a turn of its own more often than that. */
const stepMs = 250

/**
 * The thread beside the loop: while one turn goes on and on, a file says whose. Nobody can write it when the process
 * has run out of memory or does not come back; it is gone again when the turn ends.
 */
function keepNote({ shared, heldFile }: NoteInput): void {
  const figures = new Int32Array(shared, 0, 2)
  const id = Buffer.from(shared, 8)
  let last = -1
  let noted = false
  setInterval(() => {
    const turns = Atomics.load(figures, 0)
    const length = Atomics.load(figures, 1)
    const isHeld = turns === last && length > 0
    last = turns
    if (isHeld === noted) return
    try {
      if (isHeld) writeFileSync(heldFile, id.subarray(0, length), { mode: 0o600 })
      else rmSync(heldFile, { force: true })
      noted = isHeld
    } catch {
      // Without a directory to write to there is no note.
    }
  }, stepMs)
}

const heldFileIn = (directory: string): string => join(directory, 'held')

/** Gives the account at whose work the process ended, if it did, to `count`; once that is done it is forgotten. */
export async function takeHeld(directory: string, count: (accountId: string) => Promise<void>): Promise<void> {
  const file = heldFileIn(directory)
  if (!existsSync(file)) return
  await count(readFileSync(file, 'utf8'))
  rmSync(file, { force: true })
}

/** An account that held the loop for this long, in turns that are each too long … */
const mostMs = 5_000
/** … within this time, is set aside. */
const withinMs = 600_000

interface LoopGuardDeps {
  readonly log: Pick<Logger, 'warn'>
  readonly metrics: Pick<Metrics, 'loopHeld'>
  readonly accounts: Pick<Accounts, 'setAside'>
  readonly now?: () => number
}

/**
 * Who holds the event loop is named in the log and in the metrics; an account that does so again and again is set
 * aside.
 */
export function createLoopGuard({ log, metrics, accounts, now = Date.now }: LoopGuardDeps): (held: Held) => void {
  let turns: readonly (Held & { readonly at: number })[] = []
  return ({ owner, ms }) => {
    const { kind, id } = owner ?? { kind: 'none', id: null }
    metrics.loopHeld.observe({ kind }, ms / 1000)
    log.warn({ kind, id, ms: Math.round(ms) }, 'held the event loop')
    const at = now()
    turns = [...turns.filter((turn) => turn.at > at - withinMs), { owner, ms, at }]
    const own = turns.filter((turn) => turn.owner?.kind === 'account' && turn.owner.id === id)
    const seconds = own.reduce((sum, turn) => sum + turn.ms, 0) / 1000
    if (id === null || seconds * 1000 < mostMs) return
    turns = turns.filter((turn) => !own.includes(turn))
    log.warn({ accountId: id, seconds }, 'account is set aside')
    const reason = `its mailbox kept the whole service waiting for ${seconds.toFixed(1)} s within ${withinMs / 60_000} minutes`
    accounts.setAside(id, reason)
  }
}

const isNoteInput = (data: unknown): data is NoteInput =>
  typeof data === 'object' && data !== null && 'heldFile' in data

// Other threads have data of their own, and the main thread has none.
if (isNoteInput(workerData)) keepNote(workerData)
