/** BODY.PEEK[section]<from.count>: parts of a message, whole or streamed. Never RFC822, which iCloud answers with nothing. */
import { Readable } from 'node:stream'
import { AppError, badParameter } from '../../errors.ts'
import type { Argument } from './client.ts'
import type { Events } from './events.ts'
import type { Facts } from './facts.ts'
import { readFetch } from './fetched.ts'
import type { Line } from './line.ts'

export interface Sections {
  fetchSection(uid: number, section: string, maxBytes: number): Promise<Buffer | null>
  streamSection(uid: number, section: string): Promise<Readable | null>
}

export interface SectionsDeps {
  readonly line: Line
  readonly facts: Facts
  readonly commandTimeoutMs: number
  readonly events: Events
}

/** One command of a stream. Each is short, so that a slow reader never holds the line. */
const chunkBytes = 512 * 1024

const sectionShape = /^(?:\d{1,5}(?:\.\d{1,5})*(?:\.(?:MIME|HEADER|TEXT))?|HEADER|TEXT)?$/

interface Chunk {
  readonly bytes: Buffer
  /** Nothing follows. */
  readonly last: boolean
}

/** What a stream may go on reading from. */
function mailboxKey({ selected }: Facts): string {
  return `${selected?.path ?? ''} ${selected?.uidValidity ?? ''}`
}

interface Wanted {
  readonly uid: number
  readonly section: string
  readonly from: number
  readonly count: number
  /** Another one must not be open by now; null = whichever is. */
  readonly mailbox: string | null
}

function partItem({ section, from, count }: Wanted): Argument {
  const inner: Argument[] = section === '' ? [] : [{ type: 'ATOM', value: section }]
  return { type: 'ATOM', value: 'BODY.PEEK', section: inner, partial: [from, count] }
}

async function readChunk({ line, facts, events }: SectionsDeps, wanted: Wanted): Promise<Chunk | null> {
  const { uid, section, from, count, mailbox } = wanted
  return line.run(async (send) => {
    if (mailbox !== null && mailboxKey(facts) !== mailbox) {
      throw new AppError('account_unavailable', 'the connection turned to another folder before the part was read')
    }
    const answers: { readonly bytes: Buffer | null; readonly partial: boolean }[] = []
    await send(
      'UID FETCH',
      [{ type: 'SEQUENCE', value: String(uid) }, [{ type: 'ATOM', value: 'UID' }, partItem(wanted)]],
      {
        FETCH: (response) => {
          const items = readFetch(response)
          const found = items.sections.get(section)
          if (found && (items.uid === null || items.uid === uid)) answers.push(found)
          else events.flagsTold(items)
        },
      },
    )
    const answer = answers.at(-1)
    return answer === undefined ? null : cut(answer, from, count)
  })
}

/** The next chunk is on its way while the consumer reads this one. */
async function* chunksFrom(deps: SectionsDeps, wanted: Wanted, first: Chunk): AsyncGenerator<Buffer, void, undefined> {
  let current: Chunk | null = first
  let from = 0
  while (current) {
    from += current.bytes.length
    const next: Promise<Chunk | null> = current.last ? Promise.resolve(null) : readChunk(deps, { ...wanted, from })
    next.catch(() => undefined)
    if (current.bytes.length > 0) yield current.bytes
    current = await next
  }
}

export function createSections(deps: SectionsDeps): Sections {
  return {
    async fetchSection(uid, section, maxBytes) {
      check(section)
      const found = await readChunk(deps, { uid, section, from: 0, count: Math.max(1, maxBytes), mailbox: null })
      return found?.bytes ?? null
    },
    async streamSection(uid, section) {
      check(section)
      const wanted = { uid, section, from: 0, count: chunkBytes, mailbox: mailboxKey(deps.facts) }
      const first = await readChunk(deps, wanted)
      return first ? readable(chunksFrom(deps, wanted, first), deps.commandTimeoutMs) : null
    },
  }
}

function check(section: string): void {
  if (!sectionShape.test(section)) throw badParameter('section', 'expected an IMAP section such as 1.2')
}

/** A server may send more than the range (it ignores ranges) or say NIL past the end. */
function cut(
  answer: { readonly bytes: Buffer | null; readonly partial: boolean },
  from: number,
  count: number,
): Chunk | null {
  const { bytes } = answer
  if (bytes === null) return from === 0 ? null : { bytes: Buffer.alloc(0), last: true }
  if (bytes.length > count || (!answer.partial && from > 0)) {
    const part = bytes.subarray(from, from + count)
    return { bytes: part, last: from + part.length >= bytes.length }
  }
  return { bytes, last: bytes.length < count }
}

/** A consumer that takes nothing for the time of the deadline is cut off, so that no reader is waited for without end. */
function readable(chunks: AsyncGenerator<Buffer, void, undefined>, stallMs: number): Readable {
  let timer: NodeJS.Timeout | null = null
  const still = (): void => {
    timer = null
    stream.destroy(new AppError('timeout', 'the part was not read in time'))
  }
  const quiet = (): void => {
    if (timer) clearTimeout(timer)
    timer = null
  }
  const stream = new Readable({
    highWaterMark: chunkBytes,
    read() {
      quiet()
      chunks.next().then(
        ({ done, value }) => {
          if (stream.destroyed) return
          // Full: from here on it is the consumer who is waited for.
          if (!stream.push(done === true ? null : value) && done !== true) timer = setTimeout(still, stallMs)
        },
        (error: unknown) => stream.destroy(error as Error),
      )
    },
    destroy(error, done) {
      quiet()
      void chunks.return().then(
        () => done(error),
        () => done(error),
      )
    },
  })
  return stream
}
