/**
 * Repeat safety: whatever batch is lost before or after its commit, and whoever takes over, no change is lost and none
 * told twice.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportGone } from '../../../engine/accounts/departures.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import { isAppError, AppError } from '../../../engine/errors.ts'
import type { Store, SyncBatch } from '../../../engine/store/port.ts'
import type { MessageRecord, Placement } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { outboxRecord } from '../../store/contract/records.ts'
import { accountId, fill, letter, moveOnServer, openStage, type Stage, type Worker, writing } from './stage.ts'
import { openAccounts, watchingAccounts, type Running } from './running.ts'

/**
 * A store without transactions writes new rows, then changes, then updates of rows that were there, then the cursor.
 * After the rows alone; 'halfway': after the changes; 'updated': all but the cursor.
 */
type When = 'before' | 'rows' | 'halfway' | 'updated' | 'after'

/** The n-th batch fails. */
function failing() {
  let countdown = Number.POSITIVE_INFINITY
  let when: When = 'before'
  let failed = 0
  const wrap = (store: Store): Store => ({
    ...store,
    sync: {
      ...store.sync,
      async apply(batch: SyncBatch) {
        countdown -= 1
        if (countdown !== 0) return store.sync.apply(batch)
        if (when === 'after') await store.sync.apply(batch)
        if (when === 'rows') await store.sync.apply({ ...(await halfOf(store, batch)), changes: [], outbox: [] })
        if (when === 'halfway') await store.sync.apply(await halfOf(store, batch))
        if (when === 'updated') await store.sync.apply(unmoved(batch))
        throw crash()
      },
    },
  })
  const crash = (): AppError => {
    failed += 1
    return new AppError('store_unavailable', 'the worker died here')
  }
  return {
    wrap,
    arm(batches: number, where: When) {
      countdown = batches
      when = where
    },
    get failed() {
      return failed
    },
  }
}

async function halfOf(store: Store, batch: SyncBatch): Promise<SyncBatch> {
  const known = await store.messages.byIds(
    batch.accountId,
    batch.added.map(({ id }) => id),
  )
  const added = batch.added.filter(({ id }) => !known.some((row) => row.id === id))
  return { ...unmoved(batch), added, flagUpdates: [], vanished: [], reported: [] }
}

/** Without the cursor. */
function unmoved(batch: SyncBatch): SyncBatch {
  return { ...batch, cursorAfter: batch.cursorBefore ?? batch.cursorAfter }
}

/** What a day brings: arrivals, flags, moves, deletions. */
function aDay({ server }: Stage): void {
  server.append('ann', 'INBOX', letter('n1'))
  server.append('ann', 'INBOX', letter('n2'))
  server.append('ann', 'Archive', letter('n3'))
  server.setFlags('ann', 'INBOX', 4, ['\\Seen'])
  moveOnServer(server, 1, 'INBOX', 'Archive')
  server.expunge('ann', 'INBOX', 2)
}

const aDaysStory = [
  'deleted m2 INBOX',
  'flags_changed m4 INBOX',
  'folder_added m1 Archive',
  'folder_removed m1 INBOX',
  'received n1 INBOX',
  'received n2 INBOX',
  'received n3 Archive',
]

/** A day with a server that gives UIDs again, known mail among it. */
function aForgetfulDay({ server }: Stage): void {
  const folder = server.folder('ann', 'INBOX')
  const second = folder.messages[1]
  assert(second)
  server.expunge('ann', 'INBOX', 2, 5, 6)
  folder.uidNext = 5
  server.append('ann', 'INBOX', letter('n1'))
  server.append('ann', 'INBOX', letter('n2'))
  folder.uidNext = 2
  server.append('ann', 'INBOX', letter('n3'))
  moveOnServer(server, 1, 'INBOX', 'Archive')
  folder.uidNext = 1
  server.append('ann', 'INBOX', second.raw, [], new Date(second.internalDate))
  folder.messages.sort((one, other) => one.uid - other.uid)
  folder.uidNext = 7
}

const aForgetfulDaysStory = [
  'deleted m5 INBOX',
  'deleted m6 INBOX',
  'folder_added m1 Archive',
  'folder_removed m1 INBOX',
  'received n1 INBOX',
  'received n2 INBOX',
  'received n3 INBOX',
]

/** New mail, and mail that is gone, around a change of UIDVALIDITY. */
function aRenumberedDay({ server }: Stage): void {
  server.append('ann', 'INBOX', letter('n1'))
  server.expunge('ann', 'INBOX', 2)
  server.renumber('ann', 'INBOX')
  server.append('ann', 'INBOX', letter('n2'))
}

const aRenumberedDaysStory = ['deleted m2 INBOX', 'received n1 INBOX', 'received n2 INBOX']

/** A folder that is new brings old mail, mail of ours, and new mail. */
function aNewFoldersDay({ server }: Stage): void {
  server.createFolder('ann', 'Imported')
  fill(server, 'Imported', 3, 'old')
  const [twin] = server.folder('ann', 'Imported').messages
  assert(twin)
  server.append('ann', 'Imported', twin.raw, [], new Date(twin.internalDate))
  moveOnServer(server, 1, 'INBOX', 'Imported')
  server.append('ann', 'Imported', letter('n1'))
}

const aNewFoldersDaysStory = ['folder_added m1 Imported', 'folder_removed m1 INBOX', 'received n1 Imported']

async function liveThrough({ context, readAll }: Worker, holdMs = 1000): Promise<void> {
  await readAll()
  const later = { ...context.deps, now: () => Date.now() + holdMs }
  await reportGone({ ...context, deps: later })
}

async function initialSyncIsOver({ account, store }: Stage): Promise<void> {
  await store.accounts.edit(account.id, { resume: { ...account.resume, initialSyncAt: Date.now() } })
}

const days = [
  ['a day', aDay, aDaysStory, ['m3', 'm4', 'm5', 'm6', 'n1', 'n2']],
  ['a forgetful day', aForgetfulDay, aForgetfulDaysStory, ['m2', 'm3', 'm4', 'n1', 'n2', 'n3']],
  ['a renumbered day', aRenumberedDay, aRenumberedDaysStory, ['m1', 'm3', 'm4', 'm5', 'm6', 'n1', 'n2']],
  ["a new folder's day", aNewFoldersDay, aNewFoldersDaysStory, ['m2', 'm3', 'm4', 'm5', 'm6']],
] as const
const deaths = ['before', 'rows', 'halfway', 'updated', 'after'] as const

for (const [name, day, story, left] of days) {
  for (const when of deaths) {
    test(`${name}: a worker dies, ${when} any of its batches is stored, and the next one tells the rest`, async (t) => {
      for (let dies = 1; ; dies += 1) {
        const fault = failing()
        const stage = await openStage(t, { wrap: fault.wrap })
        fill(stage.server, 'INBOX', 6)
        await liveThrough(await stage.work())
        await initialSyncIsOver(stage)
        day(stage)
        fault.arm(dies, when)
        const survived = await liveThrough(await stage.work()).then(
          () => true,
          () => false,
        )
        if (survived) {
          assert(dies > 3, `only ${dies - 1} batches`)
          break
        }
        const halfway = await stage.told()
        await liveThrough(await stage.work())
        assert.deepEqual((await stage.story()).sort(), story, `died ${when} batch ${dies}`)
        const changes = await stage.told()
        assert.deepEqual(changes.slice(0, halfway.length), halfway, 'what was told stays as it was')
        assert.deepEqual(
          changes.map((change) => change.seq),
          changes.map((_, index) => index + 1),
        )
        const received = changes.filter((change) => change.kind === 'received')
        assert(received.every((change) => change.first))
        assert.deepEqual(await stage.subjects('INBOX'), left)
      }
    })
  }
}

test('the same batch twice: same ids, and first stays true', async (t) => {
  const batches: SyncBatch[] = []
  const stage = await openStage(t, {
    wrap: writing((batch, write) => {
      batches.push(batch)
      return write()
    }),
  })
  const worker = await stage.work()
  await worker.readAll()
  stage.server.append('ann', 'INBOX', letter('n1'))
  await worker.catchUp('INBOX')
  const [once] = await stage.told()
  const batch = batches.findLast((one) => one.changes.length > 0)
  assert(batch && once)
  const { cursor } = await stage.folder('INBOX')
  const again = await stage.store.sync.apply({ ...batch, cursorBefore: cursor })
  assert.deepEqual(again.changes, [once])
  assert.equal(once.first, true)
  assert.equal((await stage.told()).length, 1)
  assert.equal((await stage.message('n1')).firstChangeId, once.id)
})

test('the callbacks of a batch that fails are told, as some may be stored', async (t) => {
  const fault = failing()
  const stage = await openStage(t, { wrap: fault.wrap })
  const row = outboxRecord({ id: 'e'.repeat(24), developerId: stage.account.developerId }, { accountId })
  const told: string[] = []
  stage.listener.plan = () => Promise.resolve([row])
  stage.listener.stored = (_account, rows) => void told.push(...rows.map(({ id }) => id))
  fill(stage.server, 'INBOX', 1)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.append('ann', 'INBOX', letter('n1'))
  for (const tries of [1, 2]) {
    fault.arm(1, 'updated')
    await assert.rejects(worker.catchUp('INBOX'), (error) => isAppError(error, 'store_unavailable'))
    assert.deepEqual(told, Array(tries).fill(row.id))
  }
  await worker.catchUp('INBOX')
  assert.deepEqual(told, Array(3).fill(row.id))
})

test('a second owner: the first one is refused and writes nothing', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const first = await stage.work()
  await first.readAll()
  const second = await stage.work()
  stage.server.append('ann', 'INBOX', letter('n1'))
  const before = await stage.store.folders.list(stage.account.id)
  await assert.rejects(first.catchUp('INBOX'), (error) => isAppError(error, 'lease_lost'))
  assert.deepEqual(await stage.told(), [])
  assert.deepEqual(await stage.store.folders.list(stage.account.id), before)
  await second.catchUp('INBOX')
  assert.deepEqual(await stage.story(), ['received n1 INBOX'])
  await assert.rejects(first.catchUp('INBOX'), (error) => isAppError(error, 'lease_lost'))
})

test('two sessions read the same news at the same time: told once, counted once', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const worker = await stage.work()
  await worker.readAll()
  const other = await stage.work()
  const shared = { ...other.context, session: worker.session }
  stage.server.append('ann', 'INBOX', letter('n1'))
  stage.server.append('ann', 'INBOX', letter('n2'))
  await Promise.all([catchUp(shared, 'INBOX'), other.catchUp('INBOX')])
  assert.deepEqual(await stage.story(), ['received n1 INBOX', 'received n2 INBOX'])
  const inbox = await stage.folder('INBOX')
  assert.deepEqual([inbox.counts, inbox.cursor?.exists], [{ messages: 5, unseen: 5 }, 5])
})

test('the account goes on after the store has failed in the middle of everything', async (t) => {
  const fault = failing()
  const running = await openAccounts(t, { wrap: fault.wrap })
  fill(running.server, 'INBOX', 6)
  running.accounts.start(running.account)
  await running.settled()
  for (const when of ['before', 'after', 'before', 'after'] as const) {
    const failed = fault.failed
    fault.arm(1, when)
    running.server.append('ann', 'INBOX', letter(`n ${when} ${failed}`))
    await until('the fault', () => fault.failed === failed + 1)
  }
  await running.tells([
    'received n before 0 INBOX',
    'received n after 1 INBOX',
    'received n before 2 INBOX',
    'received n after 3 INBOX',
  ])
})

type Own = (running: Running, message: MessageRecord, at: Placement) => Promise<unknown>

const ownWrites: readonly (readonly [string, Own, readonly string[]])[] = [
  [
    'flags',
    ({ accounts }, message, at) => accounts.setFlags(message, at, { add: ['\\Seen'], remove: [] }),
    ['flags_changed m1 INBOX'],
  ],
  [
    'a move',
    async (running, message, at) => running.accounts.move(message, at, await running.folder('Archive')),
    ['folder_added m1 Archive', 'folder_removed m1 INBOX'],
  ],
  ['a removal', ({ accounts }, message) => accounts.remove(message, null), ['deleted m1 INBOX']],
]

for (const when of ['before', 'after'] as const) {
  for (const [name, write, story] of ownWrites) {
    test(`${name} of our own that dies ${when} any of its batches is stored: the sync tells the rest`, async (t) => {
      for (let dies = 1; ; dies += 1) {
        const fault = failing()
        // Nothing but the write itself, until the next start.
        const settings = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_GONE_HOLD: '1h' }
        const running = await watchingAccounts(t, { wrap: fault.wrap, settings }, ({ server }) =>
          fill(server, 'INBOX', 2),
        )
        const { accounts, server } = running
        await until('it idles', () => server.connections.some(({ idling }) => idling))
        const message = await running.message('m1')
        const [at] = message.placements
        assert(at)
        fault.arm(dies, when)
        // Also a call whose reading fails has done its work.
        await write(running, message, at).catch(() => undefined)
        await accounts.stop(accountId)
        if (fault.failed === 0) {
          assert(dies > (name === 'a move' ? 2 : 1), `only ${dies} batches`)
          assert.deepEqual(await running.story(), story)
          return
        }
        const worker = await running.work()
        await liveThrough(worker, 2 * 3_600_000)
        assert.deepEqual((await running.story()).sort(), [...story].sort(), `died ${when} batch ${dies}`)
      }
    })
  }
}
