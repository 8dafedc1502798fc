/** EA/folders. The list is the index's; creating is asked of the mail server. */
import { z } from 'zod'
import {
  AppError,
  badParameter,
  folderName,
  isAppError,
  usualDelimiter,
  type FolderRecord,
} from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { accountPath } from '../email_accounts/schema.ts'
import { findAccount, findFolder, newServerPath, type Mailbox } from '../find.ts'
import { liteUrls } from '../urls.ts'
import { presentFolder } from './present.ts'
import { createAnswer, folderPath, folderQuery, folderView, listQuery, nameOnly } from './schema.ts'

const tag = 'Folders'
const base = '/lite/users/{id}/email_accounts/{label}/folders'

/** The folders as stored; an account that has not been listed yet is listed now. */
export async function foldersOf(call: Call, { user, account }: Mailbox): Promise<FolderRecord[]> {
  const stored = await call.engine.store.folders.list(account.id)
  if (stored.length > 0) return stored
  call.touchesImap(user)
  return call.engine.accounts.refreshFolders(account.id)
}

const list = defineRoute({
  method: 'GET',
  path: base,
  auth: 'developer',
  tag,
  summary: 'List the folders of an email account',
  request: { path: accountPath, query: listQuery },
  response: z.array(z.union([folderView, nameOnly])),
  errors: [503, 504],
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const folders = await foldersOf(call, mailbox)
    if (query.include_names_only === true) return folders.map((folder) => ({ name: folderName(folder) }))
    return folders.map((folder) => presentFolder(folder, mailbox.account, liteUrls(call.baseUrl)))
  },
})

const get = defineRoute({
  method: 'GET',
  path: `${base}/{folder+}`,
  auth: 'developer',
  tag,
  summary: 'Get a folder',
  request: { path: folderPath, query: folderQuery },
  response: folderView,
  async handler({ path, query }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    const folder = await findFolder(call, account, path.folder, query.delimiter)
    return presentFolder(folder, account, liteUrls(call.baseUrl))
  },
})

const create = defineRoute({
  method: 'POST',
  path: `${base}/{folder+}`,
  auth: 'developer',
  tag,
  summary: 'Create a folder',
  description: 'A folder that exists already is a 409, a name that the mail server does not take a 400 with its words.',
  request: { path: folderPath, query: folderQuery },
  response: createAnswer,
  errors: [409, 503, 504],
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const { account, user } = mailbox
    const delimiter = usualDelimiter(await foldersOf(call, mailbox))
    const wanted = newServerPath(path.folder, delimiter, query.delimiter)
    call.touchesImap(user)
    // Whether there is one already the server knows: the index may not have heard of what others made or removed.
    const making = call.engine.accounts.createFolder(account.id, wanted)
    const folder = await making.catch((error: unknown) => nameRefused(path.folder, error))
    return { success: true, resource_url: liteUrls(call.baseUrl).folder(account, folderName(folder)) }
  },
})

/** RFC 5530 codes of a refusal that is not for the name: rights, room, and trouble of the server's own. */
const otherReasons: ReadonlySet<unknown> = new Set([
  'NOPERM',
  'CONTACTADMIN',
  'OVERQUOTA',
  'LIMIT',
  'INUSE',
  'UNAVAILABLE',
  'SERVERBUG',
  'CORRUPTION',
])

/** A NO or BAD of the server to CREATE; without a code it is for the name. */
function nameRefused(name: string, error: unknown): never {
  if (isAppError(error, 'conflict')) throw new AppError('conflict', `folder ${name} exists already`, { cause: error })
  if (!isAppError(error, 'server_refused') && !isAppError(error, 'not_found')) throw error
  const { response, responseCode } = error.details
  if (response === undefined || otherReasons.has(responseCode)) throw error
  throw badParameter('folder', error.message)
}

export const folderRoutes: readonly Route[] = [list, get, create]
