/** The two message lists and the single message, answered from the index; contents that only the server has are asked of it. */
import { z } from 'zod'
import type { FolderRecord, MessageRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { findAccount, findFolder, findMessage, type Mailbox } from '../find.ts'
import { liteUrls } from '../urls.ts'
import { presentFlags, presentMessage, type MessageView } from './present.ts'
import { folderNames, messageQueryOf } from './query.ts'
import {
  accountListQuery,
  accountPath,
  folderPath,
  listQuery,
  messagePath,
  messageQuery,
  messageView,
  type ListParameters,
} from './schema.ts'

const tag = 'Messages'
const base = '/lite/users/{id}/email_accounts/{label}'

const listInAccount = defineRoute({
  method: 'GET',
  path: `${base}/messages`,
  auth: 'developer',
  tag,
  summary: 'List messages of an email account',
  request: { path: accountPath, query: accountListQuery },
  response: z.array(messageView),
  errors: [503, 504],
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const folder =
      query.folder === undefined ? null : await findFolder(call, mailbox.account, query.folder, query.delimiter)
    return listMessages(call, mailbox, folder, query)
  },
})

const listInFolder = defineRoute({
  method: 'GET',
  path: `${base}/folders/{folder+}/messages`,
  auth: 'developer',
  tag,
  summary: 'List messages of a folder',
  request: { path: folderPath, query: listQuery },
  response: z.array(messageView),
  errors: [503, 504],
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    return listMessages(call, mailbox, await findFolder(call, mailbox.account, path.folder, query.delimiter), query)
  },
})

async function listMessages(
  call: Call,
  { account }: Mailbox,
  folder: FolderRecord | null,
  query: ListParameters,
): Promise<MessageView[]> {
  const { store } = call.engine
  const [folders, messages] = await Promise.all([
    store.folders.list(account.id),
    store.messages.list(account.id, messageQueryOf(query, folder), { limit: query.limit, offset: query.offset }),
  ])
  const names = folderNames(folders)
  const urls = liteUrls(call.baseUrl)
  const flags = (message: MessageRecord) =>
    query.include_flags === true ? { flags: presentFlags(message, folder?.id) } : {}
  return messages.map((message) => ({ ...presentMessage(message, account, urls, names), ...flags(message) }))
}

function getRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path,
    auth: 'developer',
    tag,
    summary: 'Get a message',
    request: { path: messagePath, query: messageQuery },
    response: messageView,
    errors: [503, 504],
    async handler({ path, query }, call) {
      const { account } = await findAccount(call, path.id, path.label)
      const message = await findMessage(call, account, path.message_id)
      const folders = await call.engine.store.folders.list(account.id)
      const view = presentMessage(message, account, liteUrls(call.baseUrl), folderNames(folders))
      return query.include_flags === true ? { ...view, flags: presentFlags(message) } : view
    },
  })
}

export const messageListRoutes: readonly Route[] = [
  listInAccount,
  listInFolder,
  getRoute(`${base}/messages/{message_id}`),
  getRoute(`${base}/folders/{folder+}/messages/{message_id}`),
]
