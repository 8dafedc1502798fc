/** Real actors with a server that answers UID SEARCH with sequence numbers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fullCapabilities, plainCapabilities } from '../../support/imap-server/index.ts'
import { bySequence } from '../../support/imap-server/by-sequence.ts'
import { until } from '../../support/until.ts'
import { fill, letter } from './stage.ts'
import { watchingAccounts } from './running.ts'

for (const capabilities of [fullCapabilities, plainCapabilities]) {
  test(`all mail is read, moved and followed (${capabilities.length} capabilities)`, async (t) => {
    const options = { capabilities, hooks: { send: bySequence }, settings: { MAILROOM_SYNC_BATCH: '10' } }
    const running = await watchingAccounts(t, options, ({ server }) => {
      fill(server, 'INBOX', 40)
      for (const uid of [1, 2, 3, 5, 8, 13, 21, 34]) server.expunge('ann', 'INBOX', uid)
    })
    assert.equal((await running.subjects('INBOX')).length, 32)
    await running.accounts.move(await running.message('m30'), null, await running.folder('Archive'))
    assert.deepEqual(await running.subjects('Archive'), ['m30'])
    assert.deepEqual(
      running.server.folder('ann', 'Archive').messages.map(({ uid }) => uid),
      [1],
    )
    assert(!running.server.folder('ann', 'INBOX').messages.some(({ uid }) => uid === 30))
    running.server.expunge('ann', 'INBOX', 10)
    running.server.append('ann', 'INBOX', letter('n1'))
    const followed = async (): Promise<boolean> => {
      const story = await running.story()
      return story.includes('deleted m10 INBOX') && story.includes('received n1 INBOX')
    }
    await until('the expunge and the new mail are told', followed, {
      explain: () =>
        running.server.log
          .slice(-20)
          .map(({ line }) => line)
          .join('\n'),
    })
    assert.equal((await running.subjects('INBOX')).length, 31)
  })
}
