/**
 * The list of folders: odd lists, names, folders that cannot be opened, renamed and removed ones (imap-servers.md row
 * 25).
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { backfillFirst } from '../../../engine/accounts/background.ts'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { createAccountState } from '../../../engine/accounts/state.ts'
import { fullCapabilities, plainCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, openStage, type Stage, type Worker } from './stage.ts'
import { openAccounts, watchingAccounts } from './running.ts'

const paths = async (stage: {
  readonly store: { readonly folders: { list(id: string): Promise<{ path: string }[]> } }
}) => (await stage.store.folders.list('a'.repeat(24))).map((folder) => folder.path)

const standard = ['INBOX', 'Archive', 'Drafts', 'Junk', 'Sent', 'Trash']

/** LIST shows only such lines, as long as it is played; STATUS and SELECT answer as ever. */
function listing(shown: (line: string) => boolean): Hooks {
  return {
    send: (response, call) =>
      call?.name === 'LIST' && /^\* (LIST|STATUS)/.test(response.toString()) && !shown(response.toString())
        ? null
        : response,
  }
}

suite('odd lists remove nothing', () => {
  const odd: readonly (readonly [string, (line: string) => boolean])[] = [
    ['nothing at all', () => false],
    ['INBOX alone', (line) => line.includes('INBOX')],
    ['all but INBOX', (line) => !line.includes('INBOX')],
    ['one folder missing that still answers', (line) => !line.includes('Archive')],
  ]
  for (const [name, shown] of odd) {
    test(name, async (t) => {
      const stage = await openStage(t)
      fill(stage.server, 'Archive', 3, 'a')
      const worker = await stage.work()
      await worker.readAll()
      stage.server.hooks = listing(shown)
      await createFolderPoll(worker.context).list()
      assert.deepEqual(await paths(stage), standard)
      assert.equal((await stage.subjects('Archive')).length, 3)
      assert(stage.warnings.some(({ message }) => message.startsWith('odd folder list')))
    })
  }
})

suite('what a list lacks is gone', () => {
  const withoutArchive = listing((line) => !line.includes('Archive'))

  async function begun(t: TestContext): Promise<{ stage: Stage; worker: Worker; hear: (ms: number) => void }> {
    let late = 0
    const begin = Date.now()
    const stage = await openStage(t, { now: () => begin + late })
    fill(stage.server, 'Archive', 3, 'a')
    const worker = await stage.work()
    await worker.readAll()
    return { stage, worker, hear: (ms) => void (late = ms) }
  }

  test('when two full lists in a row, 30 s apart, lack it, though it answers to its name', async (t) => {
    const { stage, worker, hear } = await begun(t)
    const list = () => createFolderPoll(worker.context).list()
    stage.server.hooks = withoutArchive
    await list()
    hear(29_000)
    await list()
    assert.deepEqual(await paths(stage), standard, 'not long enough')
    stage.server.hooks = {}
    await list()
    stage.server.hooks = withoutArchive
    hear(60_000)
    await list()
    assert.deepEqual(await paths(stage), standard, 'a list had it in between')
    hear(90_000)
    await list()
    assert.deepEqual(
      await paths(stage),
      standard.filter((path) => path !== 'Archive'),
    )
    assert.deepEqual(await stage.subjects('Archive'), [])
  })

  test('not when the lists are empty, however many there are', async (t) => {
    const { stage, worker, hear } = await begun(t)
    const list = () => createFolderPoll(worker.context).list()
    const nothing = listing((line) => line.includes('INBOX'))
    stage.server.hooks = {
      ...nothing,
      // "*" shows nothing at all, the name INBOX shows INBOX.
      send: (response, call) =>
        /LIST "" "?\*/.test(call?.text ?? '') && /^\* LIST/.test(response.toString()) ? null : response,
    }
    for (const ms of [0, 40_000, 80_000]) {
      hear(ms)
      await list()
    }
    assert.deepEqual(await paths(stage), standard)
    stage.server.hooks = {
      ...stage.server.hooks,
      command: ({ name, text }) => (name === 'STATUS' && /Sent/.test(text) ? { tagged: 'NO busy' } : undefined),
      send: (response, call) => (call?.name === 'LIST' && /^\* LIST/.test(response.toString()) ? null : response),
    }
    await list()
    assert.deepEqual(await paths(stage), standard, 'a refusal without a code is not the word that it is gone')
    stage.server.deleteFolder('ann', 'Archive')
    await list()
    assert.deepEqual(
      await paths(stage),
      standard.filter((path) => path !== 'Archive'),
      'its name says that it is gone',
    )
  })
})

for (const capabilities of [fullCapabilities, plainCapabilities]) {
  const names = Array.from({ length: 30 }, (_, index) => `Project ${String(index).padStart(2, '0')}`)

  test(`the user removes most of the folders at once (${capabilities.length} capabilities)`, async (t) => {
    const running = await watchingAccounts(t, { capabilities }, ({ server }) => {
      for (const name of names) server.createFolder('ann', name)
      fill(server, 'Project 07', 2, 'p')
    })
    for (const name of names) running.server.deleteFolder('ann', name)
    await running.tells(['deleted p1 Project 07', 'deleted p2 Project 07'])
    await until('all are gone', async () => (await paths(running)).length === standard.length)
  })

  test(`listed, and not there when it is opened (${capabilities.length} capabilities)`, async (t) => {
    const running = await watchingAccounts(
      t,
      { capabilities, settings: { MAILROOM_FOLDER_POLL: '1m', MAILROOM_FOLDER_POLL_COLD: '1m' } },
      ({ server }) => {
        server.createFolder('ann', 'Ghost')
        fill(server, 'Ghost', 1, 'g')
      },
    )
    const message = await running.message('g1')
    await running.accounts.syncFolder(accountId, 'Sent')
    running.server.hooks = {
      command: ({ text }) => (/SELECT "?Ghost/.test(text) ? { tagged: 'NO [NONEXISTENT] no such mailbox' } : undefined),
    }
    await assert.rejects(running.accounts.fetchHeaders(message), { code: 'account_unavailable' })
    await until('its mail is out of the index', async () => (await running.subjects('Ghost')).length === 0)
    const now = await running.store.messages.get(accountId, message.id)
    assert.deepEqual(now?.placements, [])
  })
}

test('without LIST-STATUS the word of STATUS is enough, whatever the list shows', async (t) => {
  const stage = await openStage(t, { capabilities: ['IMAP4rev1', 'IDLE'] })
  fill(stage.server, 'Archive', 2, 'a')
  const worker = await stage.work()
  await worker.readAll()
  stage.server.hooks = {
    command: ({ text }) =>
      /STATUS "?Archive/.test(text) ? { tagged: "NO Mailbox doesn't exist: Archive" } : undefined,
  }
  await createFolderPoll(worker.context).poll()
  assert.deepEqual(await stage.subjects('Archive'), [])
})

test('a folder without a status holds no mail where the server says that it does not exist, and only there', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 2, 'a')
  const worker = await stage.work()
  await worker.readAll()
  let refusal = 'NO [SERVERBUG] Internal error occurred'
  stage.server.hooks = {
    send: (response) => (/^\* STATUS "?Archive/.test(response.toString()) ? null : response),
    command: ({ name, text }) => (name === 'STATUS' && text.includes('Archive') ? { tagged: refusal } : undefined),
  }
  await createFolderPoll(worker.context).list()
  assert.equal((await stage.subjects('Archive')).length, 2)
  refusal = "NO Mailbox doesn't exist: Archive"
  await createFolderPoll(worker.context).list()
  assert.deepEqual(await stage.subjects('Archive'), [])
  assert.deepEqual(await paths(stage), standard)
})

for (const capabilities of [fullCapabilities, ['IMAP4rev1', 'IDLE']]) {
  test(`renamed and removed folders (${capabilities.length} capabilities)`, async (t) => {
    const running = await watchingAccounts(t, { capabilities }, ({ server }) => {
      server.createFolder('ann', 'Projects')
      server.createFolder('ann', 'Old')
      fill(server, 'Projects', 2, 'p')
      fill(server, 'Old', 1, 'o')
    })
    const { folders } = { folders: running.server.folder('ann', 'Projects') }
    folders.name = 'Work'
    running.server.deleteFolder('ann', 'Projects')
    running.server.createFolder('ann', 'Work').messages.push(...folders.messages)
    running.server.folder('ann', 'Work').uidNext = folders.uidNext
    running.server.deleteFolder('ann', 'Old')
    await running.tells([
      'folder_added p1 Work',
      'folder_added p2 Work',
      'folder_removed p1 Projects',
      'folder_removed p2 Projects',
      'deleted o1 Old',
    ])
    assert.deepEqual(await paths(running), [...standard, 'Work'])
  })
}

test('names in every script, brackets and other delimiters', async (t) => {
  const names = ['Entwürfe & Co', '受信箱', 'Входящие.Проекты', 'with "quotes" \\ and [brackets]', 'a/b', '&amp;', '*%']
  const folders = Object.fromEntries([['INBOX', []], ...names.map((name) => [name, []] as const)])
  const running = await watchingAccounts(t, { delimiter: '.', user: { folders } })
  for (const name of names)
    running.server.append('ann', name, letter(`to ${name}`.normalize('NFC').replaceAll(/[^\x20-\x7e]/g, '?')))
  await until('all told', async () => (await running.told()).length === names.length, {
    explain: () =>
      running.server.log
        .slice(-20)
        .map(({ line }) => line)
        .join('\n'),
  })
  const told = (await running.told()).map((change) => change.path)
  assert.deepEqual(told.sort(), [...names].sort())
  assert.equal((await running.folder('Входящие.Проекты')).delimiter, '.')
  const shown = names.map((name) => name.replace('Входящие.Проекты', 'Входящие/Проекты'))
  assert.deepEqual(
    [...new Set(running.listener.names)].sort(),
    shown.sort(),
    'planned under the names that the API shows',
  )
})

for (const capabilities of [fullCapabilities, plainCapabilities]) {
  test(`a name that is no modified UTF-7: its mail is read (${capabilities.length} capabilities)`, async (t) => {
    const hooks: Hooks = {
      // What the server takes for "R" it shows as "R&D"; "R&-D" is no folder of it.
      send: (response) =>
        Buffer.from(response.toString('latin1').replace(/^(\* (?:LIST|STATUS) .*)"R"/, '$1"R&D"'), 'latin1'),
    }
    const running = await watchingAccounts(t, { capabilities, hooks }, ({ server }) => {
      server.createFolder('ann', 'R')
      fill(server, 'R', 2, 'r')
    })
    assert((await paths(running)).includes('R&D'))
    assert.deepEqual(await running.subjects('R&D'), ['r1', 'r2'])
    running.server.append('ann', 'R', letter('n1'))
    await running.tells(['received n1 R&D'])
    await running.accounts.syncFolder(accountId, 'R&D')
  })
}

test('a folder that was reported missing before the first list, and is listed, keeps its mail', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 2, 'a')
  const worker = await stage.work()
  await worker.readAll()
  const folders = await stage.store.folders.list(accountId)
  const state = createAccountState(worker.context.deps, worker.state.account, folders)
  state.absent.reportMissing('Archive')
  await createFolderPoll({ ...worker.context, state }).list()
  assert.deepEqual(await stage.subjects('Archive'), ['a1', 'a2'])
  assert.notEqual((await stage.folder('Archive')).cursor, null)
})

test('a folder that is listed and cannot be opened does not hold up the others', async (t) => {
  const running = await openAccounts(t)
  const { server } = running
  server.createFolder('ann', 'Ghost')
  fill(server, 'Ghost', 1, 'g')
  server.hooks = { command: ({ text }) => (/SELECT "?Ghost/.test(text) ? { tagged: 'NO cannot open' } : undefined) }
  fill(server, 'Archive', 2, 'a')
  running.accounts.start(running.account)
  await until('refused', async () => (await running.folder('Ghost')).failures >= 1)
  await until('the others are read', async () => (await running.subjects('Archive')).length === 2)
  running.server.append('ann', 'Archive', letter('n1'))
  await running.tells(['received n1 Archive'])
})

test('at first, a folder that holds nothing is complete by its STATUS alone, and what comes into it is new', async (t) => {
  const stage = await openStage(t)
  const { catchUp } = await stage.work()
  const { completeAt, cursor } = await stage.folder('Archive')
  assert.notEqual(completeAt, null)
  assert.deepEqual([cursor?.uidNext, cursor?.exists, cursor?.backfillBelow], [1, 0, 0])
  assert.equal((await stage.folder('INBOX')).completeAt, null, 'it is opened all the same')
  assert(!stage.server.log.some(({ line }) => /SELECT "?Archive/.test(line)))
  stage.server.append('ann', 'Archive', letter('n1'))
  await catchUp('Archive')
  assert.deepEqual(await stage.story(), ['received n1 Archive'])
})

test('\\Noselect and \\NonExistent folders are listed and left alone', async (t) => {
  const running = await watchingAccounts(t, {
    user: { folders: { INBOX: [], Parent: ['\\Noselect'], 'Parent/Child': [], Gone: ['\\NonExistent'] } },
  })
  running.server.append('ann', 'Parent/Child', letter('n1'))
  await running.tells(['received n1 Parent/Child'])
  assert(!running.server.log.some(({ line }) => /SELECT "?(Parent"?$|Gone)/.test(line)))
})

test('mail that appears in a new folder under another time of arrival is known, and not sent as old mail', async (t) => {
  const stage = await openStage(t)
  const { server, deps } = stage
  const { accounts } = deps.store
  const [month, second] = [30 * 86_400_000, 1000]
  const arrivedAt = Date.now() - month
  const raw = letter('m1')
  server.append('ann', 'INBOX', raw, [], new Date(arrivedAt))
  await (await stage.work()).readAll()
  const { id } = await stage.message('m1')
  await accounts.edit(accountId, { resume: { ...stage.account.resume, initialSyncAt: Date.now() } })
  const { mock } = t.mock.method(deps.listener, 'planOld')
  server.createFolder('ann', 'New')
  server.append('ann', 'New', raw, [], new Date(arrivedAt + second))
  server.expunge('ann', 'INBOX', 1)
  await (await stage.work()).readAll()
  assert.deepEqual(await stage.story(), ['folder_added m1 New'])
  assert.equal((await stage.message('m1')).id, id)
  assert.equal(mock.callCount(), 0)
})

test('the first page of INBOX takes one SELECT, one SEARCH and one FETCH', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const { context, catchUp } = await stage.work()
  const before = stage.server.log.length
  await catchUp('INBOX')
  await backfillFirst({ ...context, folderId: (await stage.folder('INBOX')).id })
  const sent = stage.server.log.slice(before).flatMap(({ line }) => /^C: \w+ ((?:UID )?[A-Z]+)/.exec(line)?.[1] ?? [])
  assert.deepEqual(sent, ['SELECT', 'UID SEARCH', 'UID FETCH'])
  assert.equal((await stage.subjects('INBOX')).length, 3)
})
