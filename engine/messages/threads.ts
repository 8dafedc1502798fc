/**
 * Which thread a message belongs to. Its id comes from the message alone, without a look-up, so it is the same in
 * whatever order mail is read.
 */
import { threadId } from '../store/ids.ts'
import type { Store } from '../store/port.ts'
import type { MessageRecord } from '../store/records.ts'

interface ThreadHints {
  /** X-GM-THRID or THREADID; the server knows best. */
  readonly hostedThreadId: string | null
  /** Oldest first. */
  readonly references: readonly string[]
  readonly inReplyTo: string | null
  readonly emailMessageId: string | null
}

/**
 * The root that names a thread: the hosted thread, else the first reference, else the message replied to, else the
 * message's own id, else `fallback` (a message with no id at all is a thread of its own). A reply without References
 * names its parent as the root, and has the thread's id only when that parent began it: `ancestorsOf` finds the way to
 * the others.
 */
export function threadRoot(hints: ThreadHints, fallback: string): string {
  if (hints.hostedThreadId !== null) return `hosted:${hints.hostedThreadId}`
  return hints.references[0] ?? hints.inReplyTo ?? hints.emailMessageId ?? fallback
}

export function threadIdOf(accountId: string, hints: ThreadHints, fallback: string): string {
  return threadId(accountId, threadRoot(hints, fallback))
}

/** Message-IDs of the message that this one answers, likeliest first: In-Reply-To, then the newest reference. */
export function answeredIds(message: Pick<ThreadHints, 'inReplyTo' | 'references'>): string[] {
  const newest = message.references.at(-1)
  return [...new Set([message.inReplyTo, newest].filter((id) => id !== null && id !== undefined))]
}

export function threadIds({
  threadId: own,
  hostedThreadId,
}: Pick<MessageRecord, 'threadId' | 'hostedThreadId'>): string[] {
  return hostedThreadId === null ? [own] : [own, hostedThreadId]
}

/** A chain of replies without References is followed this far up. */
const mostSteps = 50

/** The message replied to, the first reference and the newest ones: of a long list some will be there. */
function namedAbove({ inReplyTo, references }: MessageRecord): string[] {
  const ids = [inReplyTo, references[0], ...references.slice(-10)]
  return [...new Set(ids.filter((id) => id !== null && id !== undefined))]
}

/** The stored messages that this one answers, and those that they answer, nearest first. */
export async function ancestorsOf(store: Pick<Store, 'messages'>, message: MessageRecord): Promise<MessageRecord[]> {
  const found = new Map<string, MessageRecord>()
  let asked = namedAbove(message)
  for (let step = 0; step < mostSteps && asked.length > 0; step += 1) {
    const parents = await store.messages.byMessageIds(message.accountId, asked)
    const fresh = [...parents.values()].filter(({ id }) => id !== message.id && !found.has(id))
    for (const parent of fresh) found.set(parent.id, parent)
    asked = [...new Set(fresh.flatMap(namedAbove))]
  }
  return [...found.values()]
}
