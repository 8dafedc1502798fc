/**
 * Ownership of slots by nodes, as a pure state machine: what one node does after each look at the database. The scheme
 * is the lease table of the Kinesis Client Library: a record per slot (owner, epoch), a record per node (beat, load).
 *
 *     joined ──leave──▶ leaving        lost: the node's own record is gone, another node has taken it for dead
 *        └──────────┴──▶ lost
 *
 * - A node is silent while its beat does not change. Its silence is the sum of the times between successful looks of
 *   the listener, each counted up to `longestGapMs`: clocks need not agree, and neither an outage of the database nor a
 *   pause of the listener makes another node dead.
 * - A silent node is buried: its record is removed by a compare with its beat. Its slots are free from then on.
 * - A free slot goes to the worker with the least load. Every node computes the same, and claims its own part.
 * - A worker over its share sheds slots, while others are under theirs, until all are within 5 % of even. It sheds no
 *   slot that would leave it under its share, but for one that another worker lacks more: nothing moves twice.
 * - A node that leaves sheds all its slots, as long as another worker is there to take them.
 *
 * The database decides: claims and burials are compare-and-set, and each claim has a higher epoch than any before it.
 */

export interface NodeView {
  readonly id: string
  /** Another value after each beat. */
  readonly beat: number
  /** Takes slots. */
  readonly works: boolean
  readonly leaving: boolean
  /** Share of the work that it takes, beside other nodes'. */
  readonly capacity: number
  /** Its process is known to have ended. */
  readonly ended: boolean
}

export interface SlotView {
  readonly slot: number
  /** '' = released. */
  readonly owner: string
  readonly epoch: number
  /** Work that the slot is, at least 1. */
  readonly weight: number
}

/** The last beat that was heard of a node, and how long it has been the same. */
interface Heard {
  readonly beat: number
  readonly silentMs: number
}

export interface NodeState {
  readonly id: string
  readonly phase: 'joined' | 'leaving' | 'lost'
  readonly silentMs: number
  readonly longestGapMs: number
  readonly heard: ReadonlyMap<string, Heard>
  /** Time of the last successful look; null = the one before failed. */
  readonly lookedAt: number | null
}

export interface Look {
  readonly type: 'looked'
  /** Milliseconds of the listener's own monotonic clock. */
  readonly at: number
  readonly nodes: readonly NodeView[]
  readonly slots: readonly SlotView[]
}

export type NodeEvent = Look | { readonly type: 'failed' } | { readonly type: 'leave' }

export interface NodeCommands {
  /** Nodes to bury, each only while its beat is this one. */
  readonly bury: readonly Pick<NodeView, 'id' | 'beat' | 'ended'>[]
  /** Free slots to claim, each only while it is as it was seen. */
  readonly claim: readonly SlotView[]
  /** Own slots to hand over. */
  readonly shed: readonly number[]
}

const nothing: NodeCommands = { bury: [], claim: [], shed: [] }

/** Within this part of its share a load counts as even. */
const tolerance = 0.05

export function createNode(id: string, silentMs: number, longestGapMs: number): NodeState {
  return { id, phase: 'joined', silentMs, longestGapMs, heard: new Map(), lookedAt: null }
}

/** The node after the event, and what it has to do. */
export function stepNode(
  state: NodeState,
  event: NodeEvent,
): { readonly state: NodeState; readonly commands: NodeCommands } {
  if (state.phase === 'lost') return { state, commands: nothing }
  if (event.type === 'failed') return { state: { ...state, lookedAt: null }, commands: nothing }
  if (event.type === 'leave') return { state: { ...state, phase: 'leaving' }, commands: nothing }
  if (event.nodes.every(({ id }) => id !== state.id)) return { state: { ...state, phase: 'lost' }, commands: nothing }
  const heard = hear(state, event)
  const bury = event.nodes.filter(({ id, ended }) => id !== state.id && (ended || isSilent(state, heard.get(id))))
  const living = event.nodes.filter((node) => !bury.includes(node))
  const next = { ...state, heard, lookedAt: event.at }
  return { state: next, commands: { bury, ...plan(next, living, event.slots) } }
}

function hear({ heard, lookedAt, longestGapMs }: NodeState, { at, nodes }: Look): NodeState['heard'] {
  const gapMs = lookedAt === null ? 0 : Math.min(at - lookedAt, longestGapMs)
  return new Map(
    nodes.map(({ id, beat }) => {
      const before = heard.get(id)
      return [id, { beat, silentMs: before?.beat === beat ? before.silentMs + gapMs : 0 }]
    }),
  )
}

function isSilent({ silentMs }: NodeState, heard: Heard | undefined): boolean {
  return heard !== undefined && heard.silentMs >= silentMs
}

interface Worker {
  readonly id: string
  readonly share: number
  /** Weight of its slots, the free ones that go to it included. */
  load: number
}

function plan(
  { id, phase }: NodeState,
  living: readonly NodeView[],
  slots: readonly SlotView[],
): Omit<NodeCommands, 'bury'> {
  const own = slots.filter(({ owner }) => owner === id)
  const workers = workersOf(living, slots, phase === 'leaving' ? id : null)
  if (workers.length === 0) return { claim: [], shed: [] }
  const isOwned = new Set(living.map((node) => node.id))
  const free = slots.filter(({ owner }) => !isOwned.has(owner))
  const claim = assign(workers, free).get(id) ?? []
  const me = workers.find((worker) => worker.id === id)
  const usual = slots.reduce((sum, { weight }) => sum + weight, 0) / slots.length
  const shed = me === undefined ? own : surplusOf(me, workers, own, usual)
  return { claim, shed: shed.map(({ slot }) => slot) }
}

/** By id, so that each node counts alike. */
function workersOf(living: readonly NodeView[], slots: readonly SlotView[], leaver: string | null): Worker[] {
  const takers = living.filter((node) => node.works && !node.leaving && node.id !== leaver)
  const capacity = takers.reduce((sum, node) => sum + node.capacity, 0)
  const loads = new Map<string, number>()
  let total = 0
  for (const { owner, weight } of slots) {
    total += weight
    loads.set(owner, (loads.get(owner) ?? 0) + weight)
  }
  return takers
    .map((node) => ({ id: node.id, share: (total * node.capacity) / capacity, load: loads.get(node.id) ?? 0 }))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
}

/** The heaviest slot first, each to the worker with the most room. Adds to their loads. */
function assign(workers: readonly Worker[], free: readonly SlotView[]): Map<string, SlotView[]> {
  const given = new Map<string, SlotView[]>()
  for (const slot of free.toSorted((one, other) => other.weight - one.weight || one.slot - other.slot)) {
    const taker = workers.reduce((best, worker) => (roomOf(worker) > roomOf(best) ? worker : best))
    taker.load += slot.weight
    given.getOrInsert(taker.id, []).push(slot)
  }
  return given
}

const roomOf = ({ share, load }: Worker): number => share - load

/** This worker's part of what all workers over their share have to give to those under theirs. */
function surplusOf(me: Worker, workers: readonly Worker[], own: readonly SlotView[], usual: number): SlotView[] {
  const surplus = -roomOf(me)
  const isEven = workers.every((worker) => Math.abs(roomOf(worker)) <= tolerance * worker.share)
  if (surplus <= 0 || isEven) return []
  const sum = (some: (worker: Worker) => number): number =>
    workers.reduce((total, worker) => total + Math.max(0, some(worker)), 0)
  let rest = Math.min(surplus, (sum(roomOf) * surplus) / sum((worker) => -roomOf(worker)))
  // In no order of weight: what stays is like what goes.
  const shed = own.filter(({ weight }) => {
    const fits = weight <= rest
    if (fits) rest -= weight
    return fits
  })
  return shed.length > 0 ? shed : oneMore(me, workers, own, usual)
}

/**
 * Many workers may each have less than a slot to give, while a few lack whole slots: the fullest workers give one slot
 * each, as many as are lacking. Only if the giver then still has less room than the taker had.
 */
function oneMore(me: Worker, workers: readonly Worker[], own: readonly SlotView[], usual: number): SlotView[] {
  const [lightest] = own.toSorted((one, other) => one.weight - other.weight)
  const mostRoom = Math.max(...workers.map(roomOf))
  if (lightest === undefined || lightest.weight >= mostRoom - roomOf(me)) return []
  const lacking = workers.reduce((count, worker) => count + Math.floor(Math.max(0, roomOf(worker)) / usual), 0)
  const fuller = workers.filter(
    (worker) => roomOf(worker) < roomOf(me) || (roomOf(worker) === roomOf(me) && worker.id < me.id),
  )
  return fuller.length < lacking ? [lightest] : []
}
