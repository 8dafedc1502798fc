/**
 * The effect of a message on the user's contacts. Counts: `indirect` = messages received from the contact, `direct` =
 * received ones that the user replied to, `total` = all messages with the contact in From, To, Cc or Bcc, received or
 * sent. Each message counts once, and is replied to once, in however many folders and replies: the delta's key names
 * the message and the reason, and the store applies each key once.
 */
import { maxAddressLength } from './addresses.ts'
import type { Address, ContactDelta, MessageFacts, SpecialUse } from '../store/records.ts'

/** People of one message, beside its sender, who become contacts. */
export const maxOtherContacts = 100

export interface Owner {
  readonly userId: string
  /** The user's own addresses, in any case. */
  readonly ownAddresses: readonly string[]
}

/** A message that is or will be stored. */
export interface CountedMessage {
  /** messageId(accountId, identity), not the Message-ID. */
  readonly id: string
  readonly facts: Pick<MessageFacts, 'addresses' | 'receivedAt'>
}

/** Folders whose mail was not received, or is unwanted. */
const notReceived: ReadonlySet<SpecialUse | null> = new Set<SpecialUse | null>([
  '\\Sent',
  '\\Drafts',
  '\\Junk',
  '\\Trash',
])

function isOwn(owner: Owner, email: string): boolean {
  const wanted = email.toLowerCase()
  return owner.ownAddresses.some((own) => own.toLowerCase() === wanted)
}

function isAddress({ email }: Address): boolean {
  return /^[^@]+@[^@]+$/.test(email.slice(0, maxAddressLength))
}

/** The first valid address of From; null when there is none, or it is the user's. */
function contactOf(owner: Owner, message: CountedMessage): Address | null {
  const sender = message.facts.addresses.from.find(isAddress)
  return sender === undefined || isOwn(owner, sender.email) ? null : sender
}

/** r = received from the contact, d = the user replied to it, o = the contact is one of the others. */
type Kind = 'r' | 'd' | 'o'

function delta(owner: Owner, contact: Address, message: CountedMessage, kind: Kind): ContactDelta {
  return {
    userId: owner.userId,
    email: contact.email.toLowerCase(),
    name: contact.name,
    key: `${message.id}:${kind}`,
    total: kind === 'd' ? 0 : 1,
    direct: kind === 'd' ? 1 : 0,
    indirect: kind === 'r' ? 1 : 0,
    receivedAt: kind === 'o' ? 0 : message.facts.receivedAt,
  }
}

export function countsAsReceived(role: SpecialUse | null): boolean {
  return !notReceived.has(role)
}

/** The message is in Sent, or it is From one of the user's addresses and not in Drafts, Junk or Trash. */
export function isSentByUser(owner: Owner, role: SpecialUse | null, message: CountedMessage): boolean {
  if (role === '\\Sent') return true
  return countsAsReceived(role) && message.facts.addresses.from.some(({ email }) => isOwn(owner, email))
}

/**
 * The sender of a message in a folder of this role: total 1, indirect 1. [] for mail in Sent, Drafts, Junk and Trash,
 * for the user's own mail, and for mail without a sender.
 */
export function receivedContact(owner: Owner, role: SpecialUse | null, message: CountedMessage): ContactDelta[] {
  const contact = countsAsReceived(role) ? contactOf(owner, message) : null
  return contact ? [delta(owner, contact, message, 'r')] : []
}

/**
 * The other people of a message in a folder of this role: total 1 each. Sent mail counts for its recipients, received
 * mail for all but its sender, whom `receivedContact` counts. [] for Drafts, Junk and Trash.
 */
export function otherContacts(owner: Owner, role: SpecialUse | null, message: CountedMessage): ContactDelta[] {
  const sent = isSentByUser(owner, role, message)
  if (!sent && !countsAsReceived(role)) return []
  const { from, to, cc, bcc } = message.facts.addresses
  const people = [...(sent ? [] : from), ...to, ...cc, ...bcc].filter(isAddress)
  const others = Map.groupBy(people, ({ email }) => email.toLowerCase())
  const sender = sent ? null : contactOf(owner, message)
  for (const email of [...owner.ownAddresses, sender?.email ?? '']) others.delete(email.toLowerCase())
  const firsts = [...others.values()].slice(0, maxOtherContacts).flatMap(([first]) => first ?? [])
  return firsts.map((one) => delta(owner, one, message, 'o'))
}

/**
 * The sender of `answered`, a received message that the user has replied to (found by `answeredIds` of threads.ts):
 * direct 1. The key names the answered message, so a second reply does not count. [] when the message is the user's.
 */
export function repliedContact(owner: Owner, answered: CountedMessage): ContactDelta[] {
  const contact = contactOf(owner, answered)
  return contact ? [delta(owner, contact, answered, 'd')] : []
}
