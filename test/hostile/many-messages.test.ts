/**
 * A folder of nearly as many messages as are allowed: no piece of work over its UIDs holds the loop. The index of
 * MongoDB has 10,000 of them, two steps of the comparison.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { compareUids, flagsSince } from '../../engine/accounts/compare.ts'
import { readNew } from '../../engine/accounts/sync.ts'
import { cursorOf } from '../../engine/accounts/write.ts'
import type { MessageStore } from '../../engine/store/port.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { openStage } from '../engine/accounts/stage.ts'
import type { Hooks } from '../support/imap-server/index.ts'
import { play } from '../support/imap-server/play.ts'
import { searched } from '../support/large-lists.ts'
import { copyMessagesOnMongo } from '../support/many-messages.ts'
import { needs } from '../support/require.ts'
import { createMailbox } from '../store/contract/mailbox.ts'
import { testDatabase } from '../store/mongo-server.ts'

const exists = 1_900_000
const existsOnMongo = 10_000
const uidNext = 2 * exists + 1
const uidAt = (n: number): number => 2 * n
const longestMs = 100

/** The most processor time of this thread in one turn of the loop, in milliseconds. */
function watchTurns(t: TestContext): () => Promise<number> {
  let [last, most] = [process.threadCpuUsage(), 0]
  const look = (): void => {
    const now = process.threadCpuUsage()
    most = Math.max(most, (now.user + now.system - last.user - last.system) / 1000)
    last = now
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  t.after(() => {
    clearImmediate(next)
  })
  return async () => {
    // The turn under way counts too.
    for (let turns = 0; turns < 2; turns += 1) await turn()
    return most
  }
}

/** Made before: the scripted server runs on the same loop. */
const slices = new Map<number, Buffer>()
function sliceFrom(from: number, to: number): Buffer {
  const made = slices.get(from)
  if (made) return made
  const uids = Array.from({ length: to - from + 1 }, (_, n) => uidAt(from + n))
  const line = Buffer.from(`* SEARCH ${uids.join(' ')}`)
  slices.set(from, line)
  return line
}

interface Index {
  readonly messages: Pick<MessageStore, 'knownUids' | 'knownAmong'>
  /** UIDs 1 to `count`. */
  fill(folderId: string, uidValidity: string, count: number): Promise<void>
  close(): Promise<void>
}

async function sqliteIndex(): Promise<Index> {
  const path = join(mkdtempSync(join(tmpdir(), 'mr-many-')), 'store.sqlite')
  const store = await createSqliteStore({ path, sync: 'off' })
  return {
    messages: store.messages,
    fill(folderId, uidValidity, count) {
      const database = new DatabaseSync(path)
      const insert = database.prepare(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO placements (folder_id, uid_validity, uid, message_id, flags, modseq, rev)
      SELECT ?, ?, i, 'm' || i, '[]', '1', 1 FROM n`)
      insert.run(count, folderId, uidValidity)
      database.close()
      return Promise.resolve()
    },
    async close() {
      await store.close()
      rmSync(dirname(path), { recursive: true })
    },
  }
}

/** Of a folder of its own, whichever is asked for. */
async function mongoIndex(): Promise<Index> {
  const database = testDatabase()
  const store = await database.open()
  const mailbox = await createMailbox(store)
  const first = mailbox.added('INBOX', 1)
  await mailbox.apply('INBOX', { added: [first] })
  const { folderId, uidValidity } = first.placement
  return {
    messages: {
      knownUids: (_folderId, _uidValidity, from, to) => store.messages.knownUids(folderId, uidValidity, from, to),
      knownAmong: (_folderId, _uidValidity, uids) => store.messages.knownAmong(folderId, uidValidity, uids),
    },
    fill: (_folderId, _uidValidity, count) => copyMessagesOnMongo(database.uri, first.id, count - 1),
    close: () => database.remove(),
  }
}

suite('a folder of 1,900,000 messages', () => {
  const selected = {
    lines: [`* ${exists} EXISTS`, '* OK [UIDVALIDITY 1] ok', `* OK [UIDNEXT ${uidNext}] ok`],
    tagged: 'OK done',
  }
  test(`all UIDs, slice by slice: no turn takes more than ${longestMs} ms`, async (t) => {
    const command: Hooks['command'] = ({ name, text }) => {
      if (name !== 'UID SEARCH') return name === 'SELECT' ? selected : undefined
      const [, from, to] = / SEARCH (\d+):(\d+) /.exec(text) ?? assert.fail(text)
      return { lines: [sliceFrom(Number(from), Number(to))], tagged: 'OK done' }
    }
    const { inbox } = await play(t, { command })
    const session = await inbox(30_000)
    await session.searchUids('1:*')
    const most = watchTurns(t)
    const uids = await session.searchUids('1:*')
    assert.equal(uids.length, exists)
    assert.deepEqual([uids[0], uids[1], uids.at(-1)], [uidAt(1), uidAt(2), uidAt(exists)])
    const longest = await most()
    assert(longest < longestMs, `${Math.round(longest)} ms`)
  })

  /** Its rows in a store of their own, which the workers of the stage see; the server has the same UIDs. */
  async function indexed(t: TestContext, index: Index, count: number) {
    const { knownUids, knownAmong } = index.messages
    const stage = await openStage(t, {
      wrap: (store) => ({ ...store, messages: { ...store.messages, knownUids, knownAmong } }),
    })
    stage.parts.defer(() => index.close())
    const worker = await stage.work()
    await worker.readAll()
    const { id: folderId } = await stage.folder('INBOX')
    const context = { ...worker.context, folderId }
    const { uidValidity } = cursorOf(context)
    await index.fill(folderId, uidValidity, count)
    const cursor = { ...cursorOf(context), uidNext: count + 1, exists: count }
    await worker.state.commit(folderId, () => ({ cursor }))
    stage.server.hooks = { command: searched(count, uidValidity) }
    await worker.session.select('INBOX', { refresh: true })
    return { context, server: stage.server }
  }

  async function compares(t: TestContext, index: Index, count: number): Promise<void> {
    const { context, server } = await indexed(t, index, count)
    const most = watchTurns(t)
    assert.equal(await compareUids(context, count), false)
    const compared = await most()
    assert(compared < longestMs, `${Math.round(compared)} ms`)
    const flags = [1, count].map((uid) => `* ${uid} FETCH (UID ${uid} FLAGS (\\Seen) MODSEQ (9))`)
    server.hooks = {
      command: ({ name }) => (name === 'UID FETCH' ? { lines: flags, tagged: 'OK done' } : undefined),
    }
    const since = watchTurns(t)
    await flagsSince(context, '9')
    assert.equal(cursorOf(context).highestModseq, '9')
    const read = await since()
    assert(read < longestMs, `${Math.round(read)} ms for the flags of the oldest and the newest`)
  }

  async function refusesToGive(t: TestContext): Promise<void> {
    const stage = await openStage(t)
    const worker = await stage.work()
    await worker.readAll()
    const { id: folderId } = await stage.folder('INBOX')
    const context = { ...worker.context, folderId }
    const answers = searched(exists, cursorOf(context).uidValidity)
    stage.server.hooks = {
      command(call) {
        if (call.name === 'UID FETCH') return { lines: [], tagged: 'OK done' }
        const page = / SEARCH UID (\d+):(\d+)/.exec(call.text)
        return page === null ? answers(call) : { lines: [`* SEARCH ${page[1]} ${page[2]}`], tagged: 'OK done' }
      },
    }
    await worker.session.select('INBOX', { refresh: true })
    const most = watchTurns(t)
    await assert.rejects(readNew(context), { code: 'server_refused' })
    const longest = await most()
    assert(longest < longestMs, `${Math.round(longest)} ms`)
  }

  const bound = `no turn takes more than ${longestMs} ms`
  test(`all new, and none of them given: ${bound}`, refusesToGive)

  test(`compared with the index: ${bound}`, async (t) => compares(t, await sqliteIndex(), exists))

  test(`compared with the index of MongoDB: ${bound}`, needs('mongodb'), async (t) =>
    compares(t, await mongoIndex(), existsOnMongo),
  )
})
