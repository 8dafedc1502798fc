/**
 * What most tests of webhooks begin with: one receiver for the file; for each test a house with a wing, a user and an
 * account.
 */
import { after, afterEach, before, beforeEach } from 'node:test'
import type { AccountRecord, UserRecord, WebhookRecord } from '../../../engine/store/records.ts'
import type { WebhookInput } from '../../../engine/webhooks/types.ts'
import { type Receiver, createReceiver } from '../../support/receiver.ts'
import { type House, type Wing, createHouse, developerId } from './fixture.ts'

export let receiver: Receiver
export let house: House
export let wing: Wing
export let user: UserRecord
export let account: AccountRecord

before(async () => {
  receiver = await createReceiver()
})
after(() => receiver.close())
beforeEach(async () => {
  house = await createHouse()
  wing = await house.wing()
  user = await house.user()
  account = await house.account(user, 'me::example')
})
afterEach(() => house.close())

/** Another wing takes the place of `wing`, which has been stopped, or goes on unseen. */
export async function nextWing(env: Record<string, string> = {}): Promise<void> {
  wing = await house.wing(env)
}

let paths = 0

/** A path of the receiver that no other test has. */
export function freshPath(): string {
  paths += 1
  return `/hook${paths}`
}

/** A webhook of the user, or of the application (null), to a path of the receiver. */
export function hook(path: string, input: WebhookInput = {}, userId: string | null = user.id): Promise<WebhookRecord> {
  return wing.webhooks.create({ developerId, userId, version: 'lite' }, { callbackUrl: receiver.url(path), ...input })
}
