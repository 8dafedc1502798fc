/**
 * Commands that read from the server: parts, headers, whole messages, and the server's own search in bodies.
 *
 * A stream comes chunk by chunk. Each chunk is a turn of its own, so that no other work waits for the stream's reader.
 * The next chunk is requested when the reader has taken the last one.
 *
 * Some servers give less of a part than their BODYSTRUCTURE says, mostly of a message within a message. A short part is
 * cut out of the whole message when that has more of it; a part that stays short is always reported as short.
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../../errors.ts'
import { createTransferStream } from '../../messages/transfer-encoding.ts'
import type { Logger } from '../../observe/log.ts'
import type { FolderRecord, MessageRecord } from '../../store/records.ts'
import type { Chunk, FlagsOf, FromWhole } from '../session-types.ts'
import { areWhole, fetchTexts, statedSize } from '../texts.ts'
import type { ManyParts, PartsRead, PartStream, WantedParts } from '../types.ts'
import type { SyncContext } from '../write.ts'
import {
  type CommandDeps,
  currentMessage,
  inPlace,
  isReadAnew,
  notThere,
  onLink,
  unlessRefused,
} from './message-location.ts'
import type { Session } from '../session/index.ts'
import { lastIndexUpTo } from '../session/uids.ts'

const headerMaxBytes = 4 * 1_048_576

export function readCommands(deps: CommandDeps) {
  const { sync } = deps
  return {
    /** Whole parts in memory, undecoded, at most `maxBytes` each (cut there). For text bodies. */
    fetchParts: (message: MessageRecord, sections: readonly string[], maxBytes: number): Promise<PartsRead> =>
      readAlone(deps, message, async (session, uid) => {
        const parts = await fetchSections(session, uid, sections, maxBytes)
        return parts && mendParts({ session, uid, message, log: sync.log }, parts, maxBytes)
      }),
    /** See FetchMany. */
    async fetchMany(accountId: string, wanted: readonly WantedParts[], maxBytes: number): Promise<ManyParts> {
      const found = new Map<string, ReadonlyMap<string, Buffer>>()
      const placed = wanted.flatMap((one) => one.message.placements.slice(0, 1).map((at) => ({ ...one, at })))
      for (const group of Map.groupBy(placed, ({ at }) => `${at.folderId} ${at.uidValidity}`).values()) {
        const [first] = group
        if (first === undefined) continue
        const uids = new Map(group.map(({ message, at }) => [message.id, at.uid]))
        const read = (here: SyncContext): Promise<ManyParts | null> =>
          inPlace(here, first.at, () => fetchTexts(here.session, uids, group, maxBytes), true)
        for (const [id, parts] of (await unlessRefused(onLink(deps, accountId, read))) ?? []) found.set(id, parts)
      }
      return found
    },
    fetchHeaders: (message: MessageRecord): Promise<Buffer> =>
      readAlone(deps, message, (session, uid) => session.fetchSection(uid, 'HEADER', headerMaxBytes)),
    /** One part as decoded bytes (base64, quoted-printable undone). */
    async streamPart(message: MessageRecord, section: string, encoding: string): Promise<PartStream> {
      const { stream, short } = await streamSection(deps, message, section)
      const decoder = createTransferStream(encoding)
      stream.on('error', (error) => decoder.destroy(error))
      decoder.on('close', () => stream.destroy())
      return Object.assign(stream.pipe(decoder), { short })
    },
    async streamRaw(message: MessageRecord): Promise<Readable> {
      return (await streamSection(deps, message, '')).stream
    },
    /** Whether the whole message has no byte from here on. */
    isEnd: (message: MessageRecord, from: number): Promise<boolean> =>
      readAlone(deps, message, async (session, uid) => {
        const chunk = await session.fetchChunk(uid, '', from, 1)
        return chunk && chunk.bytes.length === 0
      }),
    /** Asks the server which messages hold the text in their body (case-insensitive). */
    async searchBody(folder: FolderRecord, text: string): Promise<BodyMatches> {
      const { id, cursor } = folder
      if (cursor === null) return noMatches
      const { uidValidity } = cursor
      const at = { path: folder.path, uidValidity }
      const search = (here: SyncContext) => inPlace(here, at, () => here.session.searchBody(text), true)
      const uids = (await onLink(deps, folder.accountId, search)) ?? []
      const isFound = (uid: number): boolean => uids[lastIndexUpTo(uids, uid)] === uid
      return {
        count: uids.length,
        has: ({ placements }) =>
          placements.some((at) => at.folderId === id && at.uidValidity === uidValidity && isFound(at.uid)),
        ids: async () =>
          (await sync.store.messages.knownAmong(id, uidValidity, uids)).map(({ messageId }) => messageId),
      }
    },
  }
}

/** The messages of one folder whose bodies hold a text: as many as the folder has, at most. */
export interface BodyMatches {
  readonly count: number
  readonly has: (message: MessageRecord) => boolean
  /** The ids of all matches, by one query: for few matches. */
  readonly ids: () => Promise<string[]>
}

const noMatches: BodyMatches = { count: 0, has: () => false, ids: () => Promise.resolve([]) }

function readAlone<T>(
  deps: CommandDeps,
  message: MessageRecord,
  work: (session: Session, uid: number) => Promise<T | null>,
): Promise<T> {
  return onLink(deps, message.accountId, (here) => atPlacement(here, message, (uid) => work(here.session, uid)))
}

async function fetchSections(
  session: Session,
  uid: number,
  sections: readonly string[],
  maxBytes: number,
): Promise<ReadonlyMap<string, Buffer> | null> {
  const together = sections.length < 2 ? null : await unlessRefused(session.fetchSections([uid], sections, maxBytes))
  const read = together?.get(uid)
  if (read?.size === sections.length) return read
  const parts = new Map<string, Buffer>()
  for (const section of sections) {
    const part = await session.fetchSection(uid, section, maxBytes)
    if (part === null) return null
    parts.set(section, part)
  }
  return parts
}

/** A stream outlives links and placements: each chunk is read over the link, and from the place, of its time. */
async function streamSection(deps: CommandDeps, message: MessageRecord, section: string) {
  const { sync } = deps
  let short = false
  const first = async (session: Session, uid: number): Promise<Chunk | null> => {
    const chunk = await session.fetchChunk(uid, section, 0, chunkBytes)
    if (chunk === null) return null
    const mended = await mendChunk({ session, uid, message, log: sync.log }, section, chunk)
    short = mended.short
    return mended.chunk
  }
  const readChunk = (from: number): Promise<Chunk> => {
    const read = (here: SyncContext): Promise<Chunk> =>
      atPlacement(here, message, (uid) =>
        from === 0 ? first(here.session, uid) : here.session.fetchChunk(uid, section, from, chunkBytes),
      )
    return onLink(deps, message.accountId, read, from === 0 ? 'api' : 'stream')
  }
  return { stream: await streamChunks(readChunk, sync.config.MAILROOM_COMMAND_TIMEOUT), short }
}

/** Tries each present placement of the message until `work` finds it; null from `work` = not there. */
async function atPlacement<T>(
  here: SyncContext,
  message: MessageRecord,
  work: (uid: number) => Promise<T | null>,
): Promise<T> {
  const now = await currentMessage(here.deps.store, message)
  /** Errors of folders that are being read anew, and may hold the message. */
  const anew: AppError[] = []
  for (const place of now.placements) {
    try {
      const found = await inPlace(here, place, () => work(place.uid))
      if (found !== null) return found
    } catch (error) {
      if (!isReadAnew(error) || here.session.closed) throw error
      anew.push(error)
    }
  }
  throw anew[0] ?? (await notThere(here, now))
}

/** One turn: short for waiting work, long enough to hide the round trips from a fast reader. */
export const chunkBytes = 512 * 1024

/** A stream holds the chunk that is being taken, and the next one. */
export const streamBytes = 2 * chunkBytes

export type FlagsNow = Omit<FlagsOf, 'uid'>

/** null when there is no such UID. The folder is selected. */
export async function flagsAt(session: Session, uid: number): Promise<FlagsNow | null> {
  return (await session.fetchFlags(String(uid))).find((one) => one.uid === uid) ?? null
}

/** Of the whole message; null when it has gone, '' when it is longer. The folder is selected. */
export async function digestOf(session: Session, uid: number, size: number): Promise<string | null> {
  const hash = createHash('sha256')
  for (let from = 0; from <= size;) {
    const chunk = await session.fetchChunk(uid, '', from, chunkBytes)
    if (chunk === null) return null
    hash.update(chunk.bytes)
    from += chunk.bytes.length
    if (chunk.last) return hash.digest('hex')
  }
  return ''
}

type ReadChunk = (from: number) => Promise<Chunk>

/** Rejects when there is no first chunk. A reader that takes nothing for `stallMs` is cut off with `timeout`. */
async function streamChunks(readChunk: ReadChunk, stallMs: number): Promise<Readable> {
  const first = await readChunk(0)

  async function* pieces(): AsyncGenerator<Buffer, void, undefined> {
    let from = 0
    let ahead: Promise<Chunk> | null = Promise.resolve(first)
    while (ahead !== null) {
      const { bytes, last }: Chunk = await ahead
      from += bytes.length
      ahead = last ? null : readChunk(from)
      // A failure rejects when the chunk is taken.
      ahead?.catch(() => undefined)
      // The timer measures the reader of the stream, not the mail server.
      const timer = setTimeout(stalled, stallMs)
      try {
        if (bytes.length > 0) yield bytes
      } finally {
        clearTimeout(timer)
      }
    }
  }

  const stalled = (): void => void stream.destroy(new AppError('timeout', 'the part was not read in time'))
  const stream = Readable.from(pieces(), { objectMode: false, highWaterMark: chunkBytes })
  return stream
}

interface Source {
  readonly session: Session
  readonly uid: number
  readonly message: MessageRecord
  readonly log: Logger
}

async function mendParts(source: Source, parts: ReadonlyMap<string, Buffer>, maxBytes: number): Promise<PartsRead> {
  const wanting = [...parts].filter((part) => !areWhole(source.message, new Map([part]), maxBytes))
  if (wanting.length === 0) return parts
  const sections = wanting.map(([section]) => section)
  const whole = await fromWhole(source, sections)
  const mended = new Map(parts)
  const short = new Set<string>()
  for (const [section, bytes] of wanting) {
    const verdict = judge(source, section, bytes.length, whole)
    if (verdict.better !== null) mended.set(section, verdict.better.subarray(0, maxBytes))
    if (verdict.short) short.add(section)
  }
  return Object.assign(mended, { short })
}

/** The first chunk of a stream; of a short part all its bytes, when the whole message has more of them. */
async function mendChunk(source: Source, section: string, first: Chunk) {
  const stated = statedSize(source.message, section)
  if (!(await isShort(source, section, first, stated))) return { chunk: first, short: false }
  const given = first.last ? first.bytes.length : null
  const { better, short } = judge(source, section, given, await fromWhole(source, [section]))
  return { chunk: better === null ? first : { bytes: better, last: true }, short }
}

async function isShort({ session, uid }: Source, section: string, first: Chunk, stated: number): Promise<boolean> {
  if (first.last || first.bytes.length >= stated) return first.bytes.length < stated
  const end = await unlessRefused(session.fetchChunk(uid, section, stated - 1, 1))
  return end !== null && end.bytes.length === 0
}

function fromWhole({ session, uid }: Source, sections: readonly string[]): Promise<FromWhole | null> {
  return unlessRefused(session.fetchFromWhole(uid, sections))
}

/** Decides between the part as given and as cut out of the whole message. `given` null = fewer bytes than stated. */
function judge({ message, log }: Source, section: string, given: number | null, whole: FromWhole | null) {
  const stated = statedSize(message, section)
  const part = whole?.parts.get(section) ?? null
  const isComplete = part !== null && whole !== null && whole.size >= message.size
  const isBetter = part !== null && (given === null ? isComplete || part.length >= stated : part.length > given)
  const short = !isComplete && (isBetter ? part.length : (given ?? 0)) < stated
  if (short || isBetter) {
    const fields = { accountId: message.accountId, messageId: message.id, section, stated, given, cut: part?.length }
    const words = short
      ? 'the mail server gives less of a part than it says'
      : 'a part was cut out of the whole message'
    log.warn(fields, words)
  }
  return { better: isBetter ? part : null, short }
}
