/** Comparing the index with the server, one step at a time: what is asked, and how far the cursor moves. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { compareFlags, compareUids, flagsSince, readMissing } from '../../../engine/accounts/compare.ts'
import { syncFlags } from '../../../engine/accounts/sync.ts'
import { cursorOf } from '../../../engine/accounts/write.ts'
import type { FolderCursor } from '../../../engine/store/records.ts'
import { fullCapabilities, type Hooks, type ImapServer } from '../../support/imap-server/index.ts'
import { inSet } from '../../support/imap-server/tokens.ts'
import { fill, letter, openStage, type StageOptions, writing } from './stage.ts'

const noConditions = fullCapabilities.filter((name) => name !== 'CONDSTORE' && name !== 'ENABLE')

/** INBOX read to its end and selected; `prepare` fills it before. */
async function opened(t: TestContext, prepare: (server: ImapServer) => void, options: StageOptions = {}) {
  const stage = await openStage(t, options)
  prepare(stage.server)
  const worker = await stage.work()
  await worker.readAll()
  await worker.session.select('INBOX', { refresh: true })
  const { server } = stage
  const { id } = await stage.folder('INBOX')
  const context = { ...worker.context, folderId: id }
  const from = server.log.length
  const written = t.mock.method(stage.deps.store.sync, 'apply').mock
  return {
    ...stage,
    worker,
    context,
    id,
    inbox: server.folder('ann', 'INBOX'),
    cursor: () => cursorOf(context),
    /** The folder as it is stored. */
    stored: () => stage.folder('INBOX'),
    setCursor: (cursor: Partial<FolderCursor>) =>
      worker.state.commit(id, () => ({ cursor: { ...cursorOf(context), ...cursor } })),
    writes: () => written.callCount(),
    /** Commands since then that match, without their tags. */
    asked: (pattern: RegExp) =>
      server.log
        .slice(from)
        .map(({ line }) => line.replace(/^C: \S+ /, ''))
        .filter((line) => pattern.test(line)),
    flagsOf: async (subject: string) => (await stage.message(subject)).placements.map((one) => one.flags),
  }
}

type Opened = Awaited<ReturnType<typeof opened>>

const five = (server: ImapServer) => fill(server, 'INBOX', 5)
const flagging = /^UID FETCH \S+ \(UID FLAGS/

function putAt(server: ImapServer, ...uids: readonly number[]): void {
  for (const uid of uids) {
    server.folder('ann', 'INBOX').uidNext = uid
    server.append('ann', 'INBOX', letter(`m${uid}`))
  }
}

/** Three messages, far apart. */
const scattered = (server: ImapServer) => putAt(server, 1, 600, 1199)

suite('flags since a mod-sequence', () => {
  test('are stored and told, and the cursor goes to what the server named', async (t) => {
    const one = await opened(t, five)
    one.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
    one.server.setFlags('ann', 'INBOX', 4, ['\\Flagged'])
    const highest = String(one.inbox.highestModseq + 5n)
    await flagsSince(one.context, highest)
    assert.deepEqual((await one.story()).sort(), ['flags_changed m2 INBOX', 'flags_changed m4 INBOX'])
    assert.deepEqual(await one.flagsOf('m2'), [['\\Seen']])
    const { cursor, counts } = await one.stored()
    assert.deepEqual([cursor?.highestModseq, counts], [highest, { messages: 5, unseen: 4 }])
  })

  test('with no or a lower word of the server: the cursor goes to the highest that was seen, as a number', async (t) => {
    for (const told of [null, '8']) {
      const one = await opened(t, (server) => {
        fill(server, 'INBOX', 3)
        server.folder('ann', 'INBOX').highestModseq = 9n
      })
      await one.setCursor({ highestModseq: '9' })
      for (const uid of [1, 3]) one.server.setFlags('ann', 'INBOX', uid, ['\\Seen'])
      await flagsSince(one.context, told)
      assert.equal(one.cursor().highestModseq, '11')
    }
  })

  test('more than are held at once: all flags are compared', async (t) => {
    const one = await opened(t, five)
    const lines = Array.from({ length: 20_002 }, (_, n) => `* 1 FETCH (UID ${n + 100} FLAGS () MODSEQ (3))`)
    let times = 1
    one.server.hooks = {
      command: () => (times-- > 0 ? { lines: [lines.join('\r\n')], proceed: true } : undefined),
    }
    for (const uid of [2, 4]) one.server.setFlags('ann', 'INBOX', uid, ['\\Seen'])
    await flagsSince(one.context, String(one.inbox.highestModseq))
    assert.deepEqual((await one.story()).sort(), ['flags_changed m2 INBOX', 'flags_changed m4 INBOX'])
    assert.equal(one.cursor().highestModseq, String(one.inbox.highestModseq))
  })

  test('nothing new: nothing is written, or the cursor alone', async (t) => {
    const one = await opened(t, five)
    const { highestModseq } = one.cursor()
    await flagsSince(one.context, highestModseq)
    assert.equal(one.writes(), 0)
    await flagsSince(one.context, String(BigInt(highestModseq) + 1n))
    assert.equal(one.writes(), 1)
    assert.deepEqual(await one.told(), [])
  })
})

suite('flags without mod-sequences', () => {
  const ranges = (one: Opened) => one.asked(flagging).map((line) => line.split(' ')[2])

  test('are compared in windows of 500 UIDs, the newest first, down to the first', async (t) => {
    const one = await opened(t, scattered, { capabilities: noConditions })
    for (const uid of [1, 600, 1199]) one.server.setFlags('ann', 'INBOX', uid, ['\\Flagged'])
    await compareFlags(one.context, 'all')
    assert.deepEqual(ranges(one), ['700:1199', '200:699', '1:199'])
    assert.deepEqual(
      await one.story(),
      [1199, 600, 1].map((uid) => `flags_changed m${uid} INBOX`),
    )
  })

  test('of the newest window alone, where this is wanted', async (t) => {
    const one = await opened(t, scattered, { capabilities: noConditions })
    for (const uid of [1, 600, 1199]) one.server.setFlags('ann', 'INBOX', uid, ['\\Flagged'])
    await compareFlags(one.context, 'newest')
    assert.deepEqual(ranges(one), ['700:1199'])
    assert.deepEqual(await one.story(), ['flags_changed m1199 INBOX'])
  })

  test('not below what is still to be read for the first time', async (t) => {
    const one = await opened(t, scattered, { capabilities: noConditions })
    await one.setCursor({ backfillBelow: 600 })
    await compareFlags(one.context, 'all')
    assert.deepEqual(ranges(one), ['700:1199', '600:699'])
    await one.setCursor({ backfillBelow: 700 })
    await compareFlags(one.context, 'all')
    assert.deepEqual(ranges(one).slice(2), ['700:1199'])
  })

  test('of a server that names its mod-sequence late: it is learned when all are compared', async (t) => {
    const one = await opened(t, five)
    await one.setCursor({ highestModseq: '0' })
    one.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    const selected = one.context.session.selected ?? assert.fail()
    const named = { ...selected, highestModseq: String(one.inbox.highestModseq) }
    await syncFlags(one.context, named)
    assert.deepEqual([one.cursor().highestModseq, await one.flagsOf('m1')], [named.highestModseq, [['\\Seen']]])
  })

  test('of an empty folder are asked for nowhere', async (t) => {
    const one = await opened(t, () => undefined, { capabilities: noConditions })
    await compareFlags(one.context, 'all')
    assert.deepEqual(ranges(one), [])
  })

  test('that are the same are not written; others bring the counts along', async (t) => {
    const one = await opened(t, (server) => {
      server.append('ann', 'INBOX', letter('read'), ['\\Seen'])
      server.append('ann', 'INBOX', letter('new'))
    })
    await compareFlags(one.context, 'all')
    assert.equal(one.writes(), 0)
    one.server.setFlags('ann', 'INBOX', 1, [])
    await compareFlags(one.context, 'all')
    assert.deepEqual((await one.stored()).counts, { messages: 2, unseen: 2 })
    one.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    one.server.setFlags('ann', 'INBOX', 2, ['\\Seen', '\\Flagged'])
    await compareFlags(one.context, 'all')
    assert.deepEqual((await one.stored()).counts, { messages: 2, unseen: 0 })
  })
})

suite('UIDs', () => {
  test('that are gone are taken out, with the counts; the others stay', async (t) => {
    const one = await opened(t, (server) => {
      fill(server, 'INBOX', 4)
      server.append('ann', 'INBOX', letter('read'), ['\\Seen'])
    })
    one.server.expunge('ann', 'INBOX', 1, 3, 5)
    assert.equal(await compareUids(one.context, 2), true)
    assert.deepEqual(await one.subjects('INBOX'), ['m2', 'm4'])
    const folder = await one.stored()
    assert.deepEqual([folder.counts, folder.cursor?.exists], [{ messages: 2, unseen: 2 }, 2])
    assert.equal(await compareUids(one.context, 2), false)
  })

  test('that a SEARCH leaves out are asked for again, after a NOOP: found by SEARCH or by FETCH, they stay', async (t) => {
    for (const answers of [1, 2]) {
      const one = await opened(t, five)
      let left = answers
      one.server.hooks = {
        send(response) {
          return !response.toString('latin1').startsWith('* SEARCH') || left-- <= 0 ? response : '* SEARCH\r\n'
        },
      }
      one.server.expunge('ann', 'INBOX', 2)
      assert.equal(await compareUids(one.context, 4), true, `${answers} bad answers`)
      assert.deepEqual(await one.subjects('INBOX'), ['m1', 'm3', 'm4', 'm5'])
      const commands = one.asked(/^(UID SEARCH|NOOP|UID FETCH)/).map((line) => line.split(' (')[0])
      assert.equal(commands[1], 'NOOP')
      assert.match(commands[2] ?? '', /^UID SEARCH .*1:5/)
      assert.match(commands[3] ?? '', answers === 1 ? /^UID FETCH 2$/ : /^UID FETCH 1:5$/)
    }
  })

  test('that are all there cost one SEARCH, and one write that says so', async (t) => {
    const one = await opened(t, five)
    const before = one.cursor().syncedAt ?? 0
    assert.equal(await compareUids(one.context, 7), false)
    assert.equal(one.asked(/^(UID SEARCH|NOOP|UID FETCH \S+ \(UID FLAGS)/).length, 1)
    assert.equal(one.writes(), 1)
    const { cursor } = await one.stored()
    assert.ok(cursor)
    assert.equal(cursor.exists, 7)
    assert.ok((cursor.syncedAt ?? 0) >= before)
  })

  test('that are gone in great number go page by page', async (t) => {
    const one = await opened(t, five, { settings: { MAILROOM_SYNC_BATCH: '2' } })
    one.server.expunge('ann', 'INBOX', 1, 2, 3, 4)
    assert.equal(await compareUids(one.context, 1), true)
    assert.deepEqual(await one.subjects('INBOX'), ['m5'])
    assert.equal(one.writes(), 2)
    assert.deepEqual((await one.stored()).counts, { messages: 1, unseen: 1 })
  })

  test('that are gone are found by the next start, where the process ended between two pages', async (t) => {
    let writes = Infinity
    const wrap = writing((_batch, write) => {
      if (writes-- <= 0) throw new Error('the process ends')
      return write()
    })
    const one = await opened(t, five, { settings: { MAILROOM_SYNC_BATCH: '2' }, wrap })
    one.server.expunge('ann', 'INBOX', 1, 2, 3, 4)
    writes = 1
    await assert.rejects(compareUids(one.context, 1))
    writes = Infinity
    assert.equal((await one.subjects('INBOX')).length, 3)
    await (await one.work()).catchUp('INBOX')
    assert.deepEqual(await one.subjects('INBOX'), ['m5'])
  })

  test('that we have taken away ourselves leave the index, and do not count as news', async (t) => {
    const one = await opened(t, five)
    const { id: messageId, placements } = await one.message('m2')
    const [place] = placements
    assert(place)
    one.context.state.hints.departures.add(place, { messageId, to: null, mark: 0 })
    one.server.expunge('ann', 'INBOX', 2)
    assert.equal(await compareUids(one.context, 4), false)
    one.server.expunge('ann', 'INBOX', 4)
    assert.equal(await compareUids(one.context, 3), true)
    assert.deepEqual(await one.subjects('INBOX'), ['m1', 'm3', 'm5'])
    const { cursor, counts } = await one.stored()
    assert.deepEqual([cursor?.exists, counts.messages], [3, 3])
  })

  test('that the index lacks are read and told as new mail; not those below and above, nor what could not be read', async (t) => {
    const one = await opened(t, () => undefined)
    for (const subject of ['m1', 'm2', 'm3', 'm4', 'm5']) one.server.append('ann', 'INBOX', letter(subject))
    await one.context.session.select('INBOX', { refresh: true })
    await one.setCursor({ uidNext: 5, backfillBelow: 2, liveFrom: 1, quarantined: [3] })
    await compareUids(one.context, 5)
    assert.deepEqual((await one.story()).sort(), ['received m2 INBOX', 'received m4 INBOX'])
    assert.deepEqual(await one.subjects('INBOX'), ['m2', 'm4'])
    assert.deepEqual(one.cursor().quarantined, [3])
    assert.match(one.asked(/^UID SEARCH/)[0] ?? '', /2:\*/)
    const reads = one.asked(/^UID FETCH \S+ \(UID FLAGS/).length
    await compareUids(one.context, 5)
    assert.equal(one.asked(/^UID FETCH \S+ \(UID FLAGS/).length, reads, 'nothing is read again')
  })

  test('that are still to be read for the first time are not compared', async (t) => {
    const one = await opened(t, five)
    await one.setCursor({ backfillBelow: 4 })
    one.server.expunge('ann', 'INBOX', 1, 5)
    assert.equal(await compareUids(one.context, 3), true)
    assert.deepEqual(await one.subjects('INBOX'), ['m1', 'm2', 'm3', 'm4'])
  })
})

suite('missing UIDs', () => {
  /** A FETCH that touches this UID is refused whole. */
  const poison = (bad: number): Hooks => ({
    command({ text }) {
      const set = /^\S+ UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(text)?.[1]
      return set !== undefined && inSet(set, 99)(bad) ? { tagged: 'NO System Error' } : undefined
    },
  })

  async function missing(t: TestContext): Promise<Opened> {
    const one = await opened(t, () => undefined, { settings: { MAILROOM_SYNC_BATCH: '2' } })
    for (const subject of ['m1', 'm2', 'm3', 'm4', 'm5']) one.server.append('ann', 'INBOX', letter(subject))
    await one.context.session.select('INBOX', { refresh: true })
    await one.setCursor({ uidNext: 6, liveFrom: 1, quarantined: [1, 2, 3, 4, 5, 9] })
    return one
  }

  test('are read in ascending pages, each once; what can be read is no longer set apart', async (t) => {
    const one = await missing(t)
    await readMissing(one.context, [5, 1, 3])
    const sets = one.asked(/^UID FETCH \S+ \(UID FLAGS INTERNALDATE/).map((line) => line.split(' ')[2])
    assert.deepEqual(sets, ['1,3', '5'])
    assert.deepEqual(await one.story(), ['received m1 INBOX', 'received m3 INBOX', 'received m5 INBOX'])
    assert.deepEqual(one.cursor().quarantined, [2, 4, 9])
    await readMissing(one.context, [3])
    assert.equal((await one.told()).length, 3, 'known by now')
    await readMissing(one.context, [])
    assert.equal(one.asked(/^UID FETCH/).length, 3)
  })

  test('that still cannot be read are set apart, and the others read', async (t) => {
    const one = await missing(t)
    one.server.hooks = poison(3)
    await readMissing(one.context, [1, 2, 3, 4])
    assert.deepEqual(await one.subjects('INBOX'), ['m1', 'm2', 'm4'])
    assert.deepEqual(one.cursor().quarantined.toSorted(), [3, 5, 9])
  })
})

test('more flags than a thousand at once: all are looked at', async (t) => {
  const one = await opened(t, (server) => putAt(server, 1, 1000, 1001))
  const lines = Array.from(
    { length: 1001 },
    (_, index) => `* ${index + 1} FETCH (UID ${index + 1} FLAGS (\\Flagged) MODSEQ (1000))`,
  )
  one.server.hooks = {
    command: ({ text }) => (text.includes('CHANGEDSINCE') ? { lines, tagged: 'OK done' } : undefined),
  }
  await flagsSince(one.context, null)
  const told = [1, 1000, 1001].map((uid) => `flags_changed m${uid} INBOX`)
  assert.deepEqual(await one.story(), told)
  assert.equal(one.cursor().highestModseq, '1000')
})
