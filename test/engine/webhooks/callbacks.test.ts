/** Status callbacks and the sync-completed callback: same outbox, same signature, once per transition. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AccountRecord } from '../../../engine/store/records.ts'
import { bodySignatureValid, standardSignatureValid } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { apiSecret, developerId } from './fixture.ts'
import { account, house, nextWing, receiver, user, wing } from './scene.ts'

async function transition(
  of: AccountRecord,
  status: 'OK' | 'DISABLED',
  message: string | null,
): Promise<AccountRecord> {
  const version = of.statusVersion + 1
  const outbox = await wing.webhooks.planStatus(of, { status, message, version })
  const step = {
    accountId: of.id,
    epoch: of.epoch,
    fromVersion: of.statusVersion,
    status,
    statusMessage: message,
    resume: of.resume,
    outbox,
  }
  const changed = await house.store.accounts.transition(step)
  assert.ok(changed)
  wing.webhooks.stored(of.id, outbox, [])
  return changed
}

suite('status callbacks', () => {
  test('permanent and cleared go to the account’s own URL, signed by the developer', async () => {
    const edited = await house.store.accounts.edit(account.id, { statusCallbackUrl: receiver.url('/own') })
    assert.ok(edited)
    await house.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app') })
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
    assert.deepEqual(await wing.webhooks.planStatus(account, { status: 'DISABLED', message: null, version: 1 }), [])
    await house.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app2') })
    await transition(account, 'DISABLED', 'gone')
    await until('one', () => receiver.at('/app2').length === 1)
  })

  test('a crash between transition and callback loses nothing', async () => {
    await house.store.developers.edit(developerId, { statusCallbackUrl: receiver.url('/app3') })
    const outbox = await wing.webhooks.planStatus(account, { status: 'DISABLED', message: 'x', version: 1 })
    await wing.stop()
    const step = {
      accountId: account.id,
      epoch: account.epoch,
      fromVersion: 0,
      status: 'DISABLED',
      statusMessage: 'x',
      resume: account.resume,
      outbox,
    } as const
    assert.ok(await house.store.accounts.transition(step))
    assert.equal(await house.store.accounts.transition(step), null)
    await nextWing()
    await until('one', () => receiver.at('/app3').length > 0)
    assert.deepEqual(
      receiver.at('/app3').map((one) => one.id),
      [outbox[0]?.id],
    )
  })
})

suite('the first sync is complete', () => {
  test('told once', async () => {
    const options = { ...account.options, callbackUrl: receiver.url('/synced') }
    const edited = await house.store.accounts.edit(account.id, { options })
    assert.ok(edited)
    await wing.webhooks.initialSyncDone(edited)
    await until('one', () => receiver.at('/synced').length === 1)
    await wing.webhooks.initialSyncDone(edited)
    const log = await house.store.outbox.list({ accountId: account.id }, { limit: 10, offset: 0 })
    assert.equal(log.length, 1)
    assert.equal(receiver.at('/synced')[0]?.body['server_label'], account.label)
  })
})
