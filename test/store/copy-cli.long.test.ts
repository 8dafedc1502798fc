/** `npm run store -- copy`: what it makes of paths, URIs, and a database that is lost on the way. */
import assert from 'node:assert/strict'
import { existsSync, statSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { runStoreCommand, copyStore } from '../../engine/store/copy.ts'
import type { Store } from '../../engine/store/port.ts'
import type { StoreTransfer } from '../../engine/store/transfer.ts'
import { needs } from '../support/require.ts'
import { fill, sqlitePlace, type Place } from './copy-places.ts'
import { createProxy, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

async function run(
  ...args: readonly string[]
): Promise<{ readonly status: number; readonly lines: readonly string[] }> {
  const lines: string[] = []
  return { status: await runStoreCommand(['copy', ...args], (line) => lines.push(line)), lines }
}

/** A copy that ends after the first collections, as by a power cut. */
async function half(source: Place, target: Place): Promise<void> {
  const [from, into] = [await source.transfer('source'), await target.transfer('target')]
  const to: StoreTransfer = {
    ...into,
    import: (collection, records) =>
      collection === 'messages' ? Promise.reject(new Error('cut')) : into.import(collection, records),
  }
  await assert.rejects(copyStore({ from, to, intoExisting: false, progress: () => undefined }), /cut/)
  await from.close()
  await into.close()
}

suite('the command line of the copy', () => {
  let directory: string
  let source: Place
  let filled: Store

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mailroom-copy-'))
    source = await sqlitePlace()
    filled = await source.store()
    await fill(filled)
  })
  after(async () => {
    await filled.close()
    await source.remove()
    await rm(directory, { recursive: true, force: true })
  })

  test('says how it is used, and what is wrong, in words', async () => {
    const place = await sqlitePlace()
    const some = ['copy', '--to', place.address, '--from']
    for (const [args, words] of [
      [[], /^usage: /],
      [['copy', '--from', 'a'], /^usage: /],
      [['copy', '--from', 'a', '--to', 'a'], /same store/],
      [['copy', '--from', source.address, '--to', join(source.address, '.', 'mailroom.sqlite')], /same store/],
      [['copy', '--from', 'mongodb://a:b@h/x', '--to', 'mongodb://h/x?tls=false'], /same store/],
      [['copy', '--frm', 'a', '--to', 'b'], /^usage: /],
      [[...some, join(place.address, 'none.sqlite')], /none.sqlite: no such store/],
      [[...some, directory], /no such store/],
      [[...some, 'mongodb://:x'], /^--from: /],
      [['copy', '--from', source.address, '--to', 'mongo://127.0.0.1/x'], /^--to: expected mongodb:/],
      [['copy', '--from', source.address, '--to', 'mongodb:/127.0.0.1/x'], /^--to: expected mongodb:/],
      [[...some, 'mongodb://127.0.0.1/%zz'], /^--from: /],
      [['copy', '--from', source.address, '--to', join(source.address, 'mailroom.sqlite', 'x')], /^--to: /],
    ] as const) {
      const lines: string[] = []
      assert.equal(await runStoreCommand(args, (line) => lines.push(line)), 1, args.join(' '))
      assert.match(lines.join('\n'), words)
      if (words.source !== '^usage: ') assert.equal(lines.length, 1)
    }
    await place.remove()
  })

  test('an SQLite file that is no store is no source, and stays as it is', async () => {
    const path = join(directory, 'other.sqlite')
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE songs (title TEXT)')
    other.close()
    const { status, lines } = await run('--from', path, '--to', join(directory, 'never'))
    assert.deepEqual([status, lines], [1, [`${path}: no such store`]])
    const again = new DatabaseSync(path)
    assert.deepEqual(
      again
        .prepare('SELECT name FROM sqlite_schema')
        .all()
        .map((row) => row['name']),
      ['songs'],
    )
    again.close()
    assert.equal(existsSync(join(directory, 'never')), false)
  })

  test('a path that is not there yet becomes a data directory, or an SQLite file by its ending', async () => {
    const fresh = join(directory, 'new', 'data')
    assert.equal((await run('--from', source.address, '--to', fresh)).status, 0)
    assert(statSync(join(fresh, 'mailroom.sqlite')).isFile())
    const file = join(directory, 'backup.sqlite')
    assert.equal((await run('--from', source.address, '--to', file)).status, 0)
    assert(statSync(file).isFile())
  })

  test('a copy goes on from the same source however it is spelt, and from no other', async () => {
    const target = await sqlitePlace()
    await half(source, target)
    const other = await sqlitePlace()
    await (await other.store()).close()
    const refused = await run('--from', other.address, '--to', target.address)
    assert.equal(refused.status, 1)
    assert.match(refused.lines.join('\n'), /unfinished copy from /)
    const link = join(directory, 'link')
    symlinkSync(source.address, link)
    assert.equal((await run('--from', join(link, 'mailroom.sqlite'), '--to', target.address)).status, 0)
    await target.remove()
    await other.remove()
  })

  suite('with MongoDB', needs('mongodb'), () => {
    let target: TestDatabase
    let proxy: Proxy

    before(async () => {
      target = testDatabase()
      proxy = await createProxy(target.uri)
    })
    after(async () => {
      await proxy.close()
      await target.remove()
    })

    test('a misspelt source is said, and not made', async () => {
      const misspelt = testDatabase()
      const { status, lines } = await run('--from', misspelt.uri, '--to', join(directory, 'from-nowhere'))
      assert.equal(status, 1)
      const { host, pathname } = new URL(misspelt.uri)
      assert.deepEqual(lines, [`${host}${pathname}: no such store`])
      const client = await MongoClient.connect(target.uri)
      const { databases } = await client.db().admin().listDatabases({ nameOnly: true })
      await client.close()
      assert(!databases.some(({ name }) => `/${name}` === pathname))
    })

    test('a database that is lost in the middle is one line, and the same command goes on', async () => {
      // before a write, and after one whose answer is lost
      for (const [collection, verdict] of [['messages', 'die'] as const, ['changes', 'die-after'] as const]) {
        proxy.decide = (command) => (command['update'] === collection ? verdict : 'pass')
        const { status, lines } = await run('--from', source.address, '--to', proxy.uri)
        assert.equal(status, 1)
        const words = /^the database cannot be reached .* goes on where it was when the same command is run again$/
        assert.match(lines.at(-1) ?? '', words)
        proxy.decide = () => 'pass'
        proxy.revive()
      }
      // by another way: the source is the same, and so is the target
      const { status, lines } = await run('--from', join(source.address, 'mailroom.sqlite'), '--to', target.uri)
      assert.equal(status, 0, lines.join('\n'))
      assert(!lines.some((line) => line.startsWith('users:')), 'what was copied is not copied again')
    })
  })
})
