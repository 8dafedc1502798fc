/** The list of folders: odd lists, names, folders that cannot be opened, renamed and removed ones (imap-servers.md row 25). */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter, openStage } from './stage.ts'
import { watchingWing } from './wing.ts'

const paths = async (stage: {
  readonly store: { readonly folders: { list(id: string): Promise<{ path: string }[]> } }
}) => (await stage.store.folders.list('a'.repeat(24))).map((folder) => folder.path)

const standard = ['INBOX', 'Archive', 'Drafts', 'Junk', 'Sent', 'Trash']

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
      stage.server.hooks = {
        send: (response, call) =>
          call?.name === 'LIST' && /^\* (LIST|STATUS)/.test(response.toString()) && !shown(response.toString())
            ? null
            : response,
      }
      await createFolderPoll(worker.context).list()
      assert.deepEqual(await paths(stage), standard)
      assert.equal((await stage.subjects('Archive')).length, 3)
      assert(stage.warnings.some(({ message }) => message.startsWith('odd folder list')))
    })
  }
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
    const wing = await watchingWing(t, { capabilities }, ({ server }) => {
      server.createFolder('ann', 'Projects')
      server.createFolder('ann', 'Old')
      fill(server, 'Projects', 2, 'p')
      fill(server, 'Old', 1, 'o')
    })
    const { folders } = { folders: wing.server.folder('ann', 'Projects') }
    folders.name = 'Work'
    wing.server.deleteFolder('ann', 'Projects')
    wing.server.createFolder('ann', 'Work').messages.push(...folders.messages)
    wing.server.folder('ann', 'Work').uidNext = folders.uidNext
    wing.server.deleteFolder('ann', 'Old')
    await wing.tells([
      'folder_added p1 Work',
      'folder_added p2 Work',
      'folder_removed p1 Projects',
      'folder_removed p2 Projects',
      'deleted o1 Old',
    ])
    assert.deepEqual(await paths(wing), [...standard, 'Work'])
  })
}

test('names in every script, brackets and other delimiters', async (t) => {
  const names = ['Entwürfe & Co', '受信箱', 'Входящие.Проекты', 'with "quotes" \\ and [brackets]', 'a/b', '&amp;', '*%']
  const folders = Object.fromEntries([['INBOX', []], ...names.map((name) => [name, []] as const)])
  const wing = await watchingWing(t, { delimiter: '.', user: { folders } })
  for (const name of names)
    wing.server.append('ann', name, letter(`to ${name}`.normalize('NFC').replaceAll(/[^\x20-\x7e]/g, '?')))
  await until('all told', async () => (await wing.told()).length === names.length, {
    explain: () =>
      wing.server.log
        .slice(-20)
        .map(({ line }) => line)
        .join('\n'),
  })
  const told = (await wing.told()).map((change) => change.path)
  assert.deepEqual(told.sort(), [...names].sort())
  assert.equal((await wing.folder('Входящие.Проекты')).delimiter, '.')
  const shown = names.map((name) => name.replace('Входящие.Проекты', 'Входящие/Проекты'))
  assert.deepEqual([...new Set(wing.listener.names)].sort(), shown.sort(), 'planned under the names that the API shows')
})

test('a folder that is listed and cannot be opened does not hold up the others', async (t) => {
  const wing = await watchingWing(t, {}, ({ server }) => {
    server.createFolder('ann', 'Ghost')
    server.hooks = { command: ({ text }) => (/SELECT "?Ghost/.test(text) ? { tagged: 'NO cannot open' } : undefined) }
    fill(server, 'Archive', 2, 'a')
  })
  assert.equal((await wing.folder('Ghost')).failures, 1)
  assert.equal((await wing.subjects('Archive')).length, 2)
  wing.server.append('ann', 'Archive', letter('n1'))
  await wing.tells(['received n1 Archive'])
})

test('\\Noselect and \\NonExistent folders are listed and left alone', async (t) => {
  const wing = await watchingWing(t, {
    user: { folders: { INBOX: [], Parent: ['\\Noselect'], 'Parent/Child': [], Gone: ['\\NonExistent'] } },
  })
  wing.server.append('ann', 'Parent/Child', letter('n1'))
  await wing.tells(['received n1 Parent/Child'])
  assert(!wing.server.log.some(({ line }) => /SELECT "?(Parent"?$|Gone)/.test(line)))
})
