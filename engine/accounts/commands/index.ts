/**
 * What the API asks of an account's command connection: reading what only the server has (reading.ts), writing
 * (writing.ts), and folders as a whole: listed, made, removed, emptied of what is \Deleted, brought up to date.
 */
import { AppError, isAppError } from '../../errors.ts'
import { backfillFirst } from '../background.ts'
import { createFolderPoll } from '../folders.ts'
import type { Session } from '../session-types.ts'
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { SyncContext } from '../write.ts'
import { onceMore, onLink, openFolder, type CommandDeps } from './placed.ts'
import { readCommands } from './reading.ts'
import { writeCommands } from './writing.ts'

type Commands = Omit<AccountCommands, 'probe'>
type Command = (...args: never[]) => Promise<unknown>

export function createCommands(deps: CommandDeps): Commands {
  const commands = { ...folderCommands(deps), ...readCommands(deps), ...writeCommands(deps) }
  const entries = Object.entries(commands).map(([name, command]) => [name, onceMore(command as Command)] as const)
  return Object.fromEntries(entries) as unknown as Commands
}

type FolderCommands = 'refreshFolders' | 'createFolder' | 'deleteFolder' | 'expungeFolder' | 'syncFolder'

function folderCommands(deps: CommandDeps): Pick<AccountCommands, FolderCommands> {
  return {
    async refreshFolders(accountId) {
      await relisted(deps, accountId, () => Promise.resolve())
      return deps.sync.store.folders.list(accountId)
    },
    async createFolder(accountId, path) {
      await relisted(deps, accountId, (session) => session.createMailbox(path))
      return onLink(deps, accountId, async (context) => {
        await openFolder(context, path)
        const folder = context.state.folderByPath(path)
        if (folder !== null) return folder
        throw new AppError('server_refused', `folder ${path}: the server made it under another name`)
      })
    },
    deleteFolder: (accountId, path) => relisted(deps, accountId, (session) => session.deleteMailbox(path)),
    expungeFolder: (accountId, path) =>
      onLink(deps, accountId, async (context) => {
        await context.session.select(path)
        await context.session.expunge(null)
        await catchUp(context, path)
      }),
    syncFolder: (accountId, path) =>
      onLink(deps, accountId, async (context) => {
        await catchUp(context, path)
        const folder = context.state.folderByPath(path)
        if (folder !== null) await backfillFirst(context, folder.id)
      }),
  }
}

/**
 * Changes the folders on the server, and brings the stored list up to date: also when the server says that others
 * changed them.
 */
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
