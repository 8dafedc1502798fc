/** Two hundred nodes with a million accounts, in virtual time: how soon all is even, and what the database does. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { stepNode } from '../../machines/node.machine.ts'
import { slotCount } from '../../engine/store/slots.ts'
import { World, type SimNode } from './node-world.ts'

const nodeCount = 200
const accounts = 1_000_000
/** As engine/slot-work.ts weighs an account. */
const ofAccount = 256
const perSlot = accounts / slotCount

/** About normal, as the sum of many users' hashes is. */
function weightOf(random: () => number): number {
  const sum = Array.from({ length: 12 }, random).reduce((all, one) => all + one, -6)
  return 1 + ofAccount * Math.max(0, Math.round(perSlot + Math.sqrt(perSlot) * sum))
}

interface Settled {
  /** Seconds until every slot is owned by a node that runs. */
  readonly owned: number
  /** Seconds until all loads are within 10 % of even. */
  readonly even: number
  readonly moves: number
  /** Commands to the database in the busiest second. */
  readonly most: number
  /** Reads of all slots in the busiest second. */
  readonly mostReads: number
}

const mostSeconds = 120

function settle(world: World): Settled {
  const before = world.moves
  let [owned, most, mostReads] = [0, 0, 0]
  for (let second = 1; second <= mostSeconds; second += 1) {
    const [operations, reads] = [world.operations, world.slotReads]
    world.tick()
    most = Math.max(most, world.operations - operations)
    mostReads = Math.max(mostReads, world.slotReads - reads)
    const [some, all] = [isOwned(world), isEven(world)]
    if (some) owned ||= second
    else owned = 0
    if (some && all) return { owned, even: second, moves: world.moves - before, most, mostReads }
  }
  throw new Error(`not even after ${mostSeconds} s`)
}

const takers = (world: World): SimNode[] => world.running().filter(({ state }) => state.phase === 'joined')

function isOwned(world: World): boolean {
  const ids = new Set(takers(world).map(({ id }) => id))
  return world.slots.every(({ owner }) => ids.has(owner))
}

function isEven(world: World): boolean {
  const loads = new Map<string, number>()
  for (const [slot, { owner }] of world.slots.entries())
    loads.set(owner, (loads.get(owner) ?? 0) + (world.weights[slot] ?? 0))
  const share = world.weights.reduce((sum, one) => sum + one, 0) / takers(world).length
  // A slot is not divided.
  const grain = Math.max(...world.weights)
  return takers(world).every(({ id }) => Math.abs((loads.get(id) ?? 0) - share) <= Math.max(share / 10, grain))
}

const words = ({ owned, even, moves, most, mostReads }: Settled): string =>
  `owned after ${owned} s, even after ${even} s, ${moves} slots moved, at most ${most} commands/s, ${mostReads} reads of all slots/s`

suite('two hundred nodes with a million accounts, in virtual time', () => {
  test(
    'are even soon after a start, a join, a leave, and the loss of a third',
    { timeout: 900_000 },
    (t: TestContext) => {
      const world = new World(11, slotCount, weightOf)
      world.network = { lost: 0.001, twice: 0.001, unanswered: 0.001, slowestMs: 200 }
      for (let count = 0; count < nodeCount; count += 1) world.join()
      t.diagnostic(`start: ${words(settle(world))}`)
      for (let second = 0; second < 20; second += 1) world.tick()

      const before = world.operations
      for (let second = 0; second < 20; second += 1) world.tick()
      const idle = (world.operations - before) / 20
      t.diagnostic(`idle: ${idle} commands/s`)
      // Two a beat of each node, and now and then a slot that moves.
      assert(idle <= 2.5 * nodeCount, `${idle} commands/s`)

      for (let count = 0; count < 10; count += 1) world.join()
      const joined = settle(world)
      t.diagnostic(`10 join: ${words(joined)}`)
      assert(joined.even <= 60 && joined.moves <= (slotCount * 10 * 1.5) / (nodeCount + 10), words(joined))

      for (const node of takers(world).slice(0, 10)) node.state = stepNode(node.state, { type: 'leave' }).state
      const left = settle(world)
      t.diagnostic(`10 leave: ${words(left)}`)
      assert(left.owned <= 30 && left.moves <= (slotCount * 10 * 1.5) / (nodeCount + 10), words(left))

      const lost = takers(world).slice(0, Math.floor(nodeCount / 3))
      for (const node of lost) node.alive = false
      const survived = settle(world)
      t.diagnostic(`${lost.length} die: ${words(survived)}`)
      assert(survived.owned <= 30 && survived.even <= 60, words(survived))
      assert(survived.moves <= (slotCount / 3) * 1.5, words(survived))
    },
  )
})
