/** Random schedules of trouble for the nodes of node-world.ts, and what must hold whatever happens. */
import assert from 'node:assert/strict'
import { World, type SimNode } from './node-world.ts'

const troubleBeats = 60
const quietBeats = 60
/** Nothing moves in the last of them. */
const stillBeats = 15
/**
 * Of the moves that a schedule asks for. A slot moves once more when nodes share out what is free, or shed, while
 * claims and releases of others are on their way: that is part of a change, never a whole change again.
 */
const mostMoves = 4 / 3

/**
 * Throws when two nodes write one slot, when the slots are not owned, worked in and even some time after the last
 * trouble, or when more slots have moved than the trouble asks for.
 */
export function schedule(seed: number): void {
  const world = new World(seed, 48 + 24 * (seed % 3))
  for (let count = 0; count < 2 + (seed % 4); count += 1) world.join(capacityOf(world))
  for (let beat = 0; beat < troubleBeats; beat += 1) {
    trouble(world)
    world.tick()
  }
  for (const node of world.nodes.values()) node.pausedUntil = node.cutUntil = 0
  if (world.running().length === 0) world.join()
  let settled = 0
  for (let beat = 0; beat < quietBeats; beat += 1) {
    if (beat === quietBeats - stillBeats) settled = world.moves
    world.tick()
  }
  assert.equal(world.moves, settled, `seed ${seed}: slots move without an end`)
  checkEnd(world, seed)
}

/** Half of the nodes are larger than the others. */
const capacityOf = ({ random }: World): number => [1, 1, 2, 3][Math.floor(random() * 4)] ?? 1

function trouble(world: World): void {
  const { random, now } = world
  const some = [...world.nodes.values()].filter((node) => node.alive)
  const one = some[Math.floor(random() * some.length)]
  const dice = random()
  if (dice < 0.03 && some.length < 8) world.join(capacityOf(world))
  if (one === undefined) return
  const forMs = Math.floor(random() * 40) * 1000
  if (dice > 0.97) one.alive = false
  else if (dice > 0.92) one.pausedUntil = now + forMs
  else if (dice > 0.86) one.cutUntil = now + forMs
  else if (dice > 0.84) leave(world, one)
}

/** A node that leaves ends when nothing is left to hand over; here at some time, whatever is left. */
function leave(world: World, node: SimNode): void {
  world.leave(node)
  if (world.random() > 0.5) return
  node.alive = false
  world.records.delete(node.id)
}

function checkEnd(world: World, seed: number): void {
  const living = world.running().filter(({ state }) => state.phase === 'joined')
  const why = `seed ${seed}`
  if (living.length === 0) return
  const owners = new Map(living.map((node) => [node.id, node]))
  for (const [slot, { owner, epoch }] of world.slots.entries()) {
    assert(owners.has(owner), `${why}: slot ${slot} belongs to ${owner}`)
    assert.equal(owners.get(owner)?.held.get(slot), epoch, `${why}: ${owner} does not work in slot ${slot}`)
    assert.deepEqual(world.written[slot], { epoch, by: owner }, `${why}: ${owner} does not write to slot ${slot}`)
  }
  const capacity = living.reduce((sum, one) => sum + one.capacity, 0)
  const total = world.weights.reduce((sum, one) => sum + one, 0)
  // A slot is not divided.
  const grain = Math.max(...world.weights)
  for (const { id, capacity: own } of living) {
    const share = (total * own) / capacity
    assert(Math.abs(world.load(id) - share) <= share / 10 + grain, `${why}: ${world.load(id)} of ${share}`)
  }
  assert(world.moves <= mostMoves * world.due, `${why}: ${world.moves} moves of ${world.due}`)
}
