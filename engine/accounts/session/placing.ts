/** COPY, MOVE and EXPUNGE of one message: it lies where it was or where it shall, never in both. */
import { AppError, isAppError } from '../../errors.ts'
import type { Placed } from '../session-types.ts'
import type { Argument, Untagged } from './client.ts'
import type { Events } from './events.ts'
import type { Facts } from './facts.ts'
import { readFetch, type FetchItems } from './fetched.ts'
import { survives, type Send } from './line.ts'
import { askStatus, mailboxArgument, orNull, selectIn, type MailboxesDeps } from './mailboxes.ts'
import type { Searcher } from './search.ts'
import { splitSet, toSet } from './sets.ts'
import { decimal, positive, statusText, type StatusText } from './tokens.ts'

export interface PlacingDeps extends MailboxesDeps {
  readonly facts: Facts
  readonly events: Events
  readonly searcher: Searcher
}

const atom = (value: string): Argument => ({ type: 'ATOM', value })
const set = (value: string): Argument => ({ type: 'SEQUENCE', value })
export const nowhere: Placed = { newUid: null, uidValidity: null }

/** [COPYUID validity from to] or [APPENDUID validity uid]; 0 and sets of more than one message say nothing. */
export function placedBy({ code, args }: StatusText): Placed | null {
  const at = code === 'COPYUID' ? 2 : code === 'APPENDUID' ? 1 : -1
  if (at < 0) return null
  return { newUid: positive(args[at]), uidValidity: decimal(args[0]) }
}

/** COPY and MOVE: the reply's code, told untagged by some servers and tagged by others (row 24). */
async function place(
  send: Send,
  { names, events }: PlacingDeps,
  command: string,
  uid: number,
  toPath: string,
): Promise<{ readonly placed: Placed | null; readonly left: boolean }> {
  const placed: (Placed | null)[] = []
  let expunged = 0
  const unlisten = events.onExpunge(() => (expunged += 1))
  const onOk: Untagged = (response) => void placed.push(placedBy(statusText(response)))
  try {
    const reply = await send(command, [set(String(uid)), mailboxArgument(names, toPath)], { OK: onOk })
    const told = placed.find((one) => one !== null) ?? null
    return { placed: placedBy(reply) ?? told, left: expunged > 0 }
  } finally {
    unlisten()
  }
}

/** null when there is no such message: a UID that is gone is no error by RFC 3501, the answer is OK and nothing was copied. */
export async function copyIn(send: Send, deps: PlacingDeps, uid: number, toPath: string): Promise<Placed | null> {
  const { placed } = await place(send, deps, 'UID COPY', uid, toPath)
  return placed ?? ((await deps.searcher.exists(send, uid)) ? nowhere : null)
}

export async function moveIn(send: Send, deps: PlacingDeps, uid: number, toPath: string): Promise<Placed | null> {
  const { facts, searcher } = deps
  if (!facts.offers('MOVE')) return copyAndRemove(send, deps, uid, toPath)
  // Without UIDPLUS an OK may mean that there was nothing to move.
  const was = !facts.offers('UIDPLUS') && (await searcher.exists(send, uid))
  const { placed, left } = await place(send, deps, 'UID MOVE', uid, toPath)
  return placed ?? (left || was ? nowhere : null)
}

async function copyAndRemove(send: Send, deps: PlacingDeps, uid: number, toPath: string): Promise<Placed | null> {
  const { facts } = deps
  const from = facts.selected
  if (from?.readOnly === true)
    throw new AppError('server_refused', `the mail server gives folder ${from.path} for reading only`)
  const next = facts.offers('UIDPLUS') ? null : ((await orNull(askStatus(send, deps, toPath)))?.uidNext ?? null)
  const placed = await copyIn(send, deps, uid, toPath)
  if (placed === null) return null
  try {
    await mark(send, [uid], '+FLAGS.SILENT')
    await expungeIn(send, deps, [uid])
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
  /** As COPYUID said; null = it is what came at or above `next`. */
  readonly copy: number | null
  readonly next: number | null
}

/** The message cannot be removed where it was: its copy is. false = nobody can tell which one that is, or it cannot be removed either. */
async function takeBack(send: Send, deps: PlacingDeps, { uid, toPath, copy, next }: Copied): Promise<boolean> {
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
      await expungeIn(send, deps, [only.uid])
      return true
    })(),
  )
  await selectIn(send, deps, from, true)
  return removed === true
}

/** What a copy has of its original. */
async function fetchKind(send: Send, range: string): Promise<FetchItems[]> {
  const told: FetchItems[] = []
  await send('UID FETCH', [set(range), ['UID', 'RFC822.SIZE', 'INTERNALDATE'].map(atom)], {
    FETCH: (response) => {
      const items = readFetch(response)
      if (items.size !== null) told.push(items)
    },
  })
  return told
}

async function mark(send: Send, uids: readonly number[], operation: string): Promise<void> {
  const pieces = uids.length === 0 ? [] : splitSet(toSet(uids))
  for (const piece of pieces) await send('UID STORE', [set(piece), atom(operation), [atom('\\Deleted')]])
}

/**
 * Without UIDPLUS, EXPUNGE takes everything that is \Deleted: what others have marked is unmarked for that moment. When we
 * die in between it stays unmarked, and nothing is lost.
 */
export async function expungeIn(send: Send, { facts, searcher }: PlacingDeps, uids: readonly number[]): Promise<void> {
  if (facts.offers('UIDPLUS')) {
    for (const piece of splitSet(toSet(uids))) await send('UID EXPUNGE', [set(piece)])
    return
  }
  const wanted = new Set(uids)
  const others = (await searcher.search(send, [atom('DELETED')])).filter((uid) => !wanted.has(uid))
  const restore = (): Promise<void> => mark(send, others, '+FLAGS.SILENT')
  await mark(send, others, '-FLAGS.SILENT')
  await send('EXPUNGE').catch(async (error: unknown) => {
    if (survives(error)) await restore()
    throw error
  })
  await restore()
}
