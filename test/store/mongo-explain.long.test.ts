/**
 * No read of the store scans a collection, and none is sorted but by an index: each one's own command, caught on its
 * way, is explained by the server, and its filter and order are held against the indexes.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient, type Db, type Document } from 'mongodb'
import { newId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import { needs } from '../support/require.ts'
import { createMailbox, moved, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, addressed, epochStart, messageFacts, outboxRecord, webhookRecord } from './contract/records.ts'
import { commandName, createProxy, type Proxy } from './mongo-proxy.ts'
import { namesRows, orderedBy } from './mongo-order.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const page = { limit: 25, offset: 50 }
/** Enough that a planner would rather use an index than read everything. */
const messages = 600

/** Every read of the port, with the filters that the API makes of its parameters. */
function reads(store: Store, mailbox: Mailbox, inbox: string): Record<string, () => Promise<unknown>> {
  const { developer, user, account } = mailbox
  const { id } = account
  const list = (query: Parameters<Store['messages']['list']>[1]) => () => store.messages.list(id, query, page)
  const webhookId = newId()
  return {
    'developers.byKey': () => store.developers.byKey(developer.apiKey),
    'users.list': () => store.users.list(developer.id, {}, page),
    'users.list by email': () => store.users.list(developer.id, { email: account.email }, page),
    'users.list by status': () => store.users.list(developer.id, { status: 'DISABLED' }, page),
    'accounts.listByUser': () => store.accounts.listByUser(user.id),
    'accounts.listByUser by status': () => store.accounts.listByUser(user.id, { status: 'OK' }),
    'accounts.listByUsers': () => store.accounts.listByUsers([user.id, newId()]),
    'accounts.places of a host': () => store.accounts.places({ server: account.server }),
    'accounts.places of a developer': () => store.accounts.places({ developerId: developer.id }),
    'accounts.places of a user': () => store.accounts.places({ userId: user.id }),
    'accounts.places long so': () => store.accounts.places({ sinceUntil: 1 }),
    'accounts.places that are so': () => store.accounts.places({ condition: 'down' }),
    'users.count': () => store.users.count(developer.id),
    'accounts.page': () => store.accounts.page(newId(0), 100),
    'accounts.remove': async () => {
      const one = accountRecord(user)
      await store.accounts.create(one)
      await store.accounts.remove(one.id)
    },
    'folders.list': () => store.folders.list(id),
    'messages.find by Message-ID': () => store.messages.find(id, 'unknown@example.com'),
    'messages.findAll by Message-ID': () => store.messages.findAll(id, 'unknown@example.com', 100),
    'messages.find by any id': () => store.messages.find(id, 'unknown'),
    'messages.list': list({}),
    'messages.list ascending': list({ order: 'asc' }),
    'messages.list by folder': list({ folderId: inbox }),
    'messages.list by folder and date': list({ folderId: inbox, sentFrom: epochStart, sentUntil: epochStart + 1e9 }),
    'messages.list by from': list({ from: ['a@example.com', 'example.org'] }),
    'messages.list by any address': list({ email: ['a@example.com'] }),
    'messages.list by all': list({
      folderId: inbox,
      from: ['a@example.com'],
      to: ['com'],
      cc: ['x.com'],
      subject: 'a',
    }),
    'messages.list by subject': list({ subject: 'invoice' }),
    'messages.list by thread': list({ threadId: '0123456789abcdef' }),
    'messages.list by threads': list({ threadIds: ['0123456789abcdef', 'fedcba9876543210'] }),
    'messages.list by ids': list({ ids: [newId(), newId()] }),
    'messages.list with attachments': list({ hasAttachments: true }),
    'messages.list without attachments': list({ hasAttachments: false }),
    'messages.list without hidden placements': list({ hidden: { folderIds: [inbox], deleted: true } }),
    'messages.totals': () => store.messages.totals(id),
    'messages.count': () => store.messages.count(id),
    'messages.count by folder': () => store.messages.count(id, { folderId: inbox }),
    'messages.knownUids': () => store.messages.knownUids(inbox, '1', 10, 30),
    'messages.knownAmong': () => store.messages.knownAmong(inbox, '1', [10, 30]),
    'messages.gone': () => store.messages.gone(id, epochStart, 100),
    'messages.older': () => store.messages.older(id, { sentAt: epochStart, id: newId() }, 100),
    'messages.picked': () => store.messages.picked(id, { hasAttachments: true }, page, (message) => [message]),
    'changes.since': () => store.changes.since(id, 3, 100),
    'changes.lastSeq': () => store.changes.lastSeq(id),
    'changes.ofMessage': () => store.changes.ofMessage(id, newId()),
    'changes.expire': () => store.changes.expire(epochStart - 1e9, 100),
    'webhooks.listByUser': () => store.webhooks.listByUser(user.id),
    'webhooks.listByDeveloper': () => store.webhooks.listByDeveloper(developer.id),
    'webhooks.page': () => store.webhooks.page(newId(0), 100),
    'webhooks.scan': () => store.webhooks.scan(webhookId, id),
    'outbox.channels': () => store.outbox.channels(),
    'outbox.pending': () => store.outbox.pending(webhookId, [], 100),
    'outbox.pending but for some': () => store.outbox.pending(webhookId, [id, newId()], 100),
    'outbox.backlog': () => store.outbox.backlog(webhookId),
    'outbox.backlog of all': () => store.outbox.backlog(null),
    'outbox.late': () => store.outbox.late(developer.id, 100),
    'outbox.list by webhook': () => store.outbox.list({ webhookId }, page),
    'outbox.list by webhook and state': () => store.outbox.list({ webhookId, states: ['failed'] }, page),
    'outbox.list by developer': () => store.outbox.list({ developerId: developer.id, statusFrom: 500 }, page),
    'outbox.list by account': () => store.outbox.list({ accountId: id, createdFrom: epochStart }, page),
    'outbox.list by accounts': () => store.outbox.list({ accountId: [id, newId()], createdFrom: epochStart }, page),
    'outbox.list by message': () => store.outbox.list({ messageId: newId(), webhookId }, page),
    'outbox.list by webhook and kind': () => store.outbox.list({ webhookId, kind: 'failure' }, page),
    'outbox.list by developer and kind': () => store.outbox.list({ developerId: developer.id, kind: 'status' }, page),
    'outbox.list by account and kind': () => store.outbox.list({ accountId: id, kind: 'status' }, page),
    'outbox.list of all': () => store.outbox.list({ createdFrom: epochStart, states: ['failed'] }, page),
    'outbox.list by webhooks': () => store.outbox.list({ webhookId: [webhookId, newId()], states: ['failed'] }, page),
    'outbox.counts': () => store.outbox.counts({ createdFrom: epochStart }, 60_000),
    'messages.several': () => store.messages.several([newId()]),
    'outbox.requeue': () => store.outbox.requeue({ webhookId, states: ['failed'] }, epochStart, 10),
    'outbox.requeue of a time': () =>
      store.outbox.requeue(
        { webhookId, kind: 'message', createdFrom: 1, createdUntil: epochStart, finishedUntil: epochStart },
        epochStart,
        10,
        { createdAt: epochStart, id: newId() },
      ),
    'outbox.expire': () => store.outbox.expire(epochStart - 1e9, 100),
    'contacts.list': () => store.contacts.list(user.id, 'total_count', 'desc', page),
    'contacts.list by direct': () => store.contacts.list(user.id, 'direct_count', 'asc', page),
    'contacts.list by indirect': () => store.contacts.list(user.id, 'indirect_count', 'desc', page),
    'contacts.search': () => store.contacts.search(user.id, 'ada', page),
    'tokens.list': () => store.tokens.list(developer.id, {}, 10),
    'tokens.list by user': () => store.tokens.list(developer.id, { userId: user.id, version: 'lite' }, 10),
    'tokens.list by account': () => store.tokens.list(developer.id, { accountId: id }, 10),
    'providers.list': () => store.providers.list(developer.id),
    'calls.list': () => store.calls.list({ developerId: developer.id, statusFrom: 400, path: '/lite/users' }, page),
    'calls.list by user': () =>
      store.calls.list({ developerId: developer.id, userId: user.id, from: epochStart }, page),
    'calls.list before': () =>
      store.calls.list({ developerId: developer.id, before: { at: epochStart, id: newId() } }, page),
    'calls.expire': () => store.calls.expire(epochStart - 1e9, 100),
  }
}

const reading = new Set(['find', 'aggregate', 'distinct'])
const envelope = new Set(['lsid', '$db', '$clusterTime', '$readPreference', 'txnNumber', 'maxTimeMS', 'readConcern'])

/** As it can be explained: `distinct` as the find over the same rows, which every server explains. */
function bare(command: Document): Document {
  if (commandName(command) === 'distinct') {
    return { find: String(command['distinct']), filter: command['query'] as Document }
  }
  return Object.fromEntries(Object.entries(command).filter(([name]) => !envelope.has(name)))
}

/** All objects of a plan. */
function nodes(plan: unknown): Document[] {
  if (Array.isArray(plan)) return plan.flatMap(nodes)
  if (typeof plan !== 'object' || plan === null) return []
  return [plan, ...Object.values(plan).flatMap(nodes)]
}

/**
 * Whether a plan node reads a whole collection. mongod says so; DocumentDB walks either the table or the whole of the
 * primary key, which then has a condition on the collection alone.
 */
function scansAll(node: Document): boolean {
  if (node['stage'] === 'COLLSCAN' || node['Node Type'] === 'Seq Scan') return true
  return node['Index Name'] === '_id_' && !String(node['Index Cond']).includes('object_id')
}

function isStep(node: Document): boolean {
  return typeof node['stage'] === 'string' || typeof node['Node Type'] === 'string'
}

/**
 * mongod's own word for a sort that reads everything first. DocumentDB sorts after any index: there the keys have to
 * tell.
 */
function sortsBlocking(node: Document): boolean {
  return node['stage'] === 'SORT'
}

/**
 * What a read's index leaves to be compared row by row, with the rows in order: as the API offers these filters in any
 * mix.
 */
const compared: Readonly<Record<string, readonly string[]>> = {
  'users.list by email': ['_id'],
  'users.list by status': ['_id'],
  'accounts.listByUser by status': ['status'],
  // folded addresses, of messages to thousands of people
  'messages.list by from': ['$or'],
  'messages.list by any address': ['$or'],
  'messages.list by all': ['subjectKey', '$or'],
  'messages.list by subject': ['subjectKey'],
  'messages.list without attachments': ['keys'],
  'messages.list without hidden placements': ['$or'],
  // a keyset's page: all behind the first of two keys, but for those at it
  'messages.older': ['$or'],
  'messages.attachments': ['_id'],
  'outbox.pending but for some': ['accountId'],
  'outbox.pending but for historical': ['$nor'],
  'outbox.late': ['developerId'],
  'outbox.list of all': ['state'],
  'outbox.list by developer': ['lastStatus', 'state'],
  'outbox.list by account': ['state'],
  'outbox.list by accounts': ['state'],
  'outbox.list by message': ['webhookId', 'state'],
  'outbox.list by webhook and kind': ['url', 'state'],
  'outbox.list by developer and kind': ['url', 'state'],
  'outbox.list by account and kind': ['url', 'state'],
  'outbox.requeue of a time': ['kind', 'finishedAt', '$or'],
  'contacts.search': ['searchKey'],
  'tokens.list by user': ['version'],
  'calls.list': ['status', 'path'],
  'calls.list before': ['$or'],
}

async function fill(store: Store): Promise<Mailbox> {
  const mailbox = await createMailbox(store)
  for (let from = 1; from <= messages; from += 200) {
    const added = Array.from({ length: 200 }, (_, index) =>
      mailbox.added('INBOX', from + index, {
        ...addressed({ from: [`p${index}@example.com`], to: ['me@example.org'] }),
        ...(index % 7 === 0 ? { attachments: messageFacts().attachments } : {}),
      }),
    )
    const events = added.map((one) => mailbox.event(one))
    const batch = await mailbox.batch('INBOX')
    await store.sync.apply({
      ...batch,
      added,
      changes: events.flatMap((event) => event.changes),
      outbox: events.flatMap((event) => event.outbox),
      cursorAfter: moved(batch.cursorBefore, { uidNext: from + 200 }),
    })
  }
  const webhook = webhookRecord(mailbox.developer.id)
  const rows = Array.from({ length: 300 }, () => outboxRecord(webhook, { state: 'failed', finishedAt: epochStart }))
  await store.outbox.enqueue(rows)
  return mailbox
}

suite('explain', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let client: MongoClient
  let db: Db
  let calls: Record<string, () => Promise<unknown>> = {}

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    client = await MongoClient.connect(database.uri)
    db = client.db()
    const store = await database.open({ uri: proxy.uri })
    const mailbox = await fill(store)
    calls = reads(store, mailbox, (await mailbox.folder('INBOX')).id)
  })

  after(async () => {
    await database.remove()
    await proxy.close()
    await client.close()
  })

  async function explained(command: Document) {
    const plan = await db.command({ explain: command, verbosity: 'queryPlanner' })
    const steps = nodes(plan).filter(isStep)
    assert(steps.length > 0, `a plan: ${JSON.stringify(plan)}`)
    return {
      scans: steps.some(scansAll),
      sorts: steps.some(sortsBlocking),
      plan: JSON.stringify(steps.map((step) => String(step['stage'] ?? step['Node Type']))),
    }
  }

  test('a scan is seen', async () => {
    const { scans } = await explained({ find: 'messages', filter: { subject: 'no index serves this' } })
    assert.equal(scans, true)
  })

  test('no read scans a collection', async () => {
    const scanning: string[] = []
    for (const [name, call] of Object.entries(calls)) {
      proxy.seen.length = 0
      await call()
      const commands = proxy.seen.filter((command) => reading.has(commandName(command))).map(bare)
      assert(commands.length > 0, `${name} asks the server`)
      for (const command of commands) {
        const { scans, plan } = await explained(command)
        if (scans) scanning.push(`${name}: ${JSON.stringify(command)} ${plan}`)
      }
    }
    assert.deepEqual(scanning, [])
  })

  test('an order that no index gives is seen', () => {
    const query = { find: 'messages', filter: { accountId: 'a', live: true } }
    assert.deepEqual(orderedBy({ ...query, sort: { subjectKey: 1 } }), [])
    assert.deepEqual(orderedBy({ ...query, sort: { sentAt: 1, _id: -1 } }), [])
    assert.deepEqual(orderedBy({ ...query, filter: { live: true }, sort: { sentAt: 1, _id: 1 } }), [])
    assert.notDeepEqual(orderedBy({ ...query, sort: { sentAt: -1, _id: -1 } }), [])
  })

  test('the order of every list is that of an index, which bounds all of its filter but what is named here', async () => {
    const blocking: string[] = []
    for (const [name, call] of Object.entries(calls)) {
      proxy.seen.length = 0
      await call()
      for (const command of proxy.seen.filter((one) => commandName(one) === 'find')) {
        const allowed = compared[name] ?? []
        const served = orderedBy(command).some((left) => left.every((field) => allowed.includes(field)))
        const { sorts, plan } = await explained(bare(command))
        if (!served || (sorts && !namesRows(command))) blocking.push(`${name}: ${JSON.stringify(command)} ${plan}`)
      }
    }
    assert.deepEqual(blocking, [])
  })
})
