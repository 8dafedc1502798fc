/** Threads. A message's thread id comes from the message alone, so it does not depend on the order of reading mail. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { threadId } from '../store/ids.ts'
import type { Store } from '../store/port.ts'
import type { MessageRecord } from '../store/records.ts'
import { yieldToLoop } from '../scheduling.ts'

/** The hosted id is X-GM-THRID or THREADID: the server knows best. References are oldest first. */
type ThreadHints = Pick<MessageRecord, 'hostedThreadId' | 'references' | 'inReplyTo' | 'emailMessageId'>

/**
 * The root that names a thread: the hosted thread, else the first reference, else the message replied to, else the
 * message's own id, else `fallback` (a message without any id is a thread of its own). A reply without References names
 * its parent as the root, which is right only if that parent began the thread: else `ancestorsOf` finds the root.
 */
export function threadRoot(hints: ThreadHints, fallback: () => string): string {
  if (hints.hostedThreadId !== null) return `hosted:${hints.hostedThreadId}`
  return hints.references[0] ?? hints.inReplyTo ?? hints.emailMessageId ?? fallback()
}

export function threadIdOf(accountId: string, hints: ThreadHints, fallback: () => string): string {
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

/** Steps along a chain of replies without References. */
const mostSteps = 50

/** The message replied to, the first reference and the newest ones: some of these are stored. */
function namedAbove({ inReplyTo, references }: MessageRecord): string[] {
  const ids = [inReplyTo, references[0], ...references.slice(-10)]
  return [...new Set(ids.filter((id) => id !== null && id !== undefined))]
}

/** The stored messages that this message answers, directly or not, nearest first. */
export function ancestorsOf(store: Pick<Store, 'messages'>, message: MessageRecord): Promise<MessageRecord[]> {
  return ancestors(readsOf(store, message.accountId), message)
}

async function ancestors(
  { byMessageIds }: Pick<Reads, 'byMessageIds'>,
  message: MessageRecord,
): Promise<MessageRecord[]> {
  const found = new Map<string, MessageRecord>()
  let asked = namedAbove(message)
  for (let step = 0; step < mostSteps && asked.length > 0; step += 1) {
    const parents = await byMessageIds(asked)
    const fresh = [...parents.values()].filter(({ id }) => id !== message.id && !found.has(id))
    for (const parent of fresh) found.set(parent.id, parent)
    asked = [...new Set(fresh.flatMap(namedAbove))]
  }
  return [...found.values()]
}

/** Messages of a conversation that are read. */
const mostOfThread = 1000

/** The messages that belong together by In-Reply-To and References, or by the provider's thread id. */
export type Conversation = Awaited<ReturnType<typeof conversation>>

/**
 * The conversations of messages, by message id. The search goes up to the answered messages and down to the answers: a
 * reply without References has the thread id of its parent. The provider's thread ids need no search. All messages
 * search together, so that the store is asked about as often as for a single message.
 */
export async function conversationsOf(
  store: Pick<Store, 'messages'>,
  accountId: string,
  messages: readonly MessageRecord[],
): Promise<ReadonlyMap<string, Conversation>> {
  const alone = readsOf(store, accountId)
  const reads: Reads = {
    byMessageIds: together(alone.byMessageIds, (all, ids) => {
      const own = ids.map((id) => [id, all.get(id)] as const)
      return new Map(own.flatMap(([id, found]) => (found === undefined ? [] : [[id, found] as const])))
    }),
    inThreads: together(alone.inThreads, (all, names) => {
      // The messages of one long thread may leave no room for the others.
      if (all.length >= mostOfThread) return alone.inThreads(names)
      return all.filter((one) => threadIds(one).some((name) => names.includes(name)))
    }),
  }
  return new Map(await Promise.all(messages.map(async (one) => [one.id, await conversation(reads, one)] as const)))
}

export function conversationOf(store: Pick<Store, 'messages'>, message: MessageRecord): Promise<Conversation> {
  return conversation(readsOf(store, message.accountId), message)
}

/** All that callers ask for in one turn of the event loop becomes one call of `ask`; `own` picks each caller's part. */
function together<T>(
  ask: (names: readonly string[]) => Promise<T>,
  own: (all: T, names: readonly string[]) => T | Promise<T>,
) {
  let asked: { readonly names: Set<string>; readonly answer: Promise<T> } | null = null
  return async (names: readonly string[]): Promise<T> => {
    if (asked === null) {
      const all = new Set<string>()
      const answer = nextTurn().then(() => {
        asked = null
        return ask([...all])
      })
      asked = { names: all, answer }
    }
    const { names: all, answer } = asked
    for (const name of names) all.add(name)
    const found = await answer
    await yieldToLoop()
    return own(found, names)
  }
}

type Reads = ReturnType<typeof readsOf>

function readsOf({ messages }: Pick<Store, 'messages'>, accountId: string) {
  return {
    byMessageIds: (ids: readonly string[]) => messages.byMessageIds(accountId, ids),
    inThreads: (names: readonly string[]) =>
      messages.list(accountId, { threadIds: names, order: 'asc' }, { limit: mostOfThread, offset: 0 }),
  }
}

/** `messages`: live ones, oldest first. `threadId` and `threadIds` are the same for each of them. */
async function conversation(reads: Reads, message: MessageRecord) {
  const { accountId, hostedThreadId } = message
  const above = hostedThreadId === null ? await ancestors(reads, message) : []
  const asked = new Set<string>()
  const found = new Map<string, MessageRecord>()
  let names = [message, ...above].map((one) => one.threadId)
  // The thread of the message's own replies without References.
  if (hostedThreadId === null && message.emailMessageId !== null)
    names.push(threadId(accountId, message.emailMessageId))
  for (let step = 0; step < mostSteps && names.length > 0 && found.size < mostOfThread; step += 1) {
    for (const name of names) asked.add(name)
    const fresh = await reads.inThreads(names)
    for (const one of fresh) found.set(one.id, one)
    const ids = hostedThreadId === null ? fresh.flatMap(({ emailMessageId }) => emailMessageId ?? []) : []
    names = [...new Set(ids.map((id) => threadId(accountId, id)))].filter((name) => !asked.has(name))
  }
  const messages = [...found.values()].sort((a, b) => a.sentAt - b.sentAt || (a.id < b.id ? -1 : 1))
  const own = [...new Set([message, ...messages].map((one) => one.threadId))]
  /** false = there are more messages than were read. */
  const isWhole = found.size < mostOfThread
  return { threadId: messages[0]?.threadId ?? message.threadId, hostedThreadId, threadIds: own, messages, isWhole }
}

/** The index's thread id of a provider's thread. */
export function hostedThread(accountId: string, hostedThreadId: string): string {
  return threadIdOf(accountId, { hostedThreadId, references: [], inReplyTo: null, emailMessageId: null }, () => '')
}
