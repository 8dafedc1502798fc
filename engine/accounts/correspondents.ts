/**
 * What a batch adds to the user's contacts: who wrote, and whose mail was replied to. Replies and the mail they answer may be read
 * in either order (back-fill goes backwards), so both directions are looked up.
 */
import {
  countsAsReceived,
  isSentByUser,
  receivedContact,
  repliedContact,
  type CountedMessage,
  type Owner,
} from '../messages/contacts.ts'
import type { ContactDelta, FolderRecord } from '../store/records.ts'
import type { ReadMessage } from './plan.ts'
import type { AccountState, SyncDeps } from './state.ts'

/** Messages of one thread that are looked through for a reply. */
const threadMax = 50

interface Context {
  readonly deps: SyncDeps
  readonly state: AccountState
}

/** Deltas of newly read messages; the store applies each key once, so overlaps do no harm. */
export async function correspondentsOf(
  context: Context,
  folder: FolderRecord,
  read: readonly ReadMessage[],
): Promise<ContactDelta[]> {
  const { userId } = context.state.account
  const owner: Owner = { userId, ownAddresses: context.state.ownAddresses }
  const role = folder.specialUse
  const deltas: ContactDelta[] = []
  for (const message of read) {
    if (isSentByUser(owner, role, message)) deltas.push(...(await answered(context, owner, message, read)))
    else if (countsAsReceived(role)) {
      const received = receivedContact(owner, role, message)
      deltas.push(...received)
      if (received.length > 0 && (await wasReplied(context, owner, message)))
        deltas.push(...repliedContact(owner, message))
    }
  }
  return deltas
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

/** Whether a reply of the user's is in the index already. */
async function wasReplied({ deps, state }: Context, owner: Owner, message: ReadMessage): Promise<boolean> {
  const { emailMessageId, threadId } = message.facts
  if (emailMessageId === null) return false
  const thread = await deps.store.messages.list(state.account.id, { threadId }, { limit: threadMax, offset: 0 })
  return thread.some(
    (row) =>
      row.inReplyTo === emailMessageId &&
      row.id !== message.id &&
      isSentByUser(owner, null, { id: row.id, facts: row }),
  )
}
