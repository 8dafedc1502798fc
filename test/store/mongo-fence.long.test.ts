/** A node that was taken for dead, and does not know: what it writes is refused. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { silentLogger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import type { Store } from '../../engine/store/port.ts'
import type { OutboxRecord } from '../../engine/store/records.ts'
import { slotCount } from '../../engine/store/slots.ts'
import { newRow } from '../../engine/webhooks/callbacks.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { rejectsWith } from './contract/mailbox.ts'
import { testDatabase, type TestDatabase, work } from './mongo-server.ts'

const user = userRecord('d')
const account = accountRecord(user)

suite('a node that was taken for dead', needs('mongodb'), () => {
  let database: TestDatabase
  let [dead, living]: (Store | null)[] = [null, null]
  let owned = 0
  before(async () => {
    database = testDatabase()
    const store = await database.open()
    await store.users.createWithAccount(user, account)
    await store.outbox.enqueue([rowOf('one'), rowOf('two')])
  })
  after(async () => {
    for (const store of [dead, living]) await store?.close()
    await database.remove()
  })

  function rowOf(id: string): OutboxRecord {
    const { developerId } = account
    const owner = { developerId, userId: user.id, accountId: account.id, webhookId: 'w' }
    return newRow({ id, channelId: 'w', ...owner, kind: 'message', data: {}, createdAt: 1 })
  }
  function open(beatMs: number): Promise<Store> {
    const times = { beatMs, silentMs: 300 }
    return createMongoStore({
      uri: database.uri,
      pool: 3,
      timeoutMs: 5000,
      log: silentLogger,
      lost: () => undefined,
      ...times,
    })
  }
  async function send(store: Store, id: string): Promise<void> {
    const attempt = { at: 2, durationMs: 3, status: 200, error: null, response: null, url: 'http://x' }
    await store.outbox.record([{ id, attempt, state: 'delivered', dueAt: 1, finishedAt: 2, reason: null }])
  }

  test('claims no account, and records nothing of callbacks, that others have by now', async () => {
    // The first node beats when it starts, and for a long time no more.
    const first = (dead = await open(3_600_000))
    await first.nodes.start(work(), null)
    assert.equal((await first.accounts.claim(account.id))?.epoch, account.epoch + 1)
    assert.equal((await first.outbox.pending('w', [], 10)).length, 2)
    await send(first, 'one')
    assert.equal((await first.outbox.get('one'))?.state, 'delivered')

    const second = (living = await open(20))
    await second.nodes.start(
      work((slots) => (owned += slots)),
      null,
    )
    await until('the other one has its slots', () => owned === slotCount, { withinMs: 30_000 })
    assert(first.nodes.owns(user.id) && second.nodes.owns(user.id))
    await send(first, 'two')
    assert.equal((await second.outbox.get('two'))?.state, 'pending')
    const claimed = await second.accounts.claim(account.id)
    assert.equal(claimed?.epoch, account.epoch + 2)
    await rejectsWith(first.accounts.claim(account.id), 'lease_lost')
    await rejectsWith(first.accounts.edit(account.id, { statusMessage: 'late' }, account.epoch + 1), 'lease_lost')
    assert.equal((await second.accounts.claim(account.id))?.epoch, account.epoch + 3)
    await send(second, 'two')
    assert.equal((await second.outbox.get('two'))?.state, 'delivered')
    await first.nodes.look()
    assert.equal(first.nodes.owns(user.id), false)
    assert.deepEqual(await first.outbox.pending('w', [], 10), [])
    assert.deepEqual(await first.outbox.pending('w', [], 10, user.id), [])
  })

  test('gives back what it has claimed when it ends', async () => {
    await living?.close()
    const third = (living = await open(20))
    let gained = 0
    await third.nodes.start(
      work((slots) => (gained += slots)),
      null,
    )
    assert.equal(gained, slotCount)
  })

  test('takes up a claim whose answer was lost, starts what failed to start, and releases all at its end', async () => {
    await living?.close()
    const client = await MongoClient.connect(database.uri)
    const slots = client.db().collection('slots')
    const fourth = (living = await open(20))
    const own = await client
      .db()
      .collection<{ _id: string }>('nodes')
      .findOne({ place: { $exists: true } })
    await slots.updateMany({}, { $set: { owner: own?._id ?? '', epoch: 3 } })
    let tries = 0
    let gained = 0
    await fourth.nodes.start(
      work((slots) => {
        tries += 1
        if (tries === 1) throw new Error('the store did not answer')
        gained += slots
      }),
      null,
    )
    await until('its work', () => gained === slotCount)
    assert(fourth.nodes.ownsAll())
    assert.equal(await slots.countDocuments({ epoch: 3 }), 0)
    await fourth.close()
    living = null
    assert.equal(await slots.countDocuments({ owner: '' }), slotCount)
    await client.close()
  })
})
