/** One fetched message → its facts in the index. Pure, bounded, never throws: '', null or [] for unreadable fields. */
import { hash } from 'node:crypto'
import { maxAddresses, parseAddresses } from './addresses.ts'
import { parseDate } from './dates.ts'
import { decodeWords, maxLineLength, oneLine } from './encoded-words.ts'
import {
  cappedReferences,
  messageIdsOf,
  ownMessageId,
  rawValue,
  rawValues,
  readHeaders,
  type Headers,
} from './headers.ts'
import { describedNode, structureOf } from './structure.ts'
import { threadIdOf } from './threads.ts'
import type { Address, MessageAddresses, MessageFacts } from '../store/records.ts'
import type { BodyNode, FetchedMessage } from '../accounts/session-types.ts'

const maxReceived = 100

function addressesIn(values: readonly string[]): Address[] {
  return values.reduce<Address[]>((all, value) => [...all, ...parseAddresses(value, maxAddresses - all.length)], [])
}

/** Authors come from the first field only: a second From must not add a sender. Recipients come from all fields. */
function addressesOf(headers: Headers): MessageAddresses {
  const first = (name: string): Address[] => parseAddresses(rawValue(headers, name))
  const all = (name: string): Address[] => addressesIn(rawValues(headers, name).slice(0, 100))
  return {
    from: first('from'),
    sender: first('sender'),
    replyTo: first('reply-to'),
    to: all('to'),
    cc: all('cc'),
    bcc: all('bcc'),
    returnPath: first('return-path'),
  }
}

function listHeadersOf(headers: Headers): Record<string, string> {
  const names = headers.fields.flatMap(({ name }) => (name.startsWith('list-') ? [name] : []))
  return Object.fromEntries(
    [...new Set(names)]
      .slice(0, 50)
      .map((name) => [name, oneLine(decodeWords(rawValue(headers, name)), maxLineLength)]),
  )
}

function receivedOf(headers: Headers): string[] {
  return rawValues(headers, 'received')
    .slice(0, maxReceived)
    .map((value) => oneLine(value, maxLineLength))
}

/** The time a Received value ends with: `… ; Mon, 21 Nov 2022 07:08:00 +0000`. */
function receivedTime(values: readonly string[]): number | null {
  const newest = values[0] ?? ''
  return parseDate(newest.slice(newest.lastIndexOf(';') + 1))
}

/** Each time falls back on the other, then on the newest Received, then on 1970. */
function timesOf(headers: Headers, internalDate: number | null, received: readonly string[]) {
  const date = parseDate(rawValue(headers, 'date'))
  const arrival = internalDate ?? receivedTime(received)
  return { sentAt: date ?? arrival ?? 0, receivedAt: arrival ?? date ?? 0 }
}

/**
 * The tree for an unreadable BODYSTRUCTURE, or one with nothing but the size: the single part that the header
 * describes. The header of a multipart does not show its parts: plain text is assumed (structure.ts reads the parts
 * from the whole message).
 */
function assumedBody(headers: Headers, size: number): BodyNode {
  const node = describedNode(headers, '1', size)
  return node.type.startsWith('multipart/') ? { ...node, type: 'text/plain', parameters: {} } : node
}

export function factsOf(
  accountId: string,
  fetched: FetchedMessage,
  headers = readHeaders(fetched.headers),
): MessageFacts {
  const emailMessageId = ownMessageId(rawValues(headers, 'message-id'))
  const inReplyTo = messageIdsOf(rawValue(headers, 'in-reply-to'))[0] ?? null
  const references = cappedReferences(messageIdsOf(rawValues(headers, 'references').join(' ')))
  const receivedHeaders = receivedOf(headers)
  const hints = { hostedThreadId: fetched.threadId, references, inReplyTo, emailMessageId }
  return {
    emailMessageId,
    hostedMessageId: fetched.emailId,
    hostedThreadId: fetched.threadId,
    threadId: threadIdOf(accountId, hints, () => hash('sha256', fetched.headers, 'hex')),
    ...timesOf(headers, fetched.internalDate, receivedHeaders),
    size: fetched.size,
    subject: oneLine(decodeWords(rawValue(headers, 'subject')), maxLineLength),
    addresses: addressesOf(headers),
    inReplyTo,
    references,
    listHeaders: listHeadersOf(headers),
    receivedHeaders,
    ...structureOf(fetched.body?.type ? fetched.body : assumedBody(headers, fetched.body?.size ?? fetched.size)),
  }
}
