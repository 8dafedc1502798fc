/** The write-ahead log: writes wait for the disk, the event loop does not, and the log does not grow for ever. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openDatabase, type SyncMode } from '../../engine/store/sqlite/database.ts'
import { openKeyedCollections } from '../../engine/store/sqlite/keyed.ts'
import { createOutbox } from '../../engine/store/sqlite/outbox.ts'
import { migrate } from '../../engine/store/sqlite/schema.ts'
import { until } from '../support/until.ts'

async function opened(t: TestContext, sync: SyncMode) {
  const directory = mkdtempSync(join(tmpdir(), 'mr-log-'))
  const path = join(directory, 'store.sqlite')
  const database = openDatabase(path, sync, 50)
  t.after(() => {
    database.close()
    rmSync(directory, { recursive: true })
  })
  await migrate(database, path)
  await database.write(() => database.script('CREATE TABLE t (a TEXT)'))
  return { database, path }
}

/** The disk is as slow as the caller says, and takes nothing after `fail`. */
async function slowDisk(t: TestContext, path: string) {
  const handle = await open(path)
  const real = Object.getPrototypeOf(handle) as FileHandle
  await handle.close()
  const { datasync } = real
  let [release, failed, syncs] = [(): void => undefined, false, 0]
  let gate = Promise.resolve()
  t.mock.method(real, 'datasync', async function (this: FileHandle) {
    syncs += 1
    await gate
    if (failed) throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
    return datasync.call(this)
  })
  return {
    hold: () => void (gate = new Promise((resolve) => (release = resolve))),
    release: () => release(),
    fail: () => (failed = true),
    syncs: () => syncs,
  }
}

/** Whether it has resolved within some turns of the loop. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false
  promise.then(
    () => (done = true),
    () => undefined,
  )
  for (let turns = 0; turns < 20; turns += 1) await turn()
  return done
}

suite('the write-ahead log', () => {
  test('a write waits for the disk, the loop and reads do not; one sync serves all that came meanwhile', async (t) => {
    const { database, path } = await opened(t, 'full')
    const disk = await slowDisk(t, path)
    const insert = (a: string) => database.write(() => database.run('INSERT INTO t VALUES (?)', a))
    disk.hold()
    const first = insert('first')
    assert.equal(await isDone(first), false)
    assert.equal(await database.read(() => database.number('SELECT count(*) FROM t')), 1)
    const later = []
    for (const a of ['second', 'third']) {
      later.push(insert(a))
      await turn()
    }
    const behind = database.writeUnsynced(() => 'behind')
    assert.equal(await isDone(Promise.any([...later, behind])), false, 'in the order of the commits')
    disk.release()
    assert.deepEqual(await Promise.all([first, ...later, behind]), [1, 1, 1, 'behind'])
    assert.equal(disk.syncs(), 2)
  })

  test('what a power loss may take does not wait', async (t) => {
    const { database, path } = await opened(t, 'full')
    const disk = await slowDisk(t, path)
    await database.writeUnsynced(() => 0)
    // Results of callbacks are of that kind.
    await createOutbox(database, openKeyedCollections(database, Date.now)).record([])
    assert.equal(disk.syncs(), 0)
    await Promise.all([database.writeUnsynced(() => 0), database.write(() => 0)])
    assert.equal(disk.syncs(), 1)
    for (const sync of ['normal', 'off'] as const) await (await opened(t, sync)).database.write(() => 0)
    assert.equal(disk.syncs(), 1)
  })

  test('a write that the disk did not take is an error, and the next one is tried', async (t) => {
    const { database, path } = await opened(t, 'full')
    const disk = await slowDisk(t, path)
    disk.fail()
    const write = () => database.write(() => 0)
    await assert.rejects(write(), { code: 'store_unavailable', retryAfterMs: 5000 })
    await assert.rejects(write(), { code: 'store_unavailable' })
    assert.equal(disk.syncs(), 2)
  })

  test('a thread moves it into the file, and it begins anew', async (t) => {
    const { database, path } = await opened(t, 'full')
    const page = 'x'.repeat(4000)
    const lengths = () => (database.tuple('PRAGMA wal_checkpoint(NOOP)') ?? []).slice(1).map(Number)
    const insert = (rows: number) =>
      database.write(() => {
        for (let row = 0; row < rows; row += 1) database.run('INSERT INTO t VALUES (?)', page)
      })
    await insert(900)
    assert.equal(lengths()[1], 0, 'a short log stays')
    await insert(1500)
    await until('the log is moved', () => {
      const [pages = 0, moved = 0] = lengths()
      return pages > 2400 && pages === moved
    })
    assert(statSync(path).size > 2400 * 4000)
    await insert(1)
    assert((lengths()[0] ?? 0) < 100, 'from its beginning')
    assert.equal(await database.read(() => database.number('SELECT count(*) FROM t')), 2401)
  })
})
