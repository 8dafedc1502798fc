/** MOVE and COPY within an account: when they answer, the index says the same as the server, and it is told like anybody's move. */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import { tellArrival, tellDeparture } from '../own-changes.ts'
import type { AccountState } from '../state.ts'
import type { AccountCommands } from '../types.ts'
import type { SyncContext } from '../write.ts'
import type { CommandDeps } from './deps.ts'
import { openFirst, openFolder } from './folders.ts'
import { currentMessage, currentPlace, inPlace, notThere } from './placed.ts'

interface Transfer {
  readonly kind: 'move' | 'copy'
  /** As it was before. */
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

export function transferCommands(deps: CommandDeps): Pick<AccountCommands, 'move' | 'copy'> {
  const { live, sync } = deps
  return {
    async move(accountId, message, at, to) {
      const { link, state } = await live(accountId)
      await link.run('api', (session) => move({ deps: sync, state, session }, message, at, to))
    },
    async copy(accountId, message, at, to) {
      const { link, state } = await live(accountId)
      await link.run('api', async (session) => {
        const now = await currentMessage(sync.store, message)
        const given: Transfer = { kind: 'copy', message: now, at: currentPlace(state, now, at), to }
        if (!(await transfer({ deps: sync, state, session }, given))) throw notFound('message', message.id)
      })
    },
  }
}

/** Every place in the folder: a mail that came twice leaves no twin behind. */
async function move(
  context: SyncContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<void> {
  const { deps, state } = context
  let now = await currentMessage(deps.store, message)
  const places = leaving(state, now, at, to)
  let moved = 0
  for (const place of places) {
    if (await transfer(context, { kind: 'move', message: now, at: place, to })) moved += 1
    now = await currentMessage(deps.store, message)
  }
  if (moved === 0 && places.length > 0) throw notFound('message', message.id)
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
async function transfer(context: SyncContext, given: Transfer): Promise<boolean> {
  const { own, ownCounts } = context.state
  const { kind, at, to } = given
  const counted = ownCounts.begin([at.folderId, to.id])
  const left = kind === 'move' ? own.leave(at.folderId, at.uid) : null
  try {
    return await carryOut(context, given)
  } finally {
    left?.()
    counted()
  }
}

async function carryOut(context: SyncContext, { kind, message, at, to }: Transfer): Promise<boolean> {
  const { state, session } = context
  await openFirst(context, to)
  const moving = inPlace({ state, session }, at, () => session[kind](at.uid, to.path))
  const placed = await moving.catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  if (placed === null) return false
  if (!(await tellArrival(context, message, to, placed, at.flags))) await openFolder(context, to.path)
  if (kind === 'move') await tellDeparture(context, message.id, at, to)
  return true
}

function folderGone(to: FolderRecord, cause: AppError): AppError {
  const { code, message, details } = notFound('folder', to.path)
  return new AppError(code, message, { details, cause })
}
