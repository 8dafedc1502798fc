/** MOVE and COPY within an account: the index says the same as the server when they answer, and nobody is told. */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import type { Session } from '../session-types.ts'
import type { AccountState } from '../state.ts'
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { currentMessage, currentPlace, inPlace, notThere } from './placed.ts'

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

export function transferCommands(deps: CommandDeps): Pick<AccountCommands, 'move' | 'copy'> {
  return {
    move: (accountId, message, at, to) => move(deps, accountId, message, at, to),
    async copy(accountId, message, at, to) {
      const { link, state } = await deps.live(accountId)
      await link.run('api', async (session) => {
        const now = await currentMessage(deps.sync.store, message)
        const given: Transfer = { kind: 'copy', message: now, at: currentPlace(state, now, at), to }
        if (!(await transfer(deps, state, session, given))) throw notFound('message', message.id)
      })
    },
  }
}

/** Every place in the folder: a mail that came twice leaves no twin behind. */
async function move(
  deps: CommandDeps,
  accountId: string,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<void> {
  const { link, state } = await deps.live(accountId)
  await link.run('api', async (session) => {
    const now = await currentMessage(deps.sync.store, message)
    const places = leaving(state, now, at, to)
    let moved = 0
    for (const place of places) {
      if (await transfer(deps, state, session, { kind: 'move', message: now, at: place, to })) moved += 1
    }
    if (moved === 0 && places.length > 0) throw notFound('message', message.id)
  })
}

/** What has to leave; nothing when the message lies there already, as after a move that was asked for twice. */
function leaving(state: AccountState, message: MessageRecord, at: Placement | null, to: FolderRecord): Placement[] {
  const isThere = message.placements.some((place) => place.folderId === to.id)
  if (at === null && isThere) return []
  const from = at?.folderId ?? firstFolder(state, message)
  const places = message.placements.filter((place) => place.folderId === from)
  if (places.length === 0 && !isThere) throw notThere(state, message)
  return places
}

/** Folders that show what lies elsewhere. */
const views = new Set(['\\All', '\\Flagged', '\\Important'])

/** INBOX, else the first that is no view of others. */
function firstFolder({ folders }: AccountState, { placements }: MessageRecord): string | undefined {
  const rank = ({ folderId, path }: Placement): number =>
    path === 'INBOX' ? 0 : views.has(folders.get(folderId)?.specialUse ?? '') ? 2 : 1
  return placements.toSorted((one, other) => rank(one) - rank(other))[0]?.folderId
}

/** false when the server does not have the message there any more. */
async function transfer(deps: CommandDeps, state: AccountState, session: Session, given: Transfer): Promise<boolean> {
  const { kind, message, at, to } = given
  const counted = state.ownCounts.begin([at.folderId, to.id])
  state.own.expectArrival(to.id, message.id)
  if (kind === 'move') state.own.expectDeparture(at.folderId, at.uid)
  let done = false
  try {
    done = await carryOut(deps, state, session, given)
    return done
  } finally {
    if (!done) {
      state.own.forget(to.id, message.id)
      state.own.forget(at.folderId, at.uid)
    }
    counted()
  }
}

async function carryOut(
  { sync }: CommandDeps,
  state: AccountState,
  session: Session,
  { kind, message, at, to }: Transfer,
): Promise<boolean> {
  const moving = inPlace({ state, session }, at, () => session[kind](at.uid, to.path))
  const placed = await moving.catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  if (placed === null) return false
  const arrived = arrivedAt(at, to, placed.newUid, placed.uidValidity ?? to.cursor?.uidValidity ?? null)
  const left = kind === 'move' ? at : null
  await state.writeIndex([at.folderId, to.id], () =>
    sync.store.messages.relocate(state.account.id, message.id, left, arrived),
  )
  if (arrived === null) await catchUp({ deps: sync, state, session }, to.path)
  return true
}

function folderGone(to: FolderRecord, cause: AppError): AppError {
  const { code, message, details } = notFound('folder', to.path)
  return new AppError(code, message, { details, cause })
}

/** The new place, or null when the server did not say where it is. */
function arrivedAt(at: Placement, to: FolderRecord, uid: number | null, uidValidity: string | null): Placement | null {
  if (uid === null || uidValidity === null) return null
  return { ...at, folderId: to.id, path: to.path, uid, uidValidity, modseq: '0', rev: 0, quiet: true }
}
