/** …/email_accounts/{label}/folders: lists folders from the index, and creates folders on the mail server. */
import { z } from 'zod'
import {
  type AccountRecord,
  AppError,
  badParameter,
  folderName,
  type FolderRecord,
  isAppError,
  shownCounts,
  type SpecialUse,
  usualDelimiter,
} from '../../engine/index.ts'
import { type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { keptAnswer } from '../kept-answers.ts'
import { listText, stepsOf } from '../list-text.ts'
import { type Call, defineRoute, type PathParameters, tagged } from '../route.ts'
import { documented, flag, optional, successAt, text } from '../values.ts'
import { findAccount, findFolder, type Mailbox, newServerPath } from './find.ts'

export const folderFields = {
  name: [z.string(), 'INBOX'],
  nb_messages: [z.int(), 1280],
  nb_unseen_messages: [z.int(), 12],
  delimiter: [z.string(), '/'],
  symbolic_name: [z.string(), '\\Inbox'],
  xlist_name: [z.string(), '\\Inbox'],
} as const

const folderView = examples.view('Folder', {
  ...folderFields,
  resource_url: [z.string(), `${examples.urls.account}/folders/INBOX`],
})

/** The character between the levels of a folder's name, unless it is '/'. */
export const delimiter = documented(
  text.refine((value) => Array.from(value).length <= 1, 'expected one character'),
  {
    type: 'string',
    maxLength: 1,
    description: "the character between the levels of the folder's name; '/' when absent",
  },
).optional()

const nameOnly = examples.answer({ name: [z.string(), 'INBOX'] })
const folderQuery = z.object({ delimiter })

/** XLIST names that differ from the special use of RFC 6154. */
const otherXlistNames: Partial<Record<SpecialUse, string>> = {
  '\\All': '\\AllMail',
  '\\Flagged': '\\Starred',
  '\\Junk': '\\Spam',
}

/** The special use of a folder as RFC 6154 and as XLIST spell it; '' = none. */
export function usesOf({ path, specialUse }: FolderRecord) {
  const use = specialUse ?? (path === 'INBOX' ? '\\Inbox' : null)
  return { symbolic_name: use ?? '', xlist_name: use === null ? '' : (otherXlistNames[use] ?? use) }
}

export function nameFolder(folder: FolderRecord) {
  return { name: folderName(folder), ...usesOf(folder) }
}

export function presentFolder(folder: FolderRecord, account: AccountRecord, urls: Urls): z.input<typeof folderView> {
  const name = folderName(folder)
  const { messages, unseen } = shownCounts(folder)
  return {
    name,
    nb_messages: messages,
    nb_unseen_messages: unseen,
    delimiter: folder.delimiter,
    ...usesOf(folder),
    resource_url: urls.folder(account, name),
  }
}

const base = '/lite/users/{id}/email_accounts/{label}/folders'
const one = `${base}/{folder+}` as const
export type FolderPath = PathParameters<typeof one>

/** The stored folders. If none are stored yet, the mail server is asked for its list. */
export async function foldersOf(call: Call, { user, account }: Mailbox): Promise<FolderRecord[]> {
  const stored = await call.engine.store.folders.list(account.id)
  if (stored.length > 0) return stored
  call.touchesImap(user)
  return call.engine.accounts.refreshFolders(account.id)
}

const list = defineRoute(`GET ${base}`, {
  summary: 'List the folders of an email account',
  query: z.object({ include_names_only: optional(flag, '1 = only the names, without counts') }),
  response: z.array(z.union([folderView, nameOnly])),
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const urls = urlsOf(call)
    const show = (folder: FolderRecord): z.input<typeof folderView> => presentFolder(folder, mailbox.account, urls)
    const named = (folder: FolderRecord): z.input<typeof nameOnly> => ({ name: folderName(folder) })
    return keptAnswer(call, mailbox.account, ['folders', query], async () =>
      listText(call, stepsOf(await foldersOf(call, mailbox), query.include_names_only === true ? named : show)),
    )
  },
})

const get = defineRoute(`GET ${one}`, {
  summary: 'Get a folder',
  query: folderQuery,
  response: folderView,
  async handler({ path, query }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    const folder = await findFolder(call, account, path.folder, query.delimiter)
    return presentFolder(folder, account, urlsOf(call))
  },
})

const create = defineRoute(`POST ${one}`, {
  summary: 'Create a folder',
  description: 'A folder that exists already is a 409, a name that the mail server does not take a 400 with its words.',
  query: folderQuery,
  response: successAt(examples.urls.newFolder),
  errors: [409],
  handler: ({ path, query }, call) => createFolder(call, path, query.delimiter),
})

export async function createFolder(call: Call, path: FolderPath, between: string | undefined) {
  const mailbox = await findAccount(call, path.id, path.label)
  const { account, user } = mailbox
  const wanted = newServerPath(path.folder, usualDelimiter(await foldersOf(call, mailbox)), between)
  call.touchesImap(user)
  // The server decides whether the folder exists: other clients may have created or removed it since the last sync.
  const making = call.engine.accounts.createFolder(account.id, wanted)
  const folder = await making.catch((error: unknown) => nameRefused(path.folder, error))
  return { success: true, resource_url: urlsOf(call).folder(account, folderName(folder)) }
}

/** RFC 5530 codes of a refusal for another reason than the name: permissions, quota, and errors of the server. */
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

/** Turns the server's refusal of CREATE into an error of the name, unless its response code gives another reason. */
function nameRefused(name: string, error: unknown): never {
  if (isAppError(error, 'conflict')) throw new AppError('conflict', `folder ${name} exists already`, { cause: error })
  if (!isAppError(error, 'server_refused') && !isAppError(error, 'not_found')) throw error
  const { response, responseCode } = error.details
  if (response === undefined || otherReasons.has(responseCode)) throw error
  throw badParameter('folder', error.message)
}

export const folderRoutes = tagged('Folders', [list, get, create])
