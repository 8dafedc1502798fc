/**
 * BODY.PEEK[section]<from.count>: parts of a message, whole or piece by piece. Never RFC822, which iCloud answers with
 * nothing. A part that the server refuses is cut out of the whole message: GreenMail does not find a message within a
 * message.
 */
import { badParameter, isAppError } from '../../errors.ts'
import { sectionOf } from '../../messages/mime.ts'
import { uidSet, type Argument, type Untagged } from './below.ts'
import type { Facts } from './server-state.ts'
import { readFetch } from './fetched.ts'
import { cutOf, fetches } from './frames.ts'
import type { Parts, Send } from './line.ts'
import { splitSet, toSet } from './sets.ts'
import type { Chunk, FromWhole } from '../session-types.ts'

const sectionShape = /^(?:\d{1,5}(?:\.\d{1,5})*(?:\.(?:MIME|HEADER|TEXT))?|HEADER|TEXT)?$/

interface Part {
  readonly section: string
  readonly from: number
  readonly count: number
}

interface Wanted extends Part {
  readonly uid: number
}

function partItem({ section, from, count }: Part): Argument {
  if (!sectionShape.test(section)) throw badParameter('section', 'expected an IMAP section such as 1.2')
  const inner: Argument[] = section === '' ? [] : [{ type: 'ATOM', value: section }]
  return { type: 'ATOM', value: 'BODY.PEEK', section: inner, partial: [from, count] }
}

const uidItem: Argument = { type: 'ATOM', value: 'UID' }

/** No literal is larger: what is longer comes in pieces, on the line one after the other. */
const pieceBytes = 1_048_576

async function readChunk({ line, facts }: Parts, wanted: Wanted): Promise<Chunk | null> {
  const end = wanted.from + wanted.count
  return line.run(async (send) => {
    const pieces: Buffer[] = []
    for (let from = wanted.from; ;) {
      const count = Math.min(pieceBytes, end - from)
      const piece = await readPiece(send, facts, { ...wanted, from, count })
      if (piece === null) return pieces.length === 0 ? null : { bytes: Buffer.concat(pieces), last: true }
      pieces.push(piece.bytes)
      from += piece.bytes.length
      if (piece.last || from >= end) return { bytes: concat(pieces), last: piece.last }
    }
  })
}

function concat(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces)
}

async function readPiece(send: Send, facts: Facts, wanted: Wanted): Promise<Chunk | null> {
  const { uid, section, from, count } = wanted
  const answers: Answer[] = []
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const found = items.sections.get(section)
    if (found && (items.uid === null || items.uid === uid)) answers[0] = found
    else facts.flagsTold(items)
  }
  const args: Argument[] = [uidSet(String(uid)), [uidItem, partItem(wanted)]]
  await send('UID FETCH', args, { FETCH: onFetch }, { ...fetches, piece: { from, count, sections: 1 } })
  const [answer] = answers
  return answer === undefined ? null : cut(answer, from, count)
}

/** A longer message is not taken apart by us. */
const wholeMax = 16 * 1_048_576

/** From `from` to the end of the part, in one chunk: the next one would cost the whole message again. */
async function readRefused(deps: Parts, wanted: Wanted, refusal: unknown): Promise<Chunk | null> {
  if (!isAppError(refusal, 'server_refused') || wanted.section === '') throw refusal
  const part = (await readFromWhole(deps, wanted.uid, [wanted.section]))?.parts.get(wanted.section)
  if (part === undefined) throw refusal
  return { bytes: part.subarray(wanted.from), last: true }
}

async function readFromWhole(deps: Parts, uid: number, sections: readonly string[]): Promise<FromWhole | null> {
  const whole = await readChunk(deps, { uid, section: '', from: 0, count: wholeMax })
  if (whole?.last !== true) return null
  const parts = new Map<string, Buffer>()
  for (const section of sections) {
    const part = sectionOf(whole.bytes, section)
    if (part !== null) parts.set(section, part)
  }
  return { parts, size: whole.bytes.length }
}

/** By UID, then by section. */
type SectionsRead = ReadonlyMap<number, ReadonlyMap<string, Buffer>>

/** One command for each piece of the set of UIDs. An answer without a UID is not used. */
async function readSections(
  deps: Parts,
  uids: readonly number[],
  sections: readonly string[],
  maxBytes: number,
): Promise<SectionsRead> {
  const count = Math.min(pieceBytes, Math.max(1, maxBytes))
  const items = sections.map((section) => partItem({ section, from: 0, count }))
  const piece = { from: 0, count, sections: sections.length }
  const read = new Map(uids.map((uid) => [uid, new Map<string, Buffer>()]))
  const { line, facts } = deps
  const onFetch: Untagged = (response) => {
    const told = readFetch(response)
    const parts = told.uid === null ? undefined : read.get(told.uid)
    if (parts === undefined || told.sections.size === 0) facts.flagsTold(told)
    for (const section of sections) {
      const bytes = told.sections.get(section)?.bytes
      if (bytes) parts?.set(section, bytes.subarray(0, count))
    }
  }
  for (const range of uids.length === 0 ? [] : splitSet(toSet(uids))) {
    const args: Argument[] = [uidSet(range), [uidItem, ...items]]
    await line.run((send) => send('UID FETCH', args, { FETCH: onFetch }, { ...fetches, piece }))
  }
  if (maxBytes > pieceBytes) await readRests(deps, read, maxBytes)
  return read
}

/** Of sections that were longer than a piece. */
async function readRests(deps: Parts, read: ReadonlyMap<number, Map<string, Buffer>>, maxBytes: number): Promise<void> {
  for (const [uid, parts] of read) {
    for (const [section, first] of parts) {
      if (first.length < pieceBytes) continue
      const rest = await readChunk(deps, { uid, section, from: pieceBytes, count: maxBytes - pieceBytes })
      if (rest !== null) parts.set(section, Buffer.concat([first, rest.bytes]))
    }
  }
}

export function createSections(deps: Parts) {
  const read = (wanted: Wanted): Promise<Chunk | null> =>
    readChunk(deps, wanted).catch((error: unknown) => readRefused(deps, wanted, error))
  return {
    /** '' = whole message, 'HEADER' = header block, '1.2.MIME' … null when absent. */
    async fetchSection(uid: number, section: string, maxBytes: number): Promise<Buffer | null> {
      const count = Math.max(1, maxBytes)
      const found = await read({ uid, section, from: 0, count })
      return found?.bytes.subarray(0, count) ?? null
    },
    /** Of several messages at once, by UID and section; what is absent is left out. */
    fetchSections: (uids: readonly number[], sections: readonly string[], maxBytes: number): Promise<SectionsRead> =>
      readSections(deps, uids, sections, maxBytes),
    /** One piece of a stream, undecoded. null when the message or the part is not there. */
    fetchChunk: (uid: number, section: string, from: number, count: number): Promise<Chunk | null> =>
      read({ uid, section, from, count }),
    /** For sections that the server gives wrongly. null when the message is not there, or is too long to be held. */
    fetchFromWhole: (uid: number, sections: readonly string[]): Promise<FromWhole | null> =>
      readFromWhole(deps, uid, sections),
  }
}

interface Answer {
  readonly bytes: Buffer | null
  readonly partial: boolean
}

/** A server may send more than was asked, or NIL past the end. A short answer has no literal, and is cut here. */
function cut({ bytes, partial }: Answer, from: number, count: number): Chunk | null {
  if (bytes === null) return from === 0 ? null : { bytes: empty, last: true }
  const known = cutOf(bytes)
  if (known !== null) return { bytes, last: known.from + bytes.length >= known.size }
  if (bytes.length > count || (!partial && from > 0)) {
    const part = bytes.subarray(from, from + count)
    return { bytes: part, last: from + part.length >= bytes.length }
  }
  return { bytes, last: bytes.length < count }
}

const empty = Buffer.alloc(0)
