/** Work for all nodes of a database: one does it, and another one goes on with it when that one ends. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { startRetention } from '../../engine/maintenance.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { reseal } from '../../engine/sealed-store.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { testDatabase, type TestDatabase, work } from './mongo-server.ts'

const roundMs = 10 * 60_000
const node = { beatMs: 50, lost: () => undefined }

suite('work for all nodes', needs('mongodb'), () => {
  let database: TestDatabase
  let stores: [Store, Store]
  beforeEach(async () => {
    database = testDatabase()
    stores = [await database.open(node), await database.open(node)]
    for (const { nodes } of stores) await nodes.start(work(), null)
    await until('both own slots', () => stores.every(({ nodes }) => nodes.ownsAny() && !nodes.ownsAll()))
  })
  afterEach(() => database.remove())

  test('sweeps: by one node each round, and by the other one after its end', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const runs = stores.map(() => 0)
    const stops = stores.map((store, at) => {
      const expire: Store['changes']['expire'] = (...given) => {
        runs[at] = (runs[at] ?? 0) + 1
        return store.changes.expire(...given)
      }
      const counted = { ...store, changes: { ...store.changes, expire } }
      return startRetention({ store: counted, config: readConfig({}), log: silentLogger })
    })
    t.after(() => Promise.all(stops.map((stop) => stop())))
    // A sweep begins with the changes, in the same turn.
    t.mock.timers.tick(roundMs)
    const first = runs.indexOf(1)
    assert.deepEqual(runs.toSorted(), [0, 1])
    await stops[first]?.()
    await stores[first]?.close()
    const second = 1 - first
    await until('the other one owns all', () => stores[second]?.nodes.ownsAll())
    t.mock.timers.tick(roundMs)
    assert.deepEqual(runs, [1, 1])
  })

  test('re-sealing: each value once by two nodes at the same time, and the rest by one when the other ends', async () => {
    const [before, after] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
    const former = createSealer(before)
    const sealer = createSealer(after, [before])
    const [one, other] = stores
    const user = userRecord('d1')
    const plain = await database.open()
    await plain.users.create(user)
    const count = 60
    for (let at = 0; at < count; at += 1) {
      const account = accountRecord(user, { id: `a${at}` })
      await plain.accounts.create({ ...account, sealedCredential: former.seal(`password ${at}`, account.id) })
    }
    const [some, cut] = await Promise.all([
      reseal({ store: one, sealer }, count / 3),
      reseal({ store: other, sealer }, count / 3),
    ])
    assert.equal((await reseal({ store: one, sealer }, 0)).left, count - some.resealed - cut.resealed)
    await one.close()
    const rest = await reseal({ store: other, sealer }, count)
    assert.equal(some.resealed + cut.resealed + rest.resealed, count, 'each value once')
    assert(rest.done)
    const only = createSealer(after)
    for (let at = 0; at < count; at += 1)
      assert.equal(only.open((await other.accounts.get(`a${at}`))?.sealedCredential ?? '', `a${at}`), `password ${at}`)
  })
})
