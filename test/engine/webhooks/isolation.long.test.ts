/** Among 50 webhooks a hanging, a refusing and a failing receiver stand still, and the 47 others notice nothing. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { AccountRecord, OutboxRecord, UserRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { type Receiver, createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Rig, type Running, arrive, createRig, developerId, facts } from './fixture.ts'

const well = 47
const rounds = 20

let receiver: Receiver
let rig: Rig
let running: Running
let user: UserRecord
let boxes: AccountRecord[]

before(async () => {
  receiver = await createReceiver()
})
after(() => receiver.close())
beforeEach(async () => {
  rig = await createRig()
  // Longer than any deadline of this test: whoever waited for a stuck one would not be done.
  running = await rig.start({
    MAILROOM_WEBHOOK_TIMEOUT: '30s',
    MAILROOM_WEBHOOK_SCHEDULE: '1h',
    MAILROOM_WEBHOOK_PROBE: '1h',
    MAILROOM_WEBHOOK_BATCH: '10',
  })
  user = await rig.user()
  boxes = await Promise.all([rig.account(user), rig.account(user), rig.account(user)])
})
afterEach(async () => {
  // The hanging callbacks end with their connections.
  await receiver.close()
  await rig.close()
  await receiver.open()
})

function hook(url: string): Promise<WebhookRecord> {
  return running.webhooks.create({ developerId, userId: user.id, version: 'lite' }, { callbackUrl: url })
}

async function rowsOf(webhook: WebhookRecord): Promise<OutboxRecord[]> {
  return rig.store.outbox.list({ webhookId: webhook.id }, { limit: 1000, offset: 0 })
}

test('one hanging, one refusing and one failing receiver move none of the others', async () => {
  receiver.script('/hanging', [], 'hang')
  receiver.script('/failing', [], { status: 500 })
  const refusing = await createReceiver()
  const stuck = [
    await hook(receiver.url('/hanging')),
    await hook(receiver.url('/failing')),
    await hook(refusing.url('/refusing')),
  ]
  await refusing.close()
  const healthy: WebhookRecord[] = []
  for (let index = 0; index < well; index += 1) healthy.push(await hook(receiver.url(`/well${index}`)))
  const first = await Promise.all(
    boxes.map((box) => arrive(rig.store, running.webhooks, box, [{ facts: facts(`${box.id} first`) }])),
  )
  assert.equal(first.flatMap(({ rows }) => rows).length, 50 * boxes.length)
  await until('each of the three is stuck', async () => {
    const [, failing, away] = await Promise.all(stuck.map(rowsOf))
    const tried = (rows: readonly OutboxRecord[] | undefined) => rows?.some(({ attemptCount }) => attemptCount > 0)
    return receiver.at('/hanging').length === boxes.length && tried(failing) && tried(away)
  })
  for (let round = 0; round < rounds; round += 1) {
    for (const box of boxes) await arrive(rig.store, running.webhooks, box, [{ facts: facts(`${box.id} ${round}`) }])
  }

  const each = (rounds + 1) * boxes.length
  const haveAll = () => healthy.every((_, index) => receiver.at(`/well${index}`).length === each)
  await until('all 47 have everything', haveAll, { withinMs: 60_000 })
  for (let index = 0; index < well; index += 1) {
    const sequences = new Map<string, number[]>()
    for (const { body } of receiver.at(`/well${index}`)) {
      const { sources } = body['message_data'] as { sources: { label: string }[] }
      const label = sources[0]?.label ?? ''
      sequences.set(label, [...(sequences.get(label) ?? []), Number(body['sequence'])])
    }
    const inOrder = Array.from({ length: rounds + 1 }, (_, at) => at + 1)
    for (const seen of sequences.values()) assert.deepEqual(seen, inOrder)
  }
  for (const webhook of stuck) {
    const rows = await rowsOf(webhook)
    assert.equal(rows.length, each)
    assert.ok(
      rows.every(({ state }) => state === 'pending'),
      'the three are still stuck, and have lost nothing',
    )
  }
  assert.equal(receiver.at('/hanging').length, boxes.length, 'one callback of each account hangs')
})
