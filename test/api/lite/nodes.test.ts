/** A client that writes through one node and reads through another one finds what it wrote. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startReceiver, subjectOf, type CallbackReceiver } from '../../support/callbacks.ts'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig } from './rig.ts'

/** Calls go to nodes at random: so often that each order of nodes comes. */
const times = 12

suite('calls that go to either of two nodes', { skip: nodeCount < 2 }, () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  before(async () => {
    rig = await startLiteRig()
    receiver = await startReceiver()
  })
  after(async () => {
    await receiver.close()
    await rig.close()
  })

  test('a webhook of the application is in force on every node when its creation is answered', async () => {
    for (let count = 0; count < times; count += 1) {
      const made = await rig.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/${count}` })
      const path = `/lite/webhooks/${String(made['webhook_id'])}`
      assert.equal((await rig.ok('POST', `${path}/test`))['state'], 'delivered')
      await rig.ok('POST', path, { callback_url: `${receiver.url}/edited`, active: 0 })
      assert.equal((await rig.ok('GET', path))['active'], false)
      await rig.ok('DELETE', path)
      assert.equal((await rig.call('POST', `${path}/test`)).status, 404)
    }
  })

  test('a setting of the application is shown by every node at once', async () => {
    for (let count = 0; count < times; count += 1) {
      const url = `${receiver.url}/status/${count}`
      await rig.ok('POST', '/app/status_callback_url', { status_callback_url: url })
      assert.equal((await rig.ok('GET', '/app/status_callback_url'))['status_callback_url'], url)
    }
    await rig.ok('DELETE', '/app/status_callback_url')
  })

  test('an account of 2.0 becomes a user at the node that owns it, wherever the call goes', async () => {
    const box = await rig.mailbox('mover')
    for (let count = 0; count < times; count += 1) {
      const url = `${receiver.url}/moved/${count}`
      const changes = { first_name: `Ada ${count}`, status_callback_url: url }
      await rig.ok('POST', '/lite/users', { migrate_account_id: box.userId, ...changes })
      assert.equal((await rig.ok('GET', `/lite/users/${box.userId}`))['first_name'], `Ada ${count}`)
      assert.equal((await rig.ok('GET', box.path))['status_callback_url'], url)
    }
  })

  test('a key that is revoked is refused by every node at once', async () => {
    const { developers } = rig.engine
    const made = await developers.create('short-lived')
    const authorization = `Basic ${btoa(`${made.developer.apiKey}:${made.secret}`)}`
    const status = async () => (await rig.call('GET', '/lite/users', undefined, { headers: { authorization } })).status
    for (let count = 0; count < times; count += 1) assert.equal(await status(), 200)
    await developers.setRevoked(made.developer.id, true)
    // No more than an address may fail without a wait: the nodes tell each other.
    for (let count = 0; count < 8; count += 1) assert.equal(await status(), 401)
  })

  test('mail is told once to a webhook of the application, whoever owns the account', async () => {
    const made = await rig.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/all` })
    const boxes = await Promise.all(Array.from({ length: 6 }, (_, at) => rig.mailbox(`told${at}`)))
    const nodes = new Set(boxes.map(({ userId }) => rig.engine.store.nodes.owns(userId)))
    assert.equal(nodes.size, 2, 'both nodes own some')
    await Promise.all(boxes.map((box) => box.deliver({ subject: 'news' })))
    const told = () => receiver.all.filter(({ path }) => path === '/all')
    await until('every callback', () => told().length >= boxes.length)
    await rig.ok('DELETE', `/lite/webhooks/${String(made['webhook_id'])}`)
    assert.equal(new Set(told().map(({ id }) => id)).size, boxes.length)
    assert.equal(told().length, boxes.length)
  })
})

suite('a historical scan on two nodes', { skip: nodeCount < 2 }, () => {
  test('is made by the owner of the account, and goes on at the other node when that one ends', async (t) => {
    // A page is 100 messages. After the first one the owner would wait for longer than the test.
    const rig = await startLiteRig({ env: { MAILROOM_HISTORICAL_PAUSE: '10m' } })
    t.after(() => rig.close())
    const receiver = await startReceiver()
    t.after(() => receiver.close())
    /** The index of the node that stored each page. */
    const pages: number[] = []
    for (const [at, { store }] of rig.engines.entries()) {
      const { webhooks } = store
      const save = webhooks.saveScan.bind(webhooks)
      webhooks.saveScan = (...page) => {
        pages.push(at)
        return save(...page)
      }
    }
    await rig.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/old`, receive_historical: 1 })
    const subjects = Array.from({ length: 130 }, (_, at) => `old ${at}`)
    const box = await rig.mailbox('scanned', { subjects })
    const owner = rig.engines.findIndex(({ store }) => store.nodes.owns(box.userId))
    await until('the first page', () => receiver.all.length >= 100)
    assert.deepEqual(pages, [owner])
    await rig.engines[owner]?.stop()
    await until('all pages', () => receiver.all.length >= subjects.length)
    assert.deepEqual(pages, [owner, 1 - owner])
    assert.deepEqual(new Set(receiver.all.map(subjectOf)), new Set(subjects))
    assert.equal(new Set(receiver.all.map(({ id }) => id)).size, subjects.length, 'each under one id')
  })
})
