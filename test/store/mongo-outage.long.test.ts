/** The database is away, refuses us, or is slow: what the start and each method make of it. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { isAppError } from '../../engine/errors.ts'
import { silentLogger, type Logger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { newId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import { freshHealth } from '../../engine/store/rows.ts'
import { needs } from '../support/require.ts'
import { freePort } from '../support/port.ts'
import { until } from '../support/until.ts'
import { createMailbox, moved, rejectsWith, type Mailbox } from './contract/mailbox.ts'
import { epochStart, outboxRecord, tokenRecord, webhookRecord } from './contract/records.ts'
import { createProxy, isWrite, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const password = 'hunter2-of-the-database'

interface Line {
  readonly level: string
  readonly facts: unknown
  readonly text: unknown
}

/** Keeps what is said. */
function recordingLogger(): { readonly log: Logger; readonly lines: Line[] } {
  const lines: Line[] = []
  const say = (level: string) => (facts: unknown, text?: unknown) => lines.push({ level, facts, text })
  const log: Logger = {
    ...silentLogger,
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    fatal: say('fatal'),
    debug: say('debug'),
  }
  return { log, lines }
}

const page = { limit: 10, offset: 0 }

/** Every method of the port. */
function methods(store: Store, mailbox: Mailbox): Record<string, () => Promise<unknown>> {
  const { developer, user, account } = mailbox
  const { id } = account
  const some = newId()
  const result = { id: some, attempt: null, state: 'failed', dueAt: 0, finishedAt: 0, reason: null } as const
  return {
    ping: () => store.ping(),
    'developers.get': () => store.developers.get(developer.id),
    'developers.byKey': () => store.developers.byKey(developer.apiKey),
    'developers.count': () => store.developers.count(),
    'developers.edit': () => store.developers.edit(developer.id, { sealedSecret: 'sealed' }),
    'users.list': () => store.users.list(developer.id, { email: 'a@b.c', status: 'OK' }, page),
    'users.edit': () => store.users.edit(user.id, { firstName: 'A' }),
    'users.remove': () => store.users.remove(user.id),
    'accounts.get': () => store.accounts.get(id),
    'accounts.claim': () => store.accounts.claim(id),
    'accounts.edit': () => store.accounts.edit(id, { paused: true }),
    'accounts.remove': () => store.accounts.remove(id),
    'accounts.page': () => store.accounts.page(null, 10),
    'folders.list': () => store.folders.list(id),
    'folders.reconcile': () => store.folders.reconcile(id, account.epoch, [], true),
    'folders.setReported': () => store.folders.setReported(some, { messages: 1, unseen: 1 }),
    'messages.list': () => store.messages.list(id, {}, page),
    'messages.find': () => store.messages.find(id, 'x@y'),
    'messages.knownUids': () => store.messages.knownUids(some, '1', 1, 9),
    'messages.knownAmong': () => store.messages.knownAmong(some, '1', [1, 9]),
    'messages.picked': () => store.messages.picked(id, { hasAttachments: true }, page, (message) => [message]),
    'sync.apply': async () => store.sync.apply(stale(mailbox, some)),
    'sync.forgetPlacements': () => store.sync.forgetPlacements(id, account.epoch, some, '1', 10),
    'changes.since': () => store.changes.since(id, 0, 10),
    'changes.expire': () => store.changes.expire(0, 10),
    'webhooks.page': () => store.webhooks.page(null, 10),
    'webhooks.recordHealth': () => store.webhooks.recordHealth(some, freshHealth, []),
    'webhooks.remove': () => store.webhooks.remove(some),
    'webhooks.saveScan': () =>
      store.webhooks.saveScan({ webhookId: some, accountId: id, after: null, done: false }, []),
    'outbox.enqueue': () => store.outbox.enqueue([outboxRecord(webhookRecord(developer.id))]),
    'outbox.channels': () => store.outbox.channels(),
    'outbox.pending': () => store.outbox.pending(some, [], 10),
    'outbox.backlog': () => store.outbox.backlog(some),
    'outbox.late': () => store.outbox.late(developer.id, 10),
    'outbox.record': () => store.outbox.record([result]),
    'outbox.requeue': () => store.outbox.requeue({ webhookId: some }, 0, 10),
    'outbox.skipPending': () => store.outbox.skipPending(some, 'paused', 0),
    'contacts.list': () => store.contacts.list(user.id, 'total_count', 'desc', page),
    'tokens.use': () => store.tokens.use('none', 0, user.id, id),
    'providers.list': () => store.providers.list(developer.id),
    'nonces.remember': () => store.nonces.remember(developer.apiKey, some, 1, epochStart),
    'calls.list': () => store.calls.list({ developerId: developer.id }, page),
  }
}

function stale({ account }: Mailbox, folderId: string): Parameters<Store['sync']['apply']>[0] {
  const empty = { added: [], flagUpdates: [], vanished: [], reported: [], changes: [], outbox: [], contacts: [] }
  const cursors = { cursorBefore: null, cursorAfter: moved(null, {}) }
  return { accountId: account.id, epoch: account.epoch, folderId, ...cursors, ...empty, vanishedAt: 0 }
}

suite('a database that cannot be used', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let mailbox: Mailbox

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    mailbox = await createMailbox(await database.open())
  })
  after(async () => {
    await database.remove()
    await proxy.close()
  })

  /** Opens it with a deadline that a test can wait for. */
  const impatient = (timeoutMs: number): Promise<Store> => database.open({ uri: proxy.uri, timeoutMs })

  async function refused(uri: string): Promise<string> {
    const started = performance.now()
    const signal = AbortSignal.timeout(5000)
    const opening = createMongoStore({ uri, pool: 2, timeoutMs: 2000, log: silentLogger, signal })
    const error: unknown = await opening.then(
      () => null,
      (reason: unknown) => reason,
    )
    assert(isAppError(error, 'bad_request'), String(error))
    assert(performance.now() - started < 4000, 'at once')
    assert.equal(error.message.split('\n').length, 1)
    assert(!error.message.includes(password), error.message)
    return error.message
  }

  test('a URI that cannot be read stops the start with one line', async () => {
    const { host } = new URL(database.uri)
    for (const uri of [
      `postgres://me:${password}@${host}/x`,
      `mongodb:/me:${password}@${host}/x`,
      'mongodb://',
      'mongodb://:27017/x',
      'mongodb://[::1/x',
      `mongodb://me:${password}@127.0.0.1:99999999/x`,
      `mongodb://me:${password}@127.0.0.1:abc/x`,
      // the driver takes this one, and throws out of a timer later
      `mongodb://me:${password}@${host},/x`,
      `mongodb://me:${password}@at@${host}/x`,
      `mongodb://me%zz:${password}@${host}/x`,
      `mongodb://me:${password}%zz@${host}/x`,
      `mongodb+srv://me:${password}@a.example.com,b.example.com/x`,
      // names that no database can have
      ...['%zz', 'a%20b', 'a.b', 'a$b', 'a/b', 'a%00b', 'a#b', '%22a%22', 'a'.repeat(64)].map(
        (name) => `mongodb://me:${password}@${host}/${name}`,
      ),
      `mongodb://me:${password}@${host}/x?noSuchOption=1`,
      `mongodb://${host}/x?retryWrites=perhaps`,
      `mongodb://${host}/x?replicaSet=`,
      `mongodb://${host}/x?tls=true&tlsCAFile=/no/such/file`,
    ]) {
      assert.match(await refused(uri), /^MONGODB_URI: /, uri)
    }
  })

  test('a password that is not percent-encoded is not told in parts', async () => {
    const { host } = new URL(database.uri)
    for (const uri of [
      `mongodb://me:12/34@${host}`,
      `mongodb://me:secret/part@${host}/x`,
      `mongodb://me:12?34@${host}/x`,
      `mongodb+srv://me:se/cr/et@a.example.com/x?tls=true`,
    ]) {
      const message = 'MONGODB_URI: a / or ? in the user name or the password has to be written %2F or %3F'
      assert.equal(await refused(uri), message, uri)
    }
  })

  test('a login that is rejected stops the start with one line that names the host', async () => {
    const { host, pathname, search } = new URL(database.uri)
    const message = await refused(`mongodb://me:${password}@${host}${pathname}${search}`)
    assert.equal(message, `MONGODB_URI: ${host} rejected the login`)
  })

  test('a server that is away is waited for, with one warning that names it and no password', async () => {
    const { log, lines } = recordingLogger()
    proxy.die()
    const opening = createMongoStore({ uri: proxy.uri, pool: 2, timeoutMs: 300, log })
    await until('a second try', () => lines.some(({ level }) => level === 'debug'))
    assert.equal(lines.filter(({ level }) => level === 'warn').length, 1)
    const warning = JSON.stringify(lines.find(({ level }) => level === 'warn'))
    assert(warning.includes(new URL(proxy.uri).host), warning)
    proxy.revive()
    const store = await opening
    await until('it answers', () => store.ping().then(() => true))
    assert(lines.some(({ level, text }) => level === 'info' && text === 'the database answers'))
    assert(lines.some(({ text }) => text === 'collections and indexes ready'))
    await store.close()
  })

  test('and the password of the one that is away is in no line', async () => {
    const { log, lines } = recordingLogger()
    const host = `127.0.0.1:${await freePort()}`
    const stop = new AbortController()
    const uri = `mongodb://me:${password}@${host}/x`
    const opening = createMongoStore({ uri, pool: 2, timeoutMs: 200, log, signal: stop.signal })
    await until('a warning', () => lines.some(({ level }) => level === 'warn'))
    stop.abort()
    await rejectsWith(opening, 'shutting_down')
    assert(JSON.stringify(lines).includes(host))
    assert(!JSON.stringify(lines).includes(password))
  })

  test('a schema that is newer stops the start with one line', async () => {
    const client = await MongoClient.connect(database.uri)
    const meta = client.db().collection<{ _id: string; version: number }>('meta')
    const stored = await meta.findOne({ _id: 'schema' })
    await meta.updateOne({ _id: 'schema' }, { $set: { version: 99 } })
    try {
      assert.match(await refused(database.uri), /schema version 99, newer than the \d+ this Mailroom knows/)
    } finally {
      await meta.updateOne({ _id: 'schema' }, { $set: { version: stored?.version ?? 1 } })
      await client.close()
    }
  })

  /** Every method must say so in time: once for a connection that breaks, once for a server that is silent. */
  async function assertAllUnavailable(store: Store, timeoutMs: number): Promise<void> {
    const outcomes = Object.entries(methods(store, mailbox)).map(async ([name, call]) => {
      const started = performance.now()
      const error: unknown = await call().then(
        () => null,
        (reason: unknown) => reason,
      )
      assert(isAppError(error, 'store_unavailable'), `${name}: ${String(error)}`)
      assert(error.retryAfterMs !== null && error.retryAfterMs > 0, `${name}: retryAfterMs`)
      const tookMs = performance.now() - started
      assert(tookMs < timeoutMs * 3 + 5000, `${name}: ${Math.round(tookMs)} ms`)
    })
    await Promise.all(outcomes)
  }

  test('a connection that breaks: every method rejects in time, and answers when it is back', async () => {
    const store = await impatient(500)
    proxy.die()
    await assertAllUnavailable(store, 500)
    proxy.revive()
    const known = await until('the store answers again', () => store.accounts.get(mailbox.account.id))
    assert.equal(known.id, mailbox.account.id)
    await store.close()
  })

  test('all connections break under one write: the database is found again', async () => {
    proxy.revive()
    const store = await impatient(3000)
    for (let round = 1; round <= 3; round += 1) {
      await store.ping()
      // The driver's last look at the database is old enough for another one at once.
      await pause(700)
      proxy.decide = (command) => (isWrite(command) ? 'die' : 'pass')
      await rejectsWith(store.ping(), 'store_unavailable')
      proxy.decide = () => 'pass'
      proxy.revive()
      const answers = () => store.ping().then(() => true)
      await until(`the database is found, round ${round}`, answers, { withinMs: 30_000 })
    }
    await store.close()
  })

  test('a server that is silent: every method rejects in time', async () => {
    const store = await impatient(500)
    proxy.decide = () => 'hang'
    try {
      const outcomes = Object.entries(methods(store, mailbox)).map(async ([name, call]) => {
        const error: unknown = await call().then(
          () => null,
          (reason: unknown) => reason,
        )
        assert(isAppError(error, 'store_unavailable'), `${name}: ${String(error)}`)
      })
      const started = performance.now()
      await Promise.all(outcomes)
      assert(performance.now() - started < 5000)
    } finally {
      proxy.decide = () => 'pass'
    }
    await until('the store answers again', () => store.ping().then(() => true))
    await store.close()
  })

  test('a server that takes nothing more while large batches are written is found again', async () => {
    const store = await database.open({ uri: proxy.uri, timeoutMs: 1000, pool: 2 })
    await Promise.all([store.ping(), store.ping()])
    const webhook = webhookRecord(newId())
    // more than all buffers between two processes hold
    const large = () => Array.from({ length: 5 }, () => outboxRecord(webhook, { data: { folder: 'x'.repeat(4e6) } }))
    proxy.listen(false)
    try {
      const writes = Array.from({ length: 4 }, () => store.outbox.enqueue(large()))
      for (const write of writes) await rejectsWith(write, 'store_unavailable')
      // the driver gives up the sockets a little later, and what waits for room on them hears nothing of it
      await pause(2000)
    } finally {
      proxy.listen(true)
    }
    await until('the store answers again', () => Promise.all([store.ping(), store.ping()]).then(() => true))
    const row = outboxRecord(webhook)
    await until('it takes what is written', () => store.outbox.enqueue([row]).then(() => true))
    assert.deepEqual(await store.outbox.get(row.id), row)
    await store.close()
  })

  test('a server that takes nothing more of a write on trial is found again', async () => {
    const store = await database.open({ uri: proxy.uri, timeoutMs: 1000, pool: 2 })
    await Promise.all([store.ping(), store.ping()])
    proxy.listen(false)
    try {
      // more than all buffers between two processes hold
      await Promise.all([1, 2, 3].map(() => rejectsWith(store.ping(15e6), 'store_unavailable')))
      await pause(2000)
    } finally {
      proxy.listen(true)
    }
    await until('the store answers again', () => Promise.all([store.ping(), store.ping()]).then(() => true))
    await store.close()
  })

  test('the UIDs of a large folder: they may take longer than one operation', async () => {
    const box = await createMailbox(await database.open())
    const added = Array.from({ length: 300 }, (_, index) => box.added('INBOX', index + 1))
    for (const from of [0, 100, 200]) await box.apply('INBOX', { added: added.slice(from, from + 100) })
    const { id } = await box.folder('INBOX')
    const store = await impatient(2000)
    proxy.delayMs = 800
    try {
      proxy.seen.length = 0
      assert.equal((await store.messages.knownUids(id, '1', 1, 1000)).length, added.length)
      assert(proxy.seen.length * proxy.delayMs > 2000, 'in several requests')
    } finally {
      proxy.delayMs = 0
    }
    await store.close()
  })

  test('each operation delayed by 300 ms: slower, and right', async () => {
    const store = await impatient(5000)
    proxy.delayMs = 300
    try {
      const box = mailbox
      const added = [box.added('Archive', 1), box.added('Archive', 2)]
      const events = added.map((one) => box.event(one))
      const changes = events.flatMap((event) => event.changes)
      const batch = await box.batch('Archive', { added, changes, outbox: events.flatMap((event) => event.outbox) })
      const applied = await store.sync.apply(batch)
      assert.deepEqual(
        applied.changes.map(({ seq }) => seq),
        [1, 2],
      )
      const [rows, pending, token] = await Promise.all([
        store.messages.list(box.account.id, { folderId: batch.folderId }, page),
        store.outbox.pending('f'.repeat(24), [], 10),
        store.tokens.create(tokenRecord(box.developer.id)).then(() => 'made'),
      ])
      assert.deepEqual(new Set(rows.map(({ id }) => id)), new Set(added.map(({ id }) => id)))
      assert.deepEqual([pending.length, token], [2, 'made'])
    } finally {
      proxy.delayMs = 0
    }
    await store.close()
  })
})
