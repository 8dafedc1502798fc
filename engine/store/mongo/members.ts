/**
 * The processes that are at work in a database, as records in `nodes`. Each beats every second. A process joins, and
 * works beside the others; or it is alone (a copy, a migration): then it waits until the others have ended, and none
 * joins meanwhile. Of one that joins and one that wants to be alone at the same time at least one sees the other, since
 * both write before they look.
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

const beatMs = 1000
const silentMs = 15_000
const releaseMs = 2000

/** Longest that a process which wants to be alone waits for one that is dead already. */
export const alonePatienceMs = silentMs + 4 * beatMs

export interface JoinOptions {
  /** Whether it has to be without other processes. Asked before each try. */
  readonly alone: () => Promise<boolean>
  /** Takes slots. */
  readonly works?: boolean | undefined
  /** Host and database, for people. */
  readonly name?: string
  readonly log: Logger
  readonly signal?: AbortSignal | undefined
  /** Others have taken this process for dead: nothing may be done from then on. */
  readonly lost: () => void
  /** A process that must be alone waits no longer. Default: for ever. */
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
  /** The node has not begun to work. */
  readonly waits: boolean
  readonly works: boolean
  readonly leaving: boolean
  readonly capacity: number
  readonly load: number
  /** Where it listens for the others. */
  readonly address: string | null
}

type NodeFields = Omit<NodeDoc, '_id' | 'beat'>

/** Counts that all nodes share, and who is alone. */
export interface SharedDoc {
  readonly _id: 'shared'
  /** Id of the node that is alone, or wants to be; '' = none. */
  readonly alone: string
  /** Counts the changes of slots. */
  readonly version: number
  /** Epoch of the last claim. */
  readonly term: number
  /** Number of the last news. */
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

/** All records, in one command. */
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

/** Removes the record of a node that is dead. false: it has beaten meanwhile, or another one was faster. */
export async function bury({ nodes }: Members, { id, beat }: Pick<NodeView, 'id' | 'beat'>): Promise<boolean> {
  return (await nodes.deleteOne({ _id: id, beat })).deletedCount === 1
}

/** Changes the shared counts; answers them as they are then. */
export async function count(members: Members, by: Partial<Record<'version' | 'term' | 'news', number>>) {
  const changed = await members.shared.findOneAndUpdate({ _id: shared }, { $inc: by }, { returnDocument: 'after' })
  if (changed === null) throw new AppError('store_unavailable', 'the record of the nodes is missing')
  return changed
}

/** This process among the others. */
export interface Member {
  readonly id: string
  readonly members: Members
  readonly works: boolean
  readonly beatMs: number
  readonly state: NodeState
  /** Beats, with what has changed of the record. false: others have taken this process for dead. */
  beat(change?: Partial<NodeFields>): Promise<boolean>
  /** From now on others may join. */
  share(): Promise<void>
  /** Beats by itself until it is told to stop. */
  keep(): void
  stop(): void
  release(): Promise<void>
}

/**
 * Waits until it may work. AppError `shutting_down` when `signal` is aborted, `conflict` when patience ends.
 */
export async function join(collections: Pick<Collections, 'nodes' | 'meta'>, options: JoinOptions): Promise<Member> {
  const members = openMembers(collections)
  await members.shared.updateOne({ _id: shared }, { $setOnInsert: blank }, { upsert: true })
  const everyMs = options.beatMs ?? beatMs
  const _id = randomUUID()
  const me: NodeFields = {
    place: placeOf(),
    pid: process.pid,
    waits: true,
    works: options.works ?? true,
    leaving: false,
    capacity: 1,
    load: 0,
    address: null,
  }
  here.add(_id)
  let state = createNode(_id, options.silentMs ?? silentMs, 2 * everyMs)
  const until = performance.now() + (options.patienceMs ?? Infinity)
  let waited = false
  for (;;) {
    const round = await options
      .alone()
      .then((alone) => attempt(members, collections, { _id, me, alone, before: state }))
      .catch(() => null)
    if (round === null) state = stepNode(state, { type: 'failed' }).state
    else if (round.other === null) break
    else state = round.state
    const other = round?.other ?? undefined
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
    await sleep(everyMs, undefined, { signal: options.signal }).catch(async (cause: unknown) => {
      await within(members.nodes.deleteOne({ _id }), releaseMs).catch(() => undefined)
      throw new AppError('shutting_down', 'stopped while another process served the database', { cause })
    })
  }
  if (waited) options.log.warn({ pid: process.pid }, 'the other process has ended: this one serves the database')
  return memberOf(members, { _id, me, state }, options)
}

/** This process, and its record's fields beside the beat. */
interface Joining {
  readonly _id: string
  readonly me: NodeFields
}

interface Round {
  /** The process that is waited for; null = nobody. */
  readonly other: Pick<NodeDoc, 'place' | 'pid'> | null
  readonly state: NodeState
}

/** A look of a process that waits for its turn, which ends with `waits: false` in its record when it has come. */
async function attempt(
  members: Members,
  collections: Pick<Collections, 'meta'>,
  { _id, me, alone, before }: Joining & { readonly alone: boolean; readonly before: NodeState },
): Promise<Round> {
  await members.nodes.updateOne({ _id }, { $inc: { beat: 1 }, $set: me }, { upsert: true })
  let seen = await readMembers(members)
  const former = await formerLead(collections)
  const nodes = former === null ? seen.nodes : [...seen.nodes, former]
  const look: Look = { type: 'looked', at: performance.now(), nodes: nodes.map(viewOf), slots: [] }
  const { state, commands } = stepNode(before, look)
  for (const dead of commands.bury)
    if (dead.id === formerId) await collections.meta.deleteOne({ _id: 'lead' })
    else await bury(members, dead)
  if (commands.bury.length > 0) seen = await readMembers(members)
  const holder = seen.nodes.find((node) => node._id === seen.shared.alone && node._id !== _id)
  if (holder !== undefined) return { other: holder, state }
  if (former !== null && commands.bury.every(({ id }) => id !== formerId)) return { other: former, state }
  if (alone) return { other: await takeAlone(members, _id, seen), state }
  if (seen.shared.alone === _id) await members.shared.updateOne({ _id: shared, alone: _id }, { $set: { alone: '' } })
  await members.nodes.updateOne({ _id }, { $set: { waits: false } })
  // A process that wants to be alone may have come between.
  const { shared: now, nodes: others } = await readMembers(members)
  const other = others.find((node) => node._id === now.alone && node._id !== _id) ?? null
  if (other !== null) await members.nodes.updateOne({ _id }, { $set: { waits: true } })
  return { other, state }
}

/** From now on nobody joins; answers one that is at work still. */
async function takeAlone(members: Members, id: string, seen: Seen): Promise<NodeDoc | null> {
  const { alone } = seen.shared
  if (alone !== id) {
    const { matchedCount } = await members.shared.updateOne({ _id: shared, alone }, { $set: { alone: id } })
    const { nodes } = await readMembers(members)
    if (matchedCount === 0) return nodes.find((node) => node._id !== id) ?? null
    return nodes.find((node) => node._id !== id && !node.waits) ?? null
  }
  return seen.nodes.find((node) => node._id !== id && !node.waits) ?? null
}

const formerId = 'lead'

/** A process of a version that served alone, and wrote so into `meta`. */
async function formerLead({ meta }: Pick<Collections, 'meta'>): Promise<NodeDoc | null> {
  const lead = await meta.findOne({ _id: 'lead' })
  if (lead === null || lead['owner'] === '') return null
  const [place, pid, beat] = [String(lead['place']), Number(lead['pid']), Number(lead['beat'])]
  const rest = { waits: false, works: true, leaving: false, capacity: 1, load: 0, address: null }
  return { _id: formerId, place, pid, beat, ...rest }
}

function memberOf(
  members: Members,
  { _id, me, state }: Joining & { readonly state: NodeState },
  { lost, ...options }: JoinOptions,
): Member {
  const { nodes, shared: counts } = members
  const everyMs = options.beatMs ?? beatMs
  let ours = true
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearInterval(timer)
  const beat: Member['beat'] = async (change = {}) => {
    if (!ours) return false
    const { matchedCount } = await nodes.updateOne({ _id }, { $inc: { beat: 1 }, $set: { pid: me.pid, ...change } })
    if (matchedCount === 1) return true
    stop()
    end()
    return false
  }
  const end = (): void => {
    if (ours) lost()
    ours = false
  }
  return {
    id: _id,
    members,
    works: me.works,
    beatMs: everyMs,
    state,
    beat,
    async share() {
      await beat({ waits: false })
      await counts.updateOne({ _id: shared, alone: _id }, { $set: { alone: '' } })
    },
    keep() {
      // While the database is away no other process can take over.
      timer = setInterval(() => void beat().catch(() => undefined), everyMs).unref()
    },
    stop,
    async release() {
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

/** Where a process number means the same process: the machine since its start, or the container on it. */
function placeOf(): string {
  let space = ''
  try {
    space = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    // not Linux: the host's name alone
  }
  return `${hostname()} ${space}`.trim()
}

/** Ids of this very process. */
const here = new Set<string>()

/** A process of this very place that is no more. Our own number is not its number any more. */
function hasEnded(id: string, place: string, pid: number): boolean {
  if (place !== placeOf()) return false
  if (pid === process.pid) return !here.has(id)
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
