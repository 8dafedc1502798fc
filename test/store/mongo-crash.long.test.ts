/**
 * The service dies between any two writes of a batch, or after one whose answer is lost. Whoever goes on plans the
 * batch anew from what is stored, as the sync does: then rows, changes, outbox, contacts and cursor agree, 0 lost, 0
 * repeated.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient, MongoNetworkError, MongoNetworkTimeoutError } from 'mongodb'
import { isAppError } from '../../engine/errors.ts'
import { changeId, contactId, outboxId } from '../../engine/store/ids.ts'
import type { AddedMessage, ChangeDraft, Store, SyncBatch } from '../../engine/store/port.ts'
import type { AccountRecord, ChangeKind, ContactDelta, MessageRecord } from '../../engine/store/records.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, moved, type Mailbox } from './contract/mailbox.ts'
import { changeDraft, epochStart, outboxRecord } from './contract/records.ts'
import { createProxy, diesIn, isWrite, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const webhookId = 'e'.repeat(24)
/** Short, so that what waits for the dead proxy gives up soon. */
const impatientMs = 2500

interface Scene {
  readonly mailbox: Mailbox
  /**
   * Gets a flag, vanishes, has vanished and is told, lies in Archive and comes to INBOX as well, and two that are new.
   */
  readonly flagged: string
  readonly vanishing: string
  readonly gone: string
  readonly copied: AddedMessage
  readonly fresh: readonly AddedMessage[]
}

async function createScene(store: Store): Promise<Scene> {
  const mailbox = await createMailbox(store)
  const [flagged, vanishing, gone] = [1, 2, 3].map((uid) => mailbox.added('INBOX', uid))
  assert(flagged && vanishing && gone)
  const copied = mailbox.added('Archive', 1)
  await mailbox.apply('Archive', { added: [copied] })
  await mailbox.apply('INBOX', { added: [flagged, vanishing, gone] })
  await mailbox.apply('INBOX', { vanished: [3], vanishedAt: epochStart })
  const inbox = await mailbox.folder('INBOX')
  return {
    mailbox,
    flagged: flagged.id,
    vanishing: vanishing.id,
    gone: gone.id,
    copied: { ...copied, placement: { ...copied.placement, folderId: inbox.id, path: 'INBOX', uid: 4 } },
    fresh: [5, 6].map((uid) => mailbox.added('INBOX', uid)),
  }
}

const uidNext = 7

function draftOf(scene: Scene, messageId: string, uid: number, kind: ChangeKind, folderId: string): ChangeDraft {
  const { account, user } = scene.mailbox
  const what = kind === 'flags_changed' ? 'flags' : kind === 'deleted' ? 'removed' : 'added'
  const id = changeId(account.id, folderId, '1', uid, what, 1)
  return changeDraft({ accountId: account.id, userId: user.id, folderId, messageId }, { id, kind, uid })
}

function delta(scene: Scene, messageId: string): ContactDelta {
  const { user } = scene.mailbox
  const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
  return { userId: user.id, email: 'ada@example.com', name: 'Ada', key: `${messageId}:r`, ...counts }
}

/** The batch as the sync would plan it from the rows as they are now; null = the cursor says that all is done. */
async function plan(store: Store, scene: Scene, account: AccountRecord): Promise<SyncBatch | null> {
  const inbox = await store.folders.byPath(account.id, 'INBOX')
  assert(inbox)
  if (inbox.cursor?.uidNext === uidNext) return null
  const { id: folderId } = inbox
  const row = async (id: string): Promise<MessageRecord> => {
    const found = await store.messages.get(account.id, id)
    assert(found, `message ${id}`)
    return found
  }
  const lies = (message: MessageRecord, uid: number) =>
    message.placements.find((there) => there.folderId === folderId && there.uid === uid)
  const flagged = lies(await row(scene.flagged), 1)
  const unseen = !flagged?.flags.includes('\\Seen')
  const vanishing = lies(await row(scene.vanishing), 2) !== undefined
  const untold = (await row(scene.gone)).gone.length > 0
  const copied = lies(await row(scene.copied.id), 4) !== undefined
  const arrivals = scene.fresh.map((one) => ({
    one,
    change: draftOf(scene, one.id, one.placement.uid, 'received', folderId),
  }))
  const changes = [
    ...arrivals.map(({ change }) => change),
    ...(copied ? [] : [draftOf(scene, scene.copied.id, 4, 'folder_added', folderId)]),
    ...(unseen ? [draftOf(scene, scene.flagged, 1, 'flags_changed', folderId)] : []),
    ...(untold ? [draftOf(scene, scene.gone, 3, 'deleted', folderId)] : []),
  ]
  return {
    accountId: account.id,
    epoch: account.epoch,
    folderId,
    cursorBefore: inbox.cursor,
    cursorAfter: moved(inbox.cursor, { uidNext }),
    added: [scene.copied, ...arrivals.map(({ one, change }) => ({ ...one, firstChangeId: change.id }))],
    flagUpdates: unseen ? [{ messageId: scene.flagged, uid: 1, flags: ['\\Seen'], modseq: '9', rev: 1 }] : [],
    vanished: vanishing ? [2] : [],
    vanishedAt: epochStart + 1,
    reported: untold ? [{ messageId: scene.gone, folderId, uidValidity: '1', uid: 3 }] : [],
    changes,
    outbox: changes.map((change) => outboxOf(scene, change)),
    contacts: scene.fresh.map((one) => delta(scene, one.id)),
  }
}

function outboxOf(scene: Scene, change: ChangeDraft) {
  const { account, developer } = scene.mailbox
  const { id: changeOf, messageId } = change
  return outboxRecord(
    { id: webhookId, developerId: developer.id },
    { id: outboxId(webhookId, changeOf), accountId: account.id, changeId: changeOf, messageId, seq: 0, createdAt: 1 },
  )
}

/** Everything that the batch means is there, once. */
async function assertWhole(store: Store, scene: Scene, note: string): Promise<void> {
  const { account, user } = scene.mailbox
  const changes = await store.changes.since(account.id, 0, 100)
  assert.deepEqual(
    changes.map(({ seq }) => seq),
    [1, 2, 3, 4, 5],
    `${note}: the log has no gaps`,
  )
  assert.equal(new Set(changes.map(({ id }) => id)).size, 5, `${note}: every change once`)
  const kinds = changes.map(({ kind }) => kind).sort()
  assert.deepEqual(kinds, ['deleted', 'flags_changed', 'folder_added', 'received', 'received'], note)
  const rows = await store.outbox.list({ accountId: account.id }, { limit: 100, offset: 0 })
  const told = rows.map((row) => [row.changeId, row.seq, row.state]).sort()
  assert.deepEqual(
    told,
    changes.map(({ id, seq }) => [id, seq, 'pending']).sort(),
    `${note}: a callback for each change`,
  )
  await assertRows(store, scene, note)
  const contact = await store.contacts.get(user.id, contactId(user.id, 'ada@example.com'))
  assert.deepEqual([contact?.totalCount, contact?.indirectCount], [2, 2], `${note}: contacts counted once`)
  const inbox = await store.folders.byPath(account.id, 'INBOX')
  assert.deepEqual(
    [inbox?.cursor?.uidNext, inbox?.counts],
    [uidNext, { messages: 4, unseen: 3 }],
    `${note}: the cursor`,
  )
}

async function assertRows(store: Store, scene: Scene, note: string): Promise<void> {
  const { account } = scene.mailbox
  const places = async (id: string): Promise<unknown> => {
    const row = await store.messages.get(account.id, id)
    const lies = row?.placements.map(({ path, uid, flags }) => `${path} ${uid} ${flags.join()}`)
    return [lies, row?.gone.map(({ uid }) => uid)]
  }
  assert.deepEqual(await places(scene.flagged), [['INBOX 1 \\Seen'], []], note)
  assert.deepEqual(await places(scene.vanishing), [[], [2]], note)
  assert.deepEqual(await places(scene.gone), [[], []], note)
  assert.deepEqual(await places(scene.copied.id), [['Archive 1 ', 'INBOX 4 '], []], note)
  for (const one of scene.fresh) {
    assert.deepEqual(await places(one.id), [[`INBOX ${one.placement.uid} `], []], note)
    const row = await store.messages.get(account.id, one.id)
    assert.equal(
      row?.firstChangeId,
      changeId(account.id, one.placement.folderId, '1', one.placement.uid, 'added', 1),
      note,
    )
  }
}

suite('a crash between two writes', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let store: Store

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    store = await database.open()
  })
  after(async () => {
    await database.remove()
    await proxy.close()
  })

  /** Applies the batch through a proxy that dies; answers whether it did before the batch was through. */
  async function crash(
    victim: Store,
    scene: Scene,
    account: AccountRecord,
    writes: number,
    lost: boolean,
  ): Promise<boolean> {
    const batch = await plan(store, scene, account)
    assert(batch)
    return diesIn(proxy, writes, lost, () => victim.sync.apply(batch))
  }

  /** As the sync does: what the store could not do is done again. */
  async function insistent<T>(work: () => Promise<T>): Promise<T> {
    for (let left = 5; ; left -= 1) {
      try {
        return await work()
      } catch (error) {
        if (left === 0 || !isAppError(error, 'store_unavailable')) throw error
      }
    }
  }

  async function crashEverywhere(
    recover: (victim: Store, scene: Scene, note: string) => Promise<void>,
  ): Promise<number> {
    let crashes = 0
    for (const lost of [false, true]) {
      for (let writes = lost ? 1 : 0; ; writes += 1) {
        proxy.revive()
        const scene = await createScene(store)
        const victim = await database.open({ uri: proxy.uri, timeoutMs: impatientMs })
        const died = await crash(victim, scene, scene.mailbox.account, writes, lost)
        const note = `died ${lost ? 'after' : 'before'} write ${lost ? writes : writes + 1}`
        if (died) await recover(victim, scene, note)
        await assertWhole(store, scene, died ? note : 'no crash')
        await victim.close()
        if (!died) break
        crashes += 1
      }
    }
    return crashes
  }

  test('an answer that is lost is a connection that is cut, after the write', async () => {
    proxy.revive()
    const { uri } = proxy
    const victim = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 10_000, socketTimeoutMS: 60_000 })
    const rows = victim.db().collection<{ readonly _id: string }>('cut')
    proxy.decide = (command) => (isWrite(command) ? 'die-after' : 'pass')
    const error: unknown = await rows.insertOne({ _id: 'a' }).catch((reason: unknown) => reason)
    proxy.decide = () => 'pass'
    assert(error instanceof MongoNetworkError && !(error instanceof MongoNetworkTimeoutError), String(error))
    await victim.close()
    proxy.revive()
    const witness = await MongoClient.connect(uri)
    assert.deepEqual(await witness.db().collection('cut').find().toArray(), [{ _id: 'a' }])
    await witness.close()
  })

  test('a new owner completes the batch', async () => {
    const crashes = await crashEverywhere(async (_, scene) => {
      const account = await store.accounts.claim(scene.mailbox.account.id)
      assert(account)
      const batch = await plan(store, scene, account)
      if (batch) await store.sync.apply(batch)
    })
    // contacts, rows, changes, outbox, updates, cursor: each before and after
    assert(crashes >= 12, `${crashes} crashes`)
  })

  test('the same owner goes on when the database is back: the repeat names each callback that came late', async () => {
    await crashEverywhere(async (victim, scene, note) => {
      proxy.revive()
      await until('the database answers again', () => victim.ping().then(() => true), { withinMs: 30_000 })
      const account = await victim.accounts.get(scene.mailbox.account.id)
      assert(account)
      const page = { limit: 100, offset: 0 }
      const ids = async () => (await store.outbox.list({ accountId: account.id }, page)).map(({ id }) => id)
      const there = await ids()
      const named = await insistent(async () => {
        const batch = await plan(victim, scene, account)
        if (batch !== null) await victim.sync.apply(batch)
        return batch?.outbox.map(({ id }) => id) ?? []
      })
      assert.equal(new Set([...there, ...named]).size, 5, `${note}: all five`)
      assert.deepEqual(new Set([...there, ...named]), new Set(await ids()), note)
    })
  })

  test('the writes of a batch are the note of the folder and the six that the port names, in their order', async () => {
    proxy.revive()
    const scene = await createScene(store)
    const owner = await database.open({ uri: proxy.uri })
    const batch = await plan(store, scene, scene.mailbox.account)
    assert(batch)
    proxy.seen.length = 0
    await owner.sync.apply(batch)
    const written = proxy.seen.filter(isWrite).map((command) => String(Object.values(command)[0]))
    const order = ['folders', 'contacts', 'messages', 'changes', 'outbox', 'messages', 'folders']
    assert.deepEqual(
      written.filter((name, index) => name !== written[index - 1]),
      order,
    )
  })
})
