/** How long a disappearance is held, and what each is then reported as. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { reportGone } from '../../../engine/accounts/departures.ts'
import type { AccountState } from '../../../engine/accounts/state.ts'
import { compileMatcher } from '../../../engine/webhooks/match.ts'
import { fill, letter, moveOnServer, openStage } from './stage.ts'

suite('a disappearance', () => {
  const seconds = 1000

  /** A stage whose clock the test sets, in seconds, and whose hold is 90 s. */
  async function clocked(t: TestContext) {
    const begin = Date.now()
    let ahead = 0
    const stage = await openStage(t, { settings: { MAILROOM_GONE_HOLD: '90s' }, now: () => begin + ahead })
    return { stage, at: (time: number) => void (ahead = time * seconds) }
  }

  test('of one message: each at its time, and deleted with the last', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'INBOX', 2)
    const [copy] = stage.server.folder('ann', 'INBOX').messages
    assert(copy)
    stage.server.append('ann', 'Archive', copy.raw, [], new Date(copy.internalDate))
    const worker = await stage.work()
    await worker.readAll()
    const tell = () => reportGone({ deps: stage.deps, state: worker.state })
    stage.server.expunge('ann', 'INBOX', 1)
    await worker.catchUp('INBOX')
    at(60)
    stage.server.expunge('ann', 'Archive', 1)
    await worker.catchUp('Archive')
    at(89)
    await tell()
    assert.deepEqual(await stage.story(), [])
    at(95)
    await tell()
    assert.deepEqual(await stage.story(), ['folder_removed m1 INBOX'])
    at(149)
    await tell()
    assert.equal((await stage.told()).length, 1)
    at(155)
    await tell()
    await tell()
    assert.deepEqual(await stage.story(), ['folder_removed m1 INBOX', 'deleted m1 Archive'])
  })

  test('of a folder that is gone waits for one that is refused for a moment while it is read', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'Archive', 1, 'a')
    const worker = await stage.work()
    await worker.readAll()
    stage.server.deleteFolder('ann', 'Archive')
    await createFolderPoll(worker.context).list()
    at(100)
    const sent = worker.state.folderByPath('Sent')
    assert(sent?.cursor)
    const { id, cursor, completeAt } = sent
    const reading = { cursor: { ...cursor, backfillBelow: 5 }, completeAt: null }
    worker.state.change(id, { ...reading, parkedUntil: stage.deps.now() + 20 * seconds })
    await reportGone({ deps: stage.deps, state: worker.state })
    assert.deepEqual(await stage.story(), [], 'it may be the same under another name')
    worker.state.change(id, { cursor, completeAt, parkedUntil: null })
    await reportGone({ deps: stage.deps, state: worker.state })
    assert.deepEqual(await stage.story(), ['deleted a1 Archive'])
  })

  test('of two messages: the later one is not told with the earlier', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'INBOX', 3)
    const worker = await stage.work()
    await worker.readAll()
    for (const [uid, time] of [
      [2, 0],
      [1, 60],
    ] as const) {
      at(time)
      stage.server.expunge('ann', 'INBOX', uid)
      await worker.catchUp('INBOX')
    }
    at(95)
    await reportGone({ deps: stage.deps, state: worker.state })
    assert.deepEqual(await stage.story(), ['deleted m2 INBOX'])
    at(155)
    await reportGone({ deps: stage.deps, state: worker.state })
    assert.deepEqual(await stage.story(), ['deleted m2 INBOX', 'deleted m1 INBOX'])
  })

  test('is held while a folder that moved is not caught up, for a quarter of an hour more', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'INBOX', 1)
    const worker = await stage.work()
    await worker.readAll()
    stage.server.expunge('ann', 'INBOX', 1)
    await worker.catchUp('INBOX')
    const holding = (state: AccountState): void => {
      state.moved.found([], 0)
      state.moved.found(['Archive'], Number.POSITIVE_INFINITY)
    }
    holding(worker.state)
    at(90 + 15 * 60 - 5)
    await reportGone({ deps: stage.deps, state: worker.state })
    // The next session could read nothing yet, whenever the last one ended.
    at(3600)
    const next = await stage.work()
    holding(next.state)
    await reportGone({ deps: stage.deps, state: next.state })
    assert.deepEqual(await stage.story(), [])
    at(3600 + 15 * 60 + 5)
    await reportGone({ deps: stage.deps, state: next.state })
    assert.deepEqual(await stage.story(), ['deleted m1 INBOX'])
  })

  test('is held while a folder that is new is not read', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'INBOX', 2)
    stage.server.createFolder('ann', 'P')
    fill(stage.server, 'P', 1, 'p')
    const first = await stage.work()
    await first.readAll()
    const { id, resume } = first.state.account
    await stage.store.accounts.edit(id, { resume: { ...resume, initialSyncAt: 1 } })
    stage.server.createFolder('ann', 'New')
    moveOnServer(stage.server, 1, 'INBOX', 'New')
    // P has another name.
    stage.server.createFolder('ann', 'Q')
    moveOnServer(stage.server, 1, 'P', 'Q')
    stage.server.deleteFolder('ann', 'P')
    const worker = await stage.work()
    for (const path of ['INBOX', 'New', 'Q']) await worker.catchUp(path)
    at(200)
    await createFolderPoll(worker.context).list()
    await reportGone({ deps: stage.deps, state: worker.state })
    assert.deepEqual(await stage.story(), [])
    await worker.readAll()
    at(400)
    await reportGone({ deps: stage.deps, state: worker.state })
    const told = ['folder_added m1 New', 'folder_added p1 Q', 'folder_removed m1 INBOX', 'folder_removed p1 P']
    assert.deepEqual((await stage.story()).sort(), told)
  })

  test('one that is back meanwhile is not told, the other is', async (t) => {
    const { stage, at } = await clocked(t)
    fill(stage.server, 'INBOX', 3)
    const worker = await stage.work()
    await worker.readAll()
    const back = stage.server.folder('ann', 'INBOX').messages[0]
    assert(back)
    stage.server.expunge('ann', 'INBOX', 1, 2)
    await worker.catchUp('INBOX')
    at(60)
    stage.server.append('ann', 'INBOX', back.raw, [], new Date(back.internalDate))
    await worker.catchUp('INBOX')
    at(155)
    await reportGone({ deps: stage.deps, state: worker.state })
    const story = await stage.story()
    assert(
      story.includes('deleted m2 INBOX') && !story.some((line) => /(deleted|folder_removed) m1/.test(line)),
      story.join(),
    )
  })
})

test('a draft that is moved to Sent is known to have left its drafts, which are read first', async (t) => {
  const stage = await openStage(t)
  const worker = await stage.work()
  await worker.readAll()
  const uid = stage.server.append('ann', 'Drafts', letter('draft'), ['\\Draft'])
  await worker.catchUp('Drafts')
  const matcher = compileMatcher({ filters: {}, receiveAllChanges: false, receiveDrafts: false })
  const outcomes: string[] = []
  stage.listener.plan = (_account, planned) => {
    for (const { change, message } of planned) outcomes.push(matcher.judge(change, message).outcome)
    return Promise.resolve([])
  }
  const { raw } = stage.server.folder('ann', 'Drafts').messages[0] ?? assert.fail('no draft')
  stage.server.append('ann', 'Sent', raw, ['\\Seen'])
  stage.server.expunge('ann', 'Drafts', uid)
  await worker.catchUp('Drafts')
  await worker.catchUp('Sent')
  assert.deepEqual(await stage.story(), ['draft draft Drafts', 'folder_added draft Sent'])
  assert.deepEqual(outcomes, ['match'])
})
