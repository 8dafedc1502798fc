/**
 * Bodies and headers, which only the mail server has, for one message or a page of them: over the account's command
 * connection, many messages at once, bounded in bytes. What fails for all (no connection, no time) fails the call; what
 * fails for one message of a list is answered on that message as `body_error`, so that nothing unread looks empty.
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

/** Of one part in a list, as transferred; larger ones are cut and marked `truncated`. */
const listPartMax = 1_048_576
/** Of all parts of a list together; past it each part still gets `leastPart`, and past it twice nothing. */
const listMax = 32 * 1_048_576
/** The same of a single message. */
const singlePartMax = maxBodyBytes
const singleMax = 64 * 1_048_576
const leastPart = 65_536
/** Of all parts that are asked for in one go. */
const packMax = 2 * 1_048_576
/** Contents are held several times over: as they came, decoded, and as the answer's text. */
const heldTimes = 4
const headerSection = 'HEADER'

/** Shares out the bytes of one answer: of a part all that may be, then its beginning, then nothing. */
function sharing(partMax: number, all: number) {
  let left = all
  return (part: BodyPartRecord): AskedPart => {
    const wanted = Math.min(partMax, slack(part.size))
    const most = left < -all ? 0 : Math.min(wanted, Math.max(leastPart, left))
    left -= Math.min(most, part.size)
    return { part, most, isFull: most === wanted }
  }
}

type Share = ReturnType<typeof sharing>

/** Servers name wrong sizes, and some of them 0. */
const slack = (size: number): number => Math.max(leastPart, 2 * size + 4096)

type Meter = Awaited<ReturnType<typeof meterOf>>

/**
 * What a call takes of the budget: more when a server gives more than the size that it named.
 */
async function meterOf(call: Call, size: number) {
  let [counted, reserved] = [0, size]
  await call.reserve(heldTimes * size)
  return {
    async count(bytes: number): Promise<void> {
      counted += bytes
      if (counted <= reserved) return
      const more = Math.max(leastPart, counted - reserved)
      reserved += more
      await call.reserve(heldTimes * more)
    },
  }
}

export function wantsContents(wishes: Wishes): boolean {
  return wishes.include_body === true || wantsHeaders(wishes)
}

function wantsHeaders(wishes: Wishes): boolean {
  return wishes.include_headers === '1' || wishes.include_headers === 'raw'
}

/** Of a single message: every failure is the call's. */
export async function readContents(call: Call, message: MessageRecord, wishes: Wishes): Promise<Contents> {
  const asked = askedOf(message, wishes, sharing(singlePartMax, singleMax))
  return readAlone(call, asked, wishes, await meterOf(call, asked.size))
}

interface AskedPart {
  readonly part: BodyPartRecord
  /** How many bytes are read at most. */
  readonly most: number
  /** No less than of the same part alone in a list. */
  readonly isFull: boolean
}

interface Asked {
  readonly message: MessageRecord
  readonly parts: readonly AskedPart[]
  /** About, in bytes. */
  readonly size: number
}

function askedOf(message: MessageRecord, wishes: Wishes, share: Share): Asked {
  const wanted = wishes.include_body === true ? partsOfType(message, wishes.body_type) : []
  const parts = wanted.map(share)
  const headers = wantsHeaders(wishes) ? headerSize(message) : 0
  return { message, parts, size: parts.reduce((sum, { part, most }) => sum + Math.min(part.size, most), headers) }
}

/** By message id. What a message wants that the server does not give together with others is asked for alone. */
export async function readAllContents(
  call: Call,
  accountId: string,
  messages: readonly MessageRecord[],
  wishes: Wishes,
): Promise<Map<string, Contents>> {
  const share = sharing(listPartMax, listMax)
  const asked = messages.map((message) => askedOf(message, wishes, share))
  const meter = await meterOf(
    call,
    asked.reduce((sum, { size }) => sum + size, 0),
  )
  const contents = new Map<string, Contents>()
  const anew = new Map<string, string>()
  // Folder by folder: turning the connection from one to another costs a round trip.
  for (const pack of packsOf(asked.toSorted(byPlace))) {
    call.signal.throwIfAborted()
    const wanted = pack.filter(isWhole).map((one) => ({ message: one.message, sections: sectionsOf(one, wishes) }))
    const most = mostOf(pack, wishes)
    const together = await call.engine.accounts.fetchMany(accountId, wanted, most)
    for (const one of pack) {
      call.signal.throwIfAborted()
      const bytes = together.get(one.message.id)
      await meter.count(lengthOf(bytes))
      const isRead = bytes !== undefined && !mayLackHeaders(bytes, wishes, most)
      const read = isRead ? await contentsOf(one, wishes, bytes) : await oneOfMany(call, one, wishes, { anew, meter })
      contents.set(one.message.id, read)
    }
  }
  return contents
}

/** Whose parts are all read as far as any part of a list is: only these can be asked for together. */
function isWhole({ parts }: Asked): boolean {
  return parts.every(({ isFull }) => isFull)
}

/** Of one section of a pack. */
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

/** As many messages in one go as are small together. */
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

/** About: what is no part, boundaries included. */
function headerSize({ size, bodies, attachments }: MessageRecord): number {
  const rest = [...bodies, ...attachments].reduce((left, part) => left - part.size, size)
  return Math.min(listPartMax, Math.max(0, rest))
}

async function contentsOf(
  { parts }: Asked,
  wishes: Wishes,
  bytes: ReadonlyMap<string, Buffer>,
  short: ReadonlySet<string> = new Set(),
): Promise<Contents> {
  const bodies: MessageView['bodies'][number][] = []
  for (const { part, most } of parts) {
    await yieldToLoop()
    bodies.push(bodyOf(part, bytes.get(part.section), most, short.has(part.section)))
  }
  const block = bytes.get(headerSection)
  if (block !== undefined) await yieldToLoop()
  return {
    ...(wishes.include_body === true ? { bodies } : {}),
    ...(block === undefined
      ? {}
      : { headers: wishes.include_headers === 'raw' ? headerBlockText(block) : headerObject(block) }),
  }
}

function byPlace({ message: one }: Asked, { message: other }: Asked): number {
  const [a, b] = [one.placements[0]?.path ?? '', other.placements[0]?.path ?? '']
  return a < b ? -1 : a > b ? 1 : 0
}

/** `anew`: the `body_error` of mail in a folder that is being read anew, of which nothing more is asked. */
async function oneOfMany(
  call: Call,
  asked: Asked,
  wishes: Wishes,
  { anew, meter }: { readonly anew: Map<string, string>; readonly meter: Meter },
): Promise<Contents> {
  const [place, ...others] = asked.message.placements
  const known = others.length === 0 ? anew.get(place?.path ?? '') : undefined
  if (known !== undefined) return { body_error: known }
  try {
    return await readAlone(call, asked, wishes, meter)
  } catch (error) {
    // The connection is in order: the server has lost this message, or will not give it.
    if (isAppError(error, 'not_found')) return { body_error: 'the message is no longer on the mail server' }
    if (isAppError(error, 'server_refused')) return { body_error: error.message }
    if (!isReadAnew(error)) throw error
    anew.set(error.details.anew, error.message)
    return { body_error: error.message }
  }
}

/** Parts that are read equally far at once. */
async function readAlone(call: Call, asked: Asked, wishes: Wishes, meter: Meter): Promise<Contents> {
  const { accounts } = call.engine
  const { message } = asked
  const read = new Map<string, Buffer>()
  const short = new Set<string>()
  const parts = asked.parts.filter(({ most }) => most > 0)
  for (const [most, equal] of Map.groupBy(parts, (one) => one.most)) {
    const sections = equal.map(({ part }) => part.section)
    const bytes = await accounts.fetchParts(message, sections, most)
    await meter.count(lengthOf(bytes))
    for (const [section, part] of bytes) read.set(section, part)
    for (const section of bytes.short ?? []) short.add(section)
  }
  if (wantsHeaders(wishes)) {
    const block = await accounts.fetchHeaders(message)
    await meter.count(block.length)
    read.set(headerSection, block)
  }
  return contentsOf(asked, wishes, read, short)
}

/** 'text/html; charset=x' names text/html; '' and nothing name all. */
function partsOfType(message: MessageRecord, type: string | undefined): readonly BodyPartRecord[] {
  const wanted = (type ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return wanted === '' ? message.bodies : message.bodies.filter((part) => part.type === wanted)
}

/** `most` = where longer parts were cut; `short` = the server has no more, though it said so. */
function bodyOf(
  part: BodyPartRecord,
  bytes: Buffer | undefined,
  most: number,
  short: boolean,
): MessageView['bodies'][number] {
  const found = bytes?.subarray(0, most) ?? Buffer.alloc(0)
  const cut = short || (found.length >= most && part.size !== found.length)
  return {
    ...presentBody(part),
    charset: 'utf-8',
    content: decodeBody(found, part, cut),
    ...(cut ? { truncated: true } : {}),
  }
}
