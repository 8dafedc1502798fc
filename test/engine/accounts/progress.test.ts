/** How far a folder has been read, also while news come, and what the quarantine makes wait. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createPace, progressOf, progressWords } from '../../../engine/accounts/progress.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import { AppError, isAppError } from '../../../engine/errors.ts'
import { inSet } from '../../support/imap-server/tokens.ts'
import { until } from '../../support/until.ts'
import { fill, letter, openStage, type Stage, writing } from './stage.ts'
import { openAccounts, watchingAccounts } from './running.ts'

/** Holds the first answer to a command like this back until it is let go. */
function holding(stage: Pick<Stage, 'server'>, command: RegExp) {
  const gate = Promise.withResolvers<undefined>()
  let held = false
  stage.server.hooks = {
    async send(response, call) {
      if (
        !held &&
        call !== null &&
        command.test(call.text) &&
        /^\* \d+ FETCH/.test(response.toString('latin1', 0, 40))
      ) {
        held = true
        await gate.promise
      }
      return response
    },
  }
  return { isHeld: () => held, letGo: () => gate.resolve(undefined) }
}

test('flags that change while their page is on its way, where FETCH shows them as they were when news were asked for', async (t) => {
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '10', MAILROOM_FOLDER_POLL: '1h' } })
  const { server } = running
  fill(server, 'INBOX', 30)
  const flagsNow = (): string => [...(server.folder('ann', 'INBOX').messages[14]?.flags ?? [])].join(' ')
  let shown = flagsNow()
  let last = ''
  server.hooks = {
    command({ name }) {
      last = name
      if (name === 'NOOP' || name === 'IDLE') shown = flagsNow()
      return undefined
    },
    deaf: () => last.startsWith('UID '),
    send(response, call) {
      if (call?.text.includes('UID FETCH 11:20 ') === true && response.includes(`${call.tag} OK`))
        server.setFlags('ann', 'INBOX', 15, ['\\Seen'])
      const line = response.toString('latin1')
      if (call?.name !== 'UID FETCH' || !line.includes('UID 15 ')) return response
      return Buffer.from(line.replace(/FLAGS \([^)]*\)/, `FLAGS (${shown})`), 'latin1')
    },
  }
  running.accounts.start(running.account)
  await running.settled()
  await until('it is seen', async () => (await running.message('m15')).placements[0]?.flags.includes('\\Seen') === true)
})

test('a mod-sequence that runs anew from below: flags are compared', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'INBOX', 3)
  const worker = await stage.work()
  await worker.readAll()
  const inbox = stage.server.folder('ann', 'INBOX')
  stage.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
  inbox.highestModseq = 2n
  for (const message of inbox.messages) message.modseq = 1n
  await worker.catchUp('INBOX')
  assert.deepEqual((await stage.message('m1')).placements[0]?.flags, ['\\Seen'])
  assert.equal((await stage.folder('INBOX')).cursor?.highestModseq, '2')
})

suite('the cursor in memory moves only after the write', () => {
  test('not while the write is under way', async (t) => {
    const gate = Promise.withResolvers<undefined>()
    let held = false
    const wrap = writing(async (batch, write) => {
      if (batch.changes.length > 0) {
        held = true
        await gate.promise
      }
      return write()
    })
    const stage = await openStage(t, { wrap })
    fill(stage.server, 'INBOX', 2)
    const worker = await stage.work()
    await worker.readAll()
    const { id } = await stage.folder('INBOX')
    const uidNext = () => worker.state.folders.get(id)?.cursor?.uidNext
    stage.server.append('ann', 'INBOX', letter('n1'))
    const reading = worker.catchUp('INBOX')
    await until('the write is under way', () => held)
    assert.equal(uidNext(), 3)
    gate.resolve(undefined)
    await reading
    assert.equal(uidNext(), 4)
  })

  test('not when it fails: the same owner reads the mail once more, and tells it', async (t) => {
    let broken = false
    const wrap = writing((_batch, write) =>
      broken ? Promise.reject(new AppError('store_unavailable', 'the disk is full')) : write(),
    )
    const stage = await openStage(t, { wrap })
    fill(stage.server, 'INBOX', 2)
    const worker = await stage.work()
    await worker.readAll()
    stage.server.append('ann', 'INBOX', letter('n1'))
    broken = true
    await assert.rejects(worker.catchUp('INBOX'), (error) => isAppError(error, 'store_unavailable'))
    broken = false
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), ['received n1 INBOX'])
    assert.equal((await stage.folder('INBOX')).counts.messages, 3)
  })
})

suite('a push during a read is told without waiting for the poll', () => {
  const settings = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_POLL_COLD: '1h', MAILROOM_COMMAND_TIMEOUT: '10s' }

  test('new mail while new mail is read', async (t) => {
    const running = await watchingAccounts(t, { settings }, (stage) => fill(stage.server, 'INBOX', 2))
    const hold = holding(running, /UID FETCH \d+:\* \(UID FLAGS INTERNALDATE/)
    running.server.append('ann', 'INBOX', letter('n1'))
    await until('it is being read', hold.isHeld)
    running.server.append('ann', 'INBOX', letter('n2'))
    hold.letGo()
    await running.tells(['received n1 INBOX', 'received n2 INBOX'])
  })

  test('flags while flags are read', async (t) => {
    const running = await watchingAccounts(t, { settings }, (stage) => fill(stage.server, 'INBOX', 3))
    const hold = holding(running, /UID FETCH 1:\* .*CHANGEDSINCE/)
    const { send } = running.server.hooks
    let first: string | undefined
    running.server.hooks = {
      // Told unasked: without the UID it is no answer to our question.
      send(response, call) {
        if (call?.text.includes('CHANGEDSINCE') === true) first ??= call.tag
        const isUnasked = call?.tag === first && response.includes('* 2 FETCH (UID 2 FLAGS')
        return isUnasked ? '* 2 FETCH (FLAGS (\\Flagged))\r\n' : (send?.(response, call) ?? null)
      },
    }
    running.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    await until('they are being read', hold.isHeld)
    running.server.setFlags('ann', 'INBOX', 2, ['\\Flagged'])
    hold.letGo()
    await running.tells(['flags_changed m1 INBOX', 'flags_changed m2 INBOX'])
  })
})

test('quarantined mail is not fetched at each comparison, but now and then', async (t) => {
  for (const poison of [2, 5]) {
    let late = 0
    let asked = 0
    const stage = await openStage(t, { now: () => Date.now() + late })
    fill(stage.server, 'INBOX', 5)
    stage.server.hooks = {
      command({ name, text }) {
        const set = /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(text)?.[1]
        if (name !== 'UID FETCH' || set === undefined || !inSet(set, 99)(poison)) return undefined
        asked += 1
        return { tagged: 'NO System Error' }
      },
    }
    const worker = await stage.work()
    await worker.readAll()
    await worker.catchUp('INBOX')
    assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [poison])
    assert(asked > 0)
    asked = 0
    for (const uid of [1, 3, 4]) {
      stage.server.expunge('ann', 'INBOX', uid)
      await worker.catchUp('INBOX')
    }
    assert.equal(asked, 0, `UID ${poison}`)
    late = 6 * 60_000
    await worker.catchUp('INBOX')
    assert.notEqual(asked, 0, 'its time has come')
    stage.server.hooks = {}
    late = 12 * 60_000
    await catchUp(worker.context, 'INBOX')
    assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [])
    assert((await stage.subjects('INBOX')).includes(`m${poison}`))
  }
})

suite('the pace of the first reading', () => {
  test('is that of the pages that come without a long pause, with what lies between them', () => {
    let now = 1_000_000
    const pace = createPace(() => now)
    const page = (ms: number, messages: number): void => {
      const begun = now
      now += ms
      pace.page(begun, messages)
    }
    assert.equal(pace.perSecond(), null)
    page(1000, 100)
    assert.equal(pace.perSecond(), 100)
    now += 8000
    page(1000, 300)
    assert.equal(pace.perSecond(), 40)
    now += 60_001
    assert.equal(pace.perSecond(), null, 'nothing is read')
    page(1000, 500)
    assert.equal(pace.perSecond(), 500, 'measured anew')
  })

  test('gives the time that is left of all folders that can be selected', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 5)
    fill(stage.server, 'Archive', 2)
    const worker = await stage.work()
    await worker.readAll()
    const folder = await stage.folder('INBOX')
    const half = { ...folder, completeAt: null, messages: 1500, counts: { messages: 500, unseen: 0 } }
    const folders = [half, await stage.folder('Archive'), { ...half, selectable: false }]
    const known = progressOf(folders, 2.5)
    assert.deepEqual(known, { read: 502, total: 1502, perSecond: 2.5, secondsLeft: 400 })
    assert.equal(progressWords(known), '502 of 1,502 messages read, 2.5 a second, 7 min left')
    const unknown = progressOf(folders, null)
    assert.deepEqual(unknown, { read: 502, total: 1502, perSecond: null, secondsLeft: null })
    assert.equal(progressWords(unknown, 'INBOX'), '502 of 1,502 messages of INBOX read')
  })
})
