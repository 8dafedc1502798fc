/** Which thread a message belongs to, told from the message alone: no look-up, so it is the same whatever order mail is read in. */
import { threadId } from '../store/ids.ts'

export interface ThreadHints {
  /** X-GM-THRID or THREADID; the server knows best. */
  readonly hostedThreadId: string | null
  /** Oldest first. */
  readonly references: readonly string[]
  readonly inReplyTo: string | null
  readonly emailMessageId: string | null
}

/**
 * The root that names a thread: the hosted thread, else the first reference, else the message replied to, else the message's
 * own id, else `fallback` (a message with no id at all is a thread of its own).
 * A reply whose program leaves References out names its parent as the root, and joins the thread only when that parent began it.
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
