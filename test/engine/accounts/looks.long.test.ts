/**
 * Looks out of turn: what other clients do is found within seconds, however seldom folders are polled, and at a bounded
 * cost.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { createLooks } from '../../../engine/accounts/looks.ts'
import { fullCapabilities, type HookCall, type ImapServer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, moveOnServer } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const seldom = { MAILROOM_FOLDER_POLL: '5m', MAILROOM_FOLDER_POLL_COLD: '5m', MAILROOM_FOLDER_LIST: '5m' }

const lists = ({ log }: ImapServer): number => log.filter(({ line }) => /^C: \S+ LIST /.test(line)).length

test('what is moved between quiet folders that are asked one by one is told as moved', async (t) => {
  let ahead = 0
  const running = await watchingAccounts(
    t,
    {
      capabilities: ['IMAP4rev1', 'IDLE', 'UIDPLUS'],
      settings: {
        MAILROOM_FOLDER_POLL: '200ms',
        MAILROOM_FOLDER_POLL_COLD: '1h',
        MAILROOM_FOLDER_LIST: '1h',
        MAILROOM_FLAG_COMPARE: '1d',
        MAILROOM_GONE_HOLD: '1s',
      },
      now: () => Date.now() + ahead,
    },
    ({ server }) => {
      for (const name of ['Projects', 'Done']) server.createFolder('ann', name)
      fill(server, 'Projects', 1)
    },
  )
  // The first poll asks for each folder, and reads it again where it had been read already.
  const has = (name: string): boolean => running.server.log.some(({ line }) => line.includes(`${name} "Done"`))
  await until('all is read', () => has('STATUS') && has('SELECT'))
  await setTimeout(500)
  // Nothing happens for a quarter of an hour, but in one folder.
  ahead = 9 * 60_000
  running.server.append('ann', 'Projects', letter('m2'))
  await running.tells(['received m2 Projects'])
  ahead = 18 * 60_000
  moveOnServer(running.server, 1, 'Projects', 'Done')
  await running.tells(['received m2 Projects', 'folder_added m1 Done', 'folder_removed m1 Projects'])
})

for (const capabilities of [fullCapabilities, ['IMAP4rev1', 'IDLE', 'UIDPLUS']]) {
  suite(`polls are far apart (${capabilities.length} capabilities)`, () => {
    const watching = (t: TestContext, hold: string, prepare: (running: Running) => void): Promise<Running> =>
      watchingAccounts(t, { capabilities, settings: { ...seldom, MAILROOM_GONE_HOLD: hold } }, prepare)

    test('a burst of moves by another client is found, in few looks', async (t) => {
      const running = await watching(t, '90s', ({ server }) => {
        server.createFolder('ann', 'Projects')
        fill(server, 'INBOX', 52)
      })
      const id = (await running.message('m1')).id
      const before = lists(running.server)
      for (let uid = 1; uid <= 50; uid += 1) {
        moveOnServer(running.server, uid, 'INBOX', 'Projects')
        await until('seen to leave', async () => (await running.subjects('INBOX')).length === 52 - uid)
      }
      await until('all found', async () => (await running.subjects('Projects')).length === 50, { withinMs: 40_000 })
      assert.equal((await running.message('m1')).id, id)
      const looks = lists(running.server) - before
      assert(looks >= 1 && looks < 20, `${looks} looks`)
      const added = Array.from({ length: 50 }, (_, index) => `folder_added m${index + 1} Projects`)
      assert.deepEqual((await running.story()).sort(), added.sort())
    })

    test('what is moved is told as moved, what is removed as deleted, each once', async (t) => {
      const running = await watching(t, '3s', ({ server }) => fill(server, 'INBOX', 4))
      moveOnServer(running.server, 1, 'INBOX', 'Archive')
      running.server.expunge('ann', 'INBOX', 2)
      await until('found', async () => (await running.subjects('Archive')).length === 1)
      await until('both seen to leave', async () => (await running.subjects('INBOX')).length === 2)
      // The hold of both is over at the next look, also where the first poll found them.
      await setTimeout(3500)
      running.server.expunge('ann', 'INBOX', 3)
      const told = ['deleted m2 INBOX', 'folder_added m1 Archive', 'folder_removed m1 INBOX']
      const others = async () => (await running.story()).filter((line) => line !== 'deleted m3 INBOX').sort()
      await until('told', async () => (await others()).length === told.length, { withinMs: 40_000 })
      assert.deepEqual(await others(), told)
    })

    test('what is moved to a folder that takes long to read is told as moved', async (t) => {
      const settings = { MAILROOM_FOLDER_POLL: '200ms', MAILROOM_GONE_HOLD: '300ms' }
      const running = await watchingAccounts(t, { capabilities, settings }, ({ server }) => fill(server, 'INBOX', 1))
      const reading = Promise.withResolvers<undefined>()
      const send = async (response: Buffer, doing: HookCall | null): Promise<Buffer> => {
        if (doing?.name === 'SELECT' && doing.text.includes('Archive')) await reading.promise
        return response
      }
      Object.assign(running.server.hooks, { send })
      moveOnServer(running.server, 1, 'INBOX', 'Archive')
      await until('seen to leave', async () => (await running.subjects('INBOX')).length === 0)
      await setTimeout(2000)
      assert.deepEqual(await running.story(), [])
      reading.resolve(undefined)
      await running.tells(['folder_added m1 Archive', 'folder_removed m1 INBOX'])
    })

    test('what is moved to a folder over which the session ends is told as moved', async (t) => {
      const settings = { MAILROOM_GONE_HOLD: '300ms', MAILROOM_COMMAND_TIMEOUT: '1s' }
      const running = await watchingAccounts(t, { capabilities, settings: { ...seldom, ...settings } }, ({ server }) =>
        fill(server, 'INBOX', 1),
      )
      let ends = 0
      const send = (response: Buffer, doing: HookCall | null): Buffer | null => {
        if (doing?.name !== 'SELECT' || !doing.text.includes('Archive') || ends === 2) return response
        if (response.toString().startsWith(doing.tag)) ends += 1
        return null
      }
      Object.assign(running.server.hooks, { send })
      moveOnServer(running.server, 1, 'INBOX', 'Archive')
      await until('read', async () => (await running.subjects('Archive')).length === 1, { withinMs: 40_000 })
      await running.tells(['folder_added m1 Archive', 'folder_removed m1 INBOX'])
      assert.equal(ends, 2)
    })

    test('a folder that is removed after it was listed, and before it is opened, is not waited for', async (t) => {
      const running = await watching(t, '90s', ({ server }) => {
        fill(server, 'INBOX', 1)
        server.createFolder('ann', 'Passing')
        fill(server, 'Passing', 1)
        const command = ({ name, text }: HookCall): undefined => {
          if (name === 'SELECT' && text.includes('Passing')) server.deleteFolder('ann', 'Passing')
        }
        Object.assign(server.hooks, { command })
      })
      const known = async () => (await running.store.folders.list(accountId)).some(({ path }) => path === 'Passing')
      await until('forgotten', async () => !(await known()), { withinMs: 10_000 })
    })

    test('INBOX and a folder that are numbered anew heal when they are read', async (t) => {
      const running = await watching(t, '90s', ({ server }) => {
        fill(server, 'INBOX', 3)
        fill(server, 'Archive', 3, 'a')
      })
      for (const [folder, subject] of [
        ['INBOX', 'm3'],
        ['Archive', 'a3'],
      ] as const) {
        const message = await running.message(subject)
        await running.accounts.fetchHeaders(message)
        running.server.expunge('ann', folder, 1)
        running.server.renumber('ann', folder)
        const wrong: unknown[] = []
        await until(
          `${folder} is read anew`,
          async () => {
            try {
              return await running.accounts.fetchHeaders(message)
            } catch (error) {
              const { code, retryAfterMs } = error as { readonly code: string; readonly retryAfterMs: number | null }
              if (code !== 'account_unavailable' || retryAfterMs === null) wrong.push(error)
              return false
            }
          },
          { withinMs: 40_000 },
        )
        assert.deepEqual(wrong, [])
        assert.equal((await running.message(subject)).id, message.id)
      }
    })
  })
}

test('looks keep a distance, a slow one a longer one; what is noticed meanwhile makes one more', () => {
  let now = 1_000_000
  const looks = createLooks(() => now)
  assert.equal(looks.at, Number.POSITIVE_INFINITY)
  assert.equal(looks.begin(), false)
  looks.want()
  now += 500
  looks.want()
  assert.equal(looks.at, now + 500)
  now += 500
  assert.equal(looks.begin(), true)
  looks.want()
  now += 100
  looks.end()
  assert.equal(looks.at, now + 5000)
  now += 5000
  assert.equal(looks.begin(), true)
  now += 3000
  looks.end()
  looks.want()
  assert.equal(looks.at, now + 30_000)
})
