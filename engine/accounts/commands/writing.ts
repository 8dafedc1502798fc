/**
 * Commands that write on the server: flags, removals, APPEND, MOVE and COPY. Nothing of a command is stored: it acts,
 * leaves hints (hints.ts), and waits until the folders that it touched have been read. Its changes are reported like
 * those of any other mail program, also after a crash.
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
} from './message-location.ts'
import { flagsAt } from './reading.ts'
import { hasBytes, type Known, mustStay } from './removal-checks.ts'

export function writeCommands(deps: CommandDeps) {
  return {
    /** Returns the new flags. */
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
     * Removes the message from these folders; `conflict` when it stays in no other folder. null = from all folders, but
     * from views of all mail only when it lies in no other folder. With `known` only from the places of that time.
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
    /** Returns the id of the message; null when the server reports no UID (UIDPLUS), or the index lacks it yet. */
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
     * Moves every placement in the folder of `at`; null = in the message's first folder: INBOX, else one that is no
     * view of all mail. Does nothing when the message lies only in the target.
     */
    move: (message: MessageRecord, at: Placement | null, to: FolderRecord): Promise<void> =>
      writing(deps, message.accountId, (context) => move(context, message, at, to)),
    /** Does nothing when the message lies in the target without \Deleted. */
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

/** Precondition: the folder has a cursor, so an appended message counts as new mail. */
export async function appendTo(context: WriteContext, to: FolderRecord, request: AppendRequest): Promise<Placed> {
  const { literal, flags, internalDate } = request
  context.touch(to.path)
  return context.session.append(to.path, literal, flags, internalDate).catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? notFound('folder', to.path, error) : error
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
    // A server may answer OK to a user without the right to delete, and not set the flag.
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

/** Moves every placement in the folder, also of mail that came twice; when all have left it, those of the next one. */
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

/** The placements to move; none when the message is in the target already, as after a repeated move. */
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

/** INBOX, else the first folder that is no view of all mail. */
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
    throw isAppError(error, 'not_found') ? notFound('folder', to.path, error) : error
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
