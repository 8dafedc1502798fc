/** An account that becomes another mailbox: read like a new one, knowing the messages that it has seen. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AccountPatch } from '../../../engine/store/port.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const start = (t: TestContext): Promise<Running> =>
  watchingAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '5' } }, ({ server }) => {
    fill(server, 'INBOX', 12)
    fill(server, 'Archive', 3, 'a')
  })

/** What an edit does: nobody at work, the store's step, a new actor. */
async function replace(running: Running, patch: AccountPatch): Promise<void> {
  await running.accounts.stop(accountId)
  const account = await running.store.sync.replaceMailbox(accountId, patch, Date.now())
  assert(account)
  assert.deepEqual(await running.store.messages.older(accountId, null, 100), [])
  running.accounts.start(account)
  await running.settled()
}

/** New mail is told, and so was all that came before it. */
async function tellsOnly(running: Running, user: string, subjects: readonly string[] = []): Promise<void> {
  running.server.append(user, 'INBOX', letter('the end'))
  const held = performance.now()
  await until('the hold is over', () => performance.now() - held > 800)
  await running.tells([...subjects.map((subject) => `received ${subject} INBOX`), 'received the end INBOX'])
}

test('the same mailbox under new settings, or after a step that was cut short: every message is known, nothing is told', async (t) => {
  const running = await start(t)
  const [inbox, archive] = [await running.subjects('INBOX'), await running.subjects('Archive')]
  const { id } = await running.message('m3')
  await running.accounts.stop(accountId)
  running.server.append('ann', 'INBOX', letter('meanwhile'))
  running.server.expunge('ann', 'INBOX', 1)
  await replace(running, {})
  await until('all of it', async () => (await running.subjects('INBOX')).length === 12)
  const left = new Set(['meanwhile', ...inbox.filter((subject) => subject !== 'm1')])
  assert.deepEqual(new Set(await running.subjects('INBOX')), left)
  assert.deepEqual(await running.subjects('Archive'), archive)
  assert.equal((await running.message('m3')).id, id)
  await tellsOnly(running, 'ann', ['meanwhile'])
})

test('another mailbox: its mail is history, that of the former one is gone without a word', async (t) => {
  const running = await start(t)
  running.server.addUser('bob', { folders: { INBOX: [], Work: [] } })
  const old = new Date(Date.now() - 3_600_000)
  for (let n = 1; n <= 7; n += 1) running.server.append('bob', 'INBOX', letter(`b${n}`), [], old)
  running.server.folder('bob', 'INBOX').uidValidity = running.server.folder('ann', 'INBOX').uidValidity
  // moved over by a migration, which gave it a new INTERNALDATE: known all the same
  const moved = running.server.folder('ann', 'Archive').messages[0]
  assert(moved)
  const known = await running.message('a1')
  running.server.append('bob', 'Work', moved.raw)
  await replace(running, { username: 'bob' })
  assert.deepEqual(await running.subjects('INBOX'), ['b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7'])
  assert.deepEqual(await running.subjects('Work'), ['a1'])
  assert.equal((await running.message('a1')).id, known.id)
  assert.deepEqual(
    (await running.store.folders.list(accountId)).map(({ path }) => path),
    ['INBOX', 'Work'],
  )
  await tellsOnly(running, 'bob')
})
