/**
 * Parts of which a server gives less than its BODYSTRUCTURE says: of a message within a message, mostly. They are read from the whole
 * message where that has more; what is short even so is never given as if it were whole.
 */
import type { Logger } from '../../observe/log.ts'
import type { MessageRecord } from '../../store/records.ts'
import type { Chunk, FromWhole, Session } from '../session-types.ts'
import type { PartsRead } from '../types.ts'
import { unlessRefused } from './placed.ts'

/** A message at its place, and where to tell what was found. */
interface Source {
  readonly session: Session
  readonly uid: number
  readonly message: MessageRecord
  readonly log: Logger
}

/** As transferred; 0 = nothing was said. */
function toldSize({ bodies, attachments }: MessageRecord, section: string): number {
  return [...bodies, ...attachments].find((part) => part.section === section)?.size ?? 0
}

/** Whether these parts, each cut at `maxBytes`, are no shorter than was said. */
export function areWhole(message: MessageRecord, parts: ReadonlyMap<string, Buffer>, maxBytes: number): boolean {
  return [...parts].every(([section, bytes]) => bytes.length >= Math.min(toldSize(message, section), maxBytes))
}

export async function mendParts(
  source: Source,
  parts: ReadonlyMap<string, Buffer>,
  maxBytes: number,
): Promise<PartsRead> {
  const wanting = [...parts].filter((part) => !areWhole(source.message, new Map([part]), maxBytes))
  if (wanting.length === 0) return parts
  const whole = await fromWhole(
    source,
    wanting.map(([section]) => section),
  )
  const mended = new Map(parts)
  const short = new Set<string>()
  for (const [section, bytes] of wanting) {
    const verdict = judge(source, section, bytes.length, whole)
    if (verdict.better !== null) mended.set(section, verdict.better.subarray(0, maxBytes))
    if (verdict.short) short.add(section)
  }
  return Object.assign(mended, { short })
}

/** The first chunk of a part that is streamed: of one that is short, the part out of the whole message where that has more. */
export async function mendChunk(
  source: Source,
  section: string,
  first: Chunk,
): Promise<{ readonly chunk: Chunk; readonly short: boolean }> {
  const told = toldSize(source.message, section)
  if (!(await isShort(source, section, first, told))) return { chunk: first, short: false }
  const given = first.last ? first.bytes.length : null
  const { better, short } = judge(source, section, given, await fromWhole(source, [section]))
  return { chunk: better === null ? first : { bytes: better, last: true }, short }
}

async function isShort({ session, uid }: Source, section: string, first: Chunk, told: number): Promise<boolean> {
  if (first.last || first.bytes.length >= told) return first.bytes.length < told
  const end = await unlessRefused(session.fetchChunk(uid, section, told - 1, 1))
  return end !== null && end.bytes.length === 0
}

function fromWhole({ session, uid }: Source, sections: readonly string[]): Promise<FromWhole | null> {
  return unlessRefused(session.fetchFromWhole(uid, sections))
}

/**
 * The whole message has the last word: when all of it came and the part is no longer there, the size was wrong. `given` null = less than
 * was said.
 */
function judge(
  { message, log }: Source,
  section: string,
  given: number | null,
  whole: FromWhole | null,
): { readonly better: Buffer | null; readonly short: boolean } {
  const told = toldSize(message, section)
  const part = whole?.parts.get(section) ?? null
  const isComplete = part !== null && whole !== null && whole.size >= message.size
  const isBetter = part !== null && (given === null ? isComplete || part.length >= told : part.length > given)
  const short = !isComplete && (isBetter ? part.length : (given ?? 0)) < told
  if (short || isBetter) {
    const fields = { accountId: message.accountId, messageId: message.id, section, told, given, cut: part?.length }
    log.warn(
      fields,
      short ? 'the mail server gives less of a part than it says' : 'a part was cut out of the whole message',
    )
  }
  return { better: isBetter ? part : null, short }
}
