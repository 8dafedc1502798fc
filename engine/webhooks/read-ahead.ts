/**
 * Small texts of the callbacks that are about to go out, read together with the first one's: a burst costs one FETCH
 * for many messages. A text is kept for a short time, so that other webhooks of the account find it too. What the mail
 * server gives only in part, and what is large, is read by the callback alone (contents.ts); so are, after a command
 * that failed, all its messages: one message must not fail the callbacks of others.
 */
import { LRUCache } from 'lru-cache'
import type { Store } from '../store/port.ts'
import type { MessageRecord } from '../store/records.ts'
import { earlyParts, type Mail, type Wishes } from './contents.ts'

/** Messages of one FETCH, and bytes of a text and of all texts that are kept. */
export const aheadMost = 16
const textBytes = 32_768
const keptBytes = 2 * 1_048_576
const keptMs = 30_000
/** Of a message that is read alone. */
const none: ReadonlyMap<string, Buffer> = new Map()

export interface ReadAhead {
  /** Takes `mail`'s place: answers from what was read ahead. */
  readonly mail: Mail
  /** `behind`: ids of the messages whose callbacks follow. */
  readonly read: (message: MessageRecord, behind: readonly string[], wishes: Wishes, searched: boolean) => Promise<void>
}

export function createReadAhead(mail: Mail, store: Pick<Store, 'messages'>): ReadAhead {
  const kept = new LRUCache<string, ReadonlyMap<string, Buffer>>({
    maxSize: keptBytes,
    sizeCalculation: (parts) => parts.values().reduce((sum, bytes) => sum + bytes.length, 100),
    ttl: keptMs,
  })
  return {
    mail: {
      ...mail,
      fetchParts(message, sections, most) {
        const parts = kept.get(message.id)
        const isKept = parts !== undefined && sections.every((section) => parts.has(section))
        return isKept ? Promise.resolve(parts) : mail.fetchParts(message, sections, most)
      },
    },
    async read(message, behind, wishes, searched) {
      if (behind.length === 0 || kept.has(message.id)) return
      const unread = behind.filter((id) => !kept.has(id))
      const messages = [message, ...(await store.messages.byIds(message.accountId, unread))]
      const wanted = messages.map((one) => ({ message: one, sections: sectionsOf(one, wishes, searched) }))
      const failed = (): ReadonlyMap<string, typeof none> => new Map(messages.map(({ id }) => [id, none]))
      const found = await mail.fetchMany(message.accountId, wanted, textBytes).catch(failed)
      for (const [id, parts] of found) kept.set(id, parts)
    },
  }
}

/** None when one of its first texts is large. */
function sectionsOf(message: MessageRecord, wishes: Wishes, searched: boolean): string[] {
  const parts = earlyParts(message, wishes, searched)
  return parts.some(({ size }) => size >= textBytes / 2) ? [] : parts.map(({ section }) => section)
}
