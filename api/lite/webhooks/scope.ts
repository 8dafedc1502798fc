/** The two levels of webhooks, user and application: the same routes under two paths. */
import { z } from 'zod'
import { notFound, type Asking, type UserRecord, type WebhookRecord } from '../../../engine/index.ts'
import type { Call } from '../../route.ts'
import { findUser } from '../find.ts'

/** Path parameters of either level; `id` is the user's and absent at application level. */
export const scopePath = z.object({ id: z.string().optional() })
export const hookPath = z.object({ id: z.string().optional(), webhook_id: z.string() })

export interface Level {
  readonly name: 'user' | 'application'
  readonly base: string
  readonly tag: string
}

export const levels: readonly Level[] = [
  { name: 'user', base: '/lite/users/{id}/webhooks', tag: 'Webhooks' },
  { name: 'application', base: '/lite/webhooks', tag: 'Application webhooks' },
]

/** The user of a user-level path; null at application level. */
export async function scopeUser(call: Call, id: string | undefined): Promise<UserRecord | null> {
  return id === undefined ? null : findUser(call, id)
}

export async function findWebhook(call: Call, path: z.output<typeof hookPath>): Promise<WebhookRecord> {
  const user = await scopeUser(call, path.id)
  const webhook = await call.engine.store.webhooks.get(path.webhook_id)
  const own = webhook !== null && webhook.developerId === call.developer.id && webhook.userId === (user?.id ?? null)
  if (!own) throw notFound('webhook', path.webhook_id)
  return webhook
}

/** Where the answer needs mail from a mail server, the call counts as one to the mail servers of that user; once. */
export function askingOf(call: Call): Asking {
  const counted = new Set<string>()
  return {
    signal: call.signal,
    reads(userId) {
      if (counted.has(userId)) return
      counted.add(userId)
      call.touchesImap({ id: userId })
    },
  }
}
