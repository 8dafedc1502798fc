/** What an end-to-end test stands on: a mail server, the service as a process or several, a receiver. */
import assert from 'node:assert/strict'
import { bodySignatureFits, headerSignatureFits, startReceiver, subjectOf } from '../support/callbacks.ts'
import type { Callback, CallbackReceiver } from '../support/callbacks.ts'
import { mail } from '../support/mail.ts'
import { startServices } from '../support/nodes.ts'
import { apiSecret, type Service, type ServiceOptions } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed, type MailServer } from '../support/users.ts'

/** A mail server that a test can use up: real Dovecot, or the one in this process. */
export interface TestMailServer extends MailServer {
  append(user: string, folder: string, raw: string): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
  remove(): Promise<void>
}

export interface Stage {
  readonly service: Service
  readonly receiver: CallbackReceiver
  remove(): Promise<void>
}

/** Retries that a test can wait for. */
export const quickRetries = {
  MAILROOM_WEBHOOK_SCHEDULE: '200ms,200ms,200ms,200ms,200ms,200ms,200ms,200ms,500ms,500ms,500ms,500ms,1s,1s,1s,1s',
  MAILROOM_WEBHOOK_JITTER: '0',
  MAILROOM_BACKOFF_FIRST: '100ms',
  MAILROOM_BACKOFF_MAX: '500ms',
}

export async function openStage(options: ServiceOptions = {}): Promise<Stage> {
  const parts = new AsyncDisposableStack()
  try {
    const receiver = await startReceiver()
    parts.defer(() => receiver.close())
    const store = chosenStore()
    parts.defer(() => store.remove())
    const service = await startServices({ ...options, env: { ...quickRetries, ...store.env, ...options.env } })
    parts.defer(() => service.remove())
    return { service, receiver, remove: () => parts.disposeAsync() }
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

export interface WatchedUser {
  readonly id: string
  readonly email: string
  readonly webhookId: string
}

/** A user whose mailbox holds one old message, whose INBOX is in the index, and whose new mail goes to the receiver. */
export async function watchedUser(stage: Stage, server: TestMailServer, name: string): Promise<WatchedUser> {
  const email = `${name}@mail.example`
  await server.append(email, 'INBOX', mail({ to: email, subject: `old ${name}` }))
  const id = await createUser(stage.service, server, email)
  await listed(stage.service, id, `old ${name}`)
  const webhookId = await createWebhook(stage.service, id, `${stage.receiver.url}/${name}`, {
    failure_notif_url: `${stage.receiver.url}/failed`,
  })
  return { id, email, webhookId }
}

/** Callbacks of one user's new mail that were answered with 200; failure notifications are none. */
export function acceptedFor(stage: Stage, user: WatchedUser): Callback[] {
  return stage.receiver.accepted().filter(({ body }) => body['webhook_id'] === user.webhookId && 'message_data' in body)
}

/** Waits until that many were accepted, and then until nothing more has come for a while: repetitions would. */
export async function settled(stage: Stage, count: () => number, wanted: number, withinMs = 20_000): Promise<void> {
  const explain = (): string => stage.service.log().slice(-3000)
  await until(`${wanted} accepted callbacks`, () => count() >= wanted, { withinMs, explain })
  let [seen, since] = [stage.receiver.all.length, performance.now()]
  const quiet = (): boolean => {
    if (stage.receiver.all.length !== seen) [seen, since] = [stage.receiver.all.length, performance.now()]
    return performance.now() - since > 1000
  }
  await until('quiet at the receiver', quiet, { withinMs })
}

/** Both signatures, each checked by the receiver's own code. */
export function assertSigned(callback: Callback): void {
  assert(bodySignatureFits(callback, apiSecret), `signature in the body: ${callback.raw}`)
  const key = `whsec_${Buffer.from(apiSecret).toString('base64')}`
  assert(headerSignatureFits(callback, key), `webhook-signature: ${JSON.stringify(callback.headers)}`)
}

export function subjects(callbacks: readonly Callback[]): string[] {
  return callbacks.map(subjectOf)
}
