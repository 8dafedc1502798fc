/** What a start asks of the database: with which promises, and with which patience. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { silentLogger, type Logger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { newId } from '../../engine/store/ids.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, rejectsWith } from './contract/mailbox.ts'
import { commandName, createProxy, isWrite, type Proxy, type Verdict } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

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
