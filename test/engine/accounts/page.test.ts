/** A page of old mail: what the watching connection hears of the folder before the page is in the index. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { backfillPage } from '../../../engine/accounts/background.ts'
import type { Hooks } from '../../support/imap-server/index.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { until } from '../../support/until.ts'
import { fill, letter, openStage, type Stage } from './stage.ts'

suite('while a page of INBOX has been fetched and is not stored yet', () => {
  /** UIDs 30 to 21 are back-filled; when the link has them all, this happens, and the watching connection looks. */
  async function readWhile(t: TestContext, happens: (server: Stage['server']) => unknown, hooks: Hooks = {}) {
    const stage = await openStage(t)
    const { server } = stage
    fill(server, 'INBOX', 30)
    const worker = await stage.work()
    await worker.catchUp('INBOX')
    const session = await openTest(t, server, { commandTimeoutMs: 20_000 })
    const link = server.connections.at(-1)?.id
    await session.select('INBOX')
    const { id } = await stage.folder('INBOX')
    const page = Array.from({ length: 10 }, (_, index) => 30 - index)
    const gate = Promise.withResolvers<undefined>()
    let held = false
    server.hooks = {
      ...hooks,
      async send(response, call) {
        if (call?.text.includes('UID FETCH 21:30 ') === true && response.includes(`${call.tag} OK`)) {
          held = true
          await gate.promise
        }
        return response
      },
    }
    const before = server.log.length
    const reading = backfillPage({ ...worker.context, session, folderId: id }, page, true)
    await until('it is fetched', () => held)
    happens(server)
    await worker.catchUp('INBOX')
    gate.resolve(undefined)
    await reading
    const asked = server.log
      .slice(before)
      .filter(({ connection, line }) => connection === link && line.startsWith('C: '))
      .map(({ line }) => line.split(' ').slice(2, 5).join(' '))
    return { stage, asked }
  }

  test('mail that is removed does not stay in the index', async (t) => {
    const { stage } = await readWhile(t, (server) => server.expunge('ann', 'INBOX', 25))
    const left = [21, 22, 23, 24, 26, 27, 28, 29, 30].map((uid) => `m${uid}`)
    assert.deepEqual(await stage.subjects('INBOX'), left)
    const { cursor, messages } = await stage.folder('INBOX')
    assert.deepEqual([cursor?.backfillBelow, cursor?.exists, messages], [21, 29, 29])
  })

  test('new mail of which only SELECT tells stays, when other mail is removed', async (t) => {
    const both = (server: Stage['server']): void => {
      server.append('ann', 'INBOX', letter('n1'))
      server.expunge('ann', 'INBOX', 25)
    }
    const { stage } = await readWhile(t, both, { newsBySelect: true })
    assert((await stage.subjects('INBOX')).includes('n1'))
    assert.equal((await stage.folder('INBOX')).messages, 30)
  })

  const harmless = [
    ['nothing happens', () => undefined],
    ['new mail comes', (server: Stage['server']) => server.append('ann', 'INBOX', letter('n1'))],
  ] as const
  for (const [name, happens] of harmless) {
    test(`${name}: nothing is asked after it`, async (t) => {
      const { stage, asked } = await readWhile(t, happens)
      assert.deepEqual(asked, ['NOOP', 'UID FETCH 21:30'])
      assert.equal((await stage.folder('INBOX')).cursor?.backfillBelow, 21)
    })
  }
})
