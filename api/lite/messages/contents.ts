/**
 * Bodies and headers, which only the mail server has, for one message or a page of them: over the account's command connection,
 * many messages at once, bounded in bytes. What fails for all (no connection, no time) fails the call; what fails for one message of
 * a list is told on that message as `body_error`, so that nothing unread looks empty.
 */
import {
  decodeBody,
  headerBlockText,
  headerObject,
  isAppError,
  type BodyPartRecord,
  type MessageRecord,
} from '../../../engine/index.ts'
import type { Call } from '../../route.ts'
import { presentBody, type MessageView } from './present.ts'

/** Of one part in a list, as transferred; larger ones are cut and marked `truncated`. */
const listPartMax = 1_048_576
/** Of all parts of a list together; past it each part still gets `leastPart`. */
const listMax = 32 * 1_048_576
const leastPart = 65_536
/** Of all parts that are asked for in one go. */
const packMax = 2 * 1_048_576
const headerSection = 'HEADER'
/** Of one part of a single message. */
const singlePartMax = 16 * 1_048_576

export interface Wishes {
  readonly include_body?: boolean | undefined
  readonly include_headers?: false | '1' | 'raw' | undefined
  readonly body_type?: string | undefined
}

export type Contents = Partial<Pick<MessageView, 'bodies' | 'headers' | 'body_error'>>

export function wantsContents(wishes: Wishes): boolean {
  return wishes.include_body === true || wantsHeaders(wishes)
}

function wantsHeaders(wishes: Wishes): boolean {
  return wishes.include_headers === '1' || wishes.include_headers === 'raw'
}

/** Of a single message: every failure is the call's. */
export async function readContents(call: Call, message: MessageRecord, wishes: Wishes): Promise<Contents> {
  return { ...(await bodiesOf(call, message, wishes, singlePartMax)), ...(await headersOf(call, message, wishes)) }
}

/** By message id. What a message wants that the server does not give together with others is asked for alone. */
export async function readAllContents(
  call: Call,
  accountId: string,
  messages: readonly MessageRecord[],
  wishes: Wishes,
): Promise<Map<string, Contents>> {
  const contents = new Map<string, Contents>()
  let left = listMax
  // Folder by folder: turning the connection from one to another costs a round trip.
  for (const pack of packsOf(messages.toSorted(byPlace), wishes)) {
    call.signal.throwIfAborted()
    const together = await call.engine.accounts.fetchMany(accountId, pack, mostOf(left))
    for (const { message } of pack) {
      call.signal.throwIfAborted()
      const most = mostOf(left)
      const bytes = together.get(message.id)
      const read = (bytes && contentsOf(message, wishes, bytes, most)) ?? (await oneOfMany(call, message, wishes, most))
      left -= (read.bodies ?? []).reduce((sum, body) => sum + (body.content?.length ?? 0), 0)
      contents.set(message.id, read)
    }
  }
  return contents
}

const mostOf = (left: number): number => Math.min(listPartMax, Math.max(leastPart, left))

interface Asked {
  readonly message: MessageRecord
  readonly sections: readonly string[]
}

/** Messages whose contents are asked for at once: as many as are sure to be small together. */
function packsOf(messages: readonly MessageRecord[], wishes: Wishes): Asked[][] {
  const packs: Asked[][] = []
  let room = 0
  for (const message of messages) {
    const parts = wishes.include_body === true ? partsOfType(message, wishes.body_type) : []
    const headers = wantsHeaders(wishes) ? headerSize(message) : 0
    const size = parts.reduce((sum, part) => sum + Math.min(part.size, listPartMax), headers)
    if (room < size || packs.length === 0) {
      packs.push([])
      room = packMax
    }
    room -= size
    const sections = parts.map((part) => part.section)
    packs.at(-1)?.push({ message, sections: wantsHeaders(wishes) ? [...sections, headerSection] : sections })
  }
  return packs
}

/** About: what is no part, boundaries included. */
function headerSize({ size, bodies, attachments }: MessageRecord): number {
  const rest = [...bodies, ...attachments].reduce((left, part) => left - part.size, size)
  return Math.min(listPartMax, Math.max(0, rest))
}

/** From what was read; null when the header block may have been cut. */
function contentsOf(
  message: MessageRecord,
  wishes: Wishes,
  bytes: ReadonlyMap<string, Buffer>,
  most: number,
): Contents | null {
  const parts = partsOfType(message, wishes.body_type)
  const bodies = wishes.include_body === true ? { bodies: parts.map((part) => bodyOf(part, bytes, most)) } : {}
  if (!wantsHeaders(wishes)) return bodies
  const block = bytes.get(headerSection)
  return block === undefined || block.length >= most ? null : { ...bodies, headers: headersIn(block, wishes) }
}

function byPlace(one: MessageRecord, other: MessageRecord): number {
  const [a, b] = [one.placements[0]?.path ?? '', other.placements[0]?.path ?? '']
  return a < b ? -1 : a > b ? 1 : 0
}

async function oneOfMany(call: Call, message: MessageRecord, wishes: Wishes, most: number): Promise<Contents> {
  try {
    return { ...(await bodiesOf(call, message, wishes, most)), ...(await headersOf(call, message, wishes)) }
  } catch (error) {
    // The connection is in order: the server has lost this message, or will not give it.
    if (isAppError(error, 'not_found')) return { body_error: 'the message is no longer on the mail server' }
    if (isAppError(error, 'server_refused')) return { body_error: error.message }
    throw error
  }
}

async function bodiesOf(call: Call, message: MessageRecord, wishes: Wishes, most: number): Promise<Contents> {
  if (wishes.include_body !== true) return {}
  const parts = partsOfType(message, wishes.body_type)
  return { bodies: await readParts(call, message, parts, most) }
}

async function headersOf(call: Call, message: MessageRecord, wishes: Wishes): Promise<Contents> {
  if (!wantsHeaders(wishes)) return {}
  const block = await call.engine.accounts.fetchHeaders(message.accountId, message)
  return { headers: headersIn(block, wishes) }
}

function headersIn(block: Buffer, wishes: Wishes): NonNullable<Contents['headers']> {
  return wishes.include_headers === 'raw' ? headerBlockText(block) : headerObject(block)
}

/** 'text/html; charset=x' names text/html; '' and nothing name all. */
export function partsOfType(message: MessageRecord, type: string | undefined): readonly BodyPartRecord[] {
  const wanted = (type ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return wanted === '' ? message.bodies : message.bodies.filter((part) => part.type === wanted)
}

/** Decoded to UTF-8. Rejects with `not_found` when the message has gone from the server. */
export async function readParts(
  call: Call,
  message: MessageRecord,
  parts: readonly BodyPartRecord[],
  most: number = singlePartMax,
): Promise<MessageView['bodies']> {
  if (parts.length === 0) return []
  const sections = parts.map((part) => part.section)
  const bytes = await call.engine.accounts.fetchParts(message.accountId, message, sections, most)
  return parts.map((part) => bodyOf(part, bytes, most))
}

/** `most` = where longer parts were cut. */
function bodyOf(
  part: BodyPartRecord,
  bytes: ReadonlyMap<string, Buffer>,
  most: number,
): NonNullable<Contents['bodies']>[number] {
  const found = bytes.get(part.section)?.subarray(0, most) ?? Buffer.alloc(0)
  const cut = found.length >= most && part.size !== found.length
  return {
    ...presentBody(part),
    charset: 'utf-8',
    content: decodeBody(found, part),
    ...(cut ? { truncated: true } : {}),
  }
}
