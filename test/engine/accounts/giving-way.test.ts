/** Long work on one folder: others have their turn between two messages, and INBOX between two pages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportGone } from '../../../engine/accounts/departures.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import { cursorOf, storeRead } from '../../../engine/accounts/write.ts'
import type { FetchedMessage } from '../../../engine/accounts/session-types.ts'
import { countTurns } from '../../support/loop-turns.ts'
import { fill, openStage } from './stage.ts'

const slowMs = 5

test('30 mails of 5 ms each: no more than three in one turn of the event loop', async (t) => {
  const stage = await openStage(t)
  const worker = await stage.work()
  await worker.readAll()
  const { id } = await stage.folder('INBOX')
  fill(stage.server, 'INBOX', 30)
  await worker.session.select('INBOX', { refresh: true })
  const turnOf = countTurns(t)
  /** By turn: messages of which the headers were read in it. */
  const read = new Map<number, Set<number>>()
  const slow = (message: FetchedMessage): FetchedMessage => ({
    ...message,
    get headers() {
      const turn = turnOf()
      const all = read.get(turn) ?? new Set()
      read.set(turn, all)
      const until = performance.now() + (all.has(message.uid) ? 0 : slowMs)
      all.add(message.uid)
      while (performance.now() < until);
      return message.headers
    },
  })
  const messages = (await worker.session.fetchIndex('1:*')).map(slow)
  assert.equal(messages.length, 30)
  const context = { ...worker.context, folderId: id }
  await storeRead(context, {
    messages,
    source: 'live',
    move: () => ({ ...cursorOf(context), uidNext: 31, exists: 30 }),
  })
  assert.equal((await stage.subjects('INBOX')).length, 30)
  const most = Math.max(...[...read.values()].map(({ size }) => size))
  assert(most <= 3, `${most} in one turn`)
})

test('a folder that is emptied: INBOX has its turn after each page that leaves, and each page that is reported', async (t) => {
  let ahead = 0
  const settings = { MAILROOM_SYNC_BATCH: '50', MAILROOM_GONE_HOLD: '1s' }
  const stage = await openStage(t, { settings, now: () => Date.now() + ahead })
  fill(stage.server, 'Archive', 300, 'a')
  const worker = await stage.work()
  await worker.readAll()
  const left: number[] = []
  const giveWay = async (): Promise<void> => void left.push((await stage.folder('Archive')).counts.messages)
  const context = { ...worker.context, giveWay }
  stage.server.expunge('ann', 'Archive', ...stage.server.folder('ann', 'Archive').messages.map(({ uid }) => uid))
  await catchUp(context, 'Archive')
  for (const count of [250, 200, 150, 100, 50, 0]) assert(left.includes(count), `${count}: ${left.join()}`)
  ahead = 5000
  const turns: number[] = []
  await reportGone({ ...context, giveWay: async () => void turns.push((await stage.told()).length) })
  assert.deepEqual(turns, [100, 200, 300])
})

test('a call has the folder read while its UIDs are compared: a message that leaves then is not shown', async (t) => {
  const stage = await openStage(t, { capabilities: ['IMAP4rev1'] })
  fill(stage.server, 'Archive', 3, 'a')
  const worker = await stage.work()
  await worker.readAll()
  stage.server.expunge('ann', 'Archive', 1)
  let calls = 0
  const giveWay = async (): Promise<void> => {
    calls += 1
    if (calls > 1) return
    fill(stage.server, 'Archive', 1, 'short')
    await worker.catchUp('Archive')
  }
  await catchUp({ ...worker.context, giveWay }, 'Archive')
  assert(calls > 0)
  assert.deepEqual(await stage.subjects('Archive'), ['a2', 'a3', 'short1'])
  stage.server.expunge('ann', 'Archive', 4)
  await worker.catchUp('Archive')
  assert.deepEqual(await stage.subjects('Archive'), ['a2', 'a3'])
})
