/**
 * What a message adds to the user's contacts. Meaning of the counts: `indirect` = messages received from the contact,
 * `direct` = received ones that the user replied to, `total` = all messages with the contact: in From, To, Cc or Bcc,
 * received or sent. Each message counts once, and each is replied to once, however many folders or replies there are:
 * the delta's key names the message and the reason, and the store applies each key once.
 */
import { maxAddressLength } from './addresses.ts'
import type { Address, ContactDelta, MessageFacts, SpecialUse } from '../store/records.ts'

/** People beside the sender for whom one message counts, as contacts of the user. */
export const maxOtherContacts = 100

export interface Owner {
  readonly userId: string
  /** The user's own addresses, in any case. */
  readonly ownAddresses: readonly string[]
}

/** A message that the store knows or is about to know. */
export interface CountedMessage {
  /** messageId(accountId, identity), not the Message-ID. */
  readonly id: string
  readonly facts: Pick<MessageFacts, 'addresses' | 'receivedAt'>
}

/** Folders whose mail was not received, or not wanted. */
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

/** The contact a message comes from: its first From that is an address; null when that is the user. */
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

/**
 * true when the user wrote the message: it is in Sent, or comes from one of the user's addresses and is not in Drafts,
 * Junk or Trash.
 */
export function isSentByUser(owner: Owner, role: SpecialUse | null, message: CountedMessage): boolean {
  if (role === '\\Sent') return true
  return countsAsReceived(role) && message.facts.addresses.from.some(({ email }) => isOwn(owner, email))
}

/**
 * The sender of a message found in a folder of this role: total 1, indirect 1. [] for mail in Sent, Drafts, Junk and
 * Trash, for the user's own mail, and for mail without a sender.
 */
export function receivedContact(owner: Owner, role: SpecialUse | null, message: CountedMessage): ContactDelta[] {
  const contact = countsAsReceived(role) ? contactOf(owner, message) : null
  return contact ? [delta(owner, contact, message, 'r')] : []
}

/**
 * Everybody else of a message found in a folder of this role: total 1 each. Mail that the user sent counts for its
 * recipients, mail that he received for all but its sender, whom `receivedContact` counts. [] for Drafts, Junk and
 * Trash.
 */
export function otherContacts(owner: Owner, role: SpecialUse | null, message: CountedMessage): ContactDelta[] {
  const sent = isSentByUser(owner, role, message)
  if (!sent && !countsAsReceived(role)) return []
  const { from, to, cc, bcc } = message.facts.addresses
  const others = new Map<string, Address>()
  for (const one of [...(sent ? [] : from), ...to, ...cc, ...bcc].filter(isAddress)) {
    const email = one.email.toLowerCase()
    if (!others.has(email)) others.set(email, one)
  }
  const sender = sent ? null : contactOf(owner, message)
  for (const email of [...owner.ownAddresses, sender?.email ?? '']) others.delete(email.toLowerCase())
  return [...others.values()].slice(0, maxOtherContacts).map((one) => delta(owner, one, message, 'o'))
}

/**
 * The sender of `answered`, a received message that one of the user's sent messages answers (threads.ts `answeredIds`
 * finds it): direct 1. Keyed by the answered message, so answering it twice counts once. [] when it came from the user.
 */
export function repliedContact(owner: Owner, answered: CountedMessage): ContactDelta[] {
  const contact = contactOf(owner, answered)
  return contact ? [delta(owner, contact, answered, 'd')] : []
}
