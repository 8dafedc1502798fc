/** Status callbacks and the sync-completed callback: same outbox, same signature, once per transition. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../../../engine/errors.ts'
import type { AccountRecord, OutboxRecord } from '../../../engine/store/records.ts'
import { bodySignatureValid, standardSignatureValid } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { apiSecret, developerId } from './fixture.ts'
import { account, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

async function transition(
  of: AccountRecord,
  status: 'OK' | 'DISABLED',
  message: string | null,
): Promise<AccountRecord> {
  const version = of.statusVersion + 1
  const outbox = await running.webhooks.planStatus(of, { status, message, version })
  const step = {
    accountId: of.id,
    epoch: of.epoch,
    fromVersion: of.statusVersion,
    status,
    statusMessage: message,
    resume: of.resume,
    outbox,
  }
  const changed = await rig.store.accounts.transition(step)
  assert.ok(changed)
  running.webhooks.stored(of.id, outbox, [])
  return changed
}

suite('status callbacks', () => {
  test('permanent and cleared go to the account’s own URL, signed by the developer', async () => {
    const edited = await rig.store.accounts.edit(account.id, { statusCallbackUrl: receiver.url('/own') })
    assert.ok(edited)
    await rig.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app') })
    const disabled = await transition(edited, 'DISABLED', 'wrong password')
    await transition(disabled, 'OK', null)
    await until('both', () => receiver.at('/own').length === 2)
    const [first, second] = receiver.at('/own')
    assert.ok(first && second)
    const { timestamp, token, signature, ...body } = first.body
    assert.ok(timestamp && token && signature)
    assert.deepEqual(body, {
      account_id: user.id,
      user_id: user.id,
      server_label: account.label,
      email_account: account.email,
      failure: 'permanent',
      failure_message: 'wrong password',
    })
    assert.equal(second.body['failure'], 'cleared')
    assert.notEqual(first.id, second.id)
    assert.ok(bodySignatureValid(first, apiSecret) && standardSignatureValid(first, Buffer.from(apiSecret)))
    assert.equal(receiver.at('/app').length, 0)
  })

  test('else to the developer’s, or to nobody', async () => {
    assert.deepEqual(await running.webhooks.planStatus(account, { status: 'DISABLED', message: null, version: 1 }), [])
    await rig.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app2') })
    await transition(account, 'DISABLED', 'gone')
    await until('one', () => receiver.at('/app2').length === 1)
  })

  test('a crash between transition and callback loses nothing', async () => {
    await rig.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app3') })
    const outbox = await running.webhooks.planStatus(account, { status: 'DISABLED', message: 'x', version: 1 })
    await running.stop()
    const step = {
      accountId: account.id,
      epoch: account.epoch,
      fromVersion: 0,
      status: 'DISABLED',
      statusMessage: 'x',
      resume: account.resume,
      outbox,
    } as const
    assert.ok(await rig.store.accounts.transition(step))
    assert.equal(await rig.store.accounts.transition(step), null)
    await startAnew()
    await until('one', () => receiver.at('/app3').length > 0)
    assert.deepEqual(
      receiver.at('/app3').map((one) => one.id),
      [outbox[0]?.id],
    )
  })
})

suite('the actor of a bare URL', () => {
  const actors = () => running.webhooks.facts().map(({ id }) => id)
  const rowsAt = (path: string) =>
    rig.store.outbox
      .list({ developerId }, { limit: 200, offset: 0 })
      .then((rows) => rows.filter(({ url }) => url === receiver.url(path)))
  /** `many` rows of accounts of their own to this URL, stored and dispatched as the engine does. */
  async function callBack(path: string, many: number): Promise<void> {
    for (let count = 0; count < many; count += 1) {
      const box = await rig.account(user)
      const edited = await rig.store.accounts.edit(box.id, { statusCallbackUrl: receiver.url(path) })
      await transition(edited ?? assert.fail(), 'DISABLED', `no ${count}`)
    }
  }

  test('ends when nothing is left to send, and another one sends what comes later: each row once', async () => {
    const path = '/ends'
    for (let round = 1; round <= 40; round += 1) {
      await callBack(path, 1)
      await until('it came', () => receiver.at(path).length === round)
      // The next row comes at any moment of the end.
      for (let turn = round % 20; turn > 0; turn -= 1) await nextTurn()
      if (round % 10 === 0) await until('it has ended', () => actors().length === 0)
    }
    await until('it has ended', () => actors().length === 0)
    assert.equal(new Set(receiver.at(path).map(({ id }) => id)).size, 40)
    assert.ok((await rowsAt(path)).every(({ state, attempts }) => state === 'delivered' && attempts.length === 1))
  })

  test('lives while a row waits for its next attempt, also over a crash, and ends with the last row', async () => {
    const path = '/later'
    receiver.script(path, [{ status: 500 }, { status: 503 }, { status: 500 }])
    await callBack(path, 2)
    await until('one was refused', () => receiver.at(path).length > 0)
    assert.equal(actors().length, 1)
    // The former one is not stopped: as after a kill -9 with requests still on the wire.
    await startAnew()
    await until('all delivered', async () => (await rowsAt(path)).every(({ state }) => state === 'delivered'))
    await until('it has ended', () => actors().length === 0)
    assert.equal(new Set(receiver.at(path).map(({ id }) => id)).size, 2)
  })

  test('ends while its receiver is away, when the rows that waited are gone', async () => {
    const path = '/away'
    receiver.decide(path, () => ({ status: 503 }))
    await callBack(path, 2)
    await until('it waits', () => running.webhooks.facts()[0]?.state === 'waiting')
    const ended = { attempt: null, state: 'skipped', finishedAt: 1, reason: 'taken away' } as const
    const rows = await rowsAt(path)
    await rig.store.outbox.record(rows.map(({ id, dueAt }) => ({ ...ended, id, dueAt })))
    await until('it has ended', () => actors().length === 0)
    receiver.decide(path, () => ({ status: 200 }))
    await callBack(path, 1)
    await until('delivered', async () => (await rowsAt(path)).some(({ state }) => state === 'delivered'))
  })

  /** A callback was delivered, and whether any waits is being asked. Answers the way to answer that, as it was then. */
  async function askedForTheEnd(t: TestContext, path: string): Promise<() => void> {
    const [asked, answered] = [Promise.withResolvers<null>(), Promise.withResolvers<null>()]
    const { outbox } = rig.store
    const read = outbox.pending.bind(outbox)
    t.mock.method(outbox, 'pending', async (...query: Parameters<typeof read>) => {
      const rows = await read(...query)
      if (query[2] !== 1) return rows
      asked.resolve(null)
      await answered.promise
      return rows
    })
    await callBack(path, 1)
    await asked.promise
    return () => answered.resolve(null)
  }

  async function rowOf(path: string, version: number): Promise<OutboxRecord> {
    const of = { ...account, statusCallbackUrl: receiver.url(path) }
    const planned = await running.webhooks.planStatus(of, { status: 'DISABLED', message: `${version}`, version })
    const [row = assert.fail('nothing planned')] = await rig.store.outbox.enqueue(planned)
    return row
  }

  test('a row that comes while the end is being decided is tried again in its time', async (t) => {
    const path = '/meanwhile'
    const release = await askedForTheEnd(t, path)
    receiver.script(path, [{ status: 500 }])
    const row = await rowOf(path, 1)
    running.webhooks.stored(account.id, [row], [])
    await until('refused', async () => (await rig.store.outbox.get(row.id))?.attempts.length === 1)
    release()
    await until('delivered', async () => (await rig.store.outbox.get(row.id))?.state === 'delivered')
    await until('it has ended', () => actors().length === 0)
  })

  test('a row that is sent by hand while the end is being decided is not sent by another one too', async (t) => {
    const path = '/by-hand'
    const release = await askedForTheEnd(t, path)
    receiver.decide(path, () => ({ status: 200, delayMs: 150 }))
    const first = await rowOf(path, 1)
    assert.equal(await running.webhooks.resend(first), 1)
    await until('on its way', () => receiver.at(path).length === 2)
    release()
    await nextTurn()
    const second = await rowOf(path, 2)
    running.webhooks.stored(account.id, [second], [])
    await until('delivered', async () => (await rig.store.outbox.get(second.id))?.state === 'delivered')
    await until('it has ended', () => actors().length === 0)
    const sent = receiver.at(path).slice(1)
    assert.deepEqual(
      sent.map(({ id }) => id),
      [first.id, second.id],
    )
  })

  test('410: it ends with the last row, and stays to be seen while others wait; the next row goes out at once', async () => {
    const path = '/gone'
    receiver.decide(path, () => ({ status: 410 }))
    await callBack(path, 1)
    await until('refused', async () => (await rowsAt(path))[0]?.state === 'failed')
    await until('it has ended', () => actors().length === 0)
    await running.stop()
    await callBack(path, 12)
    await startAnew({ MAILROOM_WEBHOOK_CONCURRENCY: '2' })
    const waiting = async () => (await rowsAt(path)).filter(({ state }) => state === 'pending').length
    await until('two at once were refused', async () => (await waiting()) === 10)
    await until('paused', () => running.webhooks.facts()[0]?.state === 'paused')
    receiver.decide(path, () => ({ status: 200 }))
    await callBack(path, 1)
    await until('all others', async () => (await waiting()) === 0)
    await until('it has ended', () => actors().length === 0)
    assert.equal((await rowsAt(path)).filter(({ state }) => state === 'delivered').length, 11)
  })
})

suite('the first sync is complete', () => {
  async function toldAt(path: string): Promise<AccountRecord> {
    const options = { ...account.options, callbackUrl: receiver.url(path) }
    const edited = await rig.store.accounts.edit(account.id, { options })
    assert.ok(edited)
    return edited
  }

  test('told once', async () => {
    const edited = await toldAt('/synced')
    await running.webhooks.initialSyncDone(edited)
    await until('one', () => receiver.at('/synced').length === 1)
    await running.webhooks.initialSyncDone(edited)
    const log = await rig.store.outbox.list({ accountId: account.id }, { limit: 10, offset: 0 })
    assert.equal(log.length, 1)
    assert.equal(receiver.at('/synced')[0]?.body['server_label'], account.label)
  })

  test('told when it is said again, because the answer of the store was lost', async (context) => {
    const edited = await toldAt('/unanswered')
    const { outbox } = rig.store
    const enqueue = outbox.enqueue.bind(outbox)
    const lost = async (rows: readonly OutboxRecord[]): Promise<never> => {
      await enqueue(rows)
      throw new AppError('store_unavailable', 'the test has lost the answer')
    }
    context.mock.method(outbox, 'enqueue', lost, { times: 1 })
    await assert.rejects(running.webhooks.initialSyncDone(edited), { code: 'store_unavailable' })
    await running.webhooks.initialSyncDone(edited)
    await until('one', () => receiver.at('/unanswered').length === 1)
  })
})
