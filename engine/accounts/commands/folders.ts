/** Folders as a whole: listed, made, removed, emptied of what is \Deleted, brought up to date. */
import { AppError, isAppError } from '../../errors.ts'
import type { FolderRecord } from '../../store/records.ts'
import { backfillFirst } from '../backfill.ts'
import type { Session } from '../session-types.ts'
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { SyncContext } from '../write.ts'
import type { CommandDeps, LiveAccount } from './deps.ts'

type FolderCommands = 'refreshFolders' | 'createFolder' | 'deleteFolder' | 'expungeFolder' | 'syncFolder'

export function folderCommands(deps: CommandDeps): Pick<AccountCommands, FolderCommands> {
  const { live, sync } = deps
  return {
    async refreshFolders(accountId) {
      await relisted(deps, accountId)
      return sync.store.folders.list(accountId)
    },
    async createFolder(accountId, path) {
      const { state, link } = await relisted(deps, accountId, (session) => session.createMailbox(path))
      await link.run('api', (session) => openFolder({ deps: sync, state, session }, path))
      const folder = state.folderByPath(path)
      if (folder === null) throw new AppError('server_refused', `folder ${path}: the server made it under another name`)
      return folder
    },
    async deleteFolder(accountId, path) {
      await relisted(deps, accountId, (session) => session.deleteMailbox(path))
    },
    async expungeFolder(accountId, path) {
      const { state, link } = await live(accountId)
      await link.onFolder('api', path, async (session) => {
        await session.expunge(null)
        await catchUp({ deps: sync, state, session }, path)
      })
    },
    async syncFolder(accountId, path) {
      const { state, link } = await live(accountId)
      await link.run('api', async (session) => {
        const context = { deps: sync, state, session }
        await catchUp(context, path)
        const folder = state.folderByPath(path)
        if (folder !== null) await backfillFirst(context, folder.id)
      })
    },
  }
}

/** What arrives in a folder that was never opened would be taken for its history. */
export async function openFirst(context: SyncContext, { id, path }: FolderRecord): Promise<void> {
  if (context.state.folders.get(id)?.cursor === null) await openFolder(context, path)
}

/** What is new in the folder can be listed at once. One that holds no mail (\\Noselect), or is refused, is not opened. */
export async function openFolder(context: SyncContext, path: string): Promise<void> {
  if (context.state.folderByPath(path)?.selectable !== true) return
  await catchUp(context, path).catch((error: unknown) => {
    if (!isAppError(error, 'server_refused')) throw error
  })
}

/** Changes the folders on the server, and brings the stored list up to date with it: also when it is told that others did. */
async function relisted(
  { live, relist }: CommandDeps,
  accountId: string,
  change?: (session: Session) => Promise<void>,
): Promise<LiveAccount> {
  const account = await live(accountId)
  await account.link.run('api', async (session) => {
    try {
      await change?.(session)
    } catch (error) {
      if (isAppError(error, 'conflict') || isAppError(error, 'not_found')) await relist(account, session)
      throw error
    }
    await relist(account, session)
  })
  return account
}
