/** Folders that the server refuses, by the clock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backfillFirst } from '../../../engine/accounts/background.ts'
import { createParking } from '../../../engine/accounts/parking.ts'
import { AppError } from '../../../engine/errors.ts'
import { inSet } from '../../../engine/accounts/session/uids.ts'
import { fill, letter, openStage } from './stage.ts'

test('put off twice, parked at the third failure; another failure is not the folder’s', async (t) => {
  const stage = await openStage(t)
  const { context, state, catchUp } = await stage.work()
  const now = 1_000_000
  const park = createParking({ ...context.deps, now: () => now }, state)
  const refuse = (): Promise<void> => Promise.reject(new AppError('server_refused', 'no'))
  const until = async () => ((await stage.folder('Archive')).parkedUntil ?? 0) - now
  for (const wait of [20_000, 20_000, 6 * 3_600_000]) {
    await park('Archive', refuse)
    assert.equal(await until(), wait)
    assert.equal(state.folderByPath('Archive')?.parkedUntil, now + wait)
  }
  await park('Archive', () => catchUp('Archive'))
  await park('Archive', refuse)
  assert.equal(await until(), 20_000, 'counted anew after a success')
  await assert.rejects(park('Archive', () => Promise.reject(new AppError('internal', 'a bug'))))
})

test('counted anew when a page was read since the last failure: a folder that is read on is not parked', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '1' } })
  fill(stage.server, 'Archive', 3)
  const { context, state, catchUp } = await stage.work()
  await catchUp('Archive')
  const park = createParking(context.deps, state)
  const refuse = (): Promise<void> => Promise.reject(new AppError('server_refused', 'no'))
  const readPage = async (): Promise<void> => {
    await backfillFirst({ ...context, folderId: (await stage.folder('Archive')).id })
  }
  for (const [work, failures] of [
    [refuse, 1],
    [refuse, 2],
    [readPage, 0],
    [refuse, 1],
    [refuse, 2],
    [refuse, 3],
  ] as const) {
    await park('Archive', work)
    assert.equal((await stage.folder('Archive')).failures, failures)
  }
  assert.equal((await stage.subjects('Archive')).length, 1)
})

test('of a folder that was never opened, refusals count on in the next session', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 1)
  const parkAnew = async (work: (catchUp: () => Promise<void>) => Promise<void>): Promise<number> => {
    const { context, state, catchUp } = await stage.work()
    await createParking(context.deps, state)('Archive', () => work(() => catchUp('Archive')))
    return (await stage.folder('Archive')).failures
  }
  const refuse = (): Promise<void> => Promise.reject(new AppError('server_refused', 'no'))
  for (const failures of [1, 2, 3, 4]) assert.equal(await parkAnew(refuse), failures)
  assert.equal(await parkAnew((catchUp) => catchUp()), 0)
  assert.equal(await parkAnew(refuse), 1)
})

test('a folder over which the session ends is put off for longer each time, and INBOX never is', async (t) => {
  const stage = await openStage(t)
  const { context, state, catchUp } = await stage.work()
  const now = 1_000_000
  const park = createParking({ ...context.deps, now: () => now }, state)
  const lose = (): Promise<void> => Promise.reject(new AppError('network', 'lost'))
  const until = async (path: string) => ((await stage.folder(path)).parkedUntil ?? now) - now
  for (const wait of [5000, 10_000, 20_000, 40_000]) {
    await assert.rejects(park('Archive', lose), { code: 'network' })
    assert.equal(await until('Archive'), wait)
  }
  await park('Archive', () => catchUp('Archive'))
  assert.equal((await stage.folder('Archive')).parkedUntil, null)
  await assert.rejects(park('INBOX', lose), { code: 'network' })
  assert.equal(await until('INBOX'), 0)
  await state.end(new Error('stopped'))
  await assert.rejects(park('Archive', lose), { code: 'network' })
  assert.equal((await stage.folder('Archive')).failures, 0, 'our own end is not the folder’s')
})

test('a server that gives no message of a folder has a bad day: none is passed over, and all are read when it is over', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.hooks = {
    command: ({ name, text }) =>
      name === 'UID FETCH' && text.includes('INTERNALDATE') ? { tagged: 'NO System Error' } : undefined,
  }
  for (const subject of ['first', 'second', 'third']) stage.server.append('ann', 'INBOX', letter(subject))
  await assert.rejects(worker.catchUp('INBOX'), { code: 'server_refused' })
  stage.server.hooks = {}
  await worker.catchUp('INBOX')
  assert.deepEqual(
    await stage.story(),
    ['first', 'second', 'third'].map((name) => `received ${name} INBOX`),
  )
  assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [])
})

test('of many messages that cannot be read, those that fail again wait behind the others', async (t) => {
  let late = 0
  const stage = await openStage(t, { now: () => Date.now() + late })
  fill(stage.server, 'INBOX', 24)
  let poison = new Set(Array.from({ length: 23 }, (_, index) => index + 1))
  stage.server.hooks = {
    command({ name, text }) {
      const set = /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(text)?.[1]
      const isIn = inSet(name === 'UID FETCH' && set !== undefined ? set : '99')
      return [...poison].some(isIn) ? { tagged: 'NO System Error' } : undefined
    },
  }
  const worker = await stage.work()
  await worker.readAll()
  assert.equal((await stage.folder('INBOX')).cursor?.quarantined.length, 23)
  const [healed = 0] = (await stage.folder('INBOX')).cursor?.quarantined.slice(-1) ?? []
  poison = new Set([...poison].filter((uid) => uid !== healed))
  for (const minutes of [6, 12]) {
    late = minutes * 60_000
    await worker.catchUp('INBOX')
  }
  assert((await stage.subjects('INBOX')).includes(`m${healed}`))
})
