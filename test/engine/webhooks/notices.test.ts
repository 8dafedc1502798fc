/** Failures of a webhook stand in the delivery log, whether or not there is a URL to tell them to. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { arrive, createRig, developerId, facts } from './fixture.ts'

suite('a failure without failure_notif_url', () => {
  for (const [status, why] of [
    [503, /^HTTP 503$/],
    [410, /^HTTP 410: .*inactive until it is edited with active=1$/],
  ] as const) {
    test(`HTTP ${status} is in the log as skipped`, async () => {
      const receiver = await createReceiver()
      const rig = await createRig()
      try {
        const running = await rig.start()
        const user = await rig.user()
        const account = await rig.account(user)
        receiver.script('/mute', [], { status })
        const owner = { developerId, userId: user.id, version: 'lite' as const }
        const webhook = await running.webhooks.create(owner, { callbackUrl: receiver.url('/mute') })
        await arrive(rig.store, running.webhooks, account, [{ facts: facts('mute') }])
        const query = { developerId, kind: 'failure' } as const
        const row = await until(
          'in the log',
          async () => (await rig.store.outbox.list(query, { limit: 9, offset: 0 }))[0],
        )
        assert.deepEqual(
          [row.webhookId, row.accountId, row.url, row.state, row.reason, row.attempts],
          [webhook.id, account.id, '', 'skipped', 'no failure_notif_url', []],
        )
        assert.ok(row.finishedAt)
        assert.match(String(row.data['data']), why)
      } finally {
        await rig.close()
        await receiver.close()
      }
    })
  }
})
