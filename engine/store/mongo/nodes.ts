/**
 * The nodes on MongoDB: reads the nodes and slots at each beat, and carries out the commands of
 * machines/node.machine.ts.
 *
 * A claim takes the next epoch, and slots by a compare with their owner. The epoch fences former owners: an email
 * account stores the epoch of its last claim (accounts.ts), and so do pending callbacks in slots that their owner did
 * not release (outbox.ts).
 *
 * An idle node sends two commands a beat: the slots are read only when the shared version has changed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { stepNode, type NodeCommands, type NodeState, type SlotView } from '../../../machines/node.machine.ts'
import { toAppError } from '../../errors.ts'
import { createExclusive, withinTime } from '../../scheduling.ts'
import { partOf, slotOf } from '../slots.ts'
import type { Lease, News, NodeFacts, Nodes, NumberedNews, Owner, SlotWork } from '../slots.ts'
import { within } from './errors.ts'
import { bury, count, readMembers, viewOf, type NodeDoc, type Seen } from './members.ts'
import { type NewsDeps, NewsRows } from './news.ts'
import { type SlotDoc, SlotRows } from './slot-rows.ts'

/** Slots handed over in one step. */
const shedAtOnce = 64
const releaseMs = 2000
/** Longest wait for callbacks before slots are handed over; a node that leaves waits a third of its time at most. */
const restMs = 10_000
/** Longest wait of a call until other nodes have followed its news. */
const toldWithinMs = 2000
/** Between two looks of a leaving node. */
const leaveLookMs = 50
/** After this many beats without an answer the node writes nothing more: others bury it after fifteen. */
const beatsUnanswered = 8

interface Deps extends NewsDeps {
  readonly lease: Lease
}

export async function createNodes(deps: Deps): Promise<Nodes & { readonly stop: () => Promise<void> }> {
  const node = new MongoNode(deps)
  await node.prepare()
  return node
}

class MongoNode implements Nodes {
  readonly #deps: Deps
  readonly #slots: SlotRows
  readonly #news: NewsRows
  #state: NodeState
  #work: SlotWork | null = null
  #address: string | null = null
  #timer: NodeJS.Timeout | undefined
  /** Looks and burials run one after the other. */
  readonly #inTurn = createExclusive()
  /** The next look that has not begun. */
  #looking: Promise<void> | null = null
  /** News that other nodes have not followed yet. */
  readonly #telling = new Set<Promise<void>>()
  /** Claims and releases under way. */
  #doing: Promise<void> | null = null
  #nodes: readonly NodeDoc[] = []
  #views: readonly SlotDoc[] = []
  /** Ids of the nodes that own slots, sorted: the same list on each node. */
  #owners: readonly string[] = []
  /** The shared version and the ids of the nodes when the slots were last read. */
  #readAt = ''
  /** Slots of the lease whose work has not been started. */
  readonly #unstarted = new Set<number>()
  #answeredAt = performance.now()
  /** Slots may have changed without a change of the version: the others have not read them again. */
  #isUncounted = false
  #isWarned = false
  /** Slots are handed over until this time. */
  #leaveUntil = Infinity
  #ended = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#state = deps.member.state
    this.#slots = new SlotRows(deps.context)
    this.#news = new NewsRows(deps)
  }

  async prepare(): Promise<void> {
    await this.#slots.prepare()
    this.#news.beginAt((await readMembers(this.#deps.member.members)).shared.news)
  }

  async start(work: SlotWork, address: string | null): Promise<void> {
    const { member } = this.#deps
    this.#work = work
    this.#address = address
    member.stop()
    await member.beat({ address, works: member.works })
    await this.look()
    await this.#doing
    if (this.#deps.lease.serving().length === 0) await work.gained([])
    this.#timer = setInterval(() => void this.look(), member.beatMs).unref()
  }

  get id(): string {
    return this.#deps.member.id
  }

  has(id: string): boolean {
    return this.#nodes.some(({ _id }) => _id === id)
  }

  list(): NodeFacts[] {
    const { member, lease } = this.#deps
    const slots = new Map<string, number>()
    for (const { owner } of this.#views) slots.set(owner, (slots.get(owner) ?? 0) + 1)
    slots.set(member.id, lease.serving().length)
    return this.#nodes.map(({ _id: id, address, place, pid, works, waits, leaving }) => ({
      ...{ id, address, place, pid, works, here: id === member.id },
      state: waits ? 'joining' : leaving ? 'leaving' : 'joined',
      slots: slots.get(id) ?? 0,
      silentMs: this.#state.heard.get(id)?.silentMs ?? 0,
    }))
  }

  owns(id: string): boolean {
    return this.ownsAll() || this.ownsSlot(slotOf(id))
  }

  sends(id: string): boolean {
    return this.ownsAll() || this.#deps.lease.sends(slotOf(id))
  }

  ownsSlot(slot: number): boolean {
    return this.#deps.lease.serves(slot)
  }

  ownsAll(): boolean {
    return this.#deps.lease.isWhole
  }

  ownsAny(): boolean {
    return this.#deps.lease.serving().length > 0
  }

  address(): string | null {
    return this.#address
  }

  ownerOf(id: string): Owner {
    if (this.owns(id)) return 'here'
    const { member } = this.#deps
    const owner = this.#views[slotOf(id)]?.owner ?? ''
    const address = owner === member.id ? null : this.#nodes.find(({ _id }) => _id === owner)?.address
    return address ? { address } : null
  }

  others(): string[] {
    return this.#nodes.flatMap(({ _id, address }) => (_id === this.#deps.member.id ? [] : (address ?? [])))
  }

  part(most: number): number {
    const place = this.#owners.indexOf(this.#deps.member.id)
    return place === -1 ? 0 : partOf(most, place, this.#owners.length, Date.now())
  }

  mayWrite(): boolean {
    return this.#work === null || performance.now() - this.#answeredAt < beatsUnanswered * this.#deps.member.beatMs
  }

  /** Never rejects. Calls during a look share one further look after it. */
  look(): Promise<void> {
    return (this.#looking ??= this.#inTurn(async () => {
      this.#looking = null
      if (this.#ended) return
      try {
        await this.#look()
      } catch (error) {
        this.#state = stepNode(this.#state, { type: 'failed' }).state
        this.#deps.log.debug({ err: toAppError(error) }, 'the database did not answer the look at the nodes')
      }
    }))
  }

  async #look(): Promise<void> {
    const { member, lease } = this.#deps
    const begunAt = performance.now()
    if (!(await member.beat({ load: this.#load(), leaving: this.#state.phase === 'leaving' }))) {
      this.#end()
      return
    }
    this.#answeredAt = begunAt
    if (this.#isUncounted) await this.#countChange()
    const seen = await readMembers(member.members)
    const at = performance.now()
    this.#nodes = seen.nodes
    this.#warnUnreachable(seen)
    await this.#readSlots(seen)
    await this.#news.read(seen.shared.news, this.#work)
    const written = await this.#news.write()
    if (written.length > 0) void this.#work?.announceNews(written)
    const slots = this.#slotViews()
    const { state, commands } = stepNode(this.#state, { type: 'looked', at, nodes: seen.nodes.map(viewOf), slots })
    this.#state = state
    const { bury: dead } = commands
    if (dead.length > 0) {
      await Promise.all(dead.map((one) => this.#bury(one)))
      this.#readAt = ''
      return this.#look()
    }
    // First the slots whose release failed. A slot of ours without a lease: the answer to its claim was lost.
    const shed = [...new Set([...lease.ending(), ...commands.shed])]
    const unanswered = slots.filter(({ slot, owner }) => owner === member.id && lease.epochOf(slot) === undefined)
    const claim = [...commands.claim, ...(state.phase === 'joined' ? unanswered : [])]
    if (this.#doing !== null || claim.length + shed.length + this.#unstarted.size === 0 || !member.works) return
    this.#doing = this.#do(claim, shed).finally(() => (this.#doing = null))
  }

  /** Tells the others to read the slots again. */
  async #countChange(): Promise<void> {
    this.#isUncounted = false
    await count(this.#deps.member.members, { version: 1 }).catch((error: unknown) => {
      this.#isUncounted = true
      throw error
    })
  }

  /** Logs once that calls passed on by other machines cannot reach this node. */
  #warnUnreachable({ nodes }: Seen): void {
    const { member, log } = this.#deps
    const place = nodes.find(({ _id }) => _id === member.id)?.place
    const other = nodes.find((node) => node.place !== place)
    if (this.#isWarned || other === undefined || !/^(?:127\.|\[::1\])/.test(this.#address ?? '')) return
    this.#isWarned = true
    log.error(
      { address: this.#address, other: other.place },
      'no other machine reaches this node: set MAILROOM_NODE_HOST',
    )
  }

  #load(): number {
    return this.#deps.lease.serving().reduce((sum, slot) => sum + this.#weightOf(slot), 0)
  }

  /** Until the work of a slot has started: its weight at the last release. */
  #weightOf(slot: number): number {
    const before = this.#unstarted.has(slot) ? this.#views[slot]?.weight : undefined
    return before ?? this.#work?.weightOf(slot) ?? 1
  }

  async #readSlots({ nodes, shared }: Seen): Promise<void> {
    const now = [shared.version, ...nodes.map(({ _id }) => _id)].join(' ')
    if (now === this.#readAt) return
    this.#views = await this.#slots.read()
    const owners = new Set(this.#views.map(({ owner }) => owner))
    this.#owners = nodes.flatMap(({ _id }) => (owners.has(_id) ? [_id] : [])).sort()
    this.#readAt = now
  }

  /**
   * An own slot has its weight of now. A foreign slot has its weight at the last release, scaled so that the weights of
   * its owner's slots add up to the owner's load.
   */
  #slotViews(): SlotView[] {
    const { lease, member } = this.#deps
    const known = new Map<string, number>()
    for (const { owner, weight } of this.#views) known.set(owner, (known.get(owner) ?? 0) + weight)
    const scales = new Map(this.#nodes.map(({ _id, load }) => [_id, load / (known.get(_id) ?? Infinity) || 1]))
    return this.#views.map(({ slot, owner, epoch, weight }) => {
      // This process may have claimed the slot after the last read.
      const isOwn = owner === member.id || (owner === '' && lease.epochOf(slot) !== undefined)
      if (isOwn) return { slot, epoch, owner: member.id, weight: this.#weightOf(slot) }
      return { slot, epoch, owner, weight: weight * (scales.get(owner) ?? 1) }
    })
  }

  /** A process that has ended writes nothing more, so its slots count as released and need no fence. */
  async #bury({ id, beat, ended }: NodeCommands['bury'][number]): Promise<void> {
    const { member, log } = this.#deps
    if (!(await bury(member.members, { id, beat }))) return
    log.warn({ node: id }, ended ? 'a node has ended' : 'a node is silent: its work is taken over')
    if (ended) await this.#slots.releaseAll(id)
    await this.#countChange()
  }

  async #claim(slots: readonly SlotView[]): Promise<void> {
    const { member, lease, log } = this.#deps
    const { term } = await count(member.members, { term: 1 })
    const owned = await this.#slots.claim(slots, member.id, term)
    if (this.#ended) return
    const gained = lease.set(owned)
    log.info({ slots: gained.length, owned: owned.length }, 'slots claimed')
    for (const slot of gained) this.#unstarted.add(slot)
    // Others read the slots when the version has changed: the load tells of the new slots by then.
    await member.beat({ load: this.#load() })
    await this.#countChange()
    this.#readAt = ''
  }

  async #startWork(): Promise<void> {
    const slots = [...this.#unstarted]
    if (slots.length === 0) return
    await this.#work?.gained(slots)
    for (const slot of slots) this.#unstarted.delete(slot)
    await this.#deps.member.beat({ load: this.#load() })
  }

  /** Never rejects: the next look tries a failed step again. Looks go on meanwhile. */
  async #do(claim: readonly SlotView[], shed: readonly number[]): Promise<void> {
    try {
      if (claim.length > 0) await this.#claim(claim)
      await this.#startWork()
      // The mailboxes are watched while a slow receiver answers.
      this.#deps.lease.rest(shed)
      const leftMs = this.#leaveUntil - performance.now()
      if (shed.length > 0) await this.#work?.rest(Math.min(restMs, leftMs / 3))
      for (let at = 0; at < shed.length && !this.#ended && performance.now() < this.#leaveUntil; at += shedAtOnce)
        await this.#shed(shed.slice(at, at + shedAtOnce))
      if (shed.length === 0) return
      await this.#deps.member.beat({ load: this.#load() })
      this.#deps.log.info({ slots: shed.length }, 'slots handed over')
    } catch (error) {
      this.#readAt = ''
      this.#isUncounted = true
      this.#deps.log.warn({ err: toAppError(error) }, 'slots not claimed or handed over yet')
    }
  }

  async #shed(slots: readonly number[]): Promise<void> {
    const { member, lease } = this.#deps
    const weighed = slots.map((slot) => ({ slot, weight: this.#weightOf(slot) }))
    lease.close(slots)
    for (const slot of slots) this.#unstarted.delete(slot)
    await this.#work?.shed(slots)
    await this.#slots.release(weighed, member.id)
    lease.drop(slots)
    await this.#countChange()
    this.#work?.announce()
  }

  /** A new node that is unknown here reads the news rows since its start. */
  async tell(news: News): Promise<void> {
    const telling = this.#news.tell(news, this.#work)
    this.#telling.add(telling)
    await telling.finally(() => this.#telling.delete(telling))
  }

  hear(news: readonly NumberedNews[]): Promise<void> {
    return this.#news.hear(news, this.#work)
  }

  async told(): Promise<void> {
    if (this.#telling.size > 0) await withinTime(toldWithinMs, Promise.all(this.#telling))
  }

  async leave(withinMs: number): Promise<void> {
    const { lease, member } = this.#deps
    this.#state = stepNode(this.#state, { type: 'leave' }).state
    const until = performance.now() + withinMs
    this.#leaveUntil = until
    const isTaken = (): boolean => this.#nodes.some((one) => one._id !== member.id && one.works && !one.leaving)
    while (!this.#ended && isTaken() && lease.serving().length > 0 && performance.now() < until) {
      await this.look()
      await withinTime(Math.max(0, until - performance.now()), Promise.resolve(this.#doing))
      await sleep(leaveLookMs)
    }
  }

  /** Precondition: all work has ended, so the slots are released for the next node. */
  async stop(): Promise<void> {
    const { member } = this.#deps
    const isLost = this.#ended
    this.#end()
    if (!isLost && member.works) {
      await within(this.#slots.releaseAll(member.id), releaseMs).catch(() => undefined)
    }
    await member.release()
  }

  #end(): void {
    this.#ended = true
    clearInterval(this.#timer)
    this.#deps.lease.clear()
  }
}
