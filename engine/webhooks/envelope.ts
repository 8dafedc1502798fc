/**
 * The body of a callback as bytes: envelope, signatures, and the bound on its size. Texts of bodies are cut until the
 * body fits. A body that is still too large loses its headers, then person_info, then the ends of long lists.
 *
 * Each callback has two signatures:
 * - in the body, as the original service had it: `signature` = hex HMAC-SHA256, key = the developer's API secret, of
 *   the timestamp's text immediately followed by the token;
 * - in the headers, Standard Webhooks: webhook-id, webhook-timestamp, and webhook-signature with one `v1,<base64>` per
 *   valid key over `id.timestamp.body`: first the webhook's own secrets (`whsec_…`; after a rotation the old one too),
 *   last the developer's API secret as UTF-8 bytes (a verifier takes it as `whsec_` + base64 of the secret). A failure
 *   notification is signed like its webhook's callbacks; status and sync callbacks have no webhook: they carry the
 *   developer's signature alone.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { BodyPartRecord, OutboxRecord } from '../store/records.ts'
import { createExclusive } from '../scheduling.ts'

type Body = Readonly<Record<string, unknown>>

export interface GivenText {
  readonly part: BodyPartRecord
  readonly text: string
  /** Length of the text as JSON, without its quotes. */
  readonly bytes: number
  /** The text is the whole part. */
  readonly whole: boolean
}

export interface LinkedText extends GivenText {
  readonly link: string
}

export interface Unsigned {
  readonly body: Body
  /** For message_data's bodies; null = bodies are listed without texts. */
  readonly texts: readonly LinkedText[] | null
}

export type SignedCallback = Awaited<ReturnType<typeof signCallback>>

export const userAgent = 'Mailroom (+webhook)'

export async function signCallback(
  row: Pick<OutboxRecord, 'id'>,
  unsigned: Unsigned,
  keys: SigningKeys,
  { now, maxBytes, pace }: { readonly now: number; readonly maxBytes: number; readonly pace: Pace },
) {
  const signature = bodySignature(keys.apiSecret, now)
  const bytes = total((unsigned.texts ?? []).map((text) => text.bytes))
  const text = await pace(bytes, () => serialize(unsigned, signature, maxBytes))
  return pace(bytes, () => {
    const body = Buffer.from(text)
    return { headers: { 'user-agent': userAgent, ...signatureHeaders(keys, row.id, signature.timestamp, body) }, body }
  })
}

function serialize({ body, texts }: Unsigned, signature: ReturnType<typeof bodySignature>, maxBytes: number): string {
  const data = body['message_data']
  if (!isMap(data)) return JSON.stringify({ ...body, ...signature })
  const write: Write = (some) => JSON.stringify({ ...body, message_data: some, ...signature })
  // Nearly all callbacks fit uncut and are serialized once.
  if (total((texts ?? []).map(({ bytes }) => bytes)) <= maxBytes) {
    const asRead = (texts ?? []).map((one) => ({ ...one, content: one.text, cut: !one.whole }))
    const whole = write(texts === null ? data : withPieces(data, asRead))
    if (Buffer.byteLength(whole) <= maxBytes) return whole
  }
  return write(texts === null ? thinned(data, write, maxBytes) : fitted(data, texts, write, maxBytes))
}

type Write = (data: Body) => string

/** The part of a text in the callback. */
interface Piece extends LinkedText {
  readonly content: string
  readonly cut: boolean
}

/** As much of each text as there is room for. */
function fitted(data: Body, texts: readonly LinkedText[], write: Write, maxBytes: number): Body {
  const rest = (some: Body): number => maxBytes - Buffer.byteLength(write(some))
  const least = texts.map(({ bytes }) => Math.min(bytes, leastOf(maxBytes, texts.length)))
  const allCut = texts.map((one) => ({ ...one, content: '', cut: true }))
  const frame = thinned(withPieces(data, allCut), write, maxBytes - total(least))
  const { length: shown } = frame['bodies'] as readonly unknown[]
  return withPieces(frame, pieces(texts.slice(0, shown), least, rest(frame)))
}

/** First texts take the room that they need, except for the least share of each later text. */
function pieces(texts: readonly LinkedText[], least: readonly number[], room: number): Piece[] {
  let left = room
  let kept = total(least.slice(0, texts.length))
  return texts.map((one, index) => {
    const { text, bytes: wanted, whole } = one
    kept -= least[index] ?? 0
    const share = left - kept
    const { end, bytes } = wanted <= share ? { end: text.length, bytes: wanted } : jsonPrefix(text, share)
    left -= bytes
    return { ...one, content: text.slice(0, end), cut: !whole || end < text.length }
  })
}

function withPieces(data: Body, shown: readonly Piece[]): Body {
  const bodies = shown.map(({ part, link, content, cut }) => {
    const body = { type: part.type, charset: 'utf-8', body_section: part.section, content }
    return cut ? { ...body, truncated: true, size: part.size, link } : body
  })
  return { ...data, bodies, ...(shown.some(({ cut }) => cut) ? { truncated: true } : {}) }
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0)
}

function isMap(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

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
  (data) => {
    const { addresses } = data
    return { ...withShortLists(data), ...(isMap(addresses) ? { addresses: withShortLists(addresses) } : {}) }
  },
]

function withShortLists(data: Body): Body {
  const shortened = (value: unknown): unknown =>
    Array.isArray(value) ? (value as readonly unknown[]).slice(0, keptOfLists) : value
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, shortened(value)]))
}

/** The end of a prefix is found in pieces, ever smaller: JSON.stringify is fast, but writes what it measures. */
const pieceLengths = [65_536, 256, 1]

/** The least share of each part in the callback, in bytes. */
export function leastOf(room: number, parts: number): number {
  return Math.floor(Math.min(65_536, room / 8 / Math.max(1, parts)))
}

/** The longest prefix of the text with at most `room` bytes as JSON in UTF-8, without quotes. No character is split. */
export function jsonPrefix(text: string, room: number): { readonly end: number; readonly bytes: number } {
  let end = 0
  let bytes = 0
  for (const piece of pieceLengths) {
    while (end < text.length) {
      const next = characterEnd(text, end + piece)
      const size = Buffer.byteLength(JSON.stringify(text.slice(end, next))) - 2
      if (bytes + size > room) break
      bytes += size
      end = next
    }
  }
  return { end, bytes }
}

/** `at`, or the index after a surrogate pair that `at` would split. */
function characterEnd(text: string, at: number): number {
  const isHigh = /[\ud800-\udbff]/.test(text.charAt(at - 1))
  return Math.min(text.length, isHigh && /[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at)
}

/** `bytes`: length of the text. `work` is one step, of some tens of milliseconds for 5 MiB. */
export type Pace = <T>(bytes: number, work: () => T) => Promise<T>

const smallBytes = 262_144
const longestRestMs = 100

/**
 * Runs work on large texts one step at a time, each in its own turn of the event loop, and rests after each step as
 * long as it took. Work on small texts runs at once.
 */
export function createPace(): Pace {
  const inOrder = createExclusive()
  return async (bytes, work) => {
    if (bytes < smallBytes) return work()
    let took = 0
    const turn = inOrder(async () => {
      await nextTurn()
      const began = performance.now()
      try {
        return work()
      } finally {
        took = performance.now() - began
      }
    })
    void inOrder(() => pause(Math.min(took, longestRestMs)))
    return turn
  }
}

/** `timestamp`: seconds since 1970. */
function bodySignature(apiSecret: string, now: number) {
  const timestamp = Math.floor(now / 1000)
  // randomUUID is faster than randomBytes: Node keeps random bytes ready for it.
  const token = randomUUID().replaceAll('-', '')
  const signature = createHmac('sha256', apiSecret).update(`${timestamp}${token}`).digest('hex')
  return { timestamp, token, signature }
}

export interface SigningKeys {
  readonly apiSecret: string
  /** `whsec_…`, newest first. */
  readonly webhookSecrets: readonly string[]
}

function signatureHeaders(keys: SigningKeys, id: string, timestamp: number, body: Uint8Array) {
  const secrets = keys.webhookSecrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
  const all = [...secrets, Buffer.from(keys.apiSecret, 'utf8')]
  const begin = `${id}.${timestamp}.`
  const signatures = all.map((key) => `v1,${createHmac('sha256', key).update(begin).update(body).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') }
}

/** A webhook's new secret: `whsec_` and base64 of 32 random bytes (Standard Webhooks). */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}
