/**
 * The processes at work in a database: one record per process in `nodes`, with a beat that counts up every second. A
 * process works beside the others, or alone (a copy, a migration). To be alone a process waits until the others have
 * ended; no process joins meanwhile. Both kinds write before they read, so of two at least one sees the other.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Collection } from 'mongodb'
import { createNode, stepNode, type Look, type NodeState, type NodeView } from '../../../machines/node.machine.ts'
import { AppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import type { Collections } from './documents.ts'
import { within } from './errors.ts'

const usualBeatMs = 1000
const usualSilentMs = 15_000
const releaseMs = 2000

/** Patience of a process that wants to be alone: long enough for a dead process to count as silent. */
export const alonePatienceMs = usualSilentMs + 4 * usualBeatMs

export interface JoinOptions {
  /** Whether this process must be alone. Asked before each try. */
  readonly alone: () => Promise<boolean>
  /** Takes slots once it has started. Default true. */
  readonly works?: boolean | undefined
  /** Host and database, for the error text. */
  readonly name?: string
  readonly log: Logger
  readonly signal?: AbortSignal | undefined
  /** Called when another process has removed this record as dead: this process may write nothing from then on. */
  readonly lost: () => void
  /** Longest wait for other processes. Default: without end. */
  readonly patienceMs?: number | undefined
  /** For tests. */
  readonly beatMs?: number | undefined
  readonly silentMs?: number | undefined
}

export interface NodeDoc {
  readonly _id: string
  readonly place: string
  readonly pid: number
  readonly beat: number
  /** Still waits for other processes to end. */
  readonly waits: boolean
  readonly works: boolean
  readonly leaving: boolean
  readonly capacity: number
  readonly load: number
  /** Where the process listens for the other nodes. */
  readonly address: string | null
}

type NodeFields = Omit<NodeDoc, '_id' | 'beat'>

export interface SharedDoc {
  readonly _id: 'shared'
  /** Id of the process that is alone, or wants to be; '' = none. */
  readonly alone: string
  /** Number of changes of slot owners. */
  readonly version: number
  /** Epoch of the last claim. */
  readonly term: number
  /** Number of the newest news row. */
  readonly news: number
}

const shared = 'shared'
const blank: Omit<SharedDoc, '_id'> = { alone: '', version: 0, term: 0, news: 0 }

export interface Members {
  readonly nodes: Collection<NodeDoc>
  readonly shared: Collection<SharedDoc>
}

export function openMembers({ nodes }: Pick<Collections, 'nodes'>): Members {
  return { nodes: nodes as unknown as Collection<NodeDoc>, shared: nodes as unknown as Collection<SharedDoc> }
}

export interface Seen {
  readonly nodes: readonly NodeDoc[]
  readonly shared: SharedDoc
}

/** Reads all records in one command. */
export async function readMembers({ nodes }: Members): Promise<Seen> {
  const docs = (await nodes.find({}).toArray()) as readonly (NodeDoc | SharedDoc)[]
  const isShared = (doc: NodeDoc | SharedDoc): doc is SharedDoc => doc._id === shared
  return {
    nodes: docs.filter((doc): doc is NodeDoc => !isShared(doc)),
    shared: docs.find(isShared) ?? { _id: shared, ...blank },
  }
}

export function viewOf({ _id, beat, works, waits, leaving, capacity, place, pid }: NodeDoc): NodeView {
  return { id: _id, beat, works: works && !waits, leaving, capacity, ended: hasEnded(_id, place, pid) }
}

/** Removes the record of a dead node. Returns false when the node has beaten meanwhile, or its record is gone. */
export async function bury({ nodes }: Members, { id, beat }: Pick<NodeView, 'id' | 'beat'>): Promise<boolean> {
  return (await nodes.deleteOne({ _id: id, beat })).deletedCount === 1
}

/** Adds to the shared counts and returns the new ones. AppError `store_unavailable` when their record is missing. */
export async function count(members: Members, by: Partial<Record<'version' | 'term' | 'news', number>>) {
  const changed = await members.shared.findOneAndUpdate({ _id: shared }, { $inc: by }, { returnDocument: 'after' })
  if (changed === null) throw new AppError('store_unavailable', 'the record of the nodes is missing')
  return changed
}

/** Waits until this process may work. AppError `shutting_down` when `signal` aborts, `conflict` when patience ends. */
export async function join(collections: Pick<Collections, 'nodes' | 'meta'>, options: JoinOptions): Promise<Member> {
  const members = openMembers(collections)
  await members.shared.updateOne({ _id: shared }, { $setOnInsert: blank }, { upsert: true })
  const { beatMs = usualBeatMs, silentMs = usualSilentMs, patienceMs = Infinity } = options
  const _id = randomUUID()
  const me: NodeFields = {
    place: ownPlace,
    pid: process.pid,
    waits: true,
    works: false,
    leaving: false,
    capacity: 1,
    load: 0,
    address: null,
  }
  ownIds.add(_id)
  let state = createNode(_id, silentMs, 2 * beatMs)
  const until = performance.now() + patienceMs
  let waited = false
  for (;;) {
    const { other, state: after } = await options
      .alone()
      .then((alone) => attempt(members, collections, { _id, me, alone, before: state }))
      .catch((): Round => ({ other: undefined, state: stepNode(state, { type: 'failed' }).state }))
    if (other === null) break
    state = after
    if (performance.now() >= until) {
      await members.nodes.deleteOne({ _id })
      const who = other === undefined ? '' : ` (${other.pid} at ${other.place})`
      const words = `${options.name ?? 'the database'} is served by another process${who}: stop that one first`
      throw new AppError('conflict', words)
    }
    if (!waited && other !== undefined) {
      options.log.info({ place: other.place, pid: other.pid }, 'another process serves this database')
      waited = true
    }
    await sleep(beatMs, undefined, { signal: options.signal }).catch(async (cause: unknown) => {
      await within(members.nodes.deleteOne({ _id }), releaseMs).catch(() => undefined)
      throw new AppError('shutting_down', 'stopped while another process served the database', { cause })
    })
  }
  if (waited) options.log.warn({ pid: process.pid }, 'the other process has ended: this one serves the database')
  return memberOf(members, { _id, me, state, beatMs, works: options.works ?? true }, options.lost)
}

/** This process, and its record's fields beside the beat. */
interface Joining {
  readonly _id: string
  readonly me: NodeFields
}

interface Joined extends Joining {
  readonly state: NodeState
  readonly beatMs: number
  readonly works: boolean
}

interface Round {
  /** The process to wait for; null = none, undefined = the database did not answer. */
  readonly other: Pick<NodeDoc, 'place' | 'pid'> | null | undefined
  readonly state: NodeState
}

/** One look of a process that waits to join. Sets `waits: false` in its record when it may work beside the others. */
async function attempt(
  members: Members,
  collections: Pick<Collections, 'meta'>,
  { _id, me, alone, before }: Joining & { readonly alone: boolean; readonly before: NodeState },
): Promise<Round> {
  await members.nodes.updateOne({ _id }, { $inc: { beat: 1 }, $set: me }, { upsert: true })
  let seen = await readMembers(members)
  let former = await formerLead(collections)
  const nodes = former === null ? seen.nodes : [...seen.nodes, former]
  const look: Look = { type: 'looked', at: performance.now(), nodes: nodes.map(viewOf), slots: [] }
  const { state, commands } = stepNode(before, look)
  for (const dead of commands.bury)
    if (dead.id === formerId) await collections.meta.deleteOne({ _id: 'lead', beat: dead.beat })
    else await bury(members, dead)
  if (commands.bury.length > 0) [seen, former] = [await readMembers(members), await formerLead(collections)]
  const holder = seen.nodes.find((node) => node._id === seen.shared.alone && node._id !== _id)
  if (holder !== undefined) return { other: holder, state }
  if (former !== null) return { other: former, state }
  if (alone) return { other: await takeAlone(members, _id, seen), state }
  if (seen.shared.alone === _id) await members.shared.updateOne({ _id: shared, alone: _id }, { $set: { alone: '' } })
  await members.nodes.updateOne({ _id }, { $set: { waits: false } })
  // Another process may have asked to be alone since the first read.
  const { shared: now, nodes: others } = await readMembers(members)
  const other = others.find((node) => node._id === now.alone && node._id !== _id) ?? null
  if (other !== null) await members.nodes.updateOne({ _id }, { $set: { waits: true } })
  return { other, state }
}

/** Keeps other processes from joining. Returns one that is still at work; null = none. */
async function takeAlone(members: Members, id: string, { shared: { alone } }: Seen): Promise<NodeDoc | null> {
  const { matchedCount } = await members.shared.updateOne({ _id: shared, alone }, { $set: { alone: id } })
  const { nodes } = await readMembers(members)
  return nodes.find((node) => node._id !== id && (matchedCount === 0 || !node.waits)) ?? null
}

const formerId = 'lead'

/** A process of the version before nodes, which served alone and had its record in `meta`. */
async function formerLead({ meta }: Pick<Collections, 'meta'>): Promise<NodeDoc | null> {
  const lead = await meta.findOne({ _id: 'lead' })
  if (lead === null || lead['owner'] === '') return null
  const [place, pid, beat] = [String(lead['place']), Number(lead['pid']), Number(lead['beat'])]
  const rest = { waits: false, works: true, leaving: false, capacity: 1, load: 0, address: null }
  return { _id: formerId, place, pid, beat, ...rest }
}

export type Member = ReturnType<typeof memberOf>

/** This process's record. It beats by itself until `stop` or `release`. */
function memberOf(members: Members, { _id, me, state, beatMs, works }: Joined, lost: () => void) {
  const { nodes, shared: counts } = members
  let ours = true
  const beat = async (change: Partial<NodeFields> = {}): Promise<boolean> => {
    if (!ours) return false
    const { matchedCount } = await nodes.updateOne({ _id }, { $inc: { beat: 1 }, $set: { pid: me.pid, ...change } })
    if (matchedCount === 0) end()
    return matchedCount === 1
  }
  // A failed beat does no harm: while the database is away no other process can take over.
  const timer = setInterval(() => void beat().catch(() => undefined), beatMs).unref()
  const stop = (): void => clearInterval(timer)
  const end = (): void => {
    stop()
    if (ours) lost()
    ours = false
  }
  return {
    id: _id,
    members,
    /** Whether this process takes slots; the record says so from the start of the work on. */
    works,
    beatMs,
    state,
    /** Beats, and changes these fields. Returns false when others have taken this process for dead. */
    beat,
    /** Lets other processes join. */
    async share(): Promise<void> {
      await beat({ waits: false })
      await counts.updateOne({ _id: shared, alone: _id }, { $set: { alone: '' } })
    },
    stop,
    /** Stops the beat and removes the record. */
    async release(): Promise<void> {
      stop()
      if (!ours) return
      ours = false
      const ending = async (): Promise<void> => {
        await nodes.deleteOne({ _id })
        await counts.updateOne({ _id: shared }, { $inc: { version: 1 } })
        await counts.updateOne({ _id: shared, alone: _id }, { $set: { alone: '' } })
      }
      await within(ending(), releaseMs).catch(() => undefined)
    },
  }
}

/** Where a process number names one process: the machine since its boot, or the container on that machine. */
function placeOf(): string {
  let space = ''
  try {
    space = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    // Only Linux has these files; elsewhere the place is the host name.
  }
  return `${hostname()} ${space}`.trim()
}

const ownPlace = placeOf()

/** Ids of the members of this process. */
const ownIds = new Set<string>()

/** Whether a process of this place has ended. A foreign id with our own process number has: the number was reused. */
function hasEnded(id: string, place: string, pid: number): boolean {
  if (place !== ownPlace) return false
  if (pid === process.pid) return !ownIds.has(id)
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
