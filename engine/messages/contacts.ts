/**
 * What a message adds to the user's contacts. Meaning of the counts: `indirect` = messages received from the contact,
 * `direct` = received ones that the user replied to, `total` = messages of the contact the user has seen (every received one,
 * replied to or not). Each received message counts once, and each is replied to once, however many folders or replies there are:
 * the delta's key says which message, and the store applies a key once.
 */
import { maxAddressLength } from './limits.ts'
import type { Address, ContactDelta, MessageFacts, SpecialUse } from '../store/records.ts'

/** Whose mailbox it is. */
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

/** The contact a message comes from: its first From that is an address; null when that is the user himself. */
function contactOf(owner: Owner, message: CountedMessage): Address | null {
  const sender = message.facts.addresses.from.find(({ email }) =>
    /^[^@]+@[^@]+$/.test(email.slice(0, maxAddressLength)),
  )
  return sender === undefined || isOwn(owner, sender.email) ? null : sender
}

function delta(owner: Owner, contact: Address, message: CountedMessage, kind: 'r' | 'd'): ContactDelta {
  return {
    userId: owner.userId,
    email: contact.email.toLowerCase(),
    name: contact.name,
    key: `${message.id}:${kind}`,
    total: kind === 'r' ? 1 : 0,
    direct: kind === 'd' ? 1 : 0,
    indirect: kind === 'r' ? 1 : 0,
    receivedAt: message.facts.receivedAt,
  }
}

/** true when mail in a folder of this role counts as received. */
export function countsAsReceived(role: SpecialUse | null): boolean {
  return !notReceived.has(role)
}

/** true when the user wrote the message: it lies in Sent, or comes from one of his addresses and is no draft, junk or rubbish. */
export function isSentByUser(owner: Owner, role: SpecialUse | null, message: CountedMessage): boolean {
  if (role === '\\Sent') return true
  return countsAsReceived(role) && message.facts.addresses.from.some(({ email }) => isOwn(owner, email))
}

/**
 * The sender of a message found in a folder of this role: total 1, indirect 1. [] for mail in Sent, Drafts, Junk and Trash, for
 * the user's own mail, and for mail without a sender.
 */
export function receivedContact(owner: Owner, role: SpecialUse | null, message: CountedMessage): ContactDelta[] {
  const contact = countsAsReceived(role) ? contactOf(owner, message) : null
  return contact ? [delta(owner, contact, message, 'r')] : []
}

/**
 * The sender of `answered`, a received message that one of the user's sent messages answers (threads.ts `answeredIds` finds it):
 * direct 1. Keyed by the answered message, so answering it twice counts once. [] when the user answered himself.
 */
export function repliedContact(owner: Owner, answered: CountedMessage): ContactDelta[] {
  const contact = contactOf(owner, answered)
  return contact ? [delta(owner, contact, answered, 'd')] : []
}
