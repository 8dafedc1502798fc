/**
 * Reads bodies and headers from the mail server, for one message or a page of messages: many messages with one command,
 * bounded in bytes. A failure that concerns all messages (no connection, no time) fails the call. A failure of one
 * message in a list becomes its `body_error`, so an unread body never looks empty.
 */
import {
  yieldToLoop,
  decodeBody,
  headerBlockText,
  headerObject,
  isAppError,
  isReadAnew,
  maxBodyBytes,
  type BodyPartRecord,
  type MessageRecord,
} from '../../../engine/index.ts'
import type { Call } from '../../route.ts'
import { type Contents, type MessageView, presentBody } from './present.ts'
import type { Wishes } from './schema.ts'

/** Most bytes of one part in a list, as transferred; larger parts are cut and marked `truncated`. */
const listPartMax = 1_048_576
/** Most bytes of all parts of a list. After that each part gets `leastPart`; after twice as much, nothing. */
const listMax = 32 * 1_048_576
/** The same bounds for a single message. */
const singlePartMax = maxBodyBytes
const singleMax = 64 * 1_048_576
const leastPart = 65_536
/** Most bytes of all parts that one command reads. */
const packMax = 2 * 1_048_576
/** Memory holds contents several times: as transferred, decoded, and as the answer's text. */
const heldTimes = 4
const headerSection = 'HEADER'

/**
 * Shares out the bytes of one answer: parts are read whole first, then only their beginning, then not at all. `most`:
 * bytes to read, longer parts are cut there. `isFull`: the answer's bound does not shorten the part.
 */
function sharing(partMax: number, all: number) {
  let left = all
  return (part: BodyPartRecord) => {
    const wanted = Math.min(partMax, slack(part.size))
    const most = left < -all ? 0 : Math.min(wanted, Math.max(leastPart, left))
    left -= Math.min(most, part.size)
    return { part, most, isFull: most === wanted }
  }
}

type BodyView = MessageView['bodies'][number]

/** Servers report wrong sizes, and some report 0. */
const slack = (size: number): number => Math.max(leastPart, 2 * size + 4096)

/** Counts transferred bytes. */
type Meter = (bytes: number) => Promise<void>

/** Reserves memory for `size` bytes. The meter reserves more when the server sends more than it reported. */
async function meterOf(call: Call, size: number): Promise<Meter> {
  let [counted, reserved] = [0, size]
  await call.reserve(heldTimes * size)
  return async (bytes) => {
    counted += bytes
    if (counted <= reserved) return
    const more = Math.max(leastPart, counted - reserved)
    reserved += more
    await call.reserve(heldTimes * more)
  }
}

export function wantsContents(wishes: Wishes): boolean {
  return wishes.include_body === true || wantsHeaders(wishes)
}

function wantsHeaders(wishes: Wishes): boolean {
  return wishes.include_headers === '1' || wishes.include_headers === 'raw'
}

/** Reads a single message: every failure fails the call. */
export async function readContents(call: Call, message: MessageRecord, wishes: Wishes): Promise<Contents> {
  const asked = askedOf(message, wishes, sharing(singlePartMax, singleMax))
  return readAlone(call, asked, wishes, await meterOf(call, asked.size))
}

type Share = ReturnType<typeof sharing>
type AskedPart = ReturnType<Share>
type Asked = ReturnType<typeof askedOf>

/** `size`: an estimate, in bytes. */
function askedOf(message: MessageRecord, wishes: Wishes, share: Share) {
  const wanted = wishes.include_body === true ? partsOfType(message, wishes.body_type) : []
  const parts = wanted.map(share)
  const headers = wantsHeaders(wishes) ? headerSize(message) : 0
  return { message, parts, size: parts.reduce((sum, { part, most }) => sum + Math.min(part.size, most), headers) }
}

/** Contents by message id. A message whose contents do not come together with others is read alone. */
export async function readAllContents(
  call: Call,
  accountId: string,
  messages: readonly MessageRecord[],
  wishes: Wishes,
): Promise<Map<string, Contents>> {
  const share = sharing(listPartMax, listMax)
  const asked = messages.map((message) => askedOf(message, wishes, share))
  const size = asked.reduce((sum, one) => sum + one.size, 0)
  const meter = await meterOf(call, size)
  const contents = new Map<string, Contents>()
  // Folder by folder: the selection of another folder costs a round trip.
  for (const pack of packsOf(asked.toSorted(byPath))) {
    call.signal.throwIfAborted()
    // One command cuts all parts at the same length, so messages with shortened parts are read alone.
    const whole = pack.filter(({ parts }) => parts.every(({ isFull }) => isFull))
    const wanted = whole.map((one) => ({ message: one.message, sections: sectionsOf(one, wishes) }))
    const most = mostOf(pack, wishes)
    const together = await call.engine.accounts.fetchMany(accountId, wanted, most)
    for (const one of pack) {
      call.signal.throwIfAborted()
      const bytes = together.get(one.message.id)
      await meter(lengthOf(bytes))
      const isRead = bytes !== undefined && !mayLackHeaders(bytes, wishes, most)
      const read = isRead ? await contentsOf(one, wishes, bytes) : await oneOfMany(call, one, wishes, meter)
      contents.set(one.message.id, read)
    }
  }
  return contents
}

/** Most bytes of one section of a pack. */
function mostOf(pack: readonly Asked[], wishes: Wishes): number {
  const headers = wantsHeaders(wishes) ? pack.map(({ message }) => slack(headerSize(message))) : []
  const most = Math.max(leastPart, ...headers, ...pack.flatMap(({ parts }) => parts.map((one) => one.most)))
  return Math.min(listPartMax, most)
}

function mayLackHeaders(bytes: ReadonlyMap<string, Buffer>, wishes: Wishes, cutAt: number): boolean {
  return wantsHeaders(wishes) && (bytes.get(headerSection)?.length ?? cutAt) >= cutAt
}

function lengthOf(sections: ReadonlyMap<string, Buffer> | undefined): number {
  return sections?.values().reduce((sum, { length }) => sum + length, 0) ?? 0
}

function sectionsOf({ parts }: Asked, wishes: Wishes): string[] {
  const sections = parts.map(({ part }) => part.section)
  return wantsHeaders(wishes) ? [...sections, headerSection] : sections
}

/** Splits the messages into packs of at most about `packMax` bytes. */
function packsOf(asked: readonly Asked[]): Asked[][] {
  const packs: Asked[][] = []
  let room = 0
  for (const one of asked) {
    if (room < one.size || packs.length === 0) {
      packs.push([])
      room = packMax
    }
    room -= one.size
    packs.at(-1)?.push(one)
  }
  return packs
}

/** Estimate: all bytes of the message that are in no part, boundaries included. */
function headerSize({ size, bodies, attachments }: MessageRecord): number {
  const rest = [...bodies, ...attachments].reduce((left, part) => left - part.size, size)
  return Math.min(listPartMax, Math.max(0, rest))
}

/** `short`: see PartsRead. */
async function contentsOf(
  { parts }: Asked,
  wishes: Wishes,
  bytes: ReadonlyMap<string, Buffer>,
  short?: ReadonlySet<string>,
): Promise<Contents> {
  const bodies: BodyView[] = []
  for (const one of parts) {
    await yieldToLoop()
    const { section } = one.part
    bodies.push(bodyOf(one, bytes.get(section), short?.has(section) === true))
  }
  const included = wishes.include_body === true ? { bodies } : {}
  const block = bytes.get(headerSection)
  if (block === undefined) return included
  await yieldToLoop()
  return { ...included, headers: wishes.include_headers === 'raw' ? headerBlockText(block) : headerObject(block) }
}

function byPath({ message: one }: Asked, { message: other }: Asked): number {
  const [a, b] = [one.placements[0]?.path ?? '', other.placements[0]?.path ?? '']
  return a < b ? -1 : a > b ? 1 : 0
}

async function oneOfMany(call: Call, asked: Asked, wishes: Wishes, meter: Meter): Promise<Contents> {
  try {
    return await readAlone(call, asked, wishes, meter)
  } catch (error) {
    // These errors concern this message or its folder; the connection still works.
    if (isAppError(error, 'not_found')) return { body_error: 'the message is no longer on the mail server' }
    if (isReadAnew(error) || isAppError(error, 'server_refused')) return { body_error: error.message }
    throw error
  }
}

/** Parts with the same bound are read with one command. */
async function readAlone(call: Call, asked: Asked, wishes: Wishes, meter: Meter): Promise<Contents> {
  const { accounts } = call.engine
  const { message } = asked
  const read = new Map<string, Buffer>()
  const short = new Set<string>()
  const parts = asked.parts.filter(({ most }) => most > 0)
  for (const [most, equal] of Map.groupBy(parts, (one) => one.most)) {
    const sections = equal.map(({ part }) => part.section)
    const bytes = await accounts.fetchParts(message, sections, most)
    await meter(lengthOf(bytes))
    for (const [section, part] of bytes) read.set(section, part)
    for (const section of bytes.short ?? []) short.add(section)
  }
  if (wantsHeaders(wishes)) {
    const block = await accounts.fetchHeaders(message)
    await meter(block.length)
    read.set(headerSection, block)
  }
  return contentsOf(asked, wishes, read, short)
}

/** 'text/html; charset=x' means text/html; '' and undefined mean every type. */
function partsOfType(message: MessageRecord, type: string | undefined): readonly BodyPartRecord[] {
  const wanted = (type ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return wanted === '' ? message.bodies : message.bodies.filter((part) => part.type === wanted)
}

/** `isShort`: the server gives less of the part than it reported. */
function bodyOf({ part, most }: AskedPart, bytes: Buffer | undefined, isShort: boolean): BodyView {
  const found = bytes?.subarray(0, most) ?? Buffer.alloc(0)
  const isCut = isShort || (found.length >= most && part.size !== found.length)
  return {
    ...presentBody(part),
    charset: 'utf-8',
    content: decodeBody(found, part, isCut),
    ...(isCut ? { truncated: true } : {}),
  }
}
