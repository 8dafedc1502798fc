/**
 * All actors share one event loop. This file knows whose work it does: what an actor runs, opens and waits for is
 * started `as` its work, and Node hands that on to every callback of it. Work that holds the loop is reported with its
 * owner; a thread beside the loop keeps a note of the account at work meanwhile, in case that the process does not
 * survive it (held.ts).
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HeldInput } from './held.ts'

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
  const beat = setInterval(() => undefined, beatMs).unref()
  // Callbacks are enough, and cost nothing to watch; promises go on within them.
  const hook = createHook({ before, trackPromises: false }).enable()
  return async () => {
    hook.disable()
    clearInterval(beat)
    await note.end()
  }
}

interface Note {
  turn(owner: Owner | undefined): void
  end(): Promise<void>
}

/** Tells the thread beside the loop, in memory that both share. */
function createNote(directory: string): Note {
  const shared = new SharedArrayBuffer(8 + idBytes)
  const figures = new Int32Array(shared, 0, 2)
  const id = Buffer.from(shared, 8)
  const file = heldFile(directory)
  const worker = new Worker(new URL('held.ts', import.meta.url), {
    workerData: { shared, file } satisfies HeldInput,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  })
  worker.unref()
  let last: Owner | undefined
  return {
    turn(owner) {
      if (owner !== last) figures[1] = owner?.kind === 'account' ? id.write(owner.id) : 0
      last = owner
      Atomics.add(figures, 0, 1)
    },
    async end() {
      await worker.terminate()
      if (existsSync(file)) rmSync(file)
    },
  }
}

const heldFile = (directory: string): string => join(directory, 'held')

/** Gives the account at whose work the process ended, if it did, to `count`; once that is done it is forgotten. */
export async function takeHeld(directory: string, count: (accountId: string) => Promise<void>): Promise<void> {
  const file = heldFile(directory)
  if (!existsSync(file)) return
  await count(readFileSync(file, 'utf8'))
  rmSync(file, { force: true })
}
