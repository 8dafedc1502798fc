/**
 * Reading what only the server has: parts, headers, whole messages, and its own search in bodies.
 *
 * A stream comes chunk by chunk: each chunk is a turn of its own, so that no other work waits for the reader. The next
 * one is asked for when this one has been taken, and is on its way while the reader reads.
 *
 * Some servers give less of a part than their BODYSTRUCTURE says, mostly of a message within a message. Such a part is
 * read from the whole message where that has more; what is short even so is never given as if it were whole.
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../../errors.ts'
import { createTransferStream } from '../../messages/transfer-encoding.ts'
import type { Logger } from '../../observe/log.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import type { Chunk, FlagsOf, FromWhole } from '../session-types.ts'
import { areWhole, fetchTogether, statedSize } from '../texts.ts'
import type { ManyParts, PartsRead, PartStream, WantedParts } from '../types.ts'
import type { SyncContext } from '../write.ts'
import {
  type CommandDeps,
  type CommandContext,
  inPlace,
  isReadAnew,
  notThere,
  onLink,
  unlessRefused,
} from './placed.ts'
import type { Session } from '../session/index.ts'

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
      for (const group of groupsOf(wanted)) {
        const read = await unlessRefused(onLink(deps, accountId, (here) => fetchGroup(here, group, maxBytes)))
        for (const [id, parts] of read ?? []) found.set(id, parts)
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
      const all = { path: folder.path, uidValidity, uid: Infinity }
      const search = (here: CommandContext): Promise<number[] | null> =>
        inPlace(here, all, () => here.session.searchBody(text))
      const uids = (await onLink(deps, folder.accountId, search)) ?? []
      return {
        count: uids.length,
        has: ({ placements }) =>
          placements.some((at) => at.folderId === id && at.uidValidity === uidValidity && holds(uids, at.uid)),
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
  /** One look at the index for all of them: where they are few. */
  readonly ids: () => Promise<string[]>
}

const noMatches: BodyMatches = { count: 0, has: () => false, ids: () => Promise.resolve([]) }

function holds(ascending: readonly number[], uid: number): boolean {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? 0) < uid) low = middle + 1
    else high = middle
  }
  return ascending[low] === uid
}

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

interface Group {
  readonly at: Placement
  readonly sections: readonly string[]
  readonly messages: Map<number, MessageRecord>
}

function groupsOf(wanted: readonly WantedParts[]): Iterable<Group> {
  const groups = new Map<string, Group>()
  for (const { message, sections } of wanted) {
    const [at] = message.placements
    if (at === undefined || sections.length === 0) continue
    const key = `${at.folderId} ${at.uidValidity} ${sections.join()}`
    const group = groups.get(key) ?? { at, sections, messages: new Map<number, MessageRecord>() }
    groups.set(key, group)
    group.messages.set(at.uid, message)
  }
  return groups.values()
}

function fetchGroup(
  here: CommandContext,
  { at, sections, messages }: Group,
  maxBytes: number,
): Promise<ManyParts | null> {
  const highest = { ...at, uid: Math.max(...messages.keys()) }
  return inPlace(here, highest, () => fetchTogether(here.session, messages, sections, maxBytes))
}

/** Each chunk over the link, and from the place, that is there when its turn comes: a stream outlives both. */
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

/** Tries each place where the message lies until one has it; null from `work` = not there. */
async function atPlacement<T>(
  here: SyncContext,
  message: MessageRecord,
  work: (uid: number) => Promise<T | null>,
): Promise<T> {
  const tried = new Set<string>()
  /** Folders that may hold it are not the ones that the index knows. */
  const anew: AppError[] = []

  async function firstOf(places: readonly Placement[]): Promise<T | null> {
    for (const place of places.filter((one) => !tried.has(placeKey(one)))) {
      tried.add(placeKey(place))
      try {
        const found = await inPlace(here, place, () => work(place.uid))
        if (found !== null) return found
      } catch (error) {
        if (!isReadAnew(error) || here.session.closed) throw error
        anew.push(error)
      }
    }
    return null
  }

  const known = await firstOf(message.placements)
  if (known !== null) return known
  const now = await here.deps.store.messages.get(message.accountId, message.id)
  const moved = await firstOf(now?.placements ?? [])
  if (moved !== null) return moved
  throw anew[0] ?? (await notThere(here, now ?? message))
}

function placeKey({ folderId, uidValidity, uid }: Placement): string {
  return `${folderId} ${uidValidity} ${uid}`
}

/** One turn: short for those who wait, long enough that a fast reader does not notice the round trips. */
export const chunkBytes = 512 * 1024

/** What a stream holds: a piece that is being taken, and the next one. */
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
      // Told when it is taken.
      ahead?.catch(() => undefined)
      // From here on it is the reader who is waited for.
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

/** The first chunk of a stream; of a part that is short the whole, where the whole message has more of it. */
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

/** The whole message has the last word on a part and its size. `given` null = less than was said. */
function judge({ message, log }: Source, section: string, given: number | null, whole: FromWhole | null) {
  const stated = statedSize(message, section)
  const part = whole?.parts.get(section) ?? null
  const isComplete = part !== null && whole !== null && whole.size >= message.size
  const isBetter = part !== null && (given === null ? isComplete || part.length >= stated : part.length > given)
  const short = !isComplete && (isBetter ? part.length : (given ?? 0)) < stated
  if (short || isBetter) {
    const fields = { accountId: message.accountId, messageId: message.id, section, stated, given, cut: part?.length }
    log.warn(
      fields,
      short ? 'the mail server gives less of a part than it says' : 'a part was cut out of the whole message',
    )
  }
  return { better: isBetter ? part : null, short }
}
