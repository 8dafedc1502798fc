/** PUT of a message: into another folder. What is answered is done on the mail server, and the index says it too. */
import { isAppError, notFound, type AccountRecord, type FolderRecord, type UserRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { success } from '../../values.ts'
import { findAccount, findMessage, lookUpFolder } from '../find.ts'
import { locate, messagePaths, mustHoldMail, type MessagePath } from './locate.ts'
import { asNamed } from './named.ts'
import { messagePath, moveQuery } from './schema.ts'

/** A folder that the index does not know may have been made a moment ago: the server is asked before the answer is 404. */
async function destination(
  call: Call,
  user: UserRecord,
  account: AccountRecord,
  name: string,
  delimiter: string | undefined,
): Promise<FolderRecord> {
  const known = await lookUpFolder(call, account, name, delimiter)
  if (known !== null) return known
  call.touchesImap(user)
  await call.engine.accounts.refreshFolders(account.id)
  const found = await lookUpFolder(call, account, name, delimiter)
  if (found === null) throw notFound('folder', name)
  return found
}

/** null when the message has left the folder of the path for the new one: the same move, asked for twice. Else throws `error`. */
async function movedAlready(
  call: Call,
  path: MessagePath,
  name: string,
  delimiter: string | undefined,
  error: unknown,
): Promise<null> {
  if (!isAppError(error, 'not_found') || error.details['kind'] !== 'message') throw error
  const { account } = await findAccount(call, path.id, path.label)
  const message = await findMessage(call, account, path.message_id)
  const to = await lookUpFolder(call, account, name, delimiter)
  if (to === null || !message.placements.some((place) => place.folderId === to.id)) throw error
  return null
}

function moveRoute(path: string): Route {
  return defineRoute({
    method: 'PUT',
    path,
    auth: 'developer',
    tag: 'Messages',
    summary: 'Move a message to another folder',
    description:
      'Through a folder it leaves that one, also where the same mail lies in it twice. Without a folder in the path it leaves the first of ' +
      'its folders (INBOX, if it lies there) and stays in the others; one that lies in the new folder already stays as it is. To move it ' +
      'again to where it is changes nothing.',
    request: { path: messagePath, query: moveQuery },
    response: success,
    errors: [503, 504],
    async handler({ path, query }, call) {
      const { message_id: id } = path
      const { new_folder_id: name, delimiter } = query
      const located = await locate(call, path, delimiter).catch((error: unknown) =>
        movedAlready(call, path, name, delimiter, error),
      )
      if (located === null) return { success: true }
      const { user, account, message, folder, placements } = located
      const to = await destination(call, user, account, name, delimiter)
      mustHoldMail(to, 'new_folder_id')
      const stays = folder === null ? placements.some((place) => place.folderId === to.id) : folder.id === to.id
      if (stays) return { success: true }
      call.touchesImap(user)
      const from = folder === null ? null : placements[0]
      const names = { message: id, folder: { name, path: to.path } }
      await asNamed(names, call.engine.accounts.move(account.id, message, from, to))
      return { success: true }
    },
  })
}

export const messageMoveRoutes: readonly Route[] = messagePaths.map(moveRoute)
