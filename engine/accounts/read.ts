/**
 * Reading messages for the index. What a server leaves out of a FETCH is asked for again in halves; a UID that exists and still
 * cannot be read is quarantined, so that one poison message never stops a folder (imap-servers.md rows 11 and 13).
 */
import { isAppError } from '../errors.ts'
import type { FetchedMessage, Session } from './session-types.ts'

export interface ReadResult {
  readonly messages: FetchedMessage[]
  /** Exist on the server and cannot be read. */
  readonly poison: number[]
}

/** Reads these UIDs of the selected mailbox; the caller keeps the list to one batch. */
export async function readUids(session: Session, uids: readonly number[]): Promise<ReadResult> {
  const found = new Map<number, FetchedMessage>()
  await readInto(session, uids, found)
  const missing = uids.filter((uid) => !found.has(uid))
  const poison =
    missing.length === 0 ? [] : (await session.searchUids(uidSet(missing))).filter((uid) => missing.includes(uid))
  return { messages: uids.flatMap((uid) => found.get(uid) ?? []), poison }
}

/** Halves the range until what can be read has been read. At most 2·log2(n) extra commands per poison message. */
async function readInto(session: Session, uids: readonly number[], found: Map<number, FetchedMessage>): Promise<void> {
  if (uids.length === 0) return
  await readRange(session, uidSet(uids), found)
  const missing = uids.filter((uid) => !found.has(uid))
  if (missing.length === 0) return
  if (missing.length === 1) {
    if (uids.length > 1) await readRange(session, uidSet(missing), found)
    return
  }
  const middle = Math.ceil(missing.length / 2)
  await readInto(session, missing.slice(0, middle), found)
  await readInto(session, missing.slice(middle), found)
}

/** One FETCH. A refusal (tagged NO) leaves `found` as far as it came. */
export async function readRange(session: Session, range: string, found: Map<number, FetchedMessage>): Promise<void> {
  try {
    for await (const message of session.fetchIndex(range)) found.set(message.uid, message)
  } catch (error) {
    if (!isAppError(error, 'server_refused')) throw error
  }
}

/** '1:3,7,9:12' from numbers in any order. */
export function uidSet(uids: readonly number[]): string {
  const sorted = [...new Set(uids)].sort((a, b) => a - b)
  const ranges: string[] = []
  let start = 0
  for (let index = 1; index <= sorted.length; index += 1) {
    const last = sorted[index - 1]
    if (last === undefined || sorted[index] === last + 1) continue
    const first = sorted[start]
    ranges.push(first === last ? String(last) : `${String(first)}:${last}`)
    start = index
  }
  return ranges.join(',')
}
