/**
 * What the API asks of an account's command connection: reading what only the server has (reading.ts), writing
 * (writing.ts), and folders as a whole: listed, made, removed, emptied of what is \Deleted, brought up to date.
 *
 * Each command is answered in bounded time (MAILROOM_COMMAND_TIMEOUT without progress) or rejects with an AppError:
 * `account_disabled` and `account_unavailable` (with the reason and when the next try is), `timeout`, `server_refused`
 * (the server's own NO), `not_found`, `throttled`, `network` … Streams reject or are destroyed with the same errors.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import { backfillFirst } from '../background.ts'
import { compareFlags } from '../compare.ts'
import { createFolderPoll } from '../folders.ts'
import type { FolderRecord } from '../../store/records.ts'
import type { Session } from '../session-types.ts'
import { catchUp } from '../sync.ts'
import { moveCursor, type SyncContext } from '../write.ts'
import { onLink, openFolder, type CommandDeps } from './placed.ts'
import { readCommands } from './reading.ts'
import { writeCommands } from './writing.ts'

export function createCommands(deps: CommandDeps) {
  return { ...folderCommands(deps), ...readCommands(deps), ...writeCommands(deps) }
}

function folderCommands(deps: CommandDeps) {
  return {
    /** Folders as the store has them are enough for most; this asks the server anew and reconciles. */
    async refreshFolders(accountId: string): Promise<FolderRecord[]> {
      await relisted(deps, accountId, () => Promise.resolve())
      return deps.sync.store.folders.list(accountId)
    },
    async createFolder(accountId: string, path: string): Promise<FolderRecord> {
      await relisted(deps, accountId, (session) => session.createMailbox(path))
      return onLink(deps, accountId, async (context) => {
        await openFolder(context, path)
        const folder = context.state.folderByPath(path)
        if (folder !== null) return folder
        throw new AppError('server_refused', `folder ${path}: the server made it under another name`)
      })
    },
    deleteFolder: (accountId: string, path: string): Promise<void> =>
      relisted(deps, accountId, (session) => session.deleteMailbox(path)),
    expungeFolder: (accountId: string, path: string): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        await context.session.select(path)
        await context.session.expunge(null)
        await catchUp(context, path)
      }),
    /** Reads what is new in the folder now, and answers when the index says the same. */
    syncFolder: (accountId: string, path: string): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        await catchUp(context, path)
        const folder = context.state.folderByPath(path)
        if (folder !== null) await backfillFirst(context, folder.id)
      }),
    /** Compares all that the index knows of the folder with the server, flags too, and reads what is missing. */
    readAnew: (accountId: string, path: string): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        await openFolder(context, path)
        const folder = context.state.folderByPath(path)
        if (folder?.cursor === null || folder?.cursor === undefined) throw notFound('folder', path)
        await moveCursor(context, folder.id, (cursor) => ({ ...cursor, comparedAt: 0 }))
        await catchUp(context, path)
        await compareFlags(context, folder.id, 'all')
      }),
  }
}

/** Changes the folders on the server and reads the list anew, also when the server says that others changed them. */
async function relisted(
  deps: CommandDeps,
  accountId: string,
  change: (session: Session) => Promise<void>,
): Promise<void> {
  const relist = (context: SyncContext): Promise<unknown> => createFolderPoll(context).list()
  await onLink(deps, accountId, async (context) => {
    try {
      await change(context.session)
    } catch (error) {
      if (isAppError(error, 'conflict') || isAppError(error, 'not_found')) await relist(context)
      throw error
    }
    await relist(context)
  })
}
