/**
 * What only the mail server has: text and the header block, read when a callback is about to go out, or when somebody asks what the
 * filters say, and kept nowhere. The same function serves both, so that both get the same answer of body_search.
 * Errors of the mail server pass through as they come (AppError).
 */
import { headerBlockText, headerObject } from '../messages/headers.ts'
import type { BodyPartRecord, MessageRecord, WebhookRecord } from '../store/records.ts'
import { canonicalName } from './header-names.ts'
import { jsonPrefix } from './json-size.ts'
import { type BodySearch, type Word, mostCost } from './match.ts'
import type { Contents, GivenText, NamedBody } from './message-data.ts'
import type { Pace } from './pace.ts'
import type { Found, Searches } from './searches.ts'
import {
  type Hay,
  type Mail,
  type PartRead,
  type Text,
  type TextPart,
  createTextReader,
  decoderOf,
  isIn,
  textParts,
} from './texts.ts'

export interface ReadDeps {
  readonly mail: Mail
  readonly pace: Pace
  readonly searches: Searches
  /** Of the bodies of one callback, as JSON writes them. */
  readonly giveMax: number
  /** Of the text of one message that is searched, in bytes with the transfer encoding undone. */
  readonly searchMax: number
  /** For reading one message. */
  readonly withinMs: number
}

export type Wishes = Pick<WebhookRecord, 'includeBody' | 'bodyType' | 'includeHeader'>

export interface ReadContents {
  readonly contents: Contents
  /** What body_search has come to; null = it was not asked for. */
  readonly body: Word | null
}

/** Nothing read: bodies are named, not given. `truncated` when something was asked for. */
export function namedOnly(wishes: Wishes, message: MessageRecord): Contents {
  return { bodies: message.bodies.map((part) => named(part)), texts: null, truncated: wantsContents(wishes) }
}

export function wantsContents(wishes: Wishes): boolean {
  return wishes.includeBody || wishes.includeHeader !== null
}

/** What body_search says, and whose it is: each developer waits for his own searches. */
export interface Wanted {
  readonly search: BodySearch
  readonly owner: string
}

export async function readContents(
  deps: ReadDeps,
  message: MessageRecord,
  wishes: Wishes,
  search: Wanted | null,
): Promise<ReadContents> {
  const { texts, body } = await readTexts(deps, message, givenParts(message, wishes), search)
  const headers = await readHeaderBlock(deps.mail, message, wishes.includeHeader)
  const bodies = wishes.includeBody
    ? texts.map(({ part }) => named(part, 'utf-8'))
    : message.bodies.map((part) => named(part))
  return {
    contents: {
      bodies,
      texts: wishes.includeBody ? texts : null,
      ...(headers === undefined ? {} : { headers }),
      truncated: false,
    },
    body,
  }
}

/** text/plain first: what is left of the room is for the others. */
function givenParts(message: MessageRecord, { includeBody, bodyType }: Wishes): TextPart[] {
  if (!includeBody) return []
  return textParts({ ...message, attachments: [] }).filter(({ type }) => bodyType === null || type === bodyType)
}

/** However large the others are, each part has this much of the callback, if it wants it. */
export function leastOf(room: number, parts: number): number {
  return Math.floor(Math.min(65_536, room / 8 / Math.max(1, parts)))
}

/** In the same order whatever is given: the limit of the search ends at the same place. */
async function readTexts(
  deps: ReadDeps,
  message: MessageRecord,
  given: readonly TextPart[],
  search: Wanted | null,
): Promise<{ readonly texts: GivenText[]; readonly body: Word | null }> {
  const isGiven = new Set(given.map(({ section }) => section))
  const parts = search === null ? given : textParts(message)
  const reader = createTextReader(deps.mail, message, parts, deps.withinMs)
  const hunt = search === null ? null : createHunt(search, deps)
  const texts: GivenText[] = []
  let room = deps.giveMax
  for (const part of parts) {
    const share = isGiven.has(part.section) ? Math.max(room, leastOf(deps.giveMax, given.length)) : null
    const most = Math.max(share === null ? 0 : bytesFor(part, share), hunt?.left ?? 0)
    if (share === null && most === 0) continue
    const read = await reader.read(part, most)
    const bytes = read.bytes.length
    const decode = decoderOf(read)
    await hunt?.look(read, decode)
    if (share === null) continue
    const decoded = await deps.pace(bytes, () => decode(bytesFor(part, share)))
    const text = await deps.pace(bytes, () => givenText(part, decoded, share))
    room -= text.bytes
    texts.push(text)
  }
  return { texts, body: hunt?.word(parts) ?? null }
}

/** So many bytes are never less than `share` as JSON: an escape, a line end and a character of UTF-8 take as many or more. */
function bytesFor({ charset, flowed }: BodyPartRecord, share: number): number {
  if (/utf-?(?:16|32)|ucs/.test(charset ?? '')) return share * 4
  const lean = charset === null || /^(?:us-ascii|utf-?8|iso-8859-\d+|windows-\d+)$/.test(charset)
  return lean && !flowed ? share : share * 2
}

function givenText(part: TextPart, { text, whole }: Text, share: number): GivenText {
  const { end, bytes } = jsonPrefix(text, share)
  if (end === text.length) return { part, text, bytes, whole }
  // A piece of a string keeps the whole string in memory: of a much larger one it is copied.
  const piece = text.slice(0, end)
  return { part, text: end < text.length / 2 ? Buffer.from(piece).toString() : piece, bytes, whole: false }
}

interface Hunt {
  /** Bytes that are still to be searched; 0 = no more are wanted. */
  readonly left: number
  look(read: PartRead, decode: (limit: number) => Text): Promise<void>
  /** Once all is read. */
  word(parts: readonly TextPart[]): Word
}

/** Besides its search, what a character costs to be decoded and, of HTML, to be read. */
const stepsToRead = 4

/** `text`: the characters of the hay. */
type SearchIn = (hay: Hay, text: () => string) => Promise<Found<boolean>>

/** Little text is searched at once, much of it in another thread. The message as a whole has its limits. */
function createSearch({ search, owner }: Wanted, searches: Searches): SearchIn {
  let [costLeft, msLeft] = [mostCost, searches.withinMs]
  return async (hay, text) => {
    const cost = hay.bytes.length * (stepsToRead + search.steps)
    if (cost <= costLeft) {
      costLeft -= cost
      return { kind: 'found', answer: await isIn(search, hay.part, text()), tookMs: 0 }
    }
    const task = { ...hay, kind: 'text', bytes: new Uint8Array(hay.bytes), wanted: search.wanted } as const
    const found = await searches.run(owner, task, Math.max(1, msLeft))
    if (found.kind === 'found') msLeft -= found.tookMs
    return found
  }
}

/** Part by part, so that no more than one is in memory for it. */
function createHunt(wanted: Wanted, { searchMax, searches }: ReadDeps): Hunt {
  const { search } = wanted
  const searchIn = createSearch(wanted, searches)
  let left = searchMax
  let found: string | null = null
  let ended: string | null = null
  const searched = new Set<string>()
  return {
    get left() {
      return found === null && ended === null ? left : 0
    },
    async look({ part, bytes, whole }, decode) {
      if (this.left === 0) return
      const some = bytes.subarray(0, left)
      const all = whole && some.length === bytes.length
      const limit = left
      left -= some.length
      const told = await searchIn({ part, bytes: some, cut: !all }, () => decode(limit).text)
      if (told.kind === 'ended') ended = told.why
      else if (told.answer) found = part.type
      if (all) searched.add(part.section)
    },
    word(parts) {
      if (found !== null) return { matched: true, why: `a ${found} part matches ${search.wanted}` }
      if (ended !== null) return { matched: false, why: `too much to search: it ${ended}` }
      if (parts.some(({ section }) => !searched.has(section))) return { matched: false, why: 'too large to search' }
      return { matched: false, why: `none of ${parts.length} text parts matches ${search.wanted}` }
    },
  }
}

async function readHeaderBlock(
  mail: Mail,
  message: MessageRecord,
  how: WebhookRecord['includeHeader'],
): Promise<Contents['headers']> {
  if (how === null) return undefined
  const block = await mail.fetchHeaders(message.accountId, message)
  if (how === 'raw') return headerBlockText(block)
  return Object.fromEntries(Object.entries(headerObject(block)).map(([name, values]) => [canonicalName(name), values]))
}

function named({ type, charset, section }: BodyPartRecord, given?: 'utf-8'): NamedBody {
  return { type, charset: given ?? charset ?? '', body_section: section }
}

/** What is read is held several times over: as it came, as characters, folded for the search, and as the callback's text. */
const heldTimes = 8

/** What reading takes of memory, in bytes, by what the server told of the message. */
export function memoryFor(
  { giveMax, searchMax }: Pick<ReadDeps, 'giveMax' | 'searchMax'>,
  message: MessageRecord,
  wishes: Wishes,
  searched: boolean,
): number {
  const sizeOf = (parts: readonly BodyPartRecord[]): number => parts.reduce((sum, { size }) => sum + size, 0)
  const texts = textParts(message)
  const given = Math.min(sizeOf(givenParts(message, wishes)), giveMax)
  const hunted = searched ? Math.min(sizeOf(texts), searchMax) : 0
  const headers = wishes.includeHeader === null ? 0 : Math.max(0, message.size - sizeOf(texts))
  return heldTimes * (Math.max(given, hunted) + Math.min(headers, headersMost))
}
const headersMost = 4 * 1_048_576
