/** A batch of mail that takes long to work out: others have their turn between two messages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
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
