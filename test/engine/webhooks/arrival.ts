/** Messages as they arrive, without store and actors: what the pure tests need. */
import { folderId, messageId, threadId } from '../../../engine/store/ids.ts'
import type { ChangeDraft } from '../../../engine/store/port.ts'
import type {
  AccountRecord,
  ChangeKind,
  MessageFacts,
  MessageRecord,
  Placement,
} from '../../../engine/store/records.ts'
import { address, epochStart, messageFacts, noAddresses } from '../../support/records.ts'

/** Facts of a plain message; `name` makes its Message-ID and subject. */
export function facts(name: string, more: Partial<MessageFacts> = {}): MessageFacts {
  const emailMessageId = `${name}@example.com`
  return messageFacts({
    emailMessageId,
    threadId: threadId('thread', emailMessageId),
    sentAt: epochStart,
    receivedAt: epochStart + 1000,
    subject: `Subject of ${name}`,
    addresses: { ...noAddresses, from: [address('ada@mail.example.org', 'Ada')], to: [address('me@example.com')] },
    ...more,
  })
}

export interface Arrival {
  readonly facts: MessageFacts
  readonly kind?: ChangeKind
  readonly first?: boolean
  readonly path?: string
  readonly flags?: readonly string[]
}

export function messageOf(
  account: AccountRecord,
  arrival: Arrival,
  uid: number,
  changeIdOf: string | null,
): MessageRecord {
  const { path = 'INBOX', flags = [] } = arrival
  const identity = `mid:${arrival.facts.emailMessageId ?? uid}`
  const placement: Placement = {
    folderId: folderId(account.id, path),
    path,
    uidValidity: '1',
    uid,
    flags,
    modseq: '0',
    rev: 0,
  }
  return {
    ...arrival.facts,
    id: messageId(account.id, identity),
    accountId: account.id,
    identity,
    firstChangeId: changeIdOf,
    indexedAt: Date.now(),
    placements: [placement],
    gone: [],
  }
}

export function changeOf(account: AccountRecord, message: MessageRecord, arrival: Arrival, id: string): ChangeDraft {
  const [place] = message.placements
  if (place === undefined) throw new Error('a message without a place')
  return {
    id,
    accountId: account.id,
    userId: account.userId,
    kind: arrival.kind ?? 'received',
    first: arrival.first ?? true,
    messageId: message.id,
    folderId: place.folderId,
    path: place.path,
    uid: place.uid,
    uidValidity: place.uidValidity,
    flags: place.flags,
    folders: message.placements.map((one) => one.path),
    at: Date.now(),
  }
}
