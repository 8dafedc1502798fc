/**
 * Ids of both stores: random for records that people create (users, accounts, webhooks), deterministic for records that
 * are found (folders, messages, changes, outbox rows), so that a record found twice is stored once.
 */
import { hash, randomInt, randomUUID } from 'node:crypto'

/** 24 hex characters: the time in seconds and 8 random bytes, so that ids sort by age. */
export function newId(now: number = Date.now()): string {
  const seconds = Math.floor(now / 1000)
  // node caches the randomness of UUIDs; their first and last groups are all random
  const random = randomUUID()
  return seconds.toString(16).padStart(8, '0') + random.slice(0, 4) + random.slice(24)
}

const tokenAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A connect token: 16 of [a-z0-9]. */
export function newToken(): string {
  return Array.from({ length: 16 }, () => tokenAlphabet[randomInt(tokenAlphabet.length)]).join('')
}

/** A hash of the list of parts, in `length` hex characters. */
export function digest(length: number, ...parts: readonly (string | number)[]): string {
  let whole = ''
  for (const part of parts) {
    const text = String(part)
    whole += `${text.length}:${text},`
  }
  return hash('sha256', whole, 'hex').slice(0, length)
}

export function folderId(accountId: string, path: string): string {
  return digest(24, 'folder', accountId, path)
}

/** `identity`: see accounts/identity.ts. */
export function messageId(accountId: string, identity: string): string {
  return digest(24, 'message', accountId, identity)
}

export function threadId(accountId: string, root: string): string {
  return digest(16, 'thread', accountId, root)
}

/** `version`: the number of a flag change. `generation`: that of the placement. */
export function changeId(
  accountId: string,
  folder: string,
  uidValidity: string,
  uid: number,
  kind: 'added' | 'removed' | 'flags',
  version: number | string,
  generation = 0,
): string {
  const again = generation === 0 ? [] : [generation]
  return digest(32, 'change', accountId, folder, uidValidity, uid, kind, version, ...again)
}

/** `event`: a change's id, `status:<version>`, `failure:<version>`, `historical:<messageId>` … */
export function outboxId(channelId: string, event: string): string {
  return digest(32, 'outbox', channelId, event)
}

/** The channel of callbacks to a bare URL (status, failure, sync completed). */
export function urlChannelId(developerId: string, url: string): string {
  return `u${digest(23, 'url', developerId, url)}`
}

/** Whether the channel is a bare URL's. Webhook ids are 24 hex characters. */
export function isBareUrl(channelId: string): boolean {
  return channelId.startsWith('u')
}

export function contactId(userId: string, email: string): string {
  return digest(24, 'contact', userId, email.toLowerCase())
}
