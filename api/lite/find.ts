/** Finds the records that paths name. Unknown ids, and those of other developers, are 404 `<kind> <id> is invalid`. */
import {
  type AccountRecord,
  badParameter,
  type FolderRecord,
  isAppError,
  type MessageRecord,
  notFound,
  type Placement,
  type UserRecord,
  usualDelimiter,
} from '../../engine/index.ts'
import { urlsOf } from '../addresses.ts'
import type { Call } from '../route.ts'
import { mustBeRead, mustBeSame, unlisted } from './unread.ts'

/** API version → its nouns for the parts of a path, for error texts. */
export const kinds = {
  lite: { user: 'user', account: 'email account' },
  '2.0': { user: 'account', account: 'source' },
} as const

/** Notes the user on the call (rate limits, call log). */
export async function findUser(call: Call, id: string): Promise<UserRecord> {
  const user = await call.engine.store.users.get(call.developer.id, id)
  if (user === null) throw notFound(kinds[call.version].user, id)
  call.concerns(user)
  return user
}

export interface Mailbox {
  readonly user: UserRecord
  readonly account: AccountRecord
}

/** Sets the status header. */
export async function findAccount(call: Call, userId: string, label: string): Promise<Mailbox> {
  const { user, account } = await lookUpAccount(call, userId, label)
  if (account === null) throw notFound(kinds[call.version].account, label)
  call.concerns(user, account)
  return { user, account }
}

/** The label `0` means the first account. The exact label wins over one in another case. null = no such account. */
export async function lookUpAccount(call: Call, userId: string, label: string) {
  const { users, accounts } = call.engine.store
  const user = await users.get(call.developer.id, userId)
  if (user === null) throw notFound(kinds[call.version].user, userId)
  const all = await accounts.listByUser(user.id)
  const exact = label === '0' ? all[0] : all.find((account) => account.label === label)
  const account = exact ?? all.find((one) => one.label.toLowerCase() === label.toLowerCase())
  return { user, account: account ?? null }
}

/**
 * Finds a folder by the name that a caller writes: with '/' between its levels, or with `delimiter`; INBOX in any case.
 * The server's own path is found too, so a name that contains the other delimiter is reached either way. `known` = all
 * folders of the account, if the caller has read them.
 */
export async function findFolder(
  call: Call,
  account: AccountRecord,
  name: string,
  delimiter?: string,
  known?: readonly FolderRecord[],
): Promise<FolderRecord> {
  const folders = known ?? (await call.engine.store.folders.list(account.id))
  const folder = folderNamed(folders, name, delimiter)
  if (folder !== null) return folder
  // A folder may only be called missing once the server's list has been read.
  if (folders.length === 0) throw unlisted(call, account.id)
  throw notFound('folder', name)
}

/** null when no folder has this name. */
export function folderNamed(all: readonly FolderRecord[], name: string, delimiter?: string): FolderRecord | null {
  const path = name.toUpperCase() === 'INBOX' ? 'INBOX' : levelsOf(name, delimiter).join(usualDelimiter(all))
  const found = all.find((folder) => folder.path === path) ?? all.find((folder) => folder.path === name)
  return found ?? all.find((folder) => inCapitals(folder) === path) ?? null
}

/** The path with a first level INBOX in capitals: servers may list the folders below INBOX in another case. */
function inCapitals({ path, delimiter }: FolderRecord): string {
  const first = delimiter === '' ? '' : path.slice(0, Math.max(0, path.indexOf(delimiter)))
  return first.toUpperCase() === 'INBOX' ? `INBOX${path.slice(first.length)}` : path
}

/** Splits a name; a first level INBOX, in any case, becomes capitals. Throws `bad_request` for an empty level. */
function levelsOf(name: string, delimiter: string | undefined): string[] {
  const levels = name.split(delimiter === undefined || delimiter === '' ? '/' : delimiter)
  if (levels.some((level) => level === '')) throw badParameter('folder', `"${name}" has an empty level`)
  const [first = '', ...rest] = levels
  return [first.toUpperCase() === 'INBOX' ? 'INBOX' : first, ...rest]
}

/** The server path of a new folder. Throws `bad_request` for a level that the server would split, and for controls. */
export function newServerPath(name: string, serverDelimiter: string, delimiter: string | undefined): string {
  if (/\p{Cc}/u.test(name)) throw badParameter('folder', 'must not contain control characters')
  const levels = levelsOf(name, delimiter)
  const split = levels.find((level) => level.includes(serverDelimiter))
  if (split !== undefined) {
    throw badParameter(
      'folder',
      `level "${split}" holds "${serverDelimiter}", which the mail server has between levels; for levels of their own, name it as delimiter`,
    )
  }
  return levels.join(serverDelimiter)
}

export function bareName(id: string): string {
  return id.trim().replace(/^<(.*)>$/, '$1')
}

/**
 * Finds a message by its id here, by its RFC 5322 Message-ID with or without angle brackets, or by a hosted provider's
 * id, bare or as `gm-<id>`. An unknown id is a 503 while the account's mail is read for the first time.
 */
export function findMessage(call: Call, account: AccountRecord, id: string): Promise<MessageRecord> {
  return findRead(call, account, ['message', id], async () => {
    const found = await lookUpMessage(call, account, id)
    return found !== null && found.placements.length > 0 ? found : null
  })
}

/** As `findMessage`; also finds messages that have left every folder and whose identity is kept. */
export function findKnownMessage(call: Call, account: AccountRecord, id: string): Promise<MessageRecord> {
  return findRead(call, account, ['message', id], () => lookUpMessage(call, account, id))
}

async function lookUpMessage(call: Call, account: AccountRecord, id: string): Promise<MessageRecord | null> {
  const { messages } = call.engine.store
  const bare = bareName(id)
  const found = await messages.find(account.id, bare)
  return found ?? (bare.startsWith('gm-') ? messages.find(account.id, bare.slice(3)) : null)
}

/** The result of `find`. If `find` finds nothing: 503 while the account is not read completely, else 404. */
export async function findRead<T>(
  call: Call,
  account: AccountRecord,
  named: readonly [kind: string, id: string],
  find: () => Promise<T | null>,
): Promise<T> {
  const found = await find()
  if (found !== null) return found
  // `completeAt` is left out: a folder may have been renamed since, so the folders themselves are checked.
  await mustBeRead(call, { id: account.id }, null)
  // Mail may have been read into the index between the look-up and the check.
  const now = typeof account.completeAt === 'number' ? null : await find()
  if (now !== null) return now
  throw notFound(...named)
}

/** The paths of a message: in any of its folders, and in one named folder. */
export const messagePaths = [
  '/lite/users/{id}/email_accounts/{label}/messages/{message_id}',
  '/lite/users/{id}/email_accounts/{label}/folders/{folder+}/messages/{message_id}',
] as const

export interface MessagePath {
  readonly id: string
  readonly label: string
  readonly message_id: string
  readonly folder?: string
}

export interface Located {
  readonly user: UserRecord
  readonly account: AccountRecord
  /** The message id as the path has it. */
  readonly name: string
  /** Address of the message; it names a folder if the path does. */
  readonly url: string
  /** Its first placement is in the folder of the path: commands to the mail server try the first placement first. */
  readonly message: MessageRecord
  /** null when the path names no folder. */
  readonly folder: FolderRecord | null
  /** Its placements in that folder; all of them when the path names no folder. */
  readonly placements: readonly [Placement, ...Placement[]]
}

/** Finds the message of a path. 404 when it does not lie in the folder of the path. */
export async function locate(call: Call, path: MessagePath, delimiter?: string, mailbox?: Mailbox): Promise<Located> {
  const { message_id: name } = path
  const { user, account } = mailbox ?? (await findAccount(call, path.id, path.label))
  const folder = path.folder === undefined ? null : await findFolder(call, account, path.folder, delimiter)
  const found = await findMessage(call, account, name)
  const message = folder === null ? found : placedFirst(await inFolder(call, found, folder, name), folder.id)
  const [first, ...more] =
    folder === null ? message.placements : message.placements.filter((place) => place.folderId === folder.id)
  if (first === undefined) throw notFound('message', name)
  return {
    user,
    account,
    name,
    url: urlsOf(call).message(account, message.id, path.folder),
    message,
    folder,
    placements: [first, ...more],
  }
}

/** Several messages of one thread may share a Message-ID: picks the one that lies in the folder. */
export async function inFolder(
  call: Call,
  found: MessageRecord,
  folder: FolderRecord,
  id: string,
): Promise<MessageRecord> {
  if (found.placements.some((place) => place.folderId === folder.id)) return found
  if (found.emailMessageId !== null && id !== found.id) {
    const query = { folderId: folder.id, threadId: found.threadId }
    const others = await call.engine.store.messages.list(found.accountId, query, { limit: 100, offset: 0 })
    const other = others.find((message) => message.emailMessageId === found.emailMessageId)
    if (other !== undefined) return other
  }
  await mustBeRead(call, { id: found.accountId }, folder)
  await mustBeSame(call, found.accountId, [folder])
  throw notFound('message', id)
}

/** The message with its placements in the folder before the others. */
export function placedFirst(message: MessageRecord, folderId: string): MessageRecord {
  if (message.placements[0]?.folderId === folderId) return message
  const here = message.placements.filter((place) => place.folderId === folderId)
  return { ...message, placements: [...here, ...message.placements.filter((place) => place.folderId !== folderId)] }
}

/** Throws `bad_request`, which names `parameter`, for a folder that cannot hold messages (\Noselect). */
export function mustHoldMail(folder: FolderRecord, parameter: string): void {
  if (!folder.selectable) throw badParameter(parameter, `folder ${folder.path} holds no messages`)
}

/**
 * Rewrites a `not_found` of the mail server into a 404 with the message id or folder name that the caller wrote.
 * `folder`: its name in the call, and its path on the server.
 */
export async function asNamed<T>(
  message: string,
  work: Promise<T>,
  folder?: { readonly name: string; readonly path: string },
): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    const { kind, id } = error.details
    const meant = folder !== undefined && kind === 'folder' && folder.path === id
    throw meant ? notFound('folder', folder.name) : notFound('message', message)
  }
}
