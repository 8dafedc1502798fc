/**
 * UIDVALIDITY changes (imap-servers.md rows 7 and 10): the folder is read anew, matched by identity, and only true
 * differences told.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createCommands } from '../../../engine/accounts/commands/index.ts'
import { reportGone } from '../../../engine/accounts/departures.ts'
import { createLink } from '../../../engine/accounts/link.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import { isAppError } from '../../../engine/errors.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, openStage, type Stage, type Worker, writing } from './stage.ts'
import { openAccounts } from './running.ts'

const resets = (stage: Stage) =>
  stage.warnings.filter(({ message }) => message.startsWith('uidvalidity changed')).length

async function tellLater({ context }: Worker): Promise<void> {
  await reportGone({ ...context, deps: { ...context.deps, now: () => Date.now() + 10_000 } })
}

test('mapped again in bounded batches: nothing told but what truly differs; one reset in the log', async (t) => {
  const sizes: number[] = []
  const stage = await openStage(t, {
    settings: { MAILROOM_SYNC_BATCH: '50' },
    wrap: writing((batch, write) => {
      sizes.push(batch.added.length)
      return write()
    }),
  })
  fill(stage.server, 'INBOX', 300)
  const first = await stage.work()
  await first.readAll()
  stage.server.append('ann', 'INBOX', letter('live'))
  await first.catchUp('INBOX')
  const before = await stage.message('m7')
  stage.server.expunge('ann', 'INBOX', 10)
  stage.server.setFlags('ann', 'INBOX', 11, ['\\Flagged'])
  stage.server.renumber('ann', 'INBOX')
  for (const name of ['during', 'then']) stage.server.append('ann', 'INBOX', letter(name))
  sizes.length = 0
  const second = await stage.work()
  await second.readAll()
  stage.server.append('ann', 'INBOX', letter('after'))
  await second.catchUp('INBOX')
  await tellLater(second)
  assert.deepEqual(await stage.story(), [
    'received live INBOX',
    'received during INBOX',
    'received then INBOX',
    'received after INBOX',
    'deleted m10 INBOX',
  ])
  assert(Math.max(...sizes) <= 50)
  assert.equal(resets(stage), 1)
  const after = await stage.message('m7')
  assert.equal(after.id, before.id)
  assert.deepEqual(
    after.placements.map((one) => one.uidValidity),
    [String(stage.server.folder('ann', 'INBOX').uidValidity)],
  )
  assert.deepEqual((await stage.message('m11')).placements[0]?.flags, ['\\Flagged'])
  assert.equal((await stage.folder('INBOX')).cursor?.remapSince, undefined)
})

test('dropped while it is mapped again: nobody is told that the mail is gone', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  fill(stage.server, 'INBOX', 30)
  await (await stage.work()).readAll()
  stage.server.renumber('ann', 'INBOX')
  const second = await stage.work()
  await second.catchUp('INBOX')
  await tellLater(second)
  assert.deepEqual(await stage.told(), [])
  const third = await stage.work()
  await tellLater(third)
  assert.deepEqual(await stage.told(), [], 'before the new owner has read anything')
  await third.readAll()
  await tellLater(third)
  assert.deepEqual(await stage.told(), [])
  assert.equal((await stage.subjects('INBOX')).length, 30)
})

/** INBOX has a new UIDVALIDITY. `cutShort` ends a catch-up after the new cursor, before the old placements go. */
async function renumbered(t: TestContext) {
  let dies = false
  const stage = await openStage(t, {
    wrap: (store) => ({
      ...store,
      sync: {
        ...store.sync,
        forgetPlacements: (...given: Parameters<typeof store.sync.forgetPlacements>) =>
          dies ? Promise.reject(new Error('killed')) : store.sync.forgetPlacements(...given),
      },
    }),
  })
  fill(stage.server, 'INBOX', 5)
  await (await stage.work()).readAll()
  stage.server.renumber('ann', 'INBOX')
  return {
    stage,
    async cutShort(): Promise<Worker> {
      dies = true
      const worker = await stage.work()
      await assert.rejects(worker.catchUp('INBOX'))
      dies = false
      return worker
    },
  }
}

test('killed between the new cursor and the old places: nothing is told, nothing stays behind', async (t) => {
  const { stage, cutShort } = await renumbered(t)
  const second = await cutShort()
  await tellLater(second)
  const third = await stage.work()
  await tellLater(third)
  await third.readAll()
  await tellLater(third)
  assert.deepEqual(await stage.told(), [])
  assert.equal((await stage.message('m1')).placements.length, 1)
})

test('cut short while it is read anew: mail from before is told before mail from after', async (t) => {
  const { stage, cutShort } = await renumbered(t)
  stage.server.append('ann', 'INBOX', letter('before'))
  await cutShort()
  stage.server.append('ann', 'INBOX', letter('after'))
  const third = await stage.work()
  await third.catchUp('INBOX')
  await third.readAll()
  assert.deepEqual(await stage.story(), ['received before INBOX', 'received after INBOX'])
})

test('killed before the new cursor is stored: the old places are all there, and nothing is told', async (t) => {
  let dies = false
  const stage = await openStage(t, {
    wrap: writing((_batch, write) => (dies ? Promise.reject(new Error('killed')) : write())),
  })
  fill(stage.server, 'INBOX', 5)
  await (await stage.work()).readAll()
  stage.server.renumber('ann', 'INBOX')
  dies = true
  const second = await stage.work()
  await assert.rejects(second.catchUp('INBOX'))
  dies = false
  assert.equal((await stage.message('m1')).placements.length, 1)
  await tellLater(second)
  assert.deepEqual(await stage.told(), [])
  const third = await stage.work()
  await third.readAll()
  await tellLater(third)
  assert.deepEqual(await stage.told(), [])
  assert.equal((await stage.subjects('INBOX')).length, 5)
})

test('renumbered to nothing: all of it is deleted', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const first = await stage.work()
  await first.readAll()
  stage.server.expunge('ann', 'INBOX', 1, 2, 3)
  stage.server.renumber('ann', 'INBOX')
  const second = await stage.work()
  await second.readAll()
  await tellLater(second)
  assert.deepEqual((await stage.story()).sort(), ['deleted m1 INBOX', 'deleted m2 INBOX', 'deleted m3 INBOX'])
})

test('more than the allowed number a day slows the folder down, and says so; later it is read', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_UIDVALIDITY_CHANGES: '2' } })
  fill(stage.server, 'Archive', 3)
  for (let n = 0; n < 3; n += 1) {
    await (await stage.work()).readAll()
    stage.server.renumber('ann', 'Archive')
  }
  const worker = await stage.work()
  await assert.rejects(
    worker.catchUp('Archive'),
    (error) => isAppError(error, 'protocol') && /UIDVALIDITY/.test(error.message),
  )
  const later = { ...worker.context, deps: { ...worker.context.deps, now: () => Date.now() + 2 * 3_600_000 } }
  await catchUp(later, 'Archive')
  assert.equal(
    (await stage.folder('Archive')).cursor?.uidValidity,
    String(stage.server.folder('ann', 'Archive').uidValidity),
  )
})

test('UIDVALIDITY that is missing or 0 later on never replaces a good one', async (t) => {
  for (const line of ['', '* OK [UIDVALIDITY 0] UIDs valid\r\n']) {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 3)
    await (await stage.work()).readAll()
    const good = (await stage.folder('INBOX')).cursor?.uidValidity
    stage.server.hooks = {
      send: (response) => (/UIDVALIDITY/.test(response.toString()) ? (line === '' ? null : line) : response),
    }
    stage.server.capabilities = stage.server.capabilities.filter((name) => name !== 'LIST-STATUS')
    stage.server.append('ann', 'INBOX', letter('n1'))
    await (await stage.work()).readAll()
    assert.equal((await stage.folder('INBOX')).cursor?.uidValidity, good)
    assert.deepEqual(await stage.story(), ['received n1 INBOX'])
    assert.equal(resets(stage), 0)
  }
})

test('a server without UIDVALIDITY from the start', async (t) => {
  const hooks = { send: (response: Buffer) => (/OK \[UIDVALIDITY/.test(response.toString()) ? null : response) }
  const stage = await openStage(t, { hooks, capabilities: ['IMAP4rev1'] })
  fill(stage.server, 'INBOX', 3)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.append('ann', 'INBOX', letter('n1'))
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.story(), ['received n1 INBOX'])
  assert.equal((await stage.subjects('INBOX')).length, 4)
})

test('a call for a place that has yet to be read anew hears so, also where the message lies elsewhere too', async (t) => {
  const twin = letter('m1')
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  for (const path of ['INBOX', 'Archive']) stage.server.append('ann', path, twin)
  fill(stage.server, 'Archive', 10, 'newer')
  await (await stage.work()).readAll()
  const message = await stage.message('m1')
  const at = message.placements.find(({ path }) => path === 'Archive')
  assert(at)
  stage.server.renumber('ann', 'Archive')
  const { state, session, catchUp: read } = await stage.work()
  await read('Archive')
  assert.deepEqual(
    (await stage.message('m1')).placements.map(({ path }) => path),
    ['INBOX'],
  )
  const link = createLink({ login: () => Promise.resolve(session), idleCloseMs: 60_000, waitMs: 20_000 })
  const { setFlags, copy, move } = createCommands({ sync: stage.deps, live: () => Promise.resolve({ state, link }) })
  const anew = { code: 'account_unavailable', retryAfterMs: 2000 }
  const sent = await stage.folder('Sent')
  await assert.rejects(setFlags(message, at, { add: ['\\Seen'], remove: [] }), anew)
  await assert.rejects(copy(message, at, sent), anew)
  await assert.rejects(move(message, at, sent), anew)
})

test('renumbered in the middle of the first back-fill', async (t) => {
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  fill(running.server, 'Archive', 60, 'a')
  let batches = 0
  running.server.hooks = {
    command({ text, folder }) {
      if (/UID FETCH \d+:\d+ \(UID FLAGS INTERNALDATE/.test(text) && folder?.name === 'Archive') {
        batches += 1
        if (batches === 3) {
          running.server.expunge('ann', 'Archive', 60)
          running.server.renumber('ann', 'Archive')
          running.server.dropConnections()
        }
      }
      return undefined
    },
  }
  running.accounts.start(running.account)
  await running.settled()
  await running.tells(['deleted a60 Archive'])
  assert.equal((await running.subjects('Archive')).length, 59)
  // Those that turned up again are forgotten in batches, which may come after that of the deletion.
  await until('each lies in one place', async () => {
    const rows = await running.store.messages.older(accountId, null, 100)
    return rows.every((row) => row.placements.length === 1 && row.gone.length === 0)
  })
})

test('UIDNEXT runs backwards: what a backup brought back is read, and what it lacks leaves at once', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const inbox = stage.server.folder('ann', 'INBOX')
  const [, second] = inbox.messages
  assert(second)
  stage.server.expunge('ann', 'INBOX', 2)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.expunge('ann', 'INBOX', 3)
  inbox.messages.push(second)
  inbox.uidNext = 3
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2'])
})
