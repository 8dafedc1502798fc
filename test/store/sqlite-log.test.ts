/** The write-ahead log: writes wait for the disk, the event loop does not, and the log does not grow for ever. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openDatabase, type Database, type SyncMode } from '../../engine/store/sqlite/database.ts'
import { openKeyedCollections } from '../../engine/store/sqlite/keyed.ts'
import { createOutbox } from '../../engine/store/sqlite/outbox.ts'
import { migrate } from '../../engine/store/sqlite/schema.ts'
import { until } from '../support/until.ts'

async function opened(t: TestContext, sync: SyncMode) {
  const directory = mkdtempSync(join(tmpdir(), 'mr-log-'))
  const path = join(directory, 'store.sqlite')
  const database = openDatabase(path, sync, 50)
  t.after(async () => {
    await database.close().catch(() => undefined)
    rmSync(directory, { recursive: true })
  })
  await migrate(database, path)
  await database.write(() => database.script('CREATE TABLE t (a TEXT)'))
  return { database, path }
}

/** The disk is as slow as the caller says, and takes nothing while it fails. */
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
    fail: (next: boolean) => void (failed = next),
    syncs: () => syncs,
  }
}

const lengthOf = (database: Database): [pages: number, moved: number] => {
  const [, pages, moved] = database.tuple('PRAGMA wal_checkpoint(NOOP)') ?? []
  return [Number(pages), Number(moved)]
}

const insertPages = (database: Database, count: number): Promise<void> =>
  database.write(() => {
    for (let row = 0; row < count; row += 1) database.run('INSERT INTO t VALUES (?)', 'x'.repeat(4000))
  })

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

  test('a write that a power loss may take does not wait', async (t) => {
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

  test('a write that the disk did not take is an error; after it the file is synced, then the log again', async (t) => {
    const { database, path } = await opened(t, 'full')
    const disk = await slowDisk(t, path)
    const write = () => database.write(() => database.run("INSERT INTO t VALUES ('a')"))
    disk.fail(true)
    await assert.rejects(write(), { code: 'store_unavailable', retryAfterMs: 5000 })
    disk.fail(false)
    assert.equal(lengthOf(database)[1], 0)
    await write()
    const [pages, moved] = lengthOf(database)
    assert.equal(moved, pages, 'the file has what the log may have lost')
    assert.equal(disk.syncs(), 1)
    await write()
    assert.equal(disk.syncs(), 2)
  })

  test('a thread moves the log into the file, and the log begins anew', async (t) => {
    const { database, path } = await opened(t, 'full')
    await insertPages(database, 900)
    await insertPages(database, 1)
    assert.equal(lengthOf(database)[1], 0, 'a short log stays')
    await insertPages(database, 1500)
    await insertPages(database, 1)
    await until('the log is moved', () => {
      const [pages, moved] = lengthOf(database)
      return pages > 2400 && pages === moved
    })
    assert(statSync(path).size > 2400 * 4000)
    await insertPages(database, 1)
    assert(lengthOf(database)[0] < 100, 'from its beginning')
    assert.equal(await database.read(() => database.number('SELECT count(*) FROM t')), 2403)
  })

  test('writes without a pause wait for the move of a log that is too long', async (t) => {
    const { database } = await opened(t, 'full')
    let longest = 0
    for (let group = 0; group < 60; group += 1) {
      await Promise.all([insertPages(database, 200), insertPages(database, 200)])
      longest = Math.max(longest, lengthOf(database)[0])
    }
    assert(longest < 10_000, `${longest} pages`)
  })

  test('a close moves and removes the log, while threads are there', async (t) => {
    const { database, path } = await opened(t, 'full')
    await insertPages(database, 1200)
    await insertPages(database, 1)
    await database.close()
    assert(!existsSync(`${path}-wal`))
    assert.equal(new DatabaseSync(path).prepare('SELECT count(*) AS n FROM t').get()?.['n'], 1201)
  })
})
