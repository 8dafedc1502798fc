/** What a start asks of the database: with which promises, and with which patience. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { silentLogger, type Logger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { newId } from '../../engine/store/ids.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, rejectsWith } from './contract/mailbox.ts'
import { commandName, createProxy, isWrite, type Proxy, type Verdict } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase, work } from './mongo-server.ts'

interface Line {
  readonly level: string
  readonly facts: Readonly<Record<string, unknown>>
  readonly text: unknown
}

function recordingLogger(): { readonly log: Logger; readonly lines: Line[] } {
  const lines: Line[] = []
  const say = (level: string) => (facts: unknown, text?: unknown) =>
    lines.push({ level, facts: facts as Line['facts'], text })
  return { log: { ...silentLogger, info: say('info'), warn: say('warn'), debug: say('debug') }, lines }
}

suite('a start on MongoDB', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
  })
  after(async () => {
    await database.remove()
    await proxy.close()
  })

  test('a process gets slots when it has started; they are let go when their callbacks are answered', async () => {
    const own = testDatabase()
    const times = { beatMs: 3_600_000, silentMs: 3_600_000 }
    const options = { uri: own.uri, pool: 3, timeoutMs: 5000, log: silentLogger, lost: () => undefined, ...times }
    const first = await createMongoStore(options)
    const users = Array.from({ length: 200 }, newId)
    const owned = () => users.filter((id) => first.nodes.owns(id)).length
    const answered = Promise.withResolvers<undefined>()
    let isAsked = false
    const rest = (): Promise<undefined> => {
      isAsked = true
      return answered.promise
    }
    await first.nodes.start({ ...work(), rest }, null)
    const second = await createMongoStore(options)
    for (let looks = 0; looks < 2; looks += 1) await first.nodes.look()
    assert.equal(isAsked, false, 'nobody would watch the mailboxes until the second one has started')
    await second.nodes.start(work(), null)
    await first.nodes.look()
    await until('it waits for callbacks', () => isAsked)
    const sent = users.filter((id) => first.nodes.sends(id)).length
    assert.ok(sent > 50 && sent < 150, `callbacks of ${sent} users go out`)
    assert.equal(owned(), users.length, 'all mailboxes are watched')
    answered.resolve(undefined)
    await until('slots are handed over', () => owned() === sent)
    for (const store of [first, second]) await store.close()
    await own.remove()
  })

  test('a database with another number of slots is refused', async () => {
    const own = testDatabase()
    const open = () => own.open({ lost: () => undefined })
    await (await open()).close()
    const client = await MongoClient.connect(own.uri)
    const meta = client.db().collection<{ _id: string; count: string }>('meta')
    await meta.updateOne({ _id: 'slots' }, { $set: { count: '64' } })
    await client.close()
    await rejectsWith(open(), 'bad_request')
    await own.remove()
  })

  test('whatever the URI says, writes are journaled by a majority and reads are those of the primary', async () => {
    for (const option of [
      'w=1&journal=false',
      'j=false',
      'w=0',
      'fsync=false',
      'readConcernLevel=available',
      'readPreference=secondary',
      'readPreference=secondaryPreferred&maxStalenessSeconds=90',
    ]) {
      proxy.seen.length = 0
      const uri = new URL(proxy.uri)
      for (const [name, value] of new URLSearchParams(option)) uri.searchParams.set(name, value)
      const store = await database.open({ uri: uri.href })
      const { account } = await createMailbox(store)
      await store.accounts.edit(account.id, { paused: true })
      await store.messages.list(account.id, {}, { limit: 1, offset: 0 })
      await store.outbox.channels()
      const writes = proxy.seen.filter(isWrite)
      assert(writes.length > 3)
      for (const write of writes) assert.deepEqual(write['writeConcern'], { w: 'majority', j: true }, option)
      const reads = proxy.seen.filter((command) => ['find', 'aggregate', 'distinct'].includes(commandName(command)))
      assert(reads.length > 1)
      for (const read of reads) {
        assert.deepEqual(read['readConcern'], { level: 'local' }, option)
        const { mode = 'primary' } = (read['$readPreference'] ?? {}) as { mode?: string }
        // what a driver says to a single server that it was told to talk to
        assert(['primary', 'primaryPreferred'].includes(mode), `${option}: ${mode}`)
      }
    }
  })

  test('a server that never answers a command is told of and asked again; the start ends when it is stopped', async () => {
    for (const silent of ['find', 'listCollections', 'create']) {
      const { log, lines } = recordingLogger()
      const stop = new AbortController()
      const empty = testDatabase(proxy.uri)
      proxy.decide = (command) => (commandName(command) === silent ? 'hang' : 'pass')
      const opening = createMongoStore({ uri: empty.uri, pool: 2, timeoutMs: 300, log, signal: stop.signal })
      await until(`a warning about ${silent}`, () => lines.some(({ level }) => level === 'warn'))
      await until('a second try', () => lines.some(({ text }) => text === 'the database still cannot be reached'))
      stop.abort()
      await rejectsWith(opening, 'shutting_down')
      proxy.decide = () => 'pass'
      await empty.remove()
    }
  })

  test('building an index takes as long as it takes, and the log tells of it meanwhile', async () => {
    const { log, lines } = recordingLogger()
    const { promise: built, resolve: build } = Promise.withResolvers<undefined>()
    const empty = testDatabase(proxy.uri)
    proxy.decide = async (command): Promise<Verdict> => {
      if (command['createIndexes'] === 'messages') await built
      return 'pass'
    }
    const opening = empty.open({ timeoutMs: 3000, log })
    const isReported = ({ text, facts }: Line): boolean =>
      text === 'indexes are being made' && facts['collection'] === 'messages'
    await until('a line on the way', () => lines.some(isReported), { withinMs: 30_000 })
    build(undefined)
    const store = await opening
    await store.ping()
    assert(!lines.some(({ level }) => level === 'warn'), 'nothing is wrong')
    assert.equal(await store.accounts.get(newId()), null)
    proxy.decide = () => 'pass'
    await empty.remove()
  })
})
