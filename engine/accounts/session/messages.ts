/**
 * SEARCH, STORE, APPEND; COPY, MOVE and EXPUNGE of one message. A moved message is in one of the two folders, never in
 * both.
 */
import { AppError, badParameter, isAppError } from '../../errors.ts'
import type { FlagChange, FlagsOf, Placed } from '../session-types.ts'
import type { Literal } from '../../spool.ts'
import { atom, literalSize, uidSet, type Argument, type Untagged } from './below.ts'
import {
  formatInternalDate,
  readFetch,
  type FetchItems,
  decimal,
  positive,
  statusText,
  type StatusText,
} from './responses.ts'
import { fetches } from './frames.ts'
import { orNull, survives, tellsGone, type Send } from './line.ts'
import { askStatus, mailboxArgument, selectIn } from './mailboxes.ts'
import { countOf, inSet, joined, splitSet, toSet } from './uids.ts'
import type { Parts } from './parts.ts'

/** The message's flags in the answer; null = none. Some servers leave the UID out of the answer to STORE. */
async function askFlags(
  send: Send,
  { facts }: Parts,
  command: 'UID STORE' | 'UID FETCH',
  uid: number,
  args: readonly Argument[],
): Promise<FetchItems | null> {
  let reported: FetchItems | null = null
  const onFetch: Untagged = (response) => {
    const items = readFetch(response)
    const isIt = items.uid === uid || (items.uid === null && command === 'UID STORE')
    if (isIt && items.flags !== null) reported = items
    else facts.flagsReported(items)
  }
  await send(command, [uidSet(String(uid)), ...args], { FETCH: onFetch }, fetches)
  return reported
}

async function storeIn(send: Send, deps: Parts, uid: number, { add, remove }: FlagChange): Promise<FetchItems | null> {
  const store = (operation: string, flags: readonly string[]): Promise<FetchItems | null> =>
    askFlags(send, deps, 'UID STORE', uid, [atom(operation), flags.map(atom)])
  let reported: FetchItems | null = null
  if (add.length > 0) reported = await store('+FLAGS', add)
  if (remove.length > 0) reported = await store('-FLAGS', remove)
  const items = deps.facts.modseqs ? ['UID', 'FLAGS', 'MODSEQ'] : ['UID', 'FLAGS']
  return reported ?? askFlags(send, deps, 'UID FETCH', uid, [items.map(atom)])
}

function bodyQuery(wanted: string): readonly Argument[] {
  if (/\p{Cc}/u.test(wanted)) throw badParameter('body_search_string', 'must not contain control characters')
  if (/^[\x20-\x7e]*$/.test(wanted)) return [atom('BODY'), { type: 'STRING', value: wanted }]
  return [atom('CHARSET'), atom('UTF-8'), atom('BODY'), { type: 'LITERAL', value: Buffer.from(wanted) }]
}

function likeQuery(size: number, emailMessageId: string | null): readonly Argument[] {
  const sized = [atom('LARGER'), atom(String(Math.max(0, size - 1))), atom('SMALLER'), atom(String(size + 1))]
  if (emailMessageId === null || !/^[\x20-\x7e]+$/.test(emailMessageId)) return sized
  return [...sized, atom('HEADER'), atom('Message-ID'), { type: 'STRING', value: emailMessageId }]
}

async function searchRange(send: Send, { facts, searcher }: Parts, range: string): Promise<number[]> {
  let found: number[] = []
  for (const piece of splitSet(range)) {
    const most = countOf(piece, facts.selected?.uidNext ?? null)
    const listed = await searcher.search(send, [atom('UID'), uidSet(piece)], most)
    found = await joined(found, listed, inSet(piece))
  }
  return found
}

export function createMessages(deps: Parts) {
  const { line, facts, names, searcher } = deps
  return {
    searchUids: (range: string): Promise<number[]> => line.run((send) => searchRange(send, deps, range)),
    async searchBody(wanted: string): Promise<number[]> {
      const query = bodyQuery(wanted)
      return line.run((send) => searcher.search(send, query))
    },
    async store(uid: number, change: FlagChange): Promise<Omit<FlagsOf, 'uid'> | null> {
      const reported = await line.run((send) => storeIn(send, deps, uid, change))
      return reported?.flags ? { flags: reported.flags, modseq: reported.modseq } : null
    },
    /** The message's new place; null when there is no such UID. */
    move: (uid: number, toPath: string): Promise<Placed | null> => line.run((send) => moveIn(send, deps, uid, toPath)),
    copy: (uid: number, toPath: string): Promise<Placed | null> =>
      line.run((send) => place(send, deps, 'UID COPY', uid, toPath)),
    /** UIDs of messages with exactly this size, and with this Message-ID unless it is null. */
    searchLike: (size: number, emailMessageId: string | null): Promise<number[]> =>
      line.run((send) => searcher.search(send, likeQuery(size, emailMessageId))),
    async append(path: string, message: Literal, flags: readonly string[], internalDate: number): Promise<Placed> {
      const date: Argument = { type: 'STRING', value: formatInternalDate(internalDate) }
      const size = literalSize(message, facts.offers('BINARY') && message.hasNul)
      const args = [mailboxArgument(names, path), flags.map(atom), date, size]
      return placedBy(await line.run((send) => send('APPEND', args, {}, {}, message))) ?? nowhere
    },
    /** null = all messages that are \Deleted. */
    expunge: (uid: number | null): Promise<void> =>
      line.run(async (send) => {
        if (uid === null) await send('EXPUNGE')
        else await expungeIn(send, deps, uid)
      }),
  }
}

const nowhere: Placed = { newUid: null, uidValidity: null }

/** [COPYUID validity from to] or [APPENDUID validity uid]. UID 0 and a set of several UIDs mean an unknown UID. */
function placedBy({ code, args }: StatusText): Placed | null {
  const at = code === 'COPYUID' ? 2 : code === 'APPENDUID' ? 1 : -1
  if (at < 0) return null
  return { newUid: positive(args[at]), uidValidity: decimal(args[0]) }
}

/**
 * COPY and MOVE. Some servers send COPYUID untagged, others tagged. null = no such message, which by RFC 3501 is no
 * error: an OK without COPYUID does not tell, and EXPUNGE responses may be about another message.
 */
async function place(
  send: Send,
  deps: Parts,
  command: 'UID COPY' | 'UID MOVE',
  uid: number,
  toPath: string,
): Promise<Placed | null> {
  const { names, facts } = deps
  const kind = `${command} ${toPath}`
  const isTold = facts.toldPlaces.has(kind)
  if (!isTold && !(await isThere(send, deps, uid))) return null
  const reported: (Placed | null)[] = []
  const onOk: Untagged = (response) => void reported.push(placedBy(statusText(response)))
  const args = [uidSet(String(uid)), mailboxArgument(names, toPath)]
  const reply = await send(command, args, { OK: onOk }).catch((error: unknown) => {
    if (isAppError(error) && tellsGone(error.details['responseCode'])) return null
    throw error
  })
  if (reply === null) return null
  const placed = placedBy(reply) ?? reported.find((one) => one !== null) ?? null
  if (placed === null) facts.toldPlaces.delete(kind)
  else facts.toldPlaces.add(kind)
  // Dovecot answers OK with EXPUNGEISSUED for a message that has gone.
  return placed ?? (isTold || tellsGone(reply.code) ? null : nowhere)
}

/** NOOP first: until then the server shows the open folder without the latest changes. */
async function isThere(send: Send, { searcher }: Parts, uid: number): Promise<boolean> {
  await send('NOOP')
  return searcher.exists(send, uid)
}

async function moveIn(send: Send, deps: Parts, uid: number, toPath: string): Promise<Placed | null> {
  const { facts } = deps
  if (!facts.offers('MOVE') || facts.refused('move')) return copyAndRemove(send, deps, uid, toPath)
  return place(send, deps, 'UID MOVE', uid, toPath).catch(async (error: unknown) => {
    if (!isUnsupported(error)) throw error
    const placed = await copyAndRemove(send, deps, uid, toPath)
    facts.refuse('move')
    return placed
  })
}

const unsupportedTexts =
  /unsupported|not (?:supported|implemented)|(?:unknown|unrecogni[sz]ed|invalid|no such) command/i

/** After any other NO a COPY might succeed where a move is forbidden, and leave a copy behind. */
function isUnsupported(error: unknown): boolean {
  if (!isAppError(error, 'server_refused')) return false
  const { status, responseCode, response } = error.details
  return status === 'BAD' || responseCode === 'CANNOT' || unsupportedTexts.test(String(response))
}

async function copyAndRemove(send: Send, deps: Parts, uid: number, toPath: string): Promise<Placed | null> {
  const { facts } = deps
  const from = facts.selected
  if (from?.readOnly === true)
    throw new AppError('server_refused', `the mail server gives folder ${from.path} for reading only`)
  const next = facts.offers('UIDPLUS') ? null : ((await orNull(askStatus(send, deps, toPath)))?.uidNext ?? null)
  const placed = await place(send, deps, 'UID COPY', uid, toPath)
  if (placed === null) return null
  try {
    await mark(send, [uid], '+FLAGS.SILENT')
    await expungeIn(send, deps, uid)
    return placed
  } catch (error) {
    if (!isAppError(error, 'server_refused')) throw error
    const back = await takeBack(send, deps, { uid, toPath, copy: placed.newUid, next })
    if (back) throw error
    const { code, message, details } = error
    throw new AppError(code, `${message}; a copy of the message stays in ${toPath}`, { cause: error, details })
  }
}

interface Copied {
  readonly uid: number
  readonly toPath: string
  /** UID of the copy by COPYUID; null = the copy's UID is `next` or larger. */
  readonly copy: number | null
  readonly next: number | null
}

/** Removes the copy of a message that cannot be removed. false = the copy is not found, or cannot be removed either. */
async function takeBack(send: Send, deps: Parts, { uid, toPath, copy, next }: Copied): Promise<boolean> {
  const from = deps.facts.selected?.path
  const range = copy ?? (next === null ? null : `${next}:*`)
  if (from === undefined || range === null) return false
  await orNull(mark(send, [uid], '-FLAGS.SILENT'))
  const wanted = (await fetchKind(send, String(uid))).find((items) => items.uid === uid)
  const removed = await orNull(
    (async () => {
      await selectIn(send, deps, toPath, true)
      const found = (await fetchKind(send, String(range))).filter((items) => (items.uid ?? 0) >= (copy ?? next ?? 0))
      const [only] = found
      const isIt = only?.size === wanted?.size && only?.internalDate === wanted?.internalDate
      if (found.length !== 1 || only?.uid == null || !isIt) return false
      await mark(send, [only.uid], '+FLAGS.SILENT')
      await expungeIn(send, deps, only.uid)
      return true
    })(),
  )
  await selectIn(send, deps, from, true)
  return removed === true
}

async function fetchKind(send: Send, range: string): Promise<FetchItems[]> {
  const reported: FetchItems[] = []
  await send('UID FETCH', [uidSet(range), ['UID', 'RFC822.SIZE', 'INTERNALDATE'].map(atom)], {
    FETCH: (response) => {
      const items = readFetch(response)
      if (items.size !== null) reported.push(items)
    },
  })
  return reported
}

async function mark(send: Send, uids: readonly number[], operation: string): Promise<void> {
  const pieces = uids.length === 0 ? [] : splitSet(toSet(uids))
  for (const piece of pieces) await send('UID STORE', [uidSet(piece), atom(operation), [atom('\\Deleted')]])
}

/**
 * Without UIDPLUS, EXPUNGE removes all messages that are \Deleted: those of others are unmarked for that moment. If we
 * die in between, they stay unmarked, and nothing is lost.
 */
async function expungeIn(send: Send, { facts, searcher }: Parts, uid: number): Promise<void> {
  if (facts.offers('UIDPLUS')) {
    await send('UID EXPUNGE', [uidSet(String(uid))])
    return
  }
  const others = (await searcher.search(send, [atom('DELETED')])).filter((other) => other !== uid)
  const restore = (): Promise<void> => mark(send, others, '+FLAGS.SILENT')
  await mark(send, others, '-FLAGS.SILENT')
  await send('EXPUNGE').catch(async (error: unknown) => {
    if (survives(error)) await restore()
    throw error
  })
  await restore()
}
