/**
 * Reads messages for the index. Messages that a FETCH leaves out are asked for again in halves. A message that exists
 * and still cannot be read is poison: it is quarantined, so that it never stops a folder.
 */
import { AppError, isAppError } from '../errors.ts'
import { parseStructured, rawValue, readHeaders } from '../messages/headers.ts'
import { bodyNodeOf } from '../messages/structure.ts'
import { toSet } from './session/uids.ts'
import type { Session } from './session/index.ts'
import type { BodyNode, FetchedMessage } from './session-types.ts'

/** A message that exists on the server and cannot be read. `reason`: the server's answer to a FETCH of it alone. */
export interface Poison {
  readonly uid: number
  readonly reason: string
}

interface ReadResult {
  readonly messages: FetchedMessage[]
  readonly poison: Poison[]
}

/** The reason is stored in the folder's cursor. */
const longestReason = 120
const unsaid = 'the mail server leaves it out of its answer'

/** Reads these UIDs of the selected mailbox, at most one batch. Messages ascend by UID. */
export async function readUids(session: Session, uids: readonly number[]): Promise<ReadResult> {
  const found = new Map<number, FetchedMessage>()
  const reasons = new Map<number, string>()
  await readInto({ session, found, reasons }, uids)
  const missing = new Set(uids.filter((uid) => !found.has(uid)))
  const poison =
    missing.size === 0 ? [] : (await session.searchUids(toSet([...missing]))).filter((uid) => missing.has(uid))
  if (found.size === 0 && poison.length > 0) await mustGive(session, poison)
  return {
    messages: [...found.values()].sort((a, b) => a.uid - b.uid),
    poison: poison.map((uid) => ({ uid, reason: reasons.get(uid) ?? unsaid })),
  }
}

/** Messages counted as poison need one readable message among this many others. */
const canaries = 3

/** Throws `server_refused` when the server gives no message of the folder at all: nothing is quarantined then. */
async function mustGive(session: Session, poison: readonly number[]): Promise<void> {
  const newest = (await session.searchUids('1:*')).slice(-(poison.length + canaries))
  const others = newest.filter((uid) => !poison.includes(uid)).slice(-canaries)
  const found = new Map<number, FetchedMessage>()
  for (const uid of others) {
    await readRange(session, String(uid), found)
    if (found.size > 0) return
  }
  throw new AppError('server_refused', 'the mail server refuses to give the messages of this folder')
}

interface Reading {
  readonly session: Session
  readonly found: Map<number, FetchedMessage>
  /** The server's refusal of a FETCH of one message alone, by UID. */
  readonly reasons: Map<number, string>
}

/** Halves the missing UIDs until all readable messages are read: 2·log2(n) more commands at most per poison message. */
async function readInto(reading: Reading, uids: readonly number[]): Promise<void> {
  const { session, found, reasons } = reading
  const [first] = uids
  if (first === undefined) return
  const onRefusal = (said: string): void => {
    if (uids.length === 1) reasons.set(first, said.slice(0, longestReason))
  }
  await readRange(session, toSet(uids), found, { onRefusal })
  const missing = uids.filter((uid) => !found.has(uid))
  if (uids.length === 1) return
  const middle = Math.ceil(missing.length / 2)
  await readInto(reading, missing.slice(0, middle))
  await readInto(reading, missing.slice(middle))
}

interface RangeOptions {
  /** Fetches the last message besides, and completes only messages from this UID on. */
  readonly known?: number
  readonly onRefusal?: (said: string) => void
}

/** One FETCH. Flags and structures that the answer lacks are asked for separately. */
export async function readRange(
  session: Session,
  range: string,
  found: Map<number, FetchedMessage>,
  { known = 0, ...hearing }: RangeOptions = {},
): Promise<void> {
  const answered = await session.fetchIndex(range, { last: known > 0, ...hearing })
  const fresh = answered.filter(({ uid }) => !found.has(uid))
  for (const message of await withFlags(session, fresh))
    found.set(message.uid, message.uid >= known && lacksParts(message) ? await withParts(session, message) : message)
}

/** Some servers leave FLAGS out of an answer: every message would look unread. */
async function withFlags(session: Session, messages: readonly FetchedMessage[]): Promise<readonly FetchedMessage[]> {
  const bare = messages.filter((message) => message.flags === null)
  if (bare.length === 0) return messages
  const asked = await session.fetchFlags(toSet(bare.map((message) => message.uid))).catch((error: unknown) => {
    if (isAppError(error, 'server_refused')) return []
    throw error
  })
  const reported = new Map(asked.map((one) => [one.uid, one]))
  return messages.map((message) => {
    const one = message.flags === null ? reported.get(message.uid) : undefined
    return one === undefined ? message : { ...message, flags: one.flags, modseq: one.modseq ?? message.modseq }
  })
}

/** We parse the structure ourselves, of a message up to this size. */
const wholeMax = 4 * 1_048_576

/**
 * Whether a multipart has no BODYSTRUCTURE, or an empty one: without a boundary in the message some servers make up an
 * empty part, and the text would be lost.
 */
function lacksParts({ body, headers }: FetchedMessage): boolean {
  if (body?.type) return body.type.startsWith('multipart/') && isHollow(body)
  return parseStructured(rawValue(readHeaders(headers), 'content-type')).value.startsWith('multipart/')
}

function isHollow({ type, size, children }: BodyNode): boolean {
  return type.startsWith('multipart/') ? children.every(isHollow) : size === 0
}

async function withParts(session: Session, message: FetchedMessage): Promise<FetchedMessage> {
  try {
    const raw = await session.fetchSection(message.uid, '', wholeMax)
    if (raw === null || raw.length === 0) return message
    return { ...message, body: wholeSize(bodyNodeOf(raw), raw.length < wholeMax ? 0 : message.size - raw.length) }
  } catch (error) {
    if (!isAppError(error, 'server_refused')) throw error
    return message
  }
}

/** `more` = unread bytes, which belong to the text of a message without parts. */
function wholeSize(body: BodyNode, more: number): BodyNode {
  return body.size === undefined || more <= 0 ? body : { ...body, size: body.size + more }
}
