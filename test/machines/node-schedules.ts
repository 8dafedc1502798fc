/** Random schedules of trouble for the nodes of node-world.ts, and what must hold whatever happens. */
import assert from 'node:assert/strict'
import { stepNode } from '../../machines/node.machine.ts'
import { World, type SimNode } from './node-world.ts'

const troubleBeats = 60
const quietBeats = 60

/** Throws when two nodes write one slot, or when the slots are not owned and even some time after the last trouble. */
export function schedule(seed: number): void {
  const world = new World(seed, 48 + 24 * (seed % 3))
  for (let count = 0; count < 2 + (seed % 4); count += 1) world.join()
  for (let beat = 0; beat < troubleBeats; beat += 1) {
    trouble(world)
    world.tick()
  }
  for (const node of world.nodes.values()) node.pausedUntil = node.cutUntil = 0
  if (world.running().length === 0) world.join()
  for (let beat = 0; beat < quietBeats; beat += 1) world.tick()
  checkEnd(world, seed)
}

function trouble(world: World): void {
  const { random, now } = world
  const some = [...world.nodes.values()].filter((node) => node.alive)
  const one = some[Math.floor(random() * some.length)]
  const dice = random()
  if (dice < 0.03 && some.length < 8) world.join()
  if (one === undefined) return
  const forMs = Math.floor(random() * 40) * 1000
  if (dice > 0.97) one.alive = false
  else if (dice > 0.92) one.pausedUntil = now + forMs
  else if (dice > 0.86) one.cutUntil = now + forMs
  else if (dice > 0.84) leave(world, one)
}

/** A node that leaves ends when nothing is left to hand over; here at some time, whatever is left. */
function leave(world: World, node: SimNode): void {
  node.state = stepNode(node.state, { type: 'leave' }).state
  if (world.random() > 0.5) return
  node.alive = false
  world.records.delete(node.id)
}

function checkEnd(world: World, seed: number): void {
  const living = world.running().filter(({ state }) => state.phase === 'joined')
  const why = `seed ${seed}`
  if (living.length === 0) return
  const ids = new Set(living.map(({ id }) => id))
  for (const [slot, { owner }] of world.slots.entries())
    assert(ids.has(owner), `${why}: slot ${slot} belongs to ${owner}`)
  const share = world.weights.reduce((sum, one) => sum + one, 0) / living.length
  // A slot is not divided.
  const grain = Math.max(...world.weights)
  for (const id of ids)
    assert(Math.abs(world.load(id) - share) <= Math.max(share / 10, 2 * grain), `${why}: ${world.load(id)} of ${share}`)
}
