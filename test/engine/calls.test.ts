/** The search of the call log by a regular expression: whole pages, in bounded work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callsByPath, isAppError, newId } from '../../engine/index.ts'
import type { CallLogRecord } from '../../engine/store/records.ts'
import { epochStart } from '../support/records.ts'
import { openTestStore } from '../support/test-store.ts'

const developerId = 'd'.repeat(24)
const signal = new AbortController().signal

function call(index: number, path: string): CallLogRecord {
  const at = epochStart + Math.floor(index / 3)
  return { id: newId(at), developerId, userId: null, at, method: 'GET', path, status: 200, durationMs: 1 }
}

test('pages of what matches, over many steps of the log; past the bound a 400 that says what to do', async (t) => {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const search = (path: string, limit: number, offset: number) =>
    callsByPath(store.calls, { developerId }, path, { limit, offset }, signal)
  const append = async (count: number, path: (index: number) => string): Promise<void> => {
    for (let start = 0; start < count; start += 5000) {
      const length = Math.min(5000, count - start)
      await store.calls.append(Array.from({ length }, (_, index) => call(start + index, path(start + index))))
    }
  }
  await append(4500, (index) => (index % 1500 === 0 ? `/lite/users/u${index}` : '/lite/other'))
  const paths = async (limit: number, offset: number) =>
    (await search('/users\\/u/', limit, offset)).map(({ path }) => path)
  assert.deepEqual(await paths(100, 0), ['/lite/users/u3000', '/lite/users/u1500', '/lite/users/u0'])
  assert.deepEqual(await paths(1, 1), ['/lite/users/u1500'])
  assert.deepEqual(await paths(5, 3), [])

  await append(50_000, () => '/lite/other')
  await assert.rejects(search('/users\\/u0/', 1, 0), (error) => {
    assert(isAppError(error, 'bad_request'))
    assert.match(error.message, /^request_path: .*timestamp_after/)
    return true
  })
  assert.equal((await search('/other/', 100, 500)).length, 100)
})

test('ends when nobody waits for it any more', async (t) => {
  const { store, remove } = await openTestStore()
  t.after(remove)
  await store.calls.append(Array.from({ length: 999 }, (_, index) => call(index, `/${'a'.repeat(5000)}`)))
  const stop = new AbortController()
  const search = callsByPath(
    store.calls,
    { developerId },
    `/${'(a*)*'.repeat(30)}b/`,
    { limit: 1, offset: 0 },
    stop.signal,
  )
  // The calls are read by then, and none is looked at.
  setImmediate(() => stop.abort(new Error('gone')))
  await assert.rejects(search, /gone/)
})
