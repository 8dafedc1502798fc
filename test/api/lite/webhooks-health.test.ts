/** What the view of a webhook says of its receiver: why it fails, since when, and what comes next. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createReceiver, type Receiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const health = ['last_error', 'failing_since', 'abandoned_since', 'retry_at', 'last_success_at']

suite('the health of a webhook', () => {
  let rig: LiteRig
  let receiver: Receiver
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,1h', MAILROOM_WEBHOOK_PROBE: '1h' } })
    receiver = await createReceiver()
    box = await rig.mailbox('wilma')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  test('is shown while it fails and afterwards, and documented', async () => {
    const base = `/lite/users/${box.userId}/webhooks`
    receiver.script('/ill', [], { status: 503 })
    const made = await rig.ok('POST', base, { callback_url: receiver.url('/ill') })
    const path = `${base}/${String(made['webhook_id'])}`
    const view = () => rig.ok('GET', path)
    const fresh = await view()
    for (const field of health) assert.equal(field in fresh, false, `${field} of a new webhook`)

    const since = Math.floor(Date.now() / 1000)
    await box.deliver({ subject: 'on its way' })
    const ill: Json = await until('failing', async () => {
      const now = await view()
      return now['failure'] === true ? now : null
    })
    assert.equal(ill['active'], true)
    assert.equal(ill['last_error'], 'HTTP 503')
    const [failingSince, retryAt] = [Number(ill['failing_since']), Number(ill['retry_at'])]
    assert.ok(failingSince >= since && failingSince <= Date.now() / 1000)
    assert.ok(retryAt > failingSince + 2000 && retryAt < failingSince + 5000, 'in an hour, give or take the jitter')
    assert.equal('last_success_at' in ill, false)

    assert.equal('abandoned_since' in ill, false)
    const { webhooks } = rig.engine.store
    const record = await webhooks.get(String(made['webhook_id']))
    assert.ok(record)
    await webhooks.recordHealth(record.id, { ...record.health, abandonedAt: since * 1000 }, [])
    assert.equal((await view())['abandoned_since'], since)

    receiver.script('/ill', [])
    await rig.ok('POST', path, {})
    const well = await until('delivered', async () => {
      const now = await view()
      return 'last_success_at' in now ? now : null
    })
    assert.equal(well['failure'], false)
    for (const field of ['last_error', 'failing_since', 'abandoned_since', 'retry_at'])
      assert.equal(field in well, false, field)
    assert.ok(Number(well['last_success_at']) >= since)

    const document = await rig.ok('GET', '/openapi.json')
    const { Webhook } = (document['components'] as { schemas: Record<string, { properties: Json }> }).schemas
    for (const field of health) {
      assert.ok((Webhook?.properties[field] as { description?: string } | undefined)?.description, field)
    }
  })
})
