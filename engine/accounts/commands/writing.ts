/**
 * Writing on the server: flags, removals, APPEND, MOVE and COPY. Nothing of a command is stored: it acts, leaves hints
 * (hints.ts), and waits until the folders that it touched have been read. So the change is reported like any other, and
 * what was cut short in between is found like the change of another mail program.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import { isMarked, liesAt } from '../../store/rows.ts'
import type { AccountState } from '../state.ts'
import { normalFlags } from '../plan.ts'
import type { Upload } from '../../spool.ts'
import type { FlagChange, Placed } from '../session-types.ts'
import type { SyncContext } from '../write.ts'
import {
  type CommandDeps,
  currentMessage,
  currentPlace,
  inPlace,
  isShown,
  knownThere,
  notThere,
  openFirst,
  type WriteContext,
  writing,
} from './placed.ts'
import { flagsAt } from './reading.ts'
import { hasBytes, type Known, mustStay } from './staying.ts'

export function writeCommands(deps: CommandDeps) {
  return {
    /** Answers the flags now. */
    setFlags: (message: MessageRecord, at: Placement, change: FlagChange): Promise<string[]> =>
      writing(deps, message.accountId, async (context) => {
        const place = await currentPlace(context, await currentMessage(deps.sync.store, message), at)
        context.touch(place.path, [place.uid])
        const store = () => inPlace(context, place, () => context.session.store(place.uid, change))
        const isTwoCommands = change.add.length > 0 && change.remove.length > 0
        const stored = await (isTwoCommands ? context.state.flagsTurn(store) : store())
        if (stored === null) throw notFound('message', message.id)
        return normalFlags(stored.flags)
      }),
    /**
     * Out of these folders, when it stays in another one (else `conflict`); null = out of all, but out of views of all
     * mail only when it lies in no other folder. With `known` only where it lay then.
     */
    remove: (message: MessageRecord, from: readonly string[] | null, known: Known | null = null): Promise<void> =>
      writing(deps, message.accountId, async (context) => {
        const now = await currentMessage(deps.sync.store, message)
        const all = await placesOf(context, now, from)
        if (from !== null && all.length > 0) await mustStay(context, now, all)
        const places = all.filter((place) => known?.places.some((then) => liesAt(place, then)) ?? true)
        let removed = 0
        let refused: AppError | null = null
        for (const place of places) {
          try {
            if ((await hasBytes(context, place, known)) && (await removeAt(context, message.id, place))) removed += 1
          } catch (error) {
            if (!isAppError(error, 'server_refused')) throw error
            refused ??= error
          }
        }
        if (refused !== null) throw refused
        if (removed === 0 && (from === null || places.length === 0)) throw notFound('message', message.id)
      }),
    /** Answers the id of the message; null when the server does not say where it lies, or the index lacks it yet. */
    async append(to: FolderRecord, request: AppendRequest): Promise<string | null> {
      const act = async (context: WriteContext): Promise<Placed> => {
        await openFirst(context.state, to.path)
        return appendTo(context, to, request)
      }
      const { newUid, uidValidity } = await writing(deps, to.accountId, act, request.literal)
      if (newUid === null || uidValidity === null) return null
      const known = await knownThere(deps.sync.store, { folderId: to.id, uidValidity, uid: newUid })
      return known?.messageId ?? null
    },
    /**
     * Every place that the message has in the folder of `at` (null = the first of its folders: INBOX, else one that is
     * no view of all mail). Done already when it lies only there where it shall.
     */
    move: (message: MessageRecord, at: Placement | null, to: FolderRecord): Promise<void> =>
      writing(deps, message.accountId, (context) => move(context, message, at, to)),
    /** Done already when it lies there, and not as \Deleted. */
    copy: (message: MessageRecord, at: Placement, to: FolderRecord): Promise<void> =>
      writing(deps, message.accountId, async (context) => {
        const now = await currentMessage(deps.sync.store, message)
        if (now.placements.some((place) => place.folderId === to.id && !isMarked(place))) return
        const given: Transfer = { kind: 'copy', message: now, at: await currentPlace(context, now, at), to }
        if (!(await transfer(context, given))) throw notFound('message', message.id)
      }),
  }
}

export interface AppendRequest {
  readonly literal: Upload
  readonly flags: readonly string[]
  readonly internalDate: number
}

/** Precondition: the folder has been opened before, so that the message counts as new mail. */
export async function appendTo(context: WriteContext, to: FolderRecord, request: AppendRequest): Promise<Placed> {
  const { literal, flags, internalDate } = request
  context.touch(to.path)
  return context.session.append(to.path, literal, flags, internalDate).catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
}

/** false when the server does not have the message there any more. */
function removeAt(context: WriteContext, messageId: string, place: Placement): Promise<boolean> {
  const { state, session } = context
  context.touch(place.path, [place.uid])
  return state.flagsTurn(async () => {
    const change = { add: ['\\Deleted'], remove: [] }
    const stored = await inPlace(context, place, () => session.store(place.uid, change))
    if (stored === null) return false
    // A server may answer OK to who has no right to remove: then the mark is not there.
    const now = isMarked(stored) ? stored : await flagsAt(session, place.uid)
    if (now !== null && !isMarked(now))
      throw new AppError('server_refused', `the mail server lets no mail be removed from folder ${place.path}`)
    await session.expunge(place.uid)
    state.hints.departures.add(place, { messageId, to: null, mark: state.moved.mark() })
    return true
  })
}

async function placesOf(
  context: SyncContext,
  message: MessageRecord,
  from: readonly string[] | null,
): Promise<readonly Placement[]> {
  const { placements } = message
  if (placements.length === 0) throw await notThere(context, message)
  if (from !== null) return placements.filter(({ folderId }) => from.includes(folderId))
  const real = placements.filter((place) => !isShown(context.state, place))
  return real.length === 0 ? placements : real
}

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

/** Every place in the folder: a mail that came twice leaves no twin behind. Where it has left them, the next folder. */
async function move(
  context: WriteContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<void> {
  const { store } = context.deps
  const left: Placement[] = []
  let moved = false
  let now = await currentMessage(store, message)
  while (!moved) {
    const placements = now.placements.filter((place) => !left.some((one) => liesAt(one, place)))
    const places = await placesToLeave(context, { ...now, placements }, at, to)
    if (places.length === 0) return
    for (const place of places) {
      if (await transfer(context, { kind: 'move', message: now, at: place, to })) moved = true
      else left.push(place)
      now = await currentMessage(store, message)
    }
  }
}

/** What has to leave; nothing when the message lies there already, as after a move that was asked for twice. */
async function placesToLeave(
  context: SyncContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<Placement[]> {
  const isThere = message.placements.some((place) => place.folderId === to.id)
  if (at === null && isThere) return []
  const from = at?.folderId ?? firstFolder(context.state, message)
  const places = message.placements.filter((place) => place.folderId === from)
  if (places.length === 0 && !isThere) throw await notThere(context, message, from)
  return places
}

/** INBOX, else the first that is no view of others. */
function firstFolder(state: AccountState, { placements }: MessageRecord): string | undefined {
  const rank = (place: Placement): number => (place.path === 'INBOX' ? 0 : isShown(state, place) ? 2 : 1)
  return placements.toSorted((one, other) => rank(one) - rank(other))[0]?.folderId
}

/** false when the server does not have the message there any more. */
async function transfer(context: WriteContext, { kind, message, at, to }: Transfer): Promise<boolean> {
  const { state, session } = context
  await openFirst(context.state, to.path)
  context.touch(to.path)
  const act = () => inPlace(context, at, () => session[kind](at.uid, to.path))
  if (kind === 'move') context.touch(at.path, [at.uid])
  const placed = await (kind === 'move' ? state.flagsTurn(act) : act()).catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  if (placed === null) return false
  const { newUid } = placed
  const uidValidity = placed.uidValidity ?? state.folders.get(to.id)?.cursor?.uidValidity
  const hint = { messageId: message.id, to: to.id, mark: state.moved.mark() }
  if (newUid !== null && uidValidity !== undefined)
    state.hints.arrivals.add({ folderId: to.id, uidValidity, uid: newUid }, hint)
  if (kind === 'move') state.hints.departures.add(at, hint)
  return true
}

function folderGone(to: FolderRecord, cause: AppError): AppError {
  const { code, message, details } = notFound('folder', to.path)
  return new AppError(code, message, { details, cause })
}
