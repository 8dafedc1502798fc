/**
 * kill -9 of what works on a whole store: the copy to another store, the migration of an older one. What is there
 * afterwards is made whole by the next run, with nothing lost and nothing twice.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { runStoreCommand, transferNames } from '../../engine/store/copy.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { openSqliteTransfer } from '../../engine/store/sqlite/transfer.ts'
import type { StoreTransfer } from '../../engine/store/copy.ts'
import { createMailbox, type Mailbox } from '../store/contract/mailbox.ts'
import { fill, sqlitePlace, type Place } from '../store/copy-places.ts'
import { killSpread, runAndKill, type Ended } from './kills.ts'

const root = join(import.meta.dirname, '../..')

/** Every record of every collection, in the order of the export. */
async function allOf(open: () => Promise<StoreTransfer>): Promise<Record<string, unknown[]>> {
  const store = await open()
  const all: Record<string, unknown[]> = {}
  for (const name of transferNames) {
    const records: unknown[] = []
    let at: string | null = null
    do {
      const page: Awaited<ReturnType<typeof store.export>> = await store.export(name, at, 500)
      records.push(...page.records)
      at = page.next
    } while (at !== null)
    all[name] = records
  }
  await store.close()
  return all
}

test('kill -9 of a copy: the next one makes it whole', async (t) => {
  const source = await sqlitePlace()
  t.after(() => source.remove())
  const store = await source.store()
  for (let mailbox = 0; mailbox < 12; mailbox += 1) await fill(store)
  await store.close()
  const all = await allOf(() => source.transfer('source'))
  await killSpread(async (afterMs) => {
    const target = await sqlitePlace()
    try {
      return await copyTwice(source, target, afterMs, all)
    } finally {
      await target.remove()
    }
  })
})

/** By a process that is killed, and by another one to its end. */
async function copyTwice(source: Place, target: Place, afterMs: number, all: unknown): Promise<Ended> {
  const args = ['copy', '--from', source.address, '--to', target.address]
  const ended = await runAndKill([join(root, 'main.ts'), 'store', ...args], afterMs)
  // A copy that was whole already is refused: what is there decides.
  if (ended.killed) await runStoreCommand(args, () => undefined)
  assert.deepEqual(await allOf(() => target.transfer('source')), all)
  return ended
}

suite('kill -9 of a migration', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-kills-'))
  const old = join(directory, 'old.sqlite')
  const path = join(directory, 'mailroom.sqlite')
  const program = `const { createSqliteStore } = await import(${JSON.stringify(
    pathToFileURL(join(root, 'engine/store/sqlite/index.ts')).href,
  )})
console.log('opens')
await (await createSqliteStore({ path: ${JSON.stringify(path)} })).close()`
  let before12: Record<string, unknown[]>
  before(async () => {
    const store = await createSqliteStore({ path: old, sync: 'off' })
    const mailbox = await createMailbox(store)
    for (let from = 0; from < 3000; from += 500) await fillInbox(mailbox, from)
    await store.close()
    before12 = await allOf(() => openSqliteTransfer(old, 'source'))
    const database = new DatabaseSync(old)
    database.exec("DELETE FROM message_keys WHERE key = 'd'")
    database.exec('DROP TABLE audit; PRAGMA user_version = 12')
    database.close()
  })
  after(() => rmSync(directory, { recursive: true }))

  test('the next start ends it', async () => {
    await killSpread(async (afterMs) => {
      for (const rest of ['-wal', '-shm']) rmSync(path + rest, { force: true })
      copyFileSync(old, path)
      const ended = await runAndKill(['--input-type=module', '--eval', program], afterMs)
      await (await createSqliteStore({ path, sync: 'off' })).close()
      assert.deepEqual(await allOf(() => openSqliteTransfer(path, 'source')), before12)
      const database = new DatabaseSync(path)
      const deleted = database.prepare("SELECT count(*) AS n FROM message_keys WHERE key = 'd'").get()
      database.close()
      assert.equal(deleted?.['n'], 3000)
      return ended
    })
  })
})

function fillInbox(mailbox: Mailbox, from: number): Promise<unknown> {
  const flags = ['\\Deleted']
  const added = Array.from({ length: 500 }, (_, index) => mailbox.added('INBOX', from + index + 1, {}, { flags }))
  return mailbox.apply('INBOX', { added })
}
