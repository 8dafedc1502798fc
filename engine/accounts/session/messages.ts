/** SEARCH, STORE, MOVE, COPY, APPEND, EXPUNGE. */
import { badParameter } from '../../errors.ts'
import type { Placed } from '../session-types.ts'
import type { Argument, Untagged } from './client.ts'
import type { Events } from './events.ts'
import type { Facts } from './facts.ts'
import { formatInternalDate, readFetch, type FetchItems } from './fetched.ts'
import type { Line, Reply, Send } from './line.ts'
import { mailboxArgument } from './mailboxes.ts'
import type { Names } from './names.ts'
import { inSet, splitSet, toSet } from './sets.ts'
import { decimal, positive, statusText, type StatusText } from './tokens.ts'

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
const nowhere: Placed = { newUid: null, uidValidity: null }

/** [COPYUID validity from to] or [APPENDUID validity uid]; 0 and sets of more than one message say nothing. */
function placedBy({ code, args }: StatusText): Placed | null {
  const at = code === 'COPYUID' ? 2 : code === 'APPENDUID' ? 1 : -1
  if (at < 0) return null
  return { newUid: positive(args[at]), uidValidity: decimal(args[0]) }
}

async function search(send: Send, args: readonly Argument[]): Promise<number[]> {
  const found = new Set<number>()
  await send('UID SEARCH', args, {
    SEARCH: ({ attributes = [] }) => {
      for (const token of attributes) {
        const uid = positive(token)
        if (uid !== null) found.add(uid)
      }
    },
  })
  return [...found].sort((a, b) => a - b)
}

/** Flags as the server tells them for this UID, or null. */
async function storeFlags(
  send: Send,
  uid: number,
  operation: string,
  flags: readonly string[],
): Promise<FetchItems | null> {
  const told: FetchItems[] = []
  await send('UID STORE', [set(String(uid)), atom(operation), flags.map(atom)], {
    FETCH: (response) => {
      const items = readFetch(response)
      if ((items.uid === null || items.uid === uid) && items.flags !== null) told.push(items)
    },
  })
  return told.at(-1) ?? null
}

async function readFlags(send: Send, { facts, events }: MessagesDeps, uid: number): Promise<FetchItems | null> {
  const told: FetchItems[] = []
  const items = facts.modseqs ? ['UID', 'FLAGS', 'MODSEQ'] : ['UID', 'FLAGS']
  await send('UID FETCH', [set(String(uid)), items.map(atom)], {
    FETCH: (response) => {
      const found = readFetch(response)
      if (found.uid === uid && found.flags !== null) told.push(found)
      else events.flagsTold(found)
    },
  })
  return told.at(-1) ?? null
}

async function exists(send: Send, uid: number): Promise<boolean> {
  return (await search(send, [atom('UID'), set(String(uid))])).includes(uid)
}

/** COPY and MOVE: the reply's code, told untagged by some servers and tagged by others (row 24). */
async function place(
  send: Send,
  { names, events }: MessagesDeps,
  command: string,
  uid: number,
  toPath: string,
): Promise<{ readonly placed: Placed | null; readonly left: boolean }> {
  const placed: (Placed | null)[] = []
  let expunged = 0
  const unlisten = events.onExpunge(() => (expunged += 1))
  const onOk: Untagged = (response) => void placed.push(placedBy(statusText(response)))
  try {
    const reply: Reply = await send(command, [set(String(uid)), mailboxArgument(names, toPath)], { OK: onOk })
    const told = placed.find((one) => one !== null) ?? null
    return { placed: placedBy(reply) ?? told, left: expunged > 0 }
  } finally {
    unlisten()
  }
}

/** null when there is no such message: a UID that is gone is no error by RFC 3501, the answer is OK and nothing was copied. */
async function copyIn(send: Send, deps: MessagesDeps, uid: number, toPath: string): Promise<Placed | null> {
  const { placed } = await place(send, deps, 'UID COPY', uid, toPath)
  return placed ?? ((await exists(send, uid)) ? nowhere : null)
}

async function moveIn(send: Send, deps: MessagesDeps, uid: number, toPath: string): Promise<Placed | null> {
  if (deps.facts.offers('MOVE')) {
    const { placed, left } = await place(send, deps, 'UID MOVE', uid, toPath)
    return placed ?? (left ? nowhere : null)
  }
  const placed = await copyIn(send, deps, uid, toPath)
  if (placed === null) return null
  await storeFlags(send, uid, '+FLAGS.SILENT', ['\\Deleted'])
  await expungeIn(send, deps, [uid])
  return placed
}

/**
 * Without UIDPLUS, EXPUNGE takes everything that is \Deleted: what others have marked is unmarked for that moment. When we
 * die in between it stays unmarked, and nothing is lost.
 */
async function expungeIn(send: Send, { facts }: MessagesDeps, uids: readonly number[]): Promise<void> {
  if (facts.offers('UIDPLUS')) {
    for (const piece of splitSet(toSet(uids))) await send('UID EXPUNGE', [set(piece)])
    return
  }
  const wanted = new Set(uids)
  const others = (await search(send, [atom('DELETED')])).filter((uid) => !wanted.has(uid))
  const pieces = others.length === 0 ? [] : splitSet(toSet(others))
  const mark = async (operation: string): Promise<void> => {
    for (const piece of pieces) await send('UID STORE', [set(piece), atom(operation), [atom('\\Deleted')]])
  }
  await mark('-FLAGS.SILENT')
  await send('EXPUNGE')
  await mark('+FLAGS.SILENT')
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

async function searchRange(send: Send, range: string): Promise<number[]> {
  const found = new Set<number>()
  for (const piece of splitSet(range)) {
    const within = inSet(piece)
    for (const uid of await search(send, [atom('UID'), set(piece)])) if (within(uid)) found.add(uid)
  }
  return [...found].sort((a, b) => a - b)
}

export function createMessages(deps: MessagesDeps): Messages {
  const { line, facts, names } = deps
  return {
    searchUids: (range) => line.run((send) => searchRange(send, range)),
    async searchBody(wanted) {
      const query = bodyQuery(wanted)
      return line.run((send) => search(send, query))
    },
    async store(uid, change) {
      const told = await line.run((send) => storeIn(send, deps, uid, change))
      return told?.flags ? { flags: told.flags, modseq: told.modseq } : null
    },
    move: (uid, toPath) => line.run((send) => moveIn(send, deps, uid, toPath)),
    copy: (uid, toPath) => line.run((send) => copyIn(send, deps, uid, toPath)),
    async append(path, raw, flags, internalDate) {
      const message: Argument = { type: 'LITERAL', value: raw, isLiteral8: facts.offers('BINARY') && raw.includes(0) }
      const date: Argument = { type: 'STRING', value: formatInternalDate(internalDate) }
      const args = [mailboxArgument(names, path), flags.map(atom), date, message]
      return placedBy(await line.run((send) => send('APPEND', args))) ?? nowhere
    },
    expunge: (uids) =>
      line.run(async (send) => {
        if (uids === null) await send('EXPUNGE')
        else if (uids.length > 0) await expungeIn(send, deps, uids)
      }),
  }
}
