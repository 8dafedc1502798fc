/** A page of messages: one answer of the server; by a cursor what one answer does not hold, and what was cut short. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needs } from '../support/require.ts'
import { createMailbox } from './contract/mailbox.ts'
import { epochStart, messageFacts } from './contract/records.ts'
import { commandName } from './mongo-proxy.ts'
import { direct, proxy, store, useProxiedDatabase } from './mongo-scene.ts'

suite('pages of messages', needs('mongodb'), () => {
  useProxiedDatabase()

  test('a page that is more than one answer holds is whole', async () => {
    const mailbox = await createMailbox(direct)
    const received = ['x'.repeat(1_000_000)]
    const facts = Array.from({ length: 40 }, (_, index) =>
      messageFacts({ receivedHeaders: received, sentAt: epochStart + index }),
    )
    const ids = []
    for (const [index, one] of facts.entries()) {
      const added = mailbox.added('INBOX', index + 1, one)
      await mailbox.apply('INBOX', { added: [added] })
      ids.push(added.id)
    }
    proxy.seen.length = 0
    const listed = await store.messages.list(mailbox.account.id, {}, { limit: 40, offset: 0 })
    assert.deepEqual(
      listed.map(({ id, receivedHeaders }) => [id, receivedHeaders[0]?.length]),
      ids.toReversed().map((id) => [id, 1_000_000]),
    )
    const commands = proxy.seen.map(commandName).filter((name) => ['find', 'getMore', 'killCursors'].includes(name))
    assert.equal(commands.filter((name) => name === 'killCursors').length, 1, commands.join())
  })

  test('a page that is longer than one answer may be is read by a cursor alone', async () => {
    const mailbox = await createMailbox(direct)
    const ids = await mailbox.fill(
      'INBOX',
      Array.from({ length: 450 }, () => messageFacts()),
    )
    const listed = await store.messages.list(mailbox.account.id, {}, { limit: 500, offset: 10 })
    assert.equal(listed.length, ids.length - 10)
    assert.equal(new Set(listed.map(({ id }) => id)).size, ids.length - 10)
  })

  test('a connection that breaks during a read does not fail it', async () => {
    const mailbox = await createMailbox(direct)
    const [id = ''] = await mailbox.fill('INBOX', [messageFacts()])
    let cuts = 0
    proxy.decide = (command) => {
      if (commandName(command) !== 'find' || command['find'] !== 'messages' || cuts > 0) return 'pass'
      cuts += 1
      setImmediate(() => proxy.revive())
      return 'die'
    }
    assert.equal((await store.messages.get(mailbox.account.id, id))?.id, id)
    assert.equal(cuts, 1)
  })
})
