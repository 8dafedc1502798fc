/** Two nodes on one database: their loads are even again after users have come and gone in mass. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { allSlots, slotCount } from '../../engine/store/slots.ts'
import type { Store } from '../../engine/store/port.ts'
import { randomOf } from '../support/random.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { testDatabase, type TestDatabase, work } from './mongo-server.ts'

const random = randomOf(3)
/** Several users in most slots. */
const perSlot = 5
const node = { beatMs: 50, lost: () => undefined }

suite('two nodes on one database', needs('mongodb'), () => {
  /** Accounts by slot. */
  const accounts = allSlots.map(() => 0)
  let database: TestDatabase
  let nodes: readonly Store['nodes'][] = []

  before(async () => {
    database = testDatabase()
    const stores = [await database.open(node), await database.open(node)]
    nodes = stores.map((store) => store.nodes)
    for (const one of nodes) await one.start({ ...work(), weightOf }, null)
    await even()
  })
  after(() => database.remove())

  /** As engine/slot-work.ts weighs a slot. */
  const weightOf = (slot: number): number => 1 + 256 * (accounts[slot] ?? 0)
  const loadOf = (slots: readonly number[]): number => slots.reduce((sum, slot) => sum + weightOf(slot), 0)

  function slotsOf(owner: Store['nodes'] | undefined): number[] {
    return allSlots.filter((slot) => owner?.ownsSlot(slot))
  }
  /** Resolves when every slot has its owner and the loads are within 10 % of even, beyond a slot. */
  async function even(): Promise<void> {
    const share = loadOf(allSlots) / nodes.length
    const most = share / 10 + Math.max(...allSlots.map(weightOf))
    const loads = (): number[] => nodes.map((one) => loadOf(slotsOf(one)))
    await until(
      'even loads',
      () =>
        nodes.reduce((sum, one) => sum + slotsOf(one).length, 0) === slotCount &&
        loads().every((load) => Math.abs(load - share) <= most),
      { withinMs: 20_000, explain: () => `${loads().join(', ')} of ${share} each` },
    )
  }
  function setAccounts(slots: readonly number[], count: () => number): void {
    for (const slot of slots) accounts[slot] = count()
  }

  test('are even after the users of one have come, and after those of the other have gone', async () => {
    const [one, other] = nodes
    const many = (): number => Math.floor(random() * 2 * perSlot)
    setAccounts(slotsOf(one), many)
    const before = slotsOf(other).length
    await even()
    assert(slotsOf(other).length > before, 'the other one has taken some')
    setAccounts(slotsOf(other), many)
    await even()
    setAccounts(slotsOf(other), () => 0)
    await even()
    setAccounts(slotsOf(one), () => 0)
    await even()
  })
})
