/** PUT of a message: into another folder. What is answered is done on the mail server, and the index says it too. */
import { notFound, type AccountRecord, type FolderRecord, type UserRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { success } from '../../values.ts'
import { lookUpFolder } from '../find.ts'
import { locate, messagePaths, mustHoldMail } from './locate.ts'
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

function moveRoute(path: string): Route {
  return defineRoute({
    method: 'PUT',
    path,
    auth: 'developer',
    tag: 'Messages',
    summary: 'Move a message to another folder',
    description:
      'A message that lies in that folder already stays there. Without a folder in the path the message is taken from the first of its folders.',
    request: { path: messagePath, query: moveQuery },
    response: success,
    errors: [503, 504],
    async handler({ path, query }, call) {
      const { user, account, message, folder, placements } = await locate(call, path, query.delimiter)
      const to = await destination(call, user, account, query.new_folder_id, query.delimiter)
      mustHoldMail(to, 'new_folder_id')
      const stays = folder === null ? placements.some((place) => place.folderId === to.id) : folder.id === to.id
      if (stays) return { success: true }
      call.touchesImap(user)
      await call.engine.accounts.move(account.id, message, placements[0], to)
      return { success: true }
    },
  })
}

export const messageMoveRoutes: readonly Route[] = messagePaths.map(moveRoute)
