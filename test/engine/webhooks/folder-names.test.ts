/** Folder names in callbacks, filters and explanations: as the API shows them, whatever delimiter the server has. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { folderName, folderNamer } from '../../../engine/messages/names.ts'
import { changeId } from '../../../engine/store/ids.ts'
import { until } from '../../support/until.ts'
import { arrive, changeOf, developerId, facts, freely } from './fixture.ts'
import { account, rig, receiver, user, running, useScene } from './scene.ts'

useScene()

suite('names of folders', () => {
  test("have '/' between their levels, unless a level holds one", () => {
    const named: readonly (readonly [string, string, string])[] = [
      ['INBOX', '.', 'INBOX'],
      ['INBOX.Work.2024', '.', 'INBOX/Work/2024'],
      ['Work\\2024', '\\', 'Work/2024'],
      ['Work/v1.0', '/', 'Work/v1.0'],
      ['in/out.box', '.', 'in/out.box'],
      ['flat.name', '', 'flat.name'],
    ]
    for (const [path, delimiter, name] of named) assert.equal(folderName({ path, delimiter }), name)
  })

  test('of a folder that is not listed any more have the delimiter of the others', () => {
    const name = folderNamer([
      { path: 'INBOX', delimiter: '' },
      { path: 'Work.2024', delimiter: '.' },
      { path: '#shared/v1.0', delimiter: '/' },
    ])
    assert.deepEqual(['INBOX', 'Work.2024', '#shared/v1.0', 'Old.2023'].map(name), [
      'INBOX',
      'Work/2024',
      '#shared/v1.0',
      'Old/2023',
    ])
    assert.equal(folderNamer([])('a.b'), 'a.b')
  })
})

suite('callbacks of a server with another delimiter', () => {
  for (const [delimiter, version] of [
    ['.', 'lite'],
    ['\\', '2.0'],
    ['|', 'lite'],
  ] as const) {
    test(`${delimiter} (${version}): name folders as the API does, and filters take that name`, async () => {
      const path = `/named${delimiter.codePointAt(0)}`
      const server = ['Work', '2024'].join(delimiter)
      const arrival = { facts: facts('filed'), path: server }
      const { messages } = await arrive(rig.store, null, account, [arrival])
      const [message] = messages
      assert.ok(message?.placements[0])
      const listed = { attributes: [], specialUse: null, selectable: true, messages: null, unseen: null }
      await rig.store.folders.reconcile(account.id, account.epoch, [{ ...listed, path: server, delimiter }], false)
      const webhook = await running.webhooks.create(
        { developerId, userId: user.id, version },
        { callbackUrl: receiver.url(path), filters: { folderAdded: 'Work/2024' } },
      )
      const id = changeId(account.id, message.placements[0].folderId, '1', 1, 'added', 0)
      const change = changeOf(account, message, arrival, id)
      const planned = await running.webhooks.plan(
        account,
        [{ change, message }],
        folderNamer([{ path: server, delimiter }]),
      )
      assert.equal(planned.length, 1, 'the filter takes the name')
      running.webhooks.stored(account.id, await rig.store.outbox.enqueue(planned), [])
      const [request] = await until('the callback', () => (receiver.at(path).length > 0 ? receiver.at(path) : null))
      const data = request?.body['message_data'] as { folders: string[]; sources: { folder: string }[] }
      assert.deepEqual(data.folders, ['Work/2024'])
      assert.deepEqual(
        data.sources.map(({ folder }) => folder),
        ['Work/2024'],
      )
      const [dry] = await running.webhooks.dryRun(webhook, account, 1, freely)
      assert.equal(
        dry?.verdicts.find(({ filter }) => filter === 'filter_folder_added')?.why,
        '"Work/2024" matches Work/2024',
      )
    })
  }
})
