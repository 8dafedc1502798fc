/** MOVE and COPY within an account: the index says the same as the server when they answer, and nobody is told. */
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import type { Session } from '../session-types.ts'
import type { AccountState } from '../state.ts'
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { selectPlace } from './placed.ts'

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

export function transferCommands(deps: CommandDeps): Pick<AccountCommands, 'move' | 'copy'> {
  return {
    move: (accountId, message, at, to) => transfer(deps, accountId, { kind: 'move', message, at, to }),
    copy: (accountId, message, at, to) => transfer(deps, accountId, { kind: 'copy', message, at, to }),
  }
}

async function transfer(deps: CommandDeps, accountId: string, given: Transfer): Promise<void> {
  const { kind, message, at, to } = given
  const { link, state } = await deps.live(accountId)
  await link.run('api', async (session) => {
    state.own.expectArrival(to.id, message.id)
    if (kind === 'move') state.own.expectDeparture(at.folderId, at.uid)
    try {
      await carryOut(deps, state, session, given)
    } catch (error) {
      state.own.forget(to.id, message.id)
      state.own.forget(at.folderId, at.uid)
      throw error
    }
  })
}

async function carryOut(
  { sync }: CommandDeps,
  state: AccountState,
  session: Session,
  { kind, message, at, to }: Transfer,
): Promise<void> {
  await selectPlace(session, at)
  const { newUid, uidValidity } = await session[kind](at.uid, to.path)
  const arrived = arrivedAt(at, to, newUid, uidValidity ?? to.cursor?.uidValidity ?? null)
  const left = kind === 'move' ? at : null
  await state.exclusive(() => sync.store.messages.relocate(state.account.id, message.id, left, arrived))
  if (arrived === null) await catchUp({ deps: sync, state, session }, to.path)
}

/** The new place, or null when the server did not say where it is. */
function arrivedAt(at: Placement, to: FolderRecord, uid: number | null, uidValidity: string | null): Placement | null {
  if (uid === null || uidValidity === null) return null
  return { ...at, folderId: to.id, path: to.path, uid, uidValidity, modseq: '0', rev: 0, quiet: true }
}
