/** Flags, attributes, codes and INBOX in another case than ours: what they mean is the same. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fullCapabilities, plainCapabilities } from '../../support/imap-server/index.ts'
import { lowerCase } from '../../support/imap-server/lower-case.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, moveOnServer } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const bothServers: readonly (readonly [string, readonly string[]])[] = [
  ['everything', fullCapabilities],
  ['plain RFC 3501', plainCapabilities],
]

async function flagsOf(running: Running, subject: string): Promise<readonly string[]> {
  return (await running.message(subject)).placements[0]?.flags ?? []
}

for (const [name, capabilities] of bothServers) {
  suite(`in lower case, ${name}`, () => {
    const options = { capabilities, hooks: lowerCase, settings: { MAILROOM_FLAG_COMPARE: '200ms' } }

    test('flags that we set, and those that others set, have one spelling', async (t) => {
      const running = await watchingAccounts(t, options, ({ server }) => {
        server.append('ann', 'INBOX', letter('read'), ['\\Seen', '\\Answered'], new Date(Date.now() - 3_600_000))
        fill(server, 'INBOX', 2)
      })
      assert.deepEqual(await flagsOf(running, 'read'), ['\\Answered', '\\Seen'])
      const message = await running.message('m1')
      const [at] = message.placements
      assert(at)
      const flags = await running.accounts.setFlags(message, at, {
        add: ['\\Seen', '\\Flagged'],
        remove: [],
      })
      assert.deepEqual(flags, ['\\Flagged', '\\Seen'])
      assert.deepEqual(await flagsOf(running, 'm1'), ['\\Flagged', '\\Seen'])
      running.server.setFlags('ann', 'INBOX', 3, ['\\Seen'])
      const story = ['flags_changed m1 INBOX', 'flags_changed m2 INBOX']
      await running.tells(story)
      assert.deepEqual(await flagsOf(running, 'm2'), ['\\Seen'])
      await until('nothing unread', async () => (await running.folder('INBOX')).counts.unseen === 0)
      running.server.append('ann', 'Archive', letter('a draft'), ['\\Draft'])
      await running.tells([...story, 'draft a draft Archive'])
    })

    test('special use, moves and folders that hold no mail', async (t) => {
      const folders = { INBOX: [], Archive: ['\\Archive'], 'Old sent': ['\\Sent'], Above: ['\\Noselect'] }
      const running = await watchingAccounts(t, { ...options, user: { folders } }, ({ server }) =>
        fill(server, 'INBOX', 2),
      )
      assert.equal((await running.folder('Old sent')).specialUse, '\\Sent')
      assert.equal((await running.folder('Above')).selectable, false)
      moveOnServer(running.server, 1, 'INBOX', 'Archive')
      await running.tells(['folder_added m1 Archive', 'folder_removed m1 INBOX'])
      const message = await running.message('m2')
      await running.accounts.move(message, null, await running.folder('Archive'))
      assert.deepEqual(await running.subjects('Archive'), ['m1', 'm2'])
      await assert.rejects(running.accounts.createFolder(accountId, 'Archive'), { code: 'conflict' })
      await assert.rejects(running.accounts.deleteFolder(accountId, 'Nowhere'), { code: 'not_found' })
    })
  })
}

test('a keyword that is told in another spelling is no change; the index keeps the first one', async (t) => {
  const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 2))
  running.server.setFlags('ann', 'INBOX', 1, ['Work'])
  await running.tells(['flags_changed m1 INBOX'])
  running.server.setFlags('ann', 'INBOX', 1, ['WORK'])
  running.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
  await running.tells(['flags_changed m1 INBOX', 'flags_changed m2 INBOX'])
  assert.deepEqual(await flagsOf(running, 'm1'), ['Work'])
})
