/**
 * Our own writes beside a look at the folders: the counts are those of the index, and neither mail nor a folder that
 * we remove comes back with what the server said before.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createCommands } from '../../../engine/accounts/commands/index.ts'
import { compareUids } from '../../../engine/accounts/compare.ts'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { createLink } from '../../../engine/accounts/link.ts'
import type { Accounts } from '../../../engine/accounts/index.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../../engine/store/records.ts'
import { fullCapabilities, type HookCall } from '../../support/imap-server/index.ts'
import { letterOf } from '../../support/mail.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, openStage, type Stage, type Worker } from './stage.ts'

type Commands = Pick<
  Accounts,
  'setFlags' | 'move' | 'remove' | 'append' | 'expungeFolder' | 'syncFolder' | 'refreshFolders' | 'deleteFolder'
>

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

interface Folders {
  readonly inbox: FolderRecord
  readonly archive: FolderRecord
}

interface Write {
  readonly name: string
  readonly run: (commands: Commands, message: MessageRecord, at: Placement, folders: Folders) => Promise<unknown>
  /** Messages and unseen ones afterwards. */
  readonly inbox: readonly [number, number]
  readonly archive: readonly [number, number]
}

const writes: readonly Write[] = [
  {
    name: 'a move',
    run: (commands, message, at, { archive }) => commands.move(message, at, archive),
    inbox: [3, 3],
    archive: [3, 3],
  },
  {
    name: 'a removal',
    run: (commands, message) => commands.remove(message, null),
    inbox: [3, 3],
    archive: [2, 2],
  },
  {
    name: 'the flag \\Seen',
    run: (commands, message, at) => commands.setFlags(message, at, { add: ['\\Seen'], remove: [] }),
    inbox: [4, 3],
    archive: [2, 2],
  },
  {
    name: 'a new message',
    run: (commands, _message, _at, { inbox }) => commands.append(inbox, letterOf(letter('ours'))),
    inbox: [5, 5],
    archive: [2, 2],
  },
  {
    name: 'the expunge of a folder',
    run: (commands) => commands.expungeFolder(accountId, 'INBOX'),
    inbox: [3, 3],
    archive: [2, 2],
  },
]

async function started(t: TestContext, capabilities: readonly string[], now = Date.now) {
  const stage = await openStage(t, { capabilities, now })
  fill(stage.server, 'INBOX', 4)
  stage.server.setFlags('ann', 'INBOX', 2, ['\\Deleted'])
  fill(stage.server, 'Archive', 2, 'a')
  const worker = await stage.work()
  await worker.readAll()
  const look = () => createFolderPoll(worker.context).poll()
  await look()
  const commands = commandsOf(t, stage, worker)
  const message = await stage.message('m1')
  const [at] = message.placements
  assert(at)
  const folders = { inbox: await stage.folder('INBOX'), archive: await stage.folder('Archive') }
  const [watcher] = stage.server.connections
  assert(watcher)
  return {
    stage,
    watcher: watcher.id,
    look,
    commands,
    write: ({ run }: Write) => run(commands, message, at, folders),
    async isCounted({ inbox, archive: other }: Pick<Write, 'inbox' | 'archive'>): Promise<void> {
      for (const [path, counts] of Object.entries({ INBOX: inbox, Archive: other })) {
        const { messages, unseen } = (await stage.folder(path)).counts
        assert.deepEqual([messages, unseen], counts, path)
      }
    },
  }
}

suite('counts after our own write', () => {
  for (const write of writes) {
    test(`${write.name}: are those of the index, whatever the server counted before`, async (t) => {
      const one = await started(t, fullCapabilities)
      const { isHeld, letGo } = holdFirst(
        one.stage,
        (call, response) => call?.connection === one.watcher && response.startsWith('* STATUS "Archive"'),
      )
      const looking = one.look()
      await until('the counts are under way', isHeld)
      await one.write(write)
      await one.isCounted(write)
      letGo()
      await looking
      await one.isCounted(write)
    })
  }
})

test('mail that we remove while its folder is compared is not read again from what the server still shows', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 4)
  // Its UIDs cannot be taken for sequence numbers, for which the server would be asked first.
  stage.server.expunge('ann', 'INBOX', 1)
  const worker = await stage.work()
  await worker.readAll()
  const commands = commandsOf(t, stage, worker)
  await worker.session.select('INBOX', { refresh: true })
  let removed = false
  stage.server.hooks = {
    cached: true,
    async send(response, call) {
      // The end of the answer: the removal is told with the next command.
      if (removed || call?.name !== 'UID SEARCH' || !response.toString().startsWith(call.tag)) return response
      removed = true
      await commands.remove(await stage.message('m3'), null)
      return response
    },
  }
  await compareUids({ ...worker.context, folderId: (await stage.folder('INBOX')).id }, 3)
  assert(removed)
  assert.deepEqual(await stage.subjects('INBOX'), ['m2', 'm4'])
  assert.deepEqual(await stage.story(), ['deleted m3 INBOX'])
})

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
