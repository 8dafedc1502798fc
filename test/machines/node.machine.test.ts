/** Nodes that share slots, in virtual time and under every kind of trouble. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createNode, stepNode, type NodeView, type SlotView } from '../../machines/node.machine.ts'
import { schedule } from './node-schedules.ts'
import { silentMs, World } from './node-world.ts'

const view = (id: string, change: Partial<NodeView> = {}): NodeView => {
  return { id, beat: 1, works: true, leaving: false, capacity: 1, ended: false, ...change }
}
const slotsOf = (...owners: string[]): SlotView[] =>
  owners.map((owner, slot) => ({ slot, owner, epoch: owner === '' ? 0 : 1, weight: 1 }))

/** The commands of `a` after one look. */
function commandsOf(nodes: readonly NodeView[], slots: readonly SlotView[], state = createNode('a', 15_000, 2000)) {
  return stepNode(state, { type: 'looked', at: 0, nodes, slots }).commands
}

suite('a node', () => {
  test('takes all that is free when it is alone, and its part beside others', () => {
    const free = slotsOf('', 'gone', '', '')
    assert.equal(commandsOf([view('a')], free).claim.length, 4)
    assert.equal(commandsOf([view('a'), view('b')], free).claim.length, 2)
  })

  test('takes nothing that a living node owns, also of one that leaves or takes no work', () => {
    const others = [view('a'), view('b', { leaving: true }), view('c', { works: false })]
    assert.deepEqual(commandsOf(others, slotsOf('b', 'b', 'c', 'a')).claim, [])
  })

  test('sheds what is over its share, and no more', () => {
    const nodes = [view('a'), view('b')]
    assert.equal(commandsOf(nodes, slotsOf(...Array<string>(40).fill('a'))).shed.length, 20)
    assert.deepEqual(
      commandsOf(nodes, slotsOf(...Array<string>(21).fill('a'), ...Array<string>(20).fill('b'))).shed,
      [],
    )
  })

  test('does not hand a single heavy slot to and fro', () => {
    const slots = slotsOf('a', 'b', 'b').map((slot) => (slot.slot === 0 ? { ...slot, weight: 100 } : slot))
    assert.deepEqual(commandsOf([view('a'), view('b')], slots).shed, [])
  })

  test('that leaves sheds all while another one can take it', () => {
    const leaving = stepNode(createNode('a', 15_000, 2000), { type: 'leave' }).state
    const slots = slotsOf('a', 'a')
    assert.deepEqual(commandsOf([view('a'), view('b')], slots, leaving).shed, [0, 1])
    assert.deepEqual(commandsOf([view('a')], slots, leaving).shed, [])
    assert.deepEqual(commandsOf([view('a'), view('b', { works: false })], slots, leaving).shed, [])
  })

  test('without a record has been taken for dead, for good', () => {
    const { state } = stepNode(createNode('a', 15_000, 2000), { type: 'looked', at: 0, nodes: [view('b')], slots: [] })
    assert.equal(state.phase, 'lost')
    const again = stepNode(state, { type: 'looked', at: 1, nodes: [view('a')], slots: slotsOf('') })
    assert.deepEqual([again.state.phase, again.commands.claim], ['lost', []])
  })

  for (const [name, steps, buried] of [
    ['is silent when its beat stays for long enough', Array<number>(17).fill(1000), true],
    ['is not silent for a pause of the one that listens', [1000, 60_000, 1000], false],
  ] as const)
    test(`another one ${name}`, () => {
      let [state, at, dead] = [createNode('a', silentMs, 2000), 0, 0]
      for (const step of [0, ...steps]) {
        at += step
        const stepped = stepNode(state, { type: 'looked', at, nodes: [view('a', { beat: at }), view('b')], slots: [] })
        state = stepped.state
        dead += stepped.commands.bury.length
      }
      assert.equal(dead > 0, buried)
    })

  test('makes nobody dead during an outage of the database', () => {
    let state = createNode('a', silentMs, 2000)
    for (let at = 0; at < 60_000; at += 1000) {
      const look = { type: 'looked', at, nodes: [view('a', { beat: at }), view('b')], slots: [] } as const
      if (at === 0 || at === 59_000) {
        const { commands } = stepNode(state, look)
        assert.deepEqual(commands.bury, [])
      }
      state = stepNode(state, at === 0 ? look : { type: 'failed' }).state
    }
  })

  test('buries also where nobody takes work', () => {
    const nodes = [view('a', { works: false }), view('b', { works: false, ended: true })]
    assert.equal(commandsOf(nodes, slotsOf('b')).bury.length, 1)
  })

  test('one whose process is known to have ended is buried at once', () => {
    assert.equal(commandsOf([view('a'), view('b', { ended: true })], slotsOf('b')).bury.length, 1)
  })
})

suite('nodes in virtual time', () => {
  test('never two that write one slot, every slot owned in the end, evenly: random schedules', () => {
    for (let seed = 1; seed <= 300; seed += 1) schedule(seed)
  })

  test('a join moves no more than its share, a leave no more than it had', () => {
    const world = new World(7, 512)
    world.random = () => 0.5
    for (let count = 0; count < 4; count += 1) world.join()
    for (let beat = 0; beat < 60; beat += 1) world.tick()
    const before = world.moves
    const joined = world.join()
    for (let beat = 0; beat < 60; beat += 1) world.tick()
    const share = world.weights.reduce((sum, one) => sum + one, 0) / 5
    assert(Math.abs(world.load(joined.id) - share) <= share / 10, `${world.load(joined.id)} of ${share}`)
    const had = world.slots.filter(({ owner }) => owner === joined.id).length
    assert.equal(world.moves - before, had)
    joined.state = stepNode(joined.state, { type: 'leave' }).state
    for (let beat = 0; beat < 60; beat += 1) world.tick()
    assert.equal(world.load(joined.id), 0)
    assert.equal(world.moves - before, 2 * had)
  })
})
