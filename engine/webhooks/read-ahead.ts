/**
 * Reads small texts and header blocks ahead of their callbacks, many messages in one FETCH: for new mail in the session
 * that found it, for other mail over the command connection, together with the next callbacks' messages. A text is kept
 * for a short time, also for other webhooks of the account. A callback reads large and incomplete texts alone
 * (contents.ts), and so it does after a failed FETCH: one message must not fail the callbacks of others.
 */
import { LRUCache } from 'lru-cache'
import type { FetchMany, WantedParts } from '../accounts/types.ts'
import type { MessageRecord, OutboxRecord } from '../store/records.ts'
import { earlyParts, type Wanted } from './contents.ts'
import type { Mail, WebhookParts } from './parts.ts'

/** Most messages of one FETCH; most bytes of a text, and of all kept texts. */
export const aheadMost = 16
const textBytes = 32_768
const keptBytes = 2 * 1_048_576
const keptMs = 30_000
/** Entry of a message that its callback reads alone. */
const none: ReadonlyMap<string, Buffer> = new Map()

export type ReadAhead = ReturnType<typeof createReadAhead>

/** A text of `textBytes` may be cut. */
function isWhole(bytes: Buffer | undefined): bytes is Buffer {
  return bytes !== undefined && bytes.length < textBytes
}

type Deps = Pick<WebhookParts, 'mail' | 'store' | 'targets' | 'budget'>

export function createReadAhead({ mail, store, targets, budget }: Deps) {
  const kept = new LRUCache<string, ReadonlyMap<string, Buffer>>({
    maxSize: keptBytes,
    sizeCalculation: (parts) => parts.values().reduce((sum, bytes) => sum + bytes.length, 100),
    ttl: keptMs,
  })
  return {
    /** Replaces `mail`: takes kept texts first. */
    mail: {
      ...mail,
      fetchParts(message, sections, most) {
        const parts = kept.get(message.id)
        const isKept = parts !== undefined && sections.every((section) => isWhole(parts.get(section)))
        return isKept ? Promise.resolve(parts) : mail.fetchParts(message, sections, most)
      },
      fetchHeaders(message) {
        const block = kept.get(message.id)?.get('HEADER')
        return isWhole(block) ? Promise.resolve(block) : mail.fetchHeaders(message)
      },
    } satisfies Mail,
    /** `behind`: ids of the messages of the next callbacks. */
    async read({ message, ...hook }: Wanted, behind: readonly string[]): Promise<void> {
      if (behind.length === 0 || kept.has(message.id)) return
      const unread = behind.filter((id) => !kept.has(id))
      const messages = [message, ...(await store.messages.byIds(message.accountId, unread))]
      const wanted = messages.map((one) => ({ message: one, sections: sectionsOf({ ...hook, message: one }) }))
      const failed = (): ReadonlyMap<string, typeof none> => new Map(messages.map(({ id }) => [id, none]))
      const found = await mail.fetchMany(message.accountId, wanted, textBytes).catch(failed)
      for (const [id, parts] of found) kept.set(id, parts)
    },
    /** For new mail, see ChangeListener.readAhead. Reads nothing while memory is short: the session must not wait. */
    async readNew(
      outbox: readonly OutboxRecord[],
      messages: readonly MessageRecord[],
      fetchMany: FetchMany,
    ): Promise<void> {
      const channels = Map.groupBy(outbox, ({ messageId }) => messageId)
      const wanted: WantedParts[] = []
      for (const message of messages) {
        const asked = (channels.get(message.id) ?? []).flatMap(({ webhookId }) => {
          const target = targets.get(webhookId ?? '')
          return target === null ? [] : sectionsOf({ ...target, message })
        })
        if (asked.length > 0) wanted.push({ message, sections: [...new Set(asked)] })
      }
      const first = wanted.slice(0, aheadMost)
      const [row] = outbox
      if (first.length === 0 || row === undefined) return
      const bytes = first.reduce((sum, { sections }) => sum + sections.length * textBytes, 0)
      const owner = { developerId: row.developerId, part: row.accountId ?? '' }
      const signal = AbortSignal.timeout(1)
      const release = await budget.take('contents', owner, bytes, { signal }).catch(() => null)
      if (release === null) return
      try {
        for (const [id, parts] of await fetchMany(first, textBytes)) kept.set(id, parts)
      } finally {
        release()
      }
    },
  }
}

/** Only the header block if one of the message's first texts is large. */
function sectionsOf(wanted: Wanted): string[] {
  const parts = earlyParts(wanted)
  const isLarge = parts.some(({ size }) => size >= textBytes / 2)
  const texts = isLarge ? [] : parts.map(({ section }) => section)
  return wanted.webhook.includeHeader === null ? texts : [...texts, 'HEADER']
}
