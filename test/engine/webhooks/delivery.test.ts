/** Every way that a callback may go, over real HTTP and a real store. */
import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import type { AccountRecord, OutboxRecord } from '../../../engine/store/records.ts'
import { bodySignatureValid, standardSignatureValid } from '../../support/receiver.ts'
import { noPrlimit, withoutFiles } from '../../support/no-files.ts'
import { chosenStore } from '../../support/store-choice.ts'
import { until } from '../../support/until.ts'
import { apiSecret, arrive, facts } from './fixture.ts'
import { account, freshPath, hook, redelivered, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

async function send(name: string, to: AccountRecord = account): Promise<OutboxRecord> {
  const { rows } = await arrive(rig.store, running.webhooks, to, [{ facts: facts(name) }])
  const [row] = rows
  assert.ok(row, 'no row was planned')
  return row
}

async function finished(row: OutboxRecord): Promise<OutboxRecord> {
  return until(`${row.id} finished`, async () => {
    const now = await rig.store.outbox.get(row.id)
    return now !== null && now.state !== 'pending' ? now : null
  })
}

suite('delivery', () => {
  test('a new message is POSTed once, signed in both ways', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    const row = await finished(await send('hello'))
    assert.equal(row.state, 'delivered')
    assert.equal(row.attemptCount, 1)
    const [request, ...more] = receiver.at(path)
    assert.ok(request)
    assert.equal(more.length, 0)
    assert.equal(request.id, row.id)
    assert.equal(request.headers['content-type'], 'application/json')
    assert.ok(bodySignatureValid(request, apiSecret))
    assert.ok(standardSignatureValid(request, running.webhooks.secret(webhook)))
    assert.ok(standardSignatureValid(request, Buffer.from(apiSecret)))
    assert.equal(standardSignatureValid(request, Buffer.from('another secret')), false)
    assert.equal(request.body['account_id'], user.id)
    assert.equal(request.body['user_id'], user.id)
    assert.equal(request.body['webhook_id'], webhook.id)
    assert.equal(request.body['sequence'], 1)
    const data = request.body['message_data'] as Record<string, unknown>
    assert.equal(data['subject'], 'Subject of hello')
  })

  for (const [name, answer, error] of [
    ['hang', 'hang', /^timeout/],
    ['reset', 'reset', /^network/],
    ['slow body', 'slow body', /^timeout/],
    ['not HTTP', 'garbage', /^protocol/],
    ['500', { status: 500, body: 'oops' }, /HTTP 500/],
    ['406', { status: 406 }, /HTTP 406/],
    ['503', { status: 503 }, /HTTP 503/],
  ] as const) {
    test(`${name}: tried again with the same webhook-id until it goes well`, async () => {
      await running.stop()
      await startAnew({ MAILROOM_WEBHOOK_TIMEOUT: error.source === '^timeout' ? '1s' : '10s' })
      const path = freshPath()
      receiver.script(path, [answer, answer])
      await hook(path)
      const row = await finished(await send('again'))
      assert.equal(row.state, 'delivered')
      assert.deepEqual([...new Set(receiver.at(path).map((one) => one.id))], [row.id])
      // On a machine that stands still the last one may take too long as well.
      const isTimed = error.source === '^timeout'
      assert([3, isTimed ? 4 : 3].includes(row.attempts.length), `${row.attempts.length} attempts`)
      if (!isTimed) assert.equal(receiver.at(path).length, 3)
      assert.match(row.attempts[0]?.error ?? '', error)
      assert.equal(row.attempts.at(-1)?.status, 200)
    })
  }

  suite('along the schedule of its webhook', () => {
    const hour = 3_600_000
    const tried = (row: OutboxRecord, times: number) =>
      until(`${times} attempts`, async () => {
        const now = await rig.store.outbox.get(row.id)
        return now?.attempts.length === times ? now : null
      })
    const waitOf = (row: OutboxRecord) => row.dueAt - (row.attempts.at(-1)?.at ?? 0)

    beforeEach(() => startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '20ms', MAILROOM_WEBHOOK_PROBE: '3d' }))

    test('a callback waits, and is given up at its end; an edit counts at once', async () => {
      const path = freshPath()
      receiver.script(path, [], { status: 500 })
      const webhook = await hook(path, { retrySchedule: '1h,2h,3h' })
      const row = await send('own')
      const first = await tried(row, 1)
      assert.equal(first.state, 'pending')
      assert.ok(waitOf(first) >= hour, `${waitOf(first)} ms`)
      const edited = await running.webhooks.edit(webhook, { retrySchedule: '1h,2d', active: true })
      const second = await tried(row, 2)
      assert.ok(waitOf(second) >= 48 * hour, `${waitOf(second)} ms`)
      await running.webhooks.edit(edited, { retrySchedule: '', active: true })
      const last = await finished(row)
      assert.deepEqual([last.state, last.reason], ['failed', 'given up after 3 attempts: HTTP 500'])
    })

    test('a receiver that is away is asked along it, also by an actor that runs already', async () => {
      const path = freshPath()
      receiver.script(path, [], { status: 503 })
      const webhook = await hook(path, { retrySchedule: '1h,1h' })
      await send('away')
      const retryAfter = (least: number) =>
        until(`the webhook waits ${least} ms`, async () => {
          const { retryAt, failingSince } = (await rig.store.webhooks.get(webhook.id))?.health ?? {}
          return (retryAt ?? 0) - (failingSince ?? 0) >= least
        })
      await retryAfter(hour)
      await running.webhooks.edit(webhook, { retrySchedule: '2d,2d', active: true })
      await retryAfter(48 * hour)
    })

    test('a failure notice goes along the configured one', async () => {
      const [path, notif] = [freshPath(), freshPath()]
      receiver.script(path, [], { status: 410 })
      receiver.script(notif, [{ status: 500 }])
      await hook(path, { retrySchedule: '1h', failureNotifUrl: receiver.url(notif) })
      await send('gone')
      await until('the second attempt', () => receiver.at(notif).length === 2)
    })
  })

  test('wrong TLS is told as tls and tried again', async () => {
    const webhook = await hook('/tls', { callbackUrl: receiver.url('/tls').replace('http:', 'https:') })
    const row = await send('tls')
    const tried = await until('an attempt', async () => {
      const now = await rig.store.outbox.get(row.id)
      return now !== null && now.attemptCount > 0 ? now : null
    })
    assert.match(tried.attempts[0]?.error ?? '', /^tls: /)
    assert.equal(tried.state, 'pending')
    await running.webhooks.remove(webhook)
  })

  test(
    'no file left for a connection: no attempt of the row, and nothing against its receiver',
    { skip: noPrlimit() || (chosenStore().kind === 'mongodb' && 'the driver of MongoDB needs connections too') },
    async () => {
      const path = freshPath()
      const webhook = await hook(path)
      const row = await withoutFiles(async () => {
        const waiting = await send('meanwhile')
        await assert.rejects(running.webhooks.test(webhook), { code: 'busy' })
        return waiting
      })
      const { attempts } = await finished(row)
      assert.deepEqual(
        attempts.map(({ status }) => status),
        [200],
      )
      await running.webhooks.remove(webhook)
    },
  )

  test('3xx is told as a failure at once and not followed; the callback waits until the URL is mended', async () => {
    const path = freshPath()
    const notif = freshPath()
    receiver.script(path, [{ status: 302, headers: { location: receiver.url('/elsewhere') } }])
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const row = await finished(await send('moved'))
    assert.equal(row.state, 'delivered')
    assert.deepEqual(
      row.attempts.map(({ status }) => status),
      [302, 200],
    )
    assert.match(row.attempts[0]?.error ?? '', /302/)
    assert.equal(receiver.at('/elsewhere').length, 0)
    await until('the failure is told', () => receiver.at(notif).length > 0)
    await running.webhooks.remove(webhook)
  })

  test('410 makes the webhook inactive, drops what waits and tells failure_notif_url', async () => {
    const path = freshPath()
    const notif = freshPath()
    receiver.script(path, [{ status: 410 }])
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const row = await finished(await send('gone'))
    assert.equal(row.state, 'failed')
    const stored = await until('inactive', async () => {
      const now = await rig.store.webhooks.get(webhook.id)
      return now !== null && !now.active && now.health.failure ? now : null
    })
    assert.equal(stored.active, false)
    const [note] = await until('notification', () => (receiver.at(notif).length > 0 ? receiver.at(notif) : null))
    assert.ok(note && bodySignatureValid(note, apiSecret))
    assert.equal(note.body['webhook_id'], webhook.id)
    assert.match(String(note.body['data']), /410/)
    assert.equal(note.body['message_data'], undefined)
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('later') }])
    assert.equal(rows.length, 0)
  })

  test('429 with Retry-After slows the whole webhook down', async () => {
    const path = freshPath()
    receiver.script(path, [{ status: 429, headers: { 'retry-after': '1' } }])
    await hook(path)
    const other = await rig.account(user)
    const first = await send('a')
    await until('the first attempt', async () => (await rig.store.outbox.get(first.id))?.attemptCount === 1)
    const second = await send('b', other)
    await finished(first)
    await finished(second)
    const [refused = 0, next = 0] = receiver.at(path).map((one) => one.at)
    assert.ok(next - refused >= 950, `tried again after ${next - refused} ms`)
  })

  test('the schedule used up: failed, kept, and redeliverable', async () => {
    const path = freshPath()
    receiver.script(path, [], { status: 500 })
    const webhook = await hook(path)
    const row = await finished(await send('hopeless'))
    assert.equal(row.state, 'failed')
    assert.equal(row.attemptCount, 6)
    assert.match(row.reason ?? '', /6 attempts/)
    receiver.script(path, [])
    assert.equal(await redelivered(webhook, { failedOnly: true }), 1)
    const again = await finished(row)
    assert.equal(again.state, 'delivered')
    assert.deepEqual([...new Set(receiver.at(path).map((one) => one.id))], [row.id])
  })

  test('failure: true at the third failed attempt, told once, false after the next success', async () => {
    const path = freshPath()
    const notif = freshPath()
    receiver.script(path, [{ status: 500 }, { status: 500 }, { status: 500 }, { status: 500 }])
    const webhook = await hook(path, { failureNotifUrl: receiver.url(notif) })
    const row = await send('flaky')
    await until('failure', async () => (await rig.store.webhooks.get(webhook.id))?.health.failure)
    await finished(row)
    const healthy = await until('healthy again', async () => {
      const now = await rig.store.webhooks.get(webhook.id)
      return now !== null && !now.health.failure ? now.health : null
    })
    assert.equal(healthy.consecutiveFailures, 0)
    assert.equal(healthy.failureVersion, 1)
    await until('notification', () => receiver.at(notif).length > 0)
    assert.equal(receiver.at(notif).length, 1)
    assert.equal(receiver.at(path).length, 5)
  })

  test('a request that is cut off at the end of the service is no attempt: the next start sends it again', async () => {
    const path = freshPath()
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_TIMEOUT: '30s', MAILROOM_SHUTDOWN_TIMEOUT: '100ms' })
    receiver.script(path, ['hang'])
    const webhook = await hook(path)
    const row = await send('cut off')
    await until('it is on its way', () => receiver.at(path).length === 1)
    await running.stop()
    await startAnew()
    const { attempts } = await finished(row)
    assert.deepEqual(
      attempts.map(({ status, error }) => [status, error]),
      [[200, null]],
    )
    assert.equal(receiver.at(path).length, 2)
    await running.webhooks.remove(webhook)
  })

  test('an edit with active=1 ends the failing period and tries at once', async () => {
    const path = freshPath()
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' })
    receiver.script(path, ['reset'])
    const webhook = await hook(path)
    const row = await send('waiting')
    await until('a failed attempt', async () => (await rig.store.outbox.get(row.id))?.attemptCount)
    const edited = await running.webhooks.edit(webhook, { active: true })
    assert.equal(edited.health.consecutiveFailures, 0)
    assert.equal((await finished(row)).state, 'delivered')
  })

  test('a paused webhook keeps no backlog and resumes with new mail', async () => {
    const path = freshPath()
    receiver.script(path, ['reset'], { status: 200 })
    await running.stop()
    await startAnew({ MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' })
    const webhook = await hook(path)
    const waiting = await send('before')
    await until('a failed attempt', async () => (await rig.store.outbox.get(waiting.id))?.attemptCount)
    const paused = await running.webhooks.edit(webhook, { active: false })
    assert.equal((await finished(waiting)).state, 'skipped')
    const silent = await arrive(rig.store, running.webhooks, account, [{ facts: facts('meanwhile') }])
    assert.equal(silent.rows.length, 0)
    await assert.rejects(running.webhooks.redeliver(paused, {}), { code: 'conflict' })
    await running.webhooks.edit(paused, { active: true })
    assert.equal((await finished(await send('afterwards'))).state, 'delivered')
    const subjects = receiver.at(path).map((one) => (one.body['message_data'] as { subject: string }).subject)
    assert.deepEqual(subjects, ['Subject of before', 'Subject of afterwards'])
  })

  test('private addresses are refused when the service is not allowed to call them', async () => {
    const path = freshPath()
    await hook(path)
    await running.stop()
    await startAnew({ MAILROOM_ALLOW_PRIVATE: '0' })
    const row = await send('inside')
    const tried = await until('an attempt', async () => {
      const now = await rig.store.outbox.get(row.id)
      return now !== null && now.attemptCount > 0 ? now : null
    })
    assert.match(tried.attempts[0]?.error ?? '', /^private_address/)
    assert.equal(receiver.at(path).length, 0)
    await assert.rejects(hook(path), { code: 'private_address' })
  })

  test('the answer is kept, cut at 4 kB', async () => {
    const path = freshPath()
    receiver.script(path, [{ status: 200, body: 'x'.repeat(10_000) }])
    await hook(path)
    const row = await finished(await send('long answer'))
    assert.equal(row.attempts[0]?.response?.length, 4096)
  })
})
