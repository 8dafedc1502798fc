/** APPEND into an account: in the index when the command answers, and told to nobody. */
import { rawValues, readHeaders } from '../../messages/headers.ts'
import { ownMessageId } from '../../messages/message-ids.ts'
import type { FolderRecord } from '../../store/records.ts'
import { readUids } from '../read.ts'
import type { Session } from '../session-types.ts'
import type { AccountState } from '../state.ts'
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'

export function appendCommand({ live, sync }: CommandDeps): Pick<AccountCommands, 'append'> {
  return {
    async append(accountId, to, raw, flags, internalDate) {
      const { link, state } = await live(accountId)
      await link.run('api', async (session) => {
        await appendQuietly(state, session, to, { raw, flags, internalDate })
        await catchUp({ deps: sync, state, session }, to.path)
      })
    },
  }
}

interface Appended {
  readonly raw: Buffer
  readonly flags: readonly string[]
  readonly internalDate: number
}

/** UIDs that are looked at when the server does not say which one it gave. */
const lookedAt = 20

/**
 * Nothing is written to the index until our own message is named: the watching connection may see it before the server has
 * answered us.
 */
async function appendQuietly(
  state: AccountState,
  session: Session,
  to: FolderRecord,
  { raw, flags, internalDate }: Appended,
): Promise<void> {
  await state.exclusive(async () => {
    const { newUid } = await session.append(to.path, raw, flags, internalDate)
    const uid = newUid ?? (await findAppended(state, session, to, raw))
    if (uid !== null) state.own.expectAt(to.id, uid)
  })
}

/** Without UIDPLUS: the newest message of the same size and Message-ID. */
async function findAppended(
  state: AccountState,
  session: Session,
  to: FolderRecord,
  raw: Buffer,
): Promise<number | null> {
  await session.select(to.path, { refresh: true })
  const from = state.folders.get(to.id)?.cursor?.uidNext ?? 1
  const uids = (await session.searchUids(`${from}:*`)).filter((uid) => uid >= from)
  const { messages } = await readUids(session, uids.slice(-lookedAt))
  const wanted = ownMessageId(rawValues(readHeaders(raw), 'message-id'))
  const same = messages.filter(
    ({ size, headers }) =>
      size === raw.length && ownMessageId(rawValues(readHeaders(headers), 'message-id')) === wanted,
  )
  return same.at(-1)?.uid ?? null
}
