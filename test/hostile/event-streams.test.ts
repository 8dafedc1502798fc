/** Very many event streams: how many there may be, and that one reader per user reads the store for all of them. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { changeStream } from '../../api/lite/changes.ts'
import type { Engine } from '../../engine/index.ts'
import { startLiteRig } from '../api/lite/rig.ts'
import { openStage } from '../e2e/stage.ts'
import { openEventStream, type EventStream } from '../support/event-stream.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { assertHolds, holdsOf } from '../support/loop-held.ts'
import { until } from '../support/until.ts'
import { assertShort, beside } from './bystanders.ts'
import { basicOf } from './stranger.ts'

const authorization = basicOf(apiKey, apiSecret)

function countReads({ store, ...engine }: Engine) {
  let reads = 0
  const since: Engine['store']['changes']['since'] = (...args) => {
    reads += 1
    return store.changes.since(...args)
  }
  return { engine: { ...engine, store: { ...store, changes: { ...store.changes, since } } }, reads: () => reads }
}

suite('very many event streams', () => {
  test('16 of a user and 200 of a developer are served; more are a 429 with Retry-After until one ends', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage({ env: { MAILROOM_CONNECTIONS_PER_ADDRESS: '1000' } })
    parts.defer(() => stage.remove())
    const { service } = stage
    const users: string[] = []
    for (let n = 0; n < 13; n += 1) users.push(String((await service.ok('POST', '/lite/users', {}))['id']))
    const open = async (user: string | undefined): Promise<EventStream> => {
      const stream = await openEventStream(`${service.url}/lite/users/${user}/changes`, { authorization })
      parts.defer(() => stream.close())
      return stream
    }
    const streams: EventStream[] = []
    const waits = await beside(service, async () => {
      for (const user of users) for (let n = 0; n < 16 && streams.length < 200; n += 1) streams.push(await open(user))
      assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200])
      for (const [user, words] of [
        [users[0], /16 event streams of one user/],
        [users[12], /200 event streams of one developer/],
      ] as const) {
        const refused = await open(user)
        assert.equal(refused.status, 429)
        assert(Number(refused.headers['retry-after']) > 0)
        await until('its words', () => words.test(refused.text))
      }
    })
    assertShort(waits, streams.length)
    streams[0]?.close()
    await until('a place is free', async () => (await open(users[0])).status === 200)
  })

  test('each change is read from the store once, however many streams hear it', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    const box = await rig.mailbox('crowd')
    await box.deliver({ subject: 'old' })
    const developer = await rig.engine.store.developers.first()
    const user = await rig.engine.store.users.get(developer?.id ?? '', box.userId)
    assert(user !== null)
    const { engine, reads } = countReads(rig.engine)
    const aborter = new AbortController()
    t.after(() => aborter.abort())
    const heard = Array.from({ length: 16 }, () => {
      const stream = changeStream({ engine, user, from: new Map(), baseUrl: 'http://x', signal: aborter.signal })
      const own = { text: '' }
      stream.setEncoding('utf8').on('data', (text: string) => (own.text += text))
      return own
    })
    const all = (count: number) => heard.every(({ text }) => text.split('event: received').length > count)
    await until('the old one', () => all(1))
    assert(reads() <= 4, `${reads()} reads for 16 streams`)
    const before = reads()
    const holds = await holdsOf(5, async (round) => {
      for (const n of [2 * round, 2 * round + 1]) await box.deliver({ subject: `new ${n}` })
      await until('two new ones', () => all(2 * round + 3))
    })
    assertHolds(holds, 50)
    assert(reads() - before <= 40, `${reads() - before} reads of ten changes for 16 streams`)
    assert.equal(new Set(heard.map(({ text }) => text)).size, 1, 'all have heard the same')
  })

  test('200 streams of one developer over 13 users: changes of all of them at once hold the loop for 50 ms at most', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    const { engine, reads } = countReads(rig.engine)
    const developer = await engine.store.developers.first()
    const aborter = new AbortController()
    t.after(() => aborter.abort())
    const boxes = await Promise.all(Array.from({ length: 13 }, (_, n) => rig.mailbox(`crowd${n}`)))
    const heard: { text: string }[] = []
    for (const { userId } of boxes) {
      const user = await engine.store.users.get(developer?.id ?? '', userId)
      assert(user !== null)
      for (let n = 0; n < 16 && heard.length < 200; n += 1) {
        const stream = changeStream({ engine, user, from: new Map(), baseUrl: 'http://x', signal: aborter.signal })
        const own = { text: '' }
        stream.setEncoding('utf8').on('data', (text: string) => (own.text += text))
        heard.push(own)
      }
    }
    assert.equal(heard.length, 200)
    const all = (count: number) => heard.every(({ text }) => text.split('event: received').length > count)
    const deliver = (subject: string) => Promise.all(boxes.map((box) => box.deliver({ subject })))
    await deliver('old')
    await until('the old ones', () => all(1))
    const before = reads()
    const holds = await holdsOf(5, async (round) => {
      await deliver(`new ${round}`)
      await until('a new one each', () => all(round + 2))
    })
    assertHolds(holds, 50)
    // Five changes of 13 users, each read by one reader; 200 streams that read for themselves make 1,000.
    assert(reads() - before <= 4 * 5 * 13, `${reads() - before} reads of 65 changes for 200 streams`)
  })
})
