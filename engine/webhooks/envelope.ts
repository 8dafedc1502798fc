/**
 * The body of a callback as bytes: envelope, signature, and the bound on its size. The texts of the bodies are cut until it fits; what
 * is too large even so is thinned step by step: headers, person_info, and at last the long lists. The message itself stays one
 * request away (resource_url).
 */
import type { OutboxRecord } from '../store/records.ts'
import { leastOf } from './contents.ts'
import { jsonPrefix } from './json-size.ts'
import type { GivenText } from './message-data.ts'
import type { Pace } from './pace.ts'
import { type BodySignature, type SigningKeys, bodySignature, signatureHeaders } from './sign.ts'

/** What a callback says besides its signature. */
export type Body = Readonly<Record<string, unknown>>

/** A body's text, and where the whole of it is. */
export interface LinkedText extends GivenText {
  readonly link: string
}

export interface Unsigned {
  readonly body: Body
  /** Of each of message_data's bodies; null = they are only named. */
  readonly texts: readonly LinkedText[] | null
}

export interface SignedCallback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const userAgent = 'Mailroom (+webhook)'

export async function signCallback(
  row: Pick<OutboxRecord, 'id'>,
  unsigned: Unsigned,
  keys: SigningKeys,
  { now, maxBytes, pace }: { readonly now: number; readonly maxBytes: number; readonly pace: Pace },
): Promise<SignedCallback> {
  const signature = bodySignature(keys.apiSecret, now)
  const bytes = total((unsigned.texts ?? []).map((text) => text.bytes))
  const text = await pace(bytes, () => serialize(unsigned, signature, maxBytes))
  return pace(bytes, () => {
    const body = Buffer.from(text)
    return { headers: { 'user-agent': userAgent, ...signatureHeaders(keys, row.id, signature.timestamp, body) }, body }
  })
}

function serialize({ body, texts }: Unsigned, signature: BodySignature, maxBytes: number): string {
  const data = body['message_data']
  if (!isMap(data)) return JSON.stringify({ ...body, ...signature })
  const write: Write = (some) => JSON.stringify({ ...body, message_data: some, ...signature })
  return texts === null ? write(thinned(data, write, maxBytes)) : write(fitted(data, texts, write, maxBytes))
}

type Write = (data: Body) => string

/** What is shown of a text. */
interface Piece {
  readonly content: string
  readonly cut: boolean
}

/** All as it was read when it fits; else as much of each as there is room for. */
function fitted(data: Body, texts: readonly LinkedText[], write: Write, maxBytes: number): Body {
  const rest = (some: Body): number => maxBytes - Buffer.byteLength(write(some))
  const asRead = texts.map(({ text, whole }) => ({ content: text, cut: !whole }))
  const empty = asRead.map((one) => ({ ...one, content: '' }))
  if (total(texts.map(({ bytes }) => bytes)) <= rest(withPieces(data, texts, empty))) {
    return withPieces(data, texts, asRead)
  }
  const least = texts.map(({ bytes }) => Math.min(bytes, leastOf(maxBytes, texts.length)))
  const allCut = empty.map((one) => ({ ...one, cut: true }))
  const frame = thinned(withPieces(data, texts, allCut), write, maxBytes - total(least))
  const shown = listOf(frame['bodies']).length
  return withPieces(frame, texts, pieces(texts.slice(0, shown), least, rest(frame)))
}

/** The first ones get what they want, but for the least that is kept for each of those behind. */
function pieces(texts: readonly LinkedText[], least: readonly number[], room: number): Piece[] {
  let left = room
  let kept = total(least.slice(0, texts.length))
  return texts.map(({ text, bytes: wanted, whole }, index) => {
    kept -= least[index] ?? 0
    const share = left - kept
    const { end, bytes } = wanted <= share ? { end: text.length, bytes: wanted } : jsonPrefix(text, share)
    left -= bytes
    return { content: text.slice(0, end), cut: !whole || end < text.length }
  })
}

function withPieces(data: Body, texts: readonly LinkedText[], shown: readonly Piece[]): Body {
  const bodies = listOf(data['bodies']).map((named, index) => {
    const [text, piece] = [texts[index], shown[index]]
    if (!isMap(named) || text === undefined || piece === undefined) return named
    const { content, cut } = piece
    const { type, charset, body_section } = named
    const body = { type, charset, body_section, content }
    return cut ? { ...body, truncated: true, size: text.part.size, link: text.link } : body
  })
  return { ...data, bodies, ...(shown.some(({ cut }) => cut) ? { truncated: true } : {}) }
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0)
}

function isMap(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Step by step, until it fits or nothing more can go. */
function thinned(data: Body, write: Write, maxBytes: number): Body {
  let thin = data
  for (const step of thinnings) {
    if (Buffer.byteLength(write(thin)) <= maxBytes) break
    thin = { ...step(thin), truncated: true }
  }
  return thin
}

const keptOfLists = 50

const thinnings: readonly ((data: Body) => Body)[] = [
  (data) => Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'headers')),
  (data) => ({ ...data, person_info: [] }),
  (data) =>
    Object.fromEntries(
      Object.entries(data).map(([name, value]) => [
        name,
        name === 'addresses' && isMap(value) ? shortened(value) : cutList(value),
      ]),
    ),
]

function shortened(addresses: Body): Body {
  return Object.fromEntries(Object.entries(addresses).map(([field, list]) => [field, cutList(list)]))
}

function cutList(value: unknown): unknown {
  return Array.isArray(value) ? (value as readonly unknown[]).slice(0, keptOfLists) : value
}
