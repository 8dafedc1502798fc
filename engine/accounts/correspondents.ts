/**
 * What a batch adds to the user's contacts: who wrote, whose mail was replied to, and whom else the mail names. Replies and the mail they answer may be read
 * in either order (back-fill goes backwards), so both directions are looked up.
 */
import {
  countsAsReceived,
  isSentByUser,
  otherContacts,
  receivedContact,
  repliedContact,
  type CountedMessage,
  type Owner,
} from '../messages/contacts.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, ContactDelta, FolderRecord, MessageRecord } from '../store/records.ts'
import type { ReadMessage } from './plan.ts'
import type { AccountState, SyncDeps } from './state.ts'

/** Messages of one thread that are looked through for a reply. */
const threadMax = 50
/** Threads looked up together: on a store across the network the round trips are what costs. */
const threadsAtOnce = 20

interface Context {
  readonly deps: SyncDeps
  readonly state: AccountState
}

/** Deltas of newly read messages; the store applies each key once, so overlaps do no harm. */
export async function correspondentsOf(
  context: Context,
  owner: Owner,
  folder: FolderRecord,
  read: readonly ReadMessage[],
): Promise<ContactDelta[]> {
  const role = folder.specialUse
  const deltas: ContactDelta[] = []
  const heard: ReadMessage[] = []
  for (const message of read) {
    deltas.push(...otherContacts(owner, role, message))
    if (isSentByUser(owner, role, message)) deltas.push(...(await answered(context, owner, message, read)))
    else if (countsAsReceived(role)) {
      const received = receivedContact(owner, role, message)
      deltas.push(...received)
      if (received.length > 0 && message.facts.emailMessageId !== null) heard.push(message)
    }
  }
  const threads = await threadsOf(context, heard)
  for (const message of heard) {
    if (wasReplied(owner, message, threads.get(message.facts.threadId) ?? []))
      deltas.push(...repliedContact(owner, message))
  }
  return deltas
}

/** As the user is now: addresses come and go with the email accounts. */
export async function ownerOf({ users }: Pick<Store, 'users'>, account: AccountRecord): Promise<Owner> {
  const { developerId, userId, email } = account
  const user = await users.get(developerId, userId)
  return { userId, ownAddresses: [...(user?.emailAddresses ?? []), email] }
}

/** The mail that this one replies to, in this batch or in the index. */
async function answered(
  { deps, state }: Context,
  owner: Owner,
  reply: ReadMessage,
  read: readonly ReadMessage[],
): Promise<ContactDelta[]> {
  const wanted = reply.facts.inReplyTo
  if (wanted === null) return []
  const here = read.find((other) => other.facts.emailMessageId === wanted)
  const row = here ?? (await deps.store.messages.find(state.account.id, wanted))
  if (row === null) return []
  const counted: CountedMessage = 'facts' in row ? row : { id: row.id, facts: row }
  return repliedContact(owner, counted)
}

/** What the index has of the threads of these messages, the newest of each. */
async function threadsOf(context: Context, messages: readonly ReadMessage[]): Promise<Map<string, MessageRecord[]>> {
  const { store } = context.deps
  const { id } = context.state.account
  const wanted = [...new Set(messages.map(({ facts }) => facts.threadId))]
  const found: MessageRecord[] = []
  for (let start = 0; start < wanted.length; start += threadsAtOnce) {
    const threadIds = wanted.slice(start, start + threadsAtOnce)
    const limit = threadMax * 2
    const rows = await store.messages.list(id, { threadIds }, { limit, offset: 0 })
    if (rows.length < limit) {
      found.push(...rows)
      continue
    }
    // a long thread may hide the others: one by one then
    for (const threadId of threadIds)
      found.push(...(await store.messages.list(id, { threadId }, { limit: threadMax, offset: 0 })))
  }
  return Map.groupBy(found, ({ threadId }) => threadId)
}

/** Whether a reply of the user's is in the index already. */
function wasReplied(owner: Owner, message: ReadMessage, thread: readonly MessageRecord[]): boolean {
  const { emailMessageId } = message.facts
  return thread.some(
    (row) =>
      row.inReplyTo === emailMessageId &&
      row.id !== message.id &&
      isSentByUser(owner, null, { id: row.id, facts: row }),
  )
}
