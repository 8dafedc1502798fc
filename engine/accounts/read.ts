/**
 * Reading messages for the index. What a server leaves out of a FETCH is asked for again in halves; a UID that exists
 * and still cannot be read is quarantined, so that one poison message never stops a folder.
 */
import { AppError, isAppError } from '../errors.ts'
import { parseStructured, rawValue, readHeaders } from '../messages/headers.ts'
import { bodyNodeOf } from '../messages/structure.ts'
import { toSet } from './session/uids.ts'
import type { Session } from './session/index.ts'
import type { BodyNode, FetchedMessage } from './session-types.ts'

/** A message that exists on the server and cannot be read. `reason`: what the server said of it alone. */
export interface Poison {
  readonly uid: number
  readonly reason: string
}

interface ReadResult {
  readonly messages: FetchedMessage[]
  readonly poison: Poison[]
}

/** No more of a refusal is kept: it is stored with the cursor of the folder. */
const longestReason = 120
const unsaid = 'the mail server leaves it out of its answer'

/** Reads these UIDs of the selected mailbox, at most one batch. Messages ascend: what is new is told as it came. */
export async function readUids(session: Session, uids: readonly number[]): Promise<ReadResult> {
  const found = new Map<number, FetchedMessage>()
  const reasons = new Map<number, string>()
  await readInto({ session, found, reasons }, uids)
  const missing = uids.filter((uid) => !found.has(uid))
  const poison =
    missing.length === 0 ? [] : (await session.searchUids(toSet(missing))).filter((uid) => missing.includes(uid))
  if (found.size === 0 && poison.length > 0) await mustGive(session, poison)
  return {
    messages: [...found.values()].sort((a, b) => a.uid - b.uid),
    poison: poison.map((uid) => ({ uid, reason: reasons.get(uid) ?? unsaid })),
  }
}

/** Of this many others one has to be readable, for the unreadable ones to count as poison. */
const canaries = 3

/** A server that gives no message at all has a bad day: nothing is passed over, the account says so and tries again. */
async function mustGive(session: Session, poison: readonly number[]): Promise<void> {
  const others = (await session.searchUids('1:*')).filter((uid) => !poison.includes(uid)).slice(-canaries)
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
  /** What the server said, by UID, when that message was asked for alone. */
  readonly reasons: Map<number, string>
}

/** Halves the range until what can be read has been read. At most 2·log2(n) extra commands per poison message. */
async function readInto(reading: Reading, uids: readonly number[]): Promise<void> {
  const { session, found, reasons } = reading
  const [first] = uids
  if (first === undefined) return
  const onRefusal = (said: string): void => {
    if (uids.length === 1) reasons.set(first, said.slice(0, longestReason))
  }
  await readRange(session, toSet(uids), found, { onRefusal })
  const missing = uids.filter((uid) => !found.has(uid))
  if (missing.length === 0) return
  if (missing.length === 1) {
    if (uids.length > 1) await readInto(reading, missing)
    return
  }
  const middle = Math.ceil(missing.length / 2)
  await readInto(reading, missing.slice(0, middle))
  await readInto(reading, missing.slice(middle))
}

interface RangeOptions {
  /** The last message besides, and of messages below this UID only what the answer has. */
  readonly known?: number
  readonly onRefusal?: (said: string) => void
}

/** One FETCH. What an answer lacks is asked for by itself. */
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

/** Some servers leave FLAGS out of an answer: without them every message would look unread. */
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

/** What the server cannot take apart is taken apart by us, up to this size. */
const wholeMax = 4 * 1_048_576

/**
 * A multipart whose BODYSTRUCTURE cannot be read, or has nothing in it: without a boundary, or with one that is never
 * used, some servers make up an empty part, and the text would be lost.
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

/** `more` = bytes that were not read: they belong to the text of a message that has no parts. */
function wholeSize(body: BodyNode, more: number): BodyNode {
  return body.size === undefined || more <= 0 ? body : { ...body, size: body.size + more }
}
