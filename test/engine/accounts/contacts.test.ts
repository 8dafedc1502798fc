/** Contacts are counted from what is read, in whatever order, once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { letter, openStage, userId, type Stage, writing } from './stage.ts'

const me = 'Ann <ann@mail.example>'
const bob = 'Bob <bob@away.example>'

async function counts(stage: Stage): Promise<Record<string, readonly number[]>> {
  const contacts = await stage.store.contacts.list(userId, 'total_count', 'desc', { limit: 100, offset: 0 })
  return Object.fromEntries(
    contacts.map((one) => [one.email, [one.totalCount, one.indirectCount, one.directCount] as const]),
  )
}

const question = letter('question', [], bob)
const reply = letter('answer', ['In-Reply-To: <question@sender.example>', 'References: <question@sender.example>'], me)

test('received and replied to, the question read first', async (t) => {
  const stage = await openStage(t)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.append('ann', 'INBOX', question)
  await worker.catchUp('INBOX')
  assert.deepEqual(await counts(stage), { 'bob@away.example': [1, 1, 0] })
  stage.server.append('ann', 'Sent', reply)
  await worker.catchUp('Sent')
  assert.deepEqual(await counts(stage), { 'bob@away.example': [1, 1, 1] })
})

test('the answer read before the question', async (t) => {
  const stage = await openStage(t)
  stage.server.append('ann', 'Sent', reply)
  const worker = await stage.work()
  await worker.readAll()
  assert.deepEqual(await counts(stage), {})
  stage.server.append('ann', 'INBOX', question)
  await worker.catchUp('INBOX')
  assert.deepEqual(await counts(stage), { 'bob@away.example': [1, 1, 1] })
})

test('both in one history', async (t) => {
  const stage = await openStage(t)
  stage.server.append('ann', 'INBOX', question)
  stage.server.append('ann', 'INBOX', letter('more', [], bob))
  stage.server.append('ann', 'INBOX', reply)
  await (await stage.work()).readAll()
  assert.deepEqual(await counts(stage), { 'bob@away.example': [2, 2, 1] })
})

test('all messages with a contact, in whatever role, each once: in two folders, renumbered, back-filled and live', async (t) => {
  const stage = await openStage(t)
  const toBoth = ['Cc: Cy <cy@away.example>, ann@mail.example']
  const question = mail({
    from: bob,
    to: 'Ann <ann@mail.example>, BOB@away.example',
    subject: 'question',
    headers: toBoth,
  })
  const answer = mail({
    from: me,
    to: 'bob@away.example',
    subject: 'answer',
    headers: [...toBoth, 'Bcc: dan@away.example', 'In-Reply-To: <question@sender.example>'],
  })
  stage.server.append('ann', 'INBOX', question)
  stage.server.append('ann', 'Sent', answer)
  await (await stage.work()).readAll()
  const wanted = { 'bob@away.example': [2, 1, 1], 'cy@away.example': [2, 0, 0], 'dan@away.example': [1, 0, 0] }
  assert.deepEqual(await counts(stage), wanted)
  stage.server.append('ann', 'Archive', question)
  stage.server.append('ann', 'INBOX', answer)
  stage.server.renumber('ann', 'INBOX')
  const worker = await stage.work()
  await worker.readAll()
  assert.deepEqual(await counts(stage), wanted)
  stage.server.append('ann', 'INBOX', mail({ from: 'cy@away.example', to: 'dan@away.example', subject: 'live' }))
  await worker.catchUp('INBOX')
  assert.deepEqual(await counts(stage), { ...wanted, 'cy@away.example': [3, 1, 0], 'dan@away.example': [2, 0, 0] })
})

test('an address is no contact from the moment on that it is the user’s own', async (t) => {
  const stage = await openStage(t)
  const worker = await stage.work()
  await worker.readAll()
  await stage.store.users.addAddress(userId, 'second@mail.example')
  stage.server.append('ann', 'INBOX', mail({ from: bob, to: 'ann@mail.example, Second@mail.example', subject: 'both' }))
  stage.server.append('ann', 'INBOX', letter('own', [], 'second@mail.example'))
  await worker.catchUp('INBOX')
  assert.deepEqual(await counts(stage), { 'bob@away.example': [1, 1, 0] })
})

test('never doubled: read again after a renumbering, moved, copied, repeated after a lost answer', async (t) => {
  let lost = 0
  const stage = await openStage(t, {
    wrap: writing(async (batch, write) => {
      const applied = await write()
      if (batch.contacts.length > 0 && lost < 2) {
        lost += 1
        throw new Error('the answer was lost')
      }
      return applied
    }),
  })
  stage.server.append('ann', 'INBOX', question)
  stage.server.append('ann', 'Sent', reply)
  for (let n = 0; n < 2; n += 1) await assert.rejects((await stage.work()).readAll())
  await (await stage.work()).readAll()
  assert.equal(lost, 2)
  const wanted = { 'bob@away.example': [1, 1, 1] }
  assert.deepEqual(await counts(stage), wanted)
  stage.server.renumber('ann', 'INBOX')
  await (await stage.work()).readAll()
  stage.server.append('ann', 'Archive', question)
  await (await stage.work()).readAll()
  assert.deepEqual(await counts(stage), { 'bob@away.example': wanted['bob@away.example'] })
})

test('own mail, junk and drafts are no contacts', async (t) => {
  const stage = await openStage(t)
  stage.server.append('ann', 'Junk', letter('win', [], 'Spammer <spam@bad.example>'))
  stage.server.append('ann', 'Drafts', letter('draft', [], me), ['\\Draft'])
  stage.server.append('ann', 'INBOX', letter('note', [], me))
  await (await stage.work()).readAll()
  assert.deepEqual(await counts(stage), {})
})
