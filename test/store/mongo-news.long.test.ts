/** News between two nodes: told straight, read from the database by who missed that, and followed once. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { silentLogger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import type { Store } from '../../engine/store/port.ts'
import type { NumberedNews } from '../../engine/store/slots.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { commandName, createProxy, holdFirst, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase, work } from './mongo-server.ts'

suite('news between nodes', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  const stores: Store[] = []
  const announced: NumberedNews[][] = []
  const heard: string[] = []
  /** Following the news waits for this promise. */
  let held: Promise<unknown> = Promise.resolve()
  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    // They look when the test says so.
    const times = { beatMs: 3_600_000, silentMs: 3_600_000 }
    const options = { uri: database.uri, pool: 3, timeoutMs: 5000, log: silentLogger, lost: () => undefined, ...times }
    stores.push(await createMongoStore({ ...options, uri: proxy.uri }))
    const announceNews = (news: readonly NumberedNews[]) => Promise.resolve(announced.push([...news]))
    await stores[0]?.nodes.start({ ...work(), announceNews }, null)
    stores.push(await createMongoStore(options))
    const [first, second] = nodes()
    const follow = async ({ id }: { readonly id: string }): Promise<void> => {
      heard.push(id)
      await held
    }
    await first.tell({ what: 'webhook', id: 'unknown' })
    await second.start({ ...work(), heard: follow }, null)
    await second.look()
    await first.look()
  })
  after(async () => {
    for (const store of stores) await store.close()
    await database.remove()
    await proxy.close()
  })
  const nodes = () => {
    const [first, second] = stores
    assert(first !== undefined && second !== undefined)
    return [first.nodes, second.nodes] as const
  }

  test('what is told before the other node is known is followed at its first look', () => {
    assert.deepEqual(heard.splice(0), ['unknown'])
    announced.length = 0
  })

  test('what is told is followed without a look, what is not at the next one, each once', async () => {
    const [first, second] = nodes()
    await first.tell({ what: 'webhook', id: 'told' })
    await first.tell({ what: 'webhook', id: 'missed' })
    const [told = []] = announced
    assert.deepEqual(
      told.map(({ what, id }) => [what, id]),
      [['webhook', 'told']],
    )
    await second.hear(told)
    await second.hear(told)
    assert.deepEqual(heard, ['told'])
    await second.look()
    await second.look()
    assert.deepEqual(heard, ['told', 'missed'])
  })

  test('of one record one piece of news is followed after the other', async () => {
    const [first, second] = nodes()
    held = new Promise(() => undefined)
    await first.tell({ what: 'webhook', id: 'twice' })
    await first.tell({ what: 'webhook', id: 'twice' })
    await Promise.all(announced.slice(-2).map((news) => second.hear(news)))
    assert.deepEqual(heard.splice(2), ['twice'], 'the second one waits for the first')
    held = Promise.resolve()
  })

  test('who tells news hears that they are followed when a look has read them first', async () => {
    const [first, second] = nodes()
    const { promise, resolve } = Promise.withResolvers<undefined>()
    held = promise
    await first.tell({ what: 'webhook', id: 'read' })
    const look = second.look()
    await until('the look follows the news', () => heard.at(-1) === 'read')
    let isAnswered = false
    const hearing = second.hear(announced.at(-1) ?? []).then(() => (isAnswered = true))
    await setImmediate()
    assert.equal(isAnswered, false)
    resolve(undefined)
    await Promise.all([hearing, look])
    assert.deepEqual(heard.splice(2), ['read'])
  })

  test('news that take long to follow do not hold up the beat', async () => {
    const [first, second] = nodes()
    held = new Promise(() => undefined)
    const stuck = Array.from({ length: 10 }, (_, at) => `stuck ${at}`)
    for (const id of stuck) await first.tell({ what: 'webhook', id })
    const began = performance.now()
    await second.look()
    const tookMs = performance.now() - began
    assert(tookMs < 10_000, `one after the other they take 20 s, not ${Math.round(tookMs)} ms`)
    held = Promise.resolve()
    await first.tell({ what: 'webhook', id: 'next' })
    await second.look()
    assert.deepEqual(heard.splice(2), [...stuck, 'next'])
  })

  test('a row that is written after a look has seen its number is followed at the next look', async () => {
    const [first, second] = nodes()
    const hold = holdFirst(proxy, (command) => commandName(command) === 'insert' && command['insert'] === 'news')
    const telling = first.tell({ what: 'webhook', id: 'late' })
    await until('the row is under way', () => hold.held)
    await second.look()
    hold.release()
    await telling
    await second.look()
    assert.deepEqual(heard.splice(2), ['late'])
  })
})
