/**
 * A folder that is renamed: the store has the new name before the memory, and work in it goes on meanwhile. Nobody
 * hears that its mail is gone.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Store } from '../../../engine/store/port.ts'
import { fullCapabilities, type ImapServer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { openAccounts, type Running, watchingAccounts } from './running.ts'

/** From `reached` to `open` a list with this folder is about to be stored, or is stored and not answered yet. */
function heldAt(path: string, when: 'before' | 'after') {
  const reached = Promise.withResolvers<null>()
  const gate = Promise.withResolvers<null>()
  const hold = (): Promise<null> => {
    reached.resolve(null)
    return gate.promise
  }
  const wrap = (store: Store): Store => ({
    ...store,
    folders: {
      ...store.folders,
      async reconcile(id, epoch, listed, complete) {
        const isIt = listed.some((one) => one.path === path)
        if (isIt && when === 'before') await hold()
        const folders = await store.folders.reconcile(id, epoch, listed, complete)
        if (isIt && when === 'after') await hold()
        return folders
      },
    },
  })
  const open = (): void => {
    gate.resolve(null)
  }
  return { wrap, reached: reached.promise, open }
}

/** A connection that has the folder open keeps it. */
function renameOnServer(server: ImapServer, from: string, to: string): void {
  const { messages, uidNext } = server.folder('ann', from)
  server.deleteFolder('ann', from)
  const made = server.createFolder('ann', to)
  made.messages.push(...messages)
  made.uidNext = uidNext
}

function prepare({ server }: Running): void {
  server.createFolder('ann', 'Projects')
  fill(server, 'Projects', 1, 'p')
}

/** The message of `prepare`, and where it lies. */
async function placed(running: Running) {
  const message = await running.message('p1')
  const [at] = message.placements
  assert(at)
  return { message, at }
}

test('a call before the memory has the new folder hears that it is being read, not that the mail is gone', async (t) => {
  const { wrap, reached, open } = heldAt('Work', 'after')
  const running = await watchingAccounts(t, { wrap }, prepare)
  const { accounts, server, store } = running
  const before = await running.message('p1')
  const [at] = before.placements
  assert(at)
  const archive = await running.folder('Archive')
  renameOnServer(server, 'Projects', 'Work')
  await reached
  const now = await store.messages.get(accountId, before.id)
  assert(now)
  assert.deepEqual(now.placements, [])
  const calls: readonly (() => Promise<unknown>)[] = [
    () => accounts.setFlags(before, at, { add: ['\\Seen'], remove: [] }),
    () => accounts.copy(before, at, archive),
    () => accounts.move(before, null, archive),
    () => accounts.move(before, at, archive),
    () => accounts.remove(before, null),
    () => accounts.fetchHeaders(now),
  ]
  for (const call of calls) await assert.rejects(call, { code: 'account_unavailable', retryAfterMs: 2000 })
  open()
  await until('it lies there', async () => (await running.subjects('Work')).includes('p1'))
  const after = await running.message('p1')
  assert.equal(after.id, before.id)
  await accounts.fetchHeaders(after)
  assert.equal(await store.folders.byPath(accountId, 'Projects'), null)
})

/** From `reached` to `open` the last line of each answer to such a command in the folder is on its way. */
function late(server: ImapServer, path: string, command: string) {
  const reached = Promise.withResolvers<null>()
  const gate = Promise.withResolvers<null>()
  server.hooks = {
    async send(response, call) {
      const isIt = call?.name === command && call.folder?.name === path && response.toString().startsWith(call.tag)
      if (!isIt) return response
      reached.resolve(null)
      await gate.promise
      return response
    },
  }
  const open = (): void => {
    gate.resolve(null)
  }
  return { reached: reached.promise, open }
}

test('a call that reads the folder meanwhile is answered', async (t) => {
  const running = await watchingAccounts(t, {}, prepare)
  const { accounts, server } = running
  const { reached, open } = late(server, 'Projects', 'UID FETCH')
  server.append('ann', 'Projects', letter('p2'))
  const call = accounts.syncFolder(accountId, 'Projects')
  await reached
  renameOnServer(server, 'Projects', 'Work')
  open()
  await call
  await until('its mail is read', async () => (await running.subjects('Work')).length === 2)
})

test('the session that back-fills the folder meanwhile goes on', async (t) => {
  const running = await openAccounts(t)
  const { accounts, server } = running
  prepare(running)
  const { reached, open } = late(server, 'Projects', 'UID SEARCH')
  accounts.start(running.account)
  await reached
  renameOnServer(server, 'Projects', 'Work')
  const { accepted } = server
  open()
  await until('its mail is read', async () => (await running.subjects('Work')).length === 1)
  assert.equal(server.accepted, accepted)
  assert.deepEqual(running.warnings, [])
})

test('a change that the server has made in the folder answers as done', async (t) => {
  const { wrap, reached, open } = heldAt('Work', 'before')
  const running = await watchingAccounts(t, { wrap }, prepare)
  const { accounts, server } = running
  const { message, at } = await placed(running)
  await accounts.fetchHeaders(message)
  renameOnServer(server, 'Projects', 'Work')
  await reached
  const answer = accounts.setFlags(message, at, { add: ['\\Seen'], remove: [] })
  const lines = () => accounts.wire(accountId)?.lines() ?? []
  await until('the server has answered', () => lines().some(({ line }) => line.includes('OK Store completed')))
  open()
  assert.deepEqual(await answer, ['\\Seen'])
})

test('a copy into a folder that the memory has yet to learn of is in the index when the call answers', async (t) => {
  const { wrap, reached, open } = heldAt('Work', 'after')
  const running = await watchingAccounts(t, { wrap }, prepare)
  const { accounts, server } = running
  const { message, at } = await placed(running)
  server.createFolder('ann', 'Work')
  await reached
  const copied = accounts.copy(message, at, await running.folder('Work'))
  await until('the call has its turn', () => accounts.queues(accountId)[0]?.running === 1)
  await running.message('p1')
  open()
  await copied
  assert.deepEqual(
    (await running.message('p1')).placements.map(({ path }) => path),
    ['Projects', 'Work'],
  )
  assert.deepEqual(await running.story(), ['folder_added p1 Work'])
})

test('a call that reads a folder that the memory has yet to learn of waits for it', async (t) => {
  const { wrap, reached, open } = heldAt('Work', 'after')
  const running = await watchingAccounts(t, { wrap }, prepare)
  const { accounts, server } = running
  server.createFolder('ann', 'Work')
  fill(server, 'Work', 1, 'w')
  await reached
  const read = accounts.syncFolder(accountId, 'Work')
  const answer = read.then(
    () => 'done',
    (error: unknown) => error,
  )
  await running.message('p1')
  open()
  assert.equal(await answer, 'done')
  assert.deepEqual(await running.subjects('Work'), ['w1'])
})

/** A copy is made in `Target`; the server does not say where, and until `open` not what is found there. */
async function lookedFor(t: TestContext) {
  const capabilities = fullCapabilities.filter((name) => name !== 'UIDPLUS')
  const running = await watchingAccounts(t, { capabilities }, (stage) => {
    prepare(stage)
    stage.server.createFolder('ann', 'Target')
  })
  const { message, at } = await placed(running)
  const { reached, open } = late(running.server, 'Target', 'UID FETCH')
  const copied = running.accounts.copy(message, at, await running.folder('Target'))
  await reached
  return { running, copied, open }
}

test('a copy into a folder that goes while the copy is looked for there answers as done', async (t) => {
  const { running, copied, open } = await lookedFor(t)
  renameOnServer(running.server, 'Target', 'Work')
  open()
  await copied
  await until('it lies there', async () => (await running.subjects('Work')).includes('p1'))
})

test('a copy after which the connection is lost, before it is found, answers as done', async (t) => {
  const { running, copied, open } = await lookedFor(t)
  const { server } = running
  server.dropConnections('ann')
  open()
  await copied
  await until('it is found', async () => (await running.subjects('Target')).includes('p1'))
  assert.equal(server.folder('ann', 'Target').messages.length, 1)
})
