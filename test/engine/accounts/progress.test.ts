/** How far a folder has been read, when several read it at once, and what the quarantine makes wait. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { backfillFolder, backfillPage } from '../../../engine/accounts/background.ts'
import type { AccountState } from '../../../engine/accounts/state.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import type { SyncContext } from '../../../engine/accounts/write.ts'
import { AppError, isAppError } from '../../../engine/errors.ts'
import type { Hooks } from '../../support/imap-server/index.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { inSet } from '../../support/imap-server/tokens.ts'
import { until } from '../../support/until.ts'
import { fill, jobOf, letter, openStage, type Stage, type StageOptions, type Worker, writing } from './stage.ts'
import { watchingAccounts } from './running.ts'

/** Holds the first answer to a command like this back until it is let go. */
function holding(stage: Pick<Stage, 'server'>, command: RegExp, { send, ...hooks }: Hooks = {}) {
  const gate = Promise.withResolvers<undefined>()
  let held = false
  stage.server.hooks = {
    ...hooks,
    async send(response, call) {
      const shown = send === undefined ? response : await send(response, call)
      if (
        !held &&
        call !== null &&
        command.test(call.text) &&
        /^\* \d+ FETCH/.test(response.toString('latin1', 0, 40))
      ) {
        held = true
        await gate.promise
      }
      return shown
    },
  }
  return { isHeld: () => held, letGo: () => gate.resolve(undefined) }
}

/** A FETCH shows the flags that this message of INBOX had when the connection asked for news last. */
function frozen({ server }: Pick<Stage, 'server'>, uid: number): Hooks {
  const flags = (): string =>
    [...(server.folder('ann', 'INBOX').messages.find((one) => one.uid === uid)?.flags ?? [])].join(' ')
  const first = flags()
  const shown = new Map<number, string>()
  return {
    command({ name, connection }) {
      if (name === 'NOOP' || name === 'SELECT') shown.set(connection, flags())
      return undefined
    },
    send(response, call) {
      const line = response.toString('latin1')
      if (call?.name !== 'UID FETCH' || !line.includes(`UID ${uid} `)) return response
      return Buffer.from(line.replace(/FLAGS \([^)]*\)/, `FLAGS (${shown.get(call.connection) ?? first})`), 'latin1')
    },
  }
}

suite('back-fill and live read of one folder at once', () => {
  /** INBOX opened, of 30 messages none read yet; the two connections of an account. */
  async function opened(t: TestContext, options: StageOptions = {}) {
    const stage = await openStage(t, options)
    fill(stage.server, 'INBOX', 30)
    const worker = await stage.work()
    await worker.catchUp('INBOX')
    const session = await openTest(t, stage.server, { commandTimeoutMs: 5000 })
    await session.select('INBOX')
    const { id } = await stage.folder('INBOX')
    const page = Array.from({ length: 10 }, (_, index) => 30 - index)
    return {
      stage,
      worker,
      backfill: () => backfillPage({ ...worker.context, session, folderId: id }, page, true),
      /** The same with a sign when it has queued up to write. */
      queueing: (onQueue: () => void): SyncContext => {
        const { state } = worker
        const commit: AccountState['commit'] = (...args) => {
          const written = state.commit(...args)
          onQueue()
          return written
        }
        return { ...worker.context, session, state: { ...state, commit } }
      },
      id,
      page,
      live: () => worker.catchUp('INBOX'),
    }
  }

  async function bothKept(stage: Stage, worker: Worker): Promise<void> {
    const { id, cursor } = await stage.folder('INBOX')
    assert.deepEqual([cursor?.backfillBelow, cursor?.uidNext, cursor?.exists], [21, 32, 31])
    assert.deepEqual(worker.state.folders.get(id)?.cursor, cursor)
    assert.deepEqual(await stage.story(), ['received n1 INBOX'])
    assert.equal((await stage.subjects('INBOX')).length, 11)
  }

  const held = [
    ['the back-fill is slower', /UID FETCH 21:30 /, 'backfill', 'live'],
    ['the live read is slower', /UID FETCH 30:\* /, 'live', 'backfill'],
  ] as const
  for (const [name, command, slow, quick] of held) {
    test(name, async (t) => {
      const { stage, worker, ...work } = await opened(t)
      stage.server.append('ann', 'INBOX', letter('n1'))
      const hold = holding(stage, command)
      const slower = work[slow]()
      await until('it is held', hold.isHeld)
      await work[quick]()
      hold.letGo()
      await slower
      await bothKept(stage, worker)
    })
  }

  for (const isFrozen of [false, true]) {
    const hooksOf = (stage: Stage): Hooks => (isFrozen ? frozen(stage, 21) : {})
    const where = isFrozen ? ', where a FETCH shows old flags' : ''

    test(`flags that changed since the page before${where}`, async (t) => {
      const { stage, backfill, live } = await opened(t)
      stage.server.hooks = hooksOf(stage)
      stage.server.setFlags('ann', 'INBOX', 21, ['\\Seen'])
      await live()
      await backfill()
      assert.deepEqual((await stage.message('m21')).placements[0]?.flags, ['\\Seen'])
    })

    test(`flags that change while their page is on its way${where}`, async (t) => {
      const { stage, backfill, live } = await opened(t)
      const hold = holding(stage, /UID FETCH 21:30 /, hooksOf(stage))
      const slower = backfill()
      await until('it is held', hold.isHeld)
      stage.server.setFlags('ann', 'INBOX', 21, ['\\Seen'])
      await live()
      hold.letGo()
      await slower
      assert.deepEqual((await stage.message('m21')).placements[0]?.flags, ['\\Seen'])
    })
  }

  test('both write at the same time', async (t) => {
    let slow = false
    const wrap = writing(async (_batch, write) => {
      if (slow) await new Promise((resolve) => setTimeout(resolve, 50))
      return write()
    })
    const { stage, worker, backfill, live } = await opened(t, { wrap })
    stage.server.append('ann', 'INBOX', letter('n1'))
    slow = true
    await Promise.all([backfill(), live()])
    await bothKept(stage, worker)
  })

  /** A live batch that is being written until the gate opens. */
  function gated() {
    const gate = Promise.withResolvers<undefined>()
    let held = false
    const wrap = writing(async (batch, write) => {
      held ||= batch.changes.length > 0
      if (batch.changes.length > 0) await gate.promise
      return write()
    })
    return { wrap, isHeld: () => held, letGo: () => gate.resolve(undefined) }
  }

  test('a page is written right behind a live batch', async (t) => {
    const { wrap, isHeld, letGo } = gated()
    const { stage, worker, live, queueing, id, page } = await opened(t, { wrap })
    stage.server.append('ann', 'INBOX', letter('n1'))
    const reading = live()
    await until('the live batch is being written', isHeld)
    await backfillPage({ ...queueing(letGo), folderId: id }, page)
    await reading
    await bothKept(stage, worker)
  })

  test('the end is written right behind a live batch', async (t) => {
    const { wrap, isHeld, letGo } = gated()
    const { stage, live, queueing, id } = await opened(t, { wrap })
    let reading: Promise<void> | undefined
    const job = jobOf(queueing(() => (reading === undefined ? undefined : letGo())))
    const pause = async (): Promise<void> => {
      stage.server.append('ann', 'INBOX', letter('n1'))
      reading = live()
      await until('the live batch is being written', isHeld)
    }
    await backfillFolder({ ...job, pause }, id, new AbortController().signal)
    await reading
    const { cursor } = await stage.folder('INBOX')
    assert.deepEqual([cursor?.backfillBelow, cursor?.uidNext, cursor?.exists], [0, 32, 31])
    assert.deepEqual(await stage.story(), ['received n1 INBOX'])
  })
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
