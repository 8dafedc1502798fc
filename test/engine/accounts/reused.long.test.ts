/**
 * UIDs that a server gives again under the same UIDVALIDITY: other mail is another message, whatever lay there before.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { reportGone } from '../../../engine/accounts/departures.ts'
import { isLikeMail } from '../../../engine/accounts/identity.ts'
import { AppError } from '../../../engine/errors.ts'
import { fullCapabilities, plainCapabilities, type ImapServer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter, openStage, type Stage, type Worker, writing } from './stage.ts'
import { watchingAccounts } from './running.ts'

/** Mail at this UID, whatever UIDs there were. */
function put(server: ImapServer, path: string, uid: number, raw: string, flags: string[] = [], date?: Date): void {
  const folder = server.folder('ann', path)
  const { uidNext } = folder
  folder.uidNext = uid
  server.append('ann', path, raw, flags, date)
  folder.messages.sort((one, other) => one.uid - other.uid)
  folder.uidNext = Math.max(folder.uidNext, uidNext)
}

/** A server without a memory: the next UID is the highest one that is left, and one. */
function forgetful(server: ImapServer, path: string): void {
  const folder = server.folder('ann', path)
  folder.uidNext = (folder.messages.at(-1)?.uid ?? 0) + 1
}

async function tellLater({ context }: Worker): Promise<void> {
  await reportGone({ ...context, deps: { ...context.deps, now: () => Date.now() + 10_000 } })
}

async function started(stage: Stage): Promise<Worker> {
  const worker = await stage.work()
  await worker.readAll()
  return worker
}

test('a restored mailbox: what is new in it is told, what is lost is told as deleted, the rest is left alone', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 5)
  const worker = await started(stage)
  for (const subject of ['n1', 'n2', 'n3']) stage.server.append('ann', 'INBOX', letter(subject))
  await worker.catchUp('INBOX')
  stage.server.expunge('ann', 'INBOX', 5, 6, 7, 8)
  forgetful(stage.server, 'INBOX')
  for (const subject of ['r1', 'r2']) stage.server.append('ann', 'INBOX', letter(subject))
  await worker.catchUp('INBOX')
  stage.server.append('ann', 'INBOX', letter('r3'))
  await worker.catchUp('INBOX')
  await tellLater(worker)
  const story = await stage.story()
  assert.deepEqual(story.slice(0, 3), ['received n1 INBOX', 'received n2 INBOX', 'received n3 INBOX'])
  assert.deepEqual(story.slice(3).sort(), [
    'deleted m5 INBOX',
    'deleted n1 INBOX',
    'deleted n2 INBOX',
    'deleted n3 INBOX',
    'received r1 INBOX',
    'received r2 INBOX',
    'received r3 INBOX',
  ])
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2', 'm3', 'm4', 'r1', 'r2', 'r3'])
  await (await started(stage)).catchUp('INBOX')
  assert.equal((await stage.told()).length, story.length, 'told once')
})

test('a UID in the middle of what was there before us', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 5)
  const worker = await started(stage)
  stage.server.expunge('ann', 'INBOX', 3)
  await worker.catchUp('INBOX')
  await tellLater(worker)
  put(stage.server, 'INBOX', 3, letter('n1'))
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.story(), ['deleted m3 INBOX', 'received n1 INBOX'])
  stage.server.expunge('ann', 'INBOX', 3)
  await worker.catchUp('INBOX')
  await tellLater(worker)
  put(stage.server, 'INBOX', 3, letter('m3'), [], new Date(Date.now() - 3_600_000))
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.story(), ['deleted m3 INBOX', 'received n1 INBOX', 'deleted n1 INBOX'])
  assert.deepEqual(
    await stage.subjects('INBOX'),
    ['m1', 'm2', 'm3', 'm4', 'm5'],
    'old mail is history, and in the index',
  )
})

test('the same message comes back to its UID after it was told as deleted', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  const worker = await started(stage)
  const raw = letter('n1')
  const date = new Date()
  stage.server.append('ann', 'INBOX', raw, [], date)
  await worker.catchUp('INBOX')
  stage.server.expunge('ann', 'INBOX', 3)
  await worker.catchUp('INBOX')
  await tellLater(worker)
  put(stage.server, 'INBOX', 3, raw, [], date)
  await worker.catchUp('INBOX')
  stage.server.expunge('ann', 'INBOX', 3)
  await worker.catchUp('INBOX')
  await tellLater(worker)
  assert.deepEqual(await stage.story(), [
    'received n1 INBOX',
    'deleted n1 INBOX',
    'folder_added n1 INBOX',
    'deleted n1 INBOX',
  ])
})

test('back at its UID before it was told as deleted: nothing is told', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  const worker = await started(stage)
  const folder = stage.server.folder('ann', 'INBOX')
  stage.server.append('ann', 'INBOX', letter('n1'))
  await worker.catchUp('INBOX')
  const [, history, live] = folder.messages.slice()
  assert(history && live)
  stage.server.expunge('ann', 'INBOX', 2, 3)
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.subjects('INBOX'), ['m1'])
  folder.messages.push(history, live)
  await worker.catchUp('INBOX')
  await tellLater(worker)
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2', 'n1'])
  assert.deepEqual(await stage.story(), ['received n1 INBOX'])
})

test('a UIDVALIDITY that comes back: its UIDs are used anew, by the same mail too', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  const worker = await started(stage)
  const folder = stage.server.folder('ann', 'INBOX')
  const first = folder.uidValidity
  const raw = letter('n1')
  const date = new Date()
  const story: string[] = []
  /** Its life at UID 3 from here to its end. */
  const live = async () => {
    stage.server.setFlags('ann', 'INBOX', 3, ['\\Seen'])
    await worker.catchUp('INBOX')
    stage.server.expunge('ann', 'INBOX', 3)
    await worker.catchUp('INBOX')
    await tellLater(worker)
    story.push('flags_changed n1 INBOX', 'deleted n1 INBOX')
    assert.deepEqual(await stage.story(), story)
  }
  stage.server.append('ann', 'INBOX', raw, [], date)
  await worker.catchUp('INBOX')
  story.push('received n1 INBOX')
  await live()
  stage.server.renumber('ann', 'INBOX')
  await worker.readAll()
  folder.uidValidity = first
  put(stage.server, 'INBOX', 3, raw, [], date)
  put(stage.server, 'INBOX', 4, letter('n2'))
  for (const [index, message] of folder.messages.entries()) message.uid = index + 1
  await worker.readAll()
  story.push('received n2 INBOX')
  assert.deepEqual(await stage.story(), story)
  await live()
})

test('a folder that is removed and made anew, with the UIDVALIDITY and the UIDs of before, and the same mail', async (t) => {
  const running = await watchingAccounts(t, {}, ({ server }) => {
    server.createFolder('ann', 'Lists').uidValidity = 1
  })
  const { server } = running
  const raw = letter('n1')
  const date = new Date()
  const story: string[] = []
  for (const arrival of ['received', 'folder_added']) {
    server.append('ann', 'Lists', raw, [], date)
    story.push(`${arrival} n1 Lists`)
    await running.tells(story)
    server.setFlags('ann', 'Lists', 1, ['\\Seen'])
    story.push('flags_changed n1 Lists')
    await running.tells(story)
    server.deleteFolder('ann', 'Lists')
    story.push('deleted n1 Lists')
    await running.tells(story)
    server.createFolder('ann', 'Lists').uidValidity = 1
  }
  server.append('ann', 'Lists', letter('n2'))
  await running.tells([...story, 'received n2 Lists'])
  await until('in the index', async () => (await running.subjects('Lists')).length === 1)
})

test('a UID that was noted, and not read because the worker died: the next poll finds the note', async (t) => {
  let isBroken = false
  const stage = await openStage(t, {
    wrap: writing((batch, write) =>
      isBroken && batch.added.length > 0
        ? Promise.reject(new AppError('store_unavailable', 'the worker died here'))
        : write(),
    ),
  })
  fill(stage.server, 'Archive', 4)
  const worker = await started(stage)
  stage.server.expunge('ann', 'Archive', 3)
  await worker.catchUp('Archive')
  await tellLater(worker)
  put(stage.server, 'Archive', 3, letter('n1'))
  isBroken = true
  await assert.rejects(worker.catchUp('Archive'), { code: 'store_unavailable' })
  isBroken = false
  const next = await stage.work()
  const moved = await createFolderPoll(next.context).list()
  assert.deepEqual(moved, ['Archive'])
  await next.catchUp('Archive')
  assert.deepEqual(await stage.story(), ['deleted m3 Archive', 'received n1 Archive'])
  assert.deepEqual(await createFolderPoll(next.context).list(), [])
})

test('a connection that ends while many such UIDs are read: the next one reads them all', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 30)
  const worker = await started(stage)
  const uids = Array.from({ length: 25 }, (_, index) => index + 1)
  stage.server.expunge('ann', 'Archive', ...uids)
  await worker.catchUp('Archive')
  for (const uid of uids) put(stage.server, 'Archive', uid, letter(`n${uid}`))
  stage.server.hooks = { command: ({ text }) => (/UID FETCH 1:25 /.test(text) ? { close: 'reset' } : undefined) }
  await assert.rejects(worker.catchUp('Archive'), { code: 'network' })
  stage.server.hooks = {}
  const next = await stage.work()
  await next.catchUp('Archive')
  assert.deepEqual(
    (await stage.story()).filter((line) => line.startsWith('received')).sort(),
    uids.map((uid) => `received n${uid} Archive`).sort(),
  )
  assert.deepEqual((await stage.folder('Archive')).cursor?.quarantined, [])
})

test('a mailbox that was exchanged while nobody watched, and has the same counts: found after the reconnection', async (t) => {
  for (const capabilities of [fullCapabilities.filter((name) => name !== 'CONDSTORE'), plainCapabilities]) {
    const running = await watchingAccounts(t, { capabilities }, ({ server }) => fill(server, 'Archive', 3, 'a'))
    const { server } = running
    const folder = server.folder('ann', 'Archive')
    server.dropConnections()
    folder.messages.splice(0)
    folder.uidNext = 1
    for (const subject of ['b1', 'b2', 'b3']) server.append('ann', 'Archive', letter(subject))
    await running.tells([1, 2, 3].flatMap((n) => [`deleted a${n} Archive`, `received b${n} Archive`]))
    assert.deepEqual(await running.subjects('Archive'), ['b1', 'b2', 'b3'])
  }
})

test('a server that tells other sizes and arrival times of the same mail later has not given a UID again', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  stage.server.append(
    'ann',
    'INBOX',
    'From: a@b.example\nSubject: no id\nDate: Tue, 05 Mar 2024 12:00:00 +0000\n\nHello.\n',
  )
  const worker = await started(stage)
  stage.server.hooks = {
    send: (response) =>
      Buffer.from(
        response
          .toString('latin1')
          .replace(/RFC822\.SIZE \d+/, 'RFC822.SIZE 4711')
          .replace(/INTERNALDATE "[^"]+"/, 'INTERNALDATE "01-Jan-2020 00:00:00 +0000"'),
        'latin1',
      ),
  }
  await worker.catchUp('INBOX')
  await (await started(stage)).catchUp('INBOX')
  assert.deepEqual(await stage.told(), [])
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2', 'no id'])
})

test('a UID whose mail has just been expunged is not taken for given again', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 2)
  const worker = await started(stage)
  let asked = 0
  stage.server.hooks = {
    command({ text: line }) {
      if (/UID FETCH .*RFC822\.SIZE/.test(line) && asked++ === 0) stage.server.expunge('ann', 'INBOX', 2)
      return undefined
    },
  }
  await worker.catchUp('INBOX')
  assert.deepEqual(stage.warnings, [])
  assert.deepEqual(await stage.subjects('INBOX'), ['m1'])
})

test('other mail: another Message-ID; without one, another date and another subject or size', () => {
  const one: Parameters<typeof isLikeMail>[0] = {
    emailMessageId: null,
    size: 10,
    sentAt: 1,
    receivedAt: 5,
    subject: 's',
    addresses: { from: [], sender: [], replyTo: [], to: [], cc: [], bcc: [], returnPath: [] },
  }
  const cases: readonly (readonly [Partial<typeof one>, Partial<typeof one>, boolean])[] = [
    [{ emailMessageId: 'a@b' }, { emailMessageId: 'a@b', subject: 'x', sentAt: 2, size: 2 }, true],
    [{ emailMessageId: 'a@b' }, { emailMessageId: 'c@d' }, false],
    [{ emailMessageId: 'a@b' }, { emailMessageId: null }, true],
    [{}, { sentAt: 2 }, true],
    [{}, { subject: 'x', size: 2 }, true],
    [{}, { sentAt: 2, subject: 'x' }, false],
    [{}, { sentAt: 2, size: 2 }, false],
  ]
  for (const [mine, other, alike] of cases) {
    assert.equal(isLikeMail({ ...one, ...mine }, { ...one, ...other }), alike, JSON.stringify([mine, other]))
  }
})
