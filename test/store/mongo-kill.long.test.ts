/**
 * kill -9 of the database under eight writers, twice. A server of the test's own: the script that runs the shared one
 * starts another beside it. Afterwards nothing that was acknowledged is missing and nothing is there twice.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { isAppError } from '../../engine/errors.ts'
import type { AddedMessage, Store } from '../../engine/store/port.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, moved, type Mailbox } from './contract/mailbox.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

const run = promisify(execFile)
const script = join(import.meta.dirname, '../support/mongo.sh')
const home = process.env['TEST_MONGO_HOME'] ?? '/var/tmp/mailroom-mongo'
const instance = `kill-${process.pid}`

async function mongo(command: string): Promise<string> {
  const { stdout } = await run('bash', [script, command, instance])
  return stdout.trim()
}

/** The server of the script is needed, not any server: another one is not ours to kill. */
function own(): { skip?: string } {
  const known = needs('mongodb')
  if (known.skip !== undefined) return known
  const here = process.getuid?.() === 0 && existsSync(join(home, 'root/.mailroom-ready'))
  return here ? {} : { skip: 'kills only a server of test/support/mongo.sh, run as root' }
}

const writers = 8
const perAccount = 300
const perBatch = 3

interface Writer {
  readonly mailbox: Mailbox
  readonly all: readonly AddedMessage[]
  /** Acknowledged by the store. */
  readonly stored: Set<string>
}

/** One batch from where the cursor is; false = all is there. */
async function step(store: Store, { mailbox, all, stored }: Writer): Promise<boolean> {
  const inbox = await store.folders.byPath(mailbox.account.id, 'INBOX')
  assert(inbox)
  const from = inbox.cursor?.uidNext ?? 1
  const next = all.slice(from - 1, from - 1 + perBatch)
  const events = next.map((one) => mailbox.event(one))
  const batch = await mailbox.batch('INBOX')
  await store.sync.apply({
    ...batch,
    cursorBefore: inbox.cursor,
    added: next.map((one, index) => ({ ...one, firstChangeId: events[index]?.changes[0]?.id ?? null })),
    changes: events.flatMap((event) => event.changes),
    outbox: events.flatMap((event) => event.outbox),
    cursorAfter: moved(inbox.cursor, { uidNext: from + next.length }),
  })
  for (const { id } of next) stored.add(id)
  return next.length > 0
}

async function write(store: Store, writer: Writer, onFailure: () => void): Promise<void> {
  for (let more = true; more;) {
    try {
      more = await step(store, writer)
    } catch (error) {
      assert(isAppError(error, 'store_unavailable'), String(error))
      onFailure()
      await until('the database is back', () => store.ping().then(() => true), { withinMs: 30_000 })
    }
  }
}

suite('kill -9 of the database', own(), () => {
  let database: TestDatabase
  let store: Store

  before(async () => {
    database = testDatabase(await mongo('start'))
    store = await database.open({ timeoutMs: 3000 })
  })
  after(async () => {
    try {
      await database.remove()
    } finally {
      await mongo('drop')
    }
  })

  test('nothing acknowledged is lost, nothing is written twice, and the writers go on by themselves', async () => {
    const team: Writer[] = []
    for (let number = 0; number < writers; number += 1) {
      const mailbox = await createMailbox(store)
      const all = Array.from({ length: perAccount }, (_, index) => mailbox.added('INBOX', index + 1))
      team.push({ mailbox, all, stored: new Set() })
    }
    let failures = 0
    const writing = Promise.all(team.map((writer) => write(store, writer, () => (failures += 1))))
    const written = () => team.reduce((sum, { stored }) => sum + stored.size, 0)
    for (const share of [0.15, 0.5]) {
      await until('a share is written', () => written() >= writers * perAccount * share, { withinMs: 60_000 })
      await mongo('kill-db')
      await mongo('start')
    }
    await writing
    assert(failures > 0, 'the writers saw the database go')
    for (const writer of team) await assertWhole(store, writer)
  })
})

async function assertWhole(store: Store, { mailbox, all, stored }: Writer): Promise<void> {
  const { id } = mailbox.account
  const ids = new Set(all.map((one) => one.id))
  // A batch whose answer was lost with the database may be whole all the same: then nobody was told, and it is there.
  assert.deepEqual(
    [...stored].filter((one) => !ids.has(one)),
    [],
  )
  const page = { limit: 1000, offset: 0 }
  const rows = await store.messages.list(id, {}, page)
  assert.deepEqual(new Set(rows.map((row) => row.id)), ids)
  assert.equal(rows.length, perAccount)
  const changes = await store.changes.since(id, 0, 1000)
  assert.deepEqual(
    changes.map(({ seq }) => seq),
    all.map((_, index) => index + 1),
  )
  assert.deepEqual(new Set(changes.map(({ messageId }) => messageId)), ids)
  const outbox = await store.outbox.list({ accountId: id }, page)
  assert.deepEqual(
    outbox.map(({ changeId, seq }) => [changeId, seq]).sort(),
    changes.map((one) => [one.id, one.seq]).sort(),
  )
}
