/** A list of folders from before a folder was removed does not bring it back. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createCommands } from '../../../engine/accounts/commands/index.ts'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { createLink } from '../../../engine/accounts/link.ts'
import type { Accounts } from '../../../engine/accounts/index.ts'
import { fullCapabilities, type HookCall } from '../../support/imap-server/index.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, openStage, type Stage, type Worker } from './stage.ts'

type Commands = Pick<Accounts, 'syncFolder' | 'refreshFolders' | 'deleteFolder'>

/** The commands of the worker's account, over a connection of their own. */
function commandsOf(t: TestContext, { server, deps }: Stage, { state }: Worker): Commands {
  const open = () => openTest(t, server)
  const link = createLink({ login: open, idleCloseMs: 60_000, waitMs: 10_000 })
  return createCommands({
    sync: deps,
    live: () => Promise.resolve({ link, state }),
  })
}

/** Holds the first response like this. */
function holdFirst({ server }: Stage, is: (call: HookCall | null, response: string) => boolean) {
  const { promise, resolve } = Promise.withResolvers<null>()
  let held = false
  server.hooks = {
    send(response, call) {
      if (held || !is(call, response.toString('latin1'))) return response
      held = true
      return promise.then(() => response)
    },
  }
  return { isHeld: () => held, letGo: () => resolve(null) }
}

async function started(t: TestContext, capabilities: readonly string[]) {
  const stage = await openStage(t, { capabilities })
  fill(stage.server, 'Archive', 2, 'a')
  const worker = await stage.work()
  await worker.readAll()
  const look = () => createFolderPoll(worker.context).poll()
  await look()
  const [watcher] = stage.server.connections
  assert(watcher)
  return { stage, watcher: watcher.id, look, commands: commandsOf(t, stage, worker) }
}

for (const [name, capabilities] of [
  ['LIST-STATUS', fullCapabilities],
  ['STATUS', fullCapabilities.filter((capability) => capability !== 'LIST-STATUS')],
] as const) {
  test(`a removed folder does not come back with a list from before, where ${name} gives counts`, async (t) => {
    const { stage, watcher, look, commands } = await started(t, capabilities)
    const { isHeld, letGo } = holdFirst(
      stage,
      (call, response) => call?.connection === watcher && call.name === 'LIST' && response.startsWith(call.tag),
    )
    const looking = look()
    await until('the list is under way', isHeld)
    await commands.deleteFolder(accountId, 'Archive')
    letGo()
    await looking
    assert.equal(await stage.store.folders.byPath(accountId, 'Archive'), null)
    stage.server.createFolder('ann', 'Archive')
    await look()
    await stage.folder('Archive')
  })
}

test('the list is read anew where the folder that is open is gone', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 2)
  const worker = await stage.work()
  await worker.readAll()
  const commands = commandsOf(t, stage, worker)
  await commands.syncFolder(accountId, 'Archive')
  stage.server.deleteFolder('ann', 'Archive')
  // As Dovecot does it.
  stage.server.hooks = {
    command: ({ name, folder }) => (name === 'NOOP' && folder?.name === 'Archive' ? { close: 'reset' } : undefined),
  }
  const listed = await commands.refreshFolders(accountId)
  assert(!listed.some(({ path }) => path === 'Archive'))
})
