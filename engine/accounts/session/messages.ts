/** SEARCH, STORE, APPEND, and what placing.ts does. */
import { badParameter } from '../../errors.ts'
import type { Placed } from '../session-types.ts'
import type { Argument, Untagged } from './client.ts'
import type { Events } from './events.ts'
import type { Facts } from './facts.ts'
import { formatInternalDate, readFetch, type FetchItems } from './fetched.ts'
import { fetches } from './frames.ts'
import type { Line, Send } from './line.ts'
import { mailboxArgument } from './mailboxes.ts'
import type { Names } from './names.ts'
import { copyIn, expungeIn, moveIn, nowhere, placedBy } from './placing.ts'
import { createSearcher, type Searcher } from './search.ts'
import { countOf, inSet, splitSet } from './sets.ts'

export interface FlagChange {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

export interface Messages {
  searchUids(range: string): Promise<number[]>
  searchBody(text: string): Promise<number[]>
  store(
    uid: number,
    change: FlagChange,
  ): Promise<{ readonly flags: readonly string[]; readonly modseq: string | null } | null>
  move(uid: number, toPath: string): Promise<Placed | null>
  copy(uid: number, toPath: string): Promise<Placed | null>
  append(path: string, raw: Buffer, flags: readonly string[], internalDate: number): Promise<Placed>
  expunge(uids: readonly number[] | null): Promise<void>
}

export interface MessagesDeps {
  readonly line: Line
  readonly facts: Facts
  readonly names: Names
  readonly events: Events
}

const atom = (value: string): Argument => ({ type: 'ATOM', value })
const set = (value: string): Argument => ({ type: 'SEQUENCE', value })
/** Flags as the server tells them for this UID, or null. */
async function storeFlags(
  send: Send,
  uid: number,
  operation: string,
  flags: readonly string[],
): Promise<FetchItems | null> {
  let told: FetchItems | null = null
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    if ((items.uid === null || items.uid === uid) && items.flags !== null) told = items
  }
  await send('UID STORE', [set(String(uid)), atom(operation), flags.map(atom)], { FETCH: onFetch }, fetches)
  return told
}

async function readFlags(send: Send, { facts, events }: MessagesDeps, uid: number): Promise<FetchItems | null> {
  let told: FetchItems | null = null
  const items = facts.modseqs ? ['UID', 'FLAGS', 'MODSEQ'] : ['UID', 'FLAGS']
  const onFetch: Untagged = (response) => {
    const found = readFetch(response)
    if (found.uid === uid && found.flags !== null) told = found
    else events.flagsTold(found)
  }
  await send('UID FETCH', [set(String(uid)), items.map(atom)], { FETCH: onFetch }, fetches)
  return told
}

async function storeIn(send: Send, deps: MessagesDeps, uid: number, change: FlagChange): Promise<FetchItems | null> {
  let told: FetchItems | null = null
  if (change.add.length > 0) told = await storeFlags(send, uid, '+FLAGS', change.add)
  if (change.remove.length > 0) told = await storeFlags(send, uid, '-FLAGS', change.remove)
  return told ?? (await readFlags(send, deps, uid))
}

function bodyQuery(wanted: string): readonly Argument[] {
  if (/\p{Cc}/u.test(wanted)) throw badParameter('body_search_string', 'must not contain control characters')
  if (/^[\x20-\x7e]*$/.test(wanted)) return [atom('BODY'), { type: 'STRING', value: wanted }]
  return [atom('CHARSET'), atom('UTF-8'), atom('BODY'), { type: 'LITERAL', value: Buffer.from(wanted) }]
}

async function searchRange(
  send: Send,
  { facts }: MessagesDeps,
  { search }: Searcher,
  range: string,
): Promise<number[]> {
  const found = new Set<number>()
  for (const piece of splitSet(range)) {
    const within = inSet(piece)
    const most = countOf(piece, facts.selected?.uidNext ?? null)
    for (const uid of await search(send, [atom('UID'), set(piece)], most)) if (within(uid)) found.add(uid)
  }
  return [...found].sort((a, b) => a - b)
}

export function createMessages(deps: MessagesDeps): Messages {
  const { line, facts, names } = deps
  const searcher = createSearcher(deps)
  const placing = { ...deps, searcher }
  return {
    searchUids: (range) => line.run((send) => searchRange(send, deps, searcher, range)),
    async searchBody(wanted) {
      const query = bodyQuery(wanted)
      return line.run((send) => searcher.search(send, query))
    },
    async store(uid, change) {
      const told = await line.run((send) => storeIn(send, deps, uid, change))
      return told?.flags ? { flags: told.flags, modseq: told.modseq } : null
    },
    move: (uid, toPath) => line.run((send) => moveIn(send, placing, uid, toPath)),
    copy: (uid, toPath) => line.run((send) => copyIn(send, placing, uid, toPath)),
    async append(path, raw, flags, internalDate) {
      const message: Argument = { type: 'LITERAL', value: raw, isLiteral8: facts.offers('BINARY') && raw.includes(0) }
      const date: Argument = { type: 'STRING', value: formatInternalDate(internalDate) }
      const args = [mailboxArgument(names, path), flags.map(atom), date, message]
      return placedBy(await line.run((send) => send('APPEND', args))) ?? nowhere
    },
    expunge: (uids) =>
      line.run(async (send) => {
        if (uids === null) await send('EXPUNGE')
        else if (uids.length > 0) await expungeIn(send, placing, uids)
      }),
  }
}
