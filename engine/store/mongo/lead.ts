/**
 * One process at a time serves a database: two engines would both follow every account and send every callback twice.
 * The others wait. The one that serves writes so every few seconds; when it has ended, or has been silent for long
 * enough, one that waits takes over. Silence is measured by the one who listens, in its own time and only while the
 * database answers it: clocks need not agree, and during an outage of the database none counts as dead.
 */
import { randomUUID } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import type { Collections } from './documents.ts'
import { isDuplicate, within } from './errors.ts'

const beatMs = 2000
const silentMs = 15_000
const releaseMs = 2000

export interface LeadOptions {
  /** Host and database, for people. */
  readonly name?: string
  readonly log: Logger
  readonly signal?: AbortSignal | undefined
  /** Another process has taken over: nothing may be served from then on. */
  readonly lost: () => void
  /** Wait no longer for one that is at work; at least as long as silence. Default: for ever. */
  readonly patienceMs?: number
  /** Milliseconds between two beats, and of silence after which one is dead. For tests. */
  readonly beatMs?: number | undefined
  readonly silentMs?: number
}

/** What `meta` says of the one who serves; owner '' = it has ended. */
interface Holder {
  readonly _id: 'lead'
  readonly owner: string
  readonly place: string
  readonly pid: number
  readonly beat: number
}

type Meta = Collection<Holder>

const _id = 'lead'

export const leadPatienceMs = silentMs + 2 * beatMs

/**
 * Waits until it is this one's turn. AppError `shutting_down` when `signal` is aborted, `conflict` when patience ends.
 */
export async function takeLead(collections: Pick<Collections, 'meta'>, options: LeadOptions): Promise<Lead> {
  const meta = collections.meta as unknown as Meta
  const { log, signal } = options
  const me: Holder = { _id, owner: randomUUID(), place: placeOf(), pid: process.pid, beat: 0 }
  const silence = createSilence(options.silentMs ?? silentMs)
  const until = performance.now() + (options.patienceMs ?? Infinity)
  let waited = false
  for (;;) {
    const other = await attempt(meta, me, silence).catch(() => {
      silence.forget()
      return me
    })
    if (other === null) break
    if (performance.now() >= until) {
      throw new AppError(
        'conflict',
        `${options.name ?? 'the database'} is served by another process (${other.pid} at ${other.place}): stop that one first`,
      )
    }
    if (!waited && other !== me)
      log.info({ place: other.place, pid: other.pid }, 'another process serves this database')
    waited ||= other !== me
    await sleep(options.beatMs ?? beatMs, undefined, { signal }).catch((cause: unknown) => {
      throw new AppError('shutting_down', 'stopped while another process served the database', { cause })
    })
  }
  if (waited) log.warn({ pid: process.pid }, 'the other process has ended: this one serves the database')
  return keepLead(meta, me.owner, options)
}

/** null = it is ours. Otherwise who has it. */
async function attempt(meta: Meta, me: Holder, silence: ReturnType<typeof createSilence>): Promise<Holder | null> {
  const holder = await meta.findOne({ _id })
  if (holder === null) return insert(meta, me)
  if (holder.owner === me.owner) return null
  const silent = silence.of(holder)
  if (!silent && holder.owner !== '' && !hasEnded(holder)) return holder
  const { matchedCount } = await meta.replaceOne({ _id, owner: holder.owner, beat: holder.beat }, me)
  return matchedCount === 1 ? null : holder
}

async function insert(meta: Meta, me: Holder): Promise<Holder | null> {
  try {
    await meta.insertOne(me)
    return null
  } catch (error) {
    if (isDuplicate(error)) return me
    throw error
  }
}

/** Where a process number means the same process: the machine, or the container on it. */
function placeOf(): string {
  let space = ''
  try {
    space = readlinkSync('/proc/self/ns/pid')
  } catch {
    // not Linux: the host's name alone
  }
  return `${hostname()} ${space}`.trim()
}

/** A process of this very place that is no more. Our own number is not its number any more. */
function hasEnded({ place, pid }: Holder): boolean {
  if (place !== placeOf()) return false
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

/** How long a holder has not been heard of. */
function createSilence(deadlineMs: number) {
  let heard: { readonly from: string; readonly at: number } | null = null
  return {
    of({ owner, beat }: Holder): boolean {
      const from = `${owner} ${beat}`
      if (heard?.from !== from) heard = { from, at: performance.now() }
      return performance.now() - heard.at >= deadlineMs
    },
    forget() {
      heard = null
    },
  }
}

function keepLead(meta: Meta, owner: string, { lost, ...options }: LeadOptions) {
  let ours = true
  const timer = setInterval(() => {
    meta.updateOne({ _id, owner }, { $inc: { beat: 1 } }).then(
      ({ matchedCount }) => {
        if (matchedCount === 1 || !ours) return
        ours = false
        clearInterval(timer)
        lost()
      },
      // the database is away: no other process can take over meanwhile
      () => undefined,
    )
  }, options.beatMs ?? beatMs)
  timer.unref()
  return {
    release: async (): Promise<void> => {
      clearInterval(timer)
      if (!ours) return
      ours = false
      const handing: Promise<unknown> = meta.updateOne({ _id, owner }, { $set: { owner: '' } })
      await within(handing, releaseMs).catch(() => undefined)
    },
  }
}

export type Lead = ReturnType<typeof keepLead>
