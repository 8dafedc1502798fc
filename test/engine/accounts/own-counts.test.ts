/**
 * What the server says of counts while our own write changes them: the write is in them once, whoever is answered
 * first. So is mail that comes during a look, and what came since a folder was opened.
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
import { accountId, fill, letter, openStage, type Stage, type Worker, writing } from './stage.ts'

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
  /** The command that changes the counts. */
  readonly command: string
  readonly run: (commands: Commands, message: MessageRecord, at: Placement, folders: Folders) => Promise<unknown>
  /** Messages and unseen ones afterwards. */
  readonly inbox: readonly [number, number]
  readonly archive: readonly [number, number]
}

const writes: readonly Write[] = [
  {
    name: 'a move',
    command: 'UID MOVE',
    run: (commands, message, at, { archive }) => commands.move(message, at, archive),
    inbox: [3, 3],
    archive: [3, 3],
  },
  {
    name: 'a removal',
    command: 'UID EXPUNGE',
    run: (commands, message) => commands.remove(message, null),
    inbox: [3, 3],
    archive: [2, 2],
  },
  {
    name: 'the flag \\Seen',
    command: 'UID STORE',
    run: (commands, message, at) => commands.setFlags(message, at, { add: ['\\Seen'], remove: [] }),
    inbox: [4, 3],
    archive: [2, 2],
  },
  {
    name: 'a new message',
    command: 'APPEND',
    run: (commands, _message, _at, { inbox }) => commands.append(inbox, letterOf(letter('ours'))),
    inbox: [5, 5],
    archive: [2, 2],
  },
  {
    name: 'the expunge of a folder',
    command: 'EXPUNGE',
    run: (commands) => commands.expungeFolder(accountId, 'INBOX'),
    inbox: [3, 3],
    archive: [2, 2],
  },
]

/** The answer that is held, and in which folders the held look asked before the write. */
const looks = [
  ['LIST-STATUS', fullCapabilities, 'Archive'],
  ['STATUS of the one folder', fullCapabilities.filter((name) => name !== 'LIST-STATUS'), 'INBOX'],
  ['STATUS of the other folder', fullCapabilities.filter((name) => name !== 'LIST-STATUS'), 'Archive'],
] as const

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
    /** The watching connection opens INBOX, and is shown what is there. */
    open: () => worker.session.select('INBOX', { refresh: true }),
    async isCounted({ inbox, archive: other }: Pick<Write, 'inbox' | 'archive'>): Promise<void> {
      for (const [path, counts] of Object.entries({ INBOX: inbox, Archive: other })) {
        const { messages, unseen } = await stage.folder(path)
        assert.deepEqual([messages, unseen], counts, path)
      }
    },
  }
}

for (const [asked, capabilities, path] of looks) {
  suite(`counts by ${asked}`, () => {
    for (const write of writes) {
      test(`are from before ${write.name}, and heard after it`, async (t) => {
        const one = await started(t, capabilities)
        const { isHeld, letGo } = holdFirst(
          one.stage,
          (call, response) => call?.connection === one.watcher && response.startsWith(`* STATUS "${path}"`),
        )
        const looking = one.look()
        await until('the counts are under way', isHeld)
        await one.write(write)
        letGo()
        await looking
        await one.isCounted(write)
      })

      test(`have ${write.name} in them before it is answered`, async (t) => {
        const one = await started(t, capabilities)
        const { isHeld, letGo } = holdFirst(
          one.stage,
          (call, response) =>
            call?.connection !== one.watcher && call?.name === write.command && response.startsWith(call.tag),
        )
        const writing = one.write(write)
        await until('it is done', isHeld)
        await one.look()
        letGo()
        await writing
        await one.isCounted(write)
      })
    }
  })
}

suite('counts by LIST-STATUS of the folder that is open, which show a change late', () => {
  const begin = Date.now()

  for (const write of writes) {
    test(`stay as ${write.name} has left them`, async (t) => {
      const one = await started(t, fullCapabilities, () => begin)
      let shown: Buffer | undefined
      one.stage.server.hooks = {
        // The scripted server itself shows flags at once.
        send(response, call) {
          const isCount = call?.connection === one.watcher && response.toString().startsWith('* STATUS "INBOX"')
          return isCount ? (shown ??= response) : response
        },
      }
      await one.open()
      await one.look()
      await one.write(write)
      await one.look()
      await one.isCounted(write)
    })
  }

  test('are heard again a second after the last change, and of another folder at once', async (t) => {
    let late = 0
    const one = await started(t, fullCapabilities, () => begin + late)
    for (const path of ['INBOX', 'Archive']) fill(one.stage.server, path, 1, 'n')
    await one.open()
    late = 999
    await one.look()
    await one.isCounted({ inbox: [4, 4], archive: [3, 3] })
    late = 1000
    await one.look()
    await one.isCounted({ inbox: [5, 5], archive: [3, 3] })
  })
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

for (const [name, capabilities] of looks.slice(0, 2)) {
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

for (const path of ['INBOX', 'Archive']) {
  test(`the list read anew where ${path} is open has what came meanwhile`, async (t) => {
    const stage = await openStage(t)
    fill(stage.server, path, 2)
    const worker = await stage.work()
    await worker.readAll()
    const commands = commandsOf(t, stage, worker)
    await commands.syncFolder(accountId, path)
    fill(stage.server, path, 3, 'n')
    await worker.catchUp(path)
    await commands.refreshFolders(accountId)
    const { messages, unseen } = await stage.folder(path)
    assert.deepEqual([messages, unseen], [5, 5])
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

test('mail that comes while its folder is read is counted once', async (t) => {
  const counted: (number | undefined)[] = []
  const stage = await openStage(t, {
    wrap: writing((batch, write) => {
      counted.push(batch.counts?.messages, batch.cursorAfter.exists)
      return write()
    }),
  })
  fill(stage.server, 'INBOX', 2)
  const worker = await stage.work()
  await worker.readAll()
  let come = 0
  stage.server.hooks = {
    send(response, call) {
      if (call?.name === 'UID FETCH' && come++ === 0) stage.server.append('ann', 'INBOX', letter('m3'))
      return response
    },
  }
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2'])
  assert.equal((await stage.folder('INBOX')).messages, 3)
  await worker.catchUp('INBOX')
  const { messages, cursor } = await stage.folder('INBOX')
  assert.deepEqual([messages, cursor?.exists], [3, 3])
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2', 'm3'])
  assert.equal(Math.max(...counted.map((count) => count ?? 0)), 3)
})
