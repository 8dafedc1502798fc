/** Marks of dirty folders outlive a reading that fails; a call is answered by a reading that began after the call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMoved } from '../../../engine/accounts/dirty-folders.ts'

test('the mark of a folder, and its place, stay when the reading fails; so does a call that came meanwhile', async () => {
  const moved = createMoved(() => false)
  moved.found(['Archive', 'Sent'], 1)
  const work = Promise.withResolvers<undefined>()
  const reading = moved.reading('Archive', () => work.promise)
  assert.equal(moved.first(), 'Sent', 'a folder is not read twice at a time')
  let isAnswered = false
  const call = moved.read('Archive').then(() => (isAnswered = true))
  work.reject(new Error('broken'))
  await assert.rejects(reading, /broken/)
  assert.equal(isAnswered, false)
  assert(moved.isMarked('Archive') && moved.isMarked('Sent'))
  await moved.reading('Archive', () => Promise.resolve())
  await call
  assert(!moved.isMarked('Archive'))
})

test('the mark stays also when nobody waits', async () => {
  const moved = createMoved(() => false)
  moved.found(['Archive'], 1)
  await assert.rejects(
    moved.reading('Archive', () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(moved.first(), 'Archive')
})
