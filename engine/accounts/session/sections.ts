/** BODY.PEEK[section]<from.count>: parts of a message, whole or piece by piece. Never RFC822, which iCloud answers with nothing. */
import { badParameter } from '../../errors.ts'
import type { Argument } from './client.ts'
import type { Events } from './events.ts'
import { readFetch } from './fetched.ts'
import type { Line } from './line.ts'
import type { Chunk } from '../session-types.ts'

export interface Sections {
  fetchSection(uid: number, section: string, maxBytes: number): Promise<Buffer | null>
  fetchChunk(uid: number, section: string, from: number, count: number): Promise<Chunk | null>
}

export interface SectionsDeps {
  readonly line: Line
  readonly events: Events
}

const sectionShape = /^(?:\d{1,5}(?:\.\d{1,5})*(?:\.(?:MIME|HEADER|TEXT))?|HEADER|TEXT)?$/

interface Wanted {
  readonly uid: number
  readonly section: string
  readonly from: number
  readonly count: number
}

function partItem({ section, from, count }: Wanted): Argument {
  const inner: Argument[] = section === '' ? [] : [{ type: 'ATOM', value: section }]
  return { type: 'ATOM', value: 'BODY.PEEK', section: inner, partial: [from, count] }
}

async function readChunk({ line, events }: SectionsDeps, wanted: Wanted): Promise<Chunk | null> {
  const { uid, section, from, count } = wanted
  if (!sectionShape.test(section)) throw badParameter('section', 'expected an IMAP section such as 1.2')
  return line.run(async (send) => {
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

export function createSections(deps: SectionsDeps): Sections {
  return {
    async fetchSection(uid, section, maxBytes) {
      const found = await readChunk(deps, { uid, section, from: 0, count: Math.max(1, maxBytes) })
      return found?.bytes ?? null
    },
    fetchChunk: (uid, section, from, count) => readChunk(deps, { uid, section, from, count }),
  }
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
