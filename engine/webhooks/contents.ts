/**
 * Reads texts and the header block from the mail server, before a callback and for questions about the filters, and
 * runs body_search on them. Nothing is kept.
 *
 * Small texts are read together in one command, a larger text piece by piece and no further than needed, to spare
 * memory and the account's connection. Errors of the mail server (AppError) pass through unchanged.
 */
import { isUtf8 } from 'node:buffer'
import { AppError, isAppError } from '../errors.ts'
import { headerBlockText, headerObject, readHeaders } from '../messages/headers.ts'
import { decodeTransfer } from '../messages/transfer-encoding.ts'
import type { AttachmentRecord, BodyPartRecord, MessageRecord, WebhookRecord } from '../store/records.ts'
import type { Contents } from './message-data.ts'
import { type GivenText, jsonPrefix, leastOf } from './envelope.ts'
import { type BodySearch, type Finding, type Matcher, mostCost } from './match.ts'
import type { Mail, WebhookParts } from './parts.ts'
import { type Found, isIn, type PartRead, textOf, type TextPart } from './searches.ts'

/** Every part of a text type: text/plain, then other bodies, then attached files. */
function textParts({ bodies, attachments }: Pick<MessageRecord, 'bodies' | 'attachments'>): TextPart[] {
  const isPlain = ({ type }: BodyPartRecord): boolean => type === 'text/plain'
  const attached = attachments.filter(({ type }) => type.startsWith('text/')).map(attachedText)
  return [...bodies.filter(isPlain), ...bodies.filter((part) => !isPlain(part)), ...attached]
}

function attachedText({ section, type, encoding, size }: AttachmentRecord): TextPart {
  return { section, type, charset: null, encoding, size, flowed: false, delSp: false, attached: true }
}

function firstOf(read: PartRead, most: number): PartRead {
  return most < read.bytes.length ? { ...read, bytes: read.bytes.subarray(0, most), whole: false } : read
}

/** Most bytes and parts of one command. */
const packBytes = 512 * 1024
const packParts = 8
const mimeBytes = 65_536

/** `parts`: the parts that will probably be read, in this order. `withinMs`: deadline for all of them. */
function createTextReader(mail: Mail, message: MessageRecord, parts: readonly TextPart[], withinMs: number) {
  const until = performance.now() + withinMs
  const early = new Map<string, PartRead>()

  async function fetchPack(first: TextPart): Promise<void> {
    const pack = packOf(parts.slice(parts.indexOf(first)))
    if (pack.length === 0) return
    // Some room above the sizes that the server gave; a longer part is read alone.
    const most = 2 * Math.max(...pack.map(({ size }) => size)) + 4096
    const sections = pack.map(({ section }) => section)
    const raw = await mail.fetchParts(message, sections, most)
    for (const part of pack) {
      const bytes = raw.get(part.section)
      if (bytes === undefined || bytes.length >= most) continue
      const whole = raw.short?.has(part.section) !== true
      early.set(part.section, { part, bytes: decodeTransfer(bytes, part.encoding), whole })
    }
  }

  async function readStream(part: TextPart, most: number): Promise<PartRead> {
    const stream = await mail.streamPart(message, part.section, part.encoding)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      if (length > most) break
      if (performance.now() > until) throw new AppError('timeout', 'the mail server was too slow to give the text')
    }
    const whole = length <= most && stream.short !== true
    return { part, bytes: Buffer.concat(chunks, Math.min(length, most)), whole }
  }

  /** An attached file's charset stands in its part's MIME header, which is read only for bytes that are not UTF-8. */
  async function charsetOf(part: TextPart, bytes: Uint8Array): Promise<BodyPartRecord['charset']> {
    if (part.attached !== true || isUtf8(bytes)) return part.charset
    const section = `${part.section}.MIME`
    try {
      const found = await mail.fetchParts(message, [section], mimeBytes)
      return readHeaders(found.get(section) ?? Buffer.alloc(0)).charset
    } catch (error) {
      // Some servers do not give a part's MIME header.
      if (isAppError(error, 'not_found') || isAppError(error, 'server_refused')) return null
      throw error
    }
  }

  /** Reads at most `most` bytes. Throws `timeout` after `withinMs`. */
  return async (part: TextPart, most: number): Promise<PartRead> => {
    if (!early.has(part.section)) await fetchPack(part)
    const known = early.get(part.section)
    early.delete(part.section)
    const read = firstOf(known ?? (await readStream(part, most)), most)
    const charset = await charsetOf(part, read.bytes)
    return { ...read, part: { ...part, charset } }
  }
}

function packOf(parts: readonly TextPart[]): TextPart[] {
  const pack: TextPart[] = []
  let left = packBytes
  for (const part of parts) {
    left -= part.size
    if (left < 0 || pack.length === packParts) break
    pack.push(part)
  }
  return pack
}

export type ReadDeps = Pick<WebhookParts, 'config' | 'mail' | 'pace' | 'searches'>

type Wishes = Pick<WebhookRecord, 'includeBody' | 'bodyType' | 'includeHeader'>

/** A message, and the webhook that wants its contents or searches them. */
export interface Wanted {
  readonly message: MessageRecord
  readonly webhook: Wishes & Pick<WebhookRecord, 'developerId'>
  readonly matcher: Pick<Matcher, 'bodySearch'>
}

/** Contents without a read: bodies are listed without their texts. `truncated` when the webhook wants contents. */
export function namedOnly(wishes: Wishes): Contents {
  return { texts: null, truncated: wantsContents(wishes) }
}

export function wantsContents(wishes: Wishes): boolean {
  return wishes.includeBody || wishes.includeHeader !== null
}

export type ReadContents = Awaited<ReturnType<typeof readContents>>

/** `body`: the result of body_search; null = there was no search. */
export async function readContents(deps: ReadDeps, wanted: Wanted) {
  const { texts, body } = await readTexts(deps, wanted)
  const headers = await readHeaderBlock(deps.mail, wanted)
  const contents: Contents = { texts: wanted.webhook.includeBody ? texts : null, headers, truncated: false }
  return { contents, body }
}

/** The parts for the callback. text/plain comes first and takes the most room. */
function givenParts({ message, webhook: { includeBody, bodyType } }: Wanted): TextPart[] {
  if (!includeBody) return []
  return textParts({ ...message, attachments: [] }).filter(({ type }) => bodyType === null || type === bodyType)
}

function partsToRead(wanted: Wanted): readonly TextPart[] {
  return wanted.matcher.bodySearch === null ? givenParts(wanted) : textParts(wanted.message)
}

/** The parts that a callback reads in its first command. */
export function earlyParts(wanted: Wanted): readonly BodyPartRecord[] {
  return packOf(partsToRead(wanted))
}

/** The order does not depend on the webhook's wishes, so that the search reaches its limit at the same place. */
async function readTexts(deps: ReadDeps, wanted: Wanted) {
  const given = givenParts(wanted)
  const isGiven = new Set(given.map(({ section }) => section))
  const parts = partsToRead(wanted)
  const readPart = createTextReader(deps.mail, wanted.message, parts, deps.config.MAILROOM_COMMAND_TIMEOUT * 3)
  const { bodySearch } = wanted.matcher
  const hunt = bodySearch === null ? null : createHunt(bodySearch, wanted.webhook.developerId, deps)
  const texts: GivenText[] = []
  const giveMax = deps.config.MAILROOM_WEBHOOK_PAYLOAD_MAX
  let room = giveMax
  for (const part of parts) {
    const share = isGiven.has(part.section) ? Math.max(room, leastOf(giveMax, given.length)) : null
    const most = Math.max(share === null ? 0 : bytesFor(part, share), hunt?.left ?? 0)
    if (share === null && most === 0) continue
    const read = await readPart(part, most)
    const bytes = read.bytes.length
    let all: string | null = null
    const decode = (some: PartRead): string => (some === read ? (all ??= textOf(read)) : textOf(some))
    await hunt?.look(read, decode)
    if (share === null) continue
    const first = firstOf(read, bytesFor(part, share))
    const decoded = await deps.pace(bytes, () => decode(first))
    const text = await deps.pace(bytes, () => givenText(part, decoded, first.whole, share))
    room -= text.bytes
    texts.push(text)
  }
  return { texts, body: hunt?.finding(parts) ?? null }
}

/** Bytes of the part that give at least `share` bytes of JSON. */
function bytesFor({ charset, flowed }: BodyPartRecord, share: number): number {
  if (/utf-?(?:16|32)|ucs/.test(charset ?? '')) return share * 4
  const lean = charset === null || /^(?:us-ascii|utf-?8|iso-8859-\d+|windows-\d+)$/.test(charset)
  return lean && !flowed ? share : share * 2
}

function givenText(part: TextPart, text: string, whole: boolean, share: number): GivenText {
  const { end, bytes } = jsonPrefix(text, share)
  if (end === text.length) return { part, text, bytes, whole }
  // A slice keeps the whole string in memory: a slice of a much larger string is copied.
  const piece = text.slice(0, end)
  return { part, text: end < text.length / 2 ? Buffer.from(piece).toString() : piece, bytes, whole: false }
}

/** Cost of a character besides its search: to decode it and to parse HTML. */
const stepsToRead = 4

/**
 * Searches part by part, so that only one part is in memory. Small texts are searched in this thread, large texts in a
 * worker. Size, cost and time are bounded for the message as a whole.
 */
function createHunt(search: BodySearch, developerId: string, { config, searches }: ReadDeps) {
  let left = config.MAILROOM_BODY_SEARCH_MAX
  let [costLeft, msLeft] = [mostCost, searches.withinMs]
  let found: string | null = null
  let ended: string | null = null
  const searched = new Set<string>()

  async function searchIn(hay: PartRead, decode: (some: PartRead) => string): Promise<Found<boolean>> {
    const cost = hay.bytes.length * (stepsToRead + search.steps)
    if (cost <= costLeft) {
      costLeft -= cost
      return { kind: 'found', answer: await isIn(search, hay.part, decode(hay)), tookMs: 0 }
    }
    const task = { ...hay, kind: 'text', bytes: new Uint8Array(hay.bytes), wanted: search.wanted } as const
    const answer = await searches.run(developerId, task, Math.max(1, msLeft))
    if (answer.kind === 'found') msLeft -= answer.tookMs
    return answer
  }

  return {
    /** Bytes that remain to be searched; 0 = the search is over. */
    get left(): number {
      return found === null && ended === null ? left : 0
    },
    async look(read: PartRead, decode: (some: PartRead) => string): Promise<void> {
      if (this.left === 0) return
      const hay = firstOf(read, left)
      left -= hay.bytes.length
      const result = await searchIn(hay, decode)
      if (result.kind === 'ended') ended = result.why
      else if (result.answer) found = hay.part.type
      if (hay.whole) searched.add(hay.part.section)
    },
    finding(parts: readonly TextPart[]): Finding {
      if (found !== null) return { matched: true, why: `a ${found} part matches ${search.wanted}` }
      if (ended !== null) return { matched: false, why: `too much to search: it ${ended}` }
      if (parts.some(({ section }) => !searched.has(section))) return { matched: false, why: 'too large to search' }
      return { matched: false, why: `none of ${parts.length} text parts matches ${search.wanted}` }
    },
  }
}

async function readHeaderBlock(mail: Mail, { message, webhook }: Wanted): Promise<Contents['headers']> {
  if (webhook.includeHeader === null) return undefined
  const block = await mail.fetchHeaders(message)
  if (webhook.includeHeader === 'raw') return headerBlockText(block)
  return Object.fromEntries(Object.entries(headerObject(block)).map(([name, values]) => [canonicalName(name), values]))
}

/** A text is held several times: raw, as characters, folded for the search, and in the callback. */
const heldTimes = 8

/** Memory of a read, in bytes, from the sizes that the server gave for the message. */
export function memoryFor({ config }: Pick<ReadDeps, 'config'>, wanted: Wanted): number {
  const { message, webhook, matcher } = wanted
  const sizeOf = (parts: readonly BodyPartRecord[]): number => parts.reduce((sum, { size }) => sum + size, 0)
  const texts = textParts(message)
  const given = Math.min(sizeOf(givenParts(wanted)), config.MAILROOM_WEBHOOK_PAYLOAD_MAX)
  const hunted = matcher.bodySearch === null ? 0 : Math.min(sizeOf(texts), config.MAILROOM_BODY_SEARCH_MAX)
  const headers = webhook.includeHeader === null ? 0 : Math.max(0, message.size - sizeOf(texts))
  return heldTimes * (Math.max(given, hunted) + Math.min(headers, headersMost))
}
const headersMost = 4 * 1_048_576

/** Abbreviations in registered names, such as Message-ID, MIME-Version and DKIM-Signature. */
const capitals = new Set('arc bimi dkim id md5 mime mmhs mt pics sio spf tls vbr'.split(' '))

/** 'message-id' → 'Message-ID': each word begins with a capital, abbreviations are in capitals. */
function canonicalName(name: string): string {
  const words = name.split('-')
  return words
    .map((word) => (capitals.has(word) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('-')
}
