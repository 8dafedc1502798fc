/**
 * The service dies between any two writes of a move, or after one whose answer is lost. The sync, which goes
 * on from what is stored and from what the mail server says, tells the rest: both changes and their callbacks are
 * there, once.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { departed } from '../../engine/accounts/departures.ts'
import { planAdded, type PlannedChange } from '../../engine/accounts/plan.ts'
import type { FetchedMessage } from '../../engine/accounts/session-types.ts'
import { outboxId } from '../../engine/store/ids.ts'
import type { AddedMessage, Store, SyncBatch } from '../../engine/store/port.ts'
import type { AccountRecord, GonePlacement, MessageRecord, OutboxRecord } from '../../engine/store/records.ts'
import { liesAt, vanish } from '../../engine/store/rows.ts'
import { needs } from '../support/require.ts'
import { createMailbox, type Mailbox } from './contract/mailbox.ts'
import { epochStart, outboxRecord } from './contract/records.ts'
import { createProxy, diesIn, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const webhookId = 'e'.repeat(24)
const impatientMs = 2500
const newUid = 7

interface Scene {
  readonly mailbox: Mailbox
  /** In INBOX, about to go to Archive. */
  readonly moved: AddedMessage
}

async function createScene(store: Store): Promise<Scene> {
  const mailbox = await createMailbox(store)
  const moved = mailbox.added('INBOX', 5)
  await mailbox.apply('INBOX', { added: [moved] })
  await mailbox.apply('Archive')
  return { mailbox, moved }
}

function outboxOf({ mailbox }: Scene, changes: readonly PlannedChange[]): OutboxRecord[] {
  const { account, developer } = mailbox
  return changes.map(({ change: { id, messageId } }) =>
    outboxRecord(
      { id: webhookId, developerId: developer.id },
      { id: outboxId(webhookId, id), accountId: account.id, changeId: id, messageId, seq: 0, createdAt: 1 },
    ),
  )
}

function told(scene: Scene, changes: readonly PlannedChange[]): Pick<SyncBatch, 'changes' | 'outbox'> {
  return { changes: changes.map(({ change }) => change), outbox: outboxOf(scene, changes) }
}

/** The message at its new UID, as the reader plans it from the rows as they are. */
async function arrival(scene: Scene, account: AccountRecord, row: MessageRecord): Promise<Partial<SyncBatch>> {
  const folder = await scene.mailbox.folder('Archive')
  const fetched = { uid: newUid, flags: [], modseq: null } as Partial<FetchedMessage> as FetchedMessage
  const message = { id: row.id, identity: row.identity, facts: row, fetched }
  const context = { account, folder, uidValidity: '1', now: epochStart }
  const { added, changes } = planAdded(context, [message], new Map([[row.id, row]]), 'live')
  return { added, ...told(scene, changes) }
}

/** What tells of the old place. */
async function departure(
  scene: Scene,
  account: AccountRecord,
  row: MessageRecord,
  entries: readonly GonePlacement[],
): Promise<Partial<SyncBatch>> {
  const folder = await scene.mailbox.folder('INBOX')
  const left = departed({ account, folders: new Map([[folder.id, folder]]) }, row, entries, epochStart)
  return { reported: left.reported, ...told(scene, left.changes) }
}

/** A move, read over this connection. */
async function move(store: Store, scene: Scene): Promise<void> {
  const { mailbox, moved } = scene
  const before = await mailbox.message(moved.id)
  const account = mailbox.account
  await store.sync.apply(await mailbox.batch('Archive', await arrival(scene, account, before)))
  const row = vanish(await mailbox.message(moved.id), moved.placement, epochStart)
  const left = await departure(scene, account, row, row.gone)
  await store.sync.apply(await mailbox.batch('INBOX', { vanished: [5], ...left }))
}

/** A new owner finds the message in Archive, and not in INBOX. */
async function goOn(store: Store, scene: Scene): Promise<void> {
  const { mailbox, moved } = scene
  const account = await store.accounts.claim(mailbox.account.id)
  assert(account)
  const apply = async (path: string, parts: Partial<SyncBatch>): Promise<unknown> =>
    store.sync.apply(await mailbox.batch(path, { ...parts, epoch: account.epoch }))
  await apply('Archive', await arrival(scene, account, await mailbox.message(moved.id)))
  const lies = (await mailbox.message(moved.id)).placements.some((place) => liesAt(place, moved.placement))
  if (lies) await apply('INBOX', { vanished: [5], vanishedAt: epochStart })
  const row = await mailbox.message(moved.id)
  if (row.gone.length > 0) await apply('INBOX', await departure(scene, account, row, row.gone))
}

async function assertMoved(store: Store, { mailbox, moved }: Scene, note: string): Promise<void> {
  const { id } = mailbox.account
  const changes = await store.changes.since(id, 0, 9)
  const story = changes.map(({ seq, kind, path, uid }) => `${seq} ${kind} ${path} ${uid}`)
  assert.deepEqual(story, ['1 folder_added Archive 7', '2 folder_removed INBOX 5'], note)
  const rows = await store.outbox.list({ accountId: id }, { limit: 9, offset: 0 })
  assert.deepEqual(rows.map((row) => row.changeId).sort(), changes.map((change) => change.id).sort(), note)
  const { placements, gone } = await mailbox.message(moved.id)
  assert.deepEqual([placements.map(({ path, uid }) => [path, uid]), gone], [[['Archive', newUid]], []], note)
}

suite('a crash in the middle of a move', needs('mongodb'), () => {
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

  for (const lost of [false, true]) {
    test(`${lost ? 'after' : 'before'} any of its writes: the sync tells the rest`, async () => {
      let crashes = 0
      for (let writes = lost ? 1 : 0; ; writes += 1) {
        proxy.revive()
        const scene = await createScene(store)
        const victim = await database.open({ uri: proxy.uri, timeoutMs: impatientMs })
        const died = await diesIn(proxy, writes, lost, () => move(victim, scene))
        await goOn(store, scene)
        await assertMoved(store, scene, `died ${lost ? 'after' : 'before'} write ${writes}`)
        await victim.close()
        if (!died) break
        crashes += 1
      }
      // changes, outbox, rows, cursor, of each of the two folders
      assert(crashes >= 8, `${crashes} crashes`)
    })
  }
})
