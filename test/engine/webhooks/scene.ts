/**
 * What most tests of webhooks begin with: one receiver for the file; for each test a store with running webhooks, a
 * user and an account.
 */
import { after, afterEach, before, beforeEach } from 'node:test'
import type { AccountRecord, UserRecord, WebhookRecord } from '../../../engine/store/records.ts'
import type { WebhookInput } from '../../../engine/webhooks/admin.ts'
import type { RedeliveryTime } from '../../../engine/webhooks/requeues.ts'
import { type Receiver, createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { type Rig, type Running, createRig, developerId } from './fixture.ts'

export let receiver: Receiver
export let rig: Rig
export let running: Running
export let user: UserRecord
export let account: AccountRecord

/** For all tests of the file that calls it. */
export function useScene(): void {
  before(async () => {
    receiver = await createReceiver()
  })
  after(() => receiver.close())
  beforeEach(async () => {
    rig = await createRig()
    running = await rig.start()
    user = await rig.user()
    account = await rig.account(user, 'me::example')
  })
  afterEach(() => rig.close())
}

/** Others take the place of `running`, which were stopped, or go on unseen. */
export async function startAnew(env: Record<string, string> = {}): Promise<void> {
  running = await rig.start(env)
}

let paths = 0

/** A path of the receiver that no other test has. */
export function freshPath(): string {
  paths += 1
  return `/hook${paths}`
}

/** A webhook of the user, or of the application (null), to a path of the receiver. */
export function hook(path: string, input: WebhookInput = {}, userId: string | null = user.id): Promise<WebhookRecord> {
  return running.webhooks.create(
    { developerId, userId, version: 'lite' },
    { callbackUrl: receiver.url(path), ...input },
  )
}

/** Takes callbacks up again, and answers how many when it is done. */
export async function redelivered({ id }: WebhookRecord, wanted: RedeliveryTime): Promise<number> {
  const webhook = await rig.store.webhooks.get(id)
  if (webhook === null) throw new Error('the webhook is gone')
  // The end of the one before may be stored before the engine is through with it.
  await until('taken', () => running.webhooks.redeliver(webhook, wanted).then(() => true))
  const { count } = await until('redelivered', async () => {
    const { redelivery } = (await rig.store.webhooks.get(id)) ?? {}
    return redelivery?.done === true && redelivery
  })
  return count
}
