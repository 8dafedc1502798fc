/** From path parameters to records. Unknown ids, and those of other developers, are 404 `<kind> <id> is invalid`. */
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

/** What is named in the path, in the words of the API that was called. */
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

/** `0` is the first label; a label is compared as it is, then without case. null = the user has no such account. */
export async function lookUpAccount(call: Call, userId: string, label: string) {
  const { store } = call.engine
  const user = await store.users.get(call.developer.id, userId)
  if (user === null) throw notFound(kinds[call.version].user, userId)
  const account =
    label === '0' ? ((await store.accounts.listByUser(user.id))[0] ?? null) : await byLabel(call, user.id, label)
  return { user, account }
}

async function byLabel(call: Call, userId: string, label: string): Promise<AccountRecord | null> {
  const { store } = call.engine
  const exact = await store.accounts.byLabel(userId, label)
  if (exact !== null) return exact
  const wanted = label.toLowerCase()
  return (await store.accounts.listByUser(userId)).find((account) => account.label.toLowerCase() === wanted) ?? null
}

/**
 * A folder by the name that a caller writes: with '/' between its levels, or with `delimiter`. INBOX in any case. The
 * server's own spelling is found too, so a name that holds the other delimiter can be reached either way. `known` = all
 * folders of the account, where they have been read.
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
  // Nothing is known to be missing before the list of the server was read once.
  if (folders.length === 0) throw unlisted(call, account.id)
  throw notFound('folder', name)
}

/** null when there is none of that name. */
export function folderNamed(all: readonly FolderRecord[], name: string, delimiter?: string): FolderRecord | null {
  const path = name.toUpperCase() === 'INBOX' ? 'INBOX' : levelsOf(name, delimiter).join(usualDelimiter(all))
  const found = all.find((folder) => folder.path === path) ?? all.find((folder) => folder.path === name)
  return found ?? all.find((folder) => inCapitals(folder) === path) ?? null
}

/** A server may list what lies below INBOX with INBOX in another case. */
function inCapitals({ path, delimiter }: FolderRecord): string {
  const first = delimiter === '' ? '' : path.slice(0, Math.max(0, path.indexOf(delimiter)))
  return first.toUpperCase() === 'INBOX' ? `INBOX${path.slice(first.length)}` : path
}

/** INBOX as the first level in any case. */
function levelsOf(name: string, delimiter: string | undefined): string[] {
  const levels = name.split(delimiter === undefined || delimiter === '' ? '/' : delimiter)
  if (levels.some((level) => level === '')) throw badParameter('folder', `"${name}" has an empty level`)
  const [first = '', ...rest] = levels
  return [first.toUpperCase() === 'INBOX' ? 'INBOX' : first, ...rest]
}

/** The same for a new folder: every level stays one, and nothing goes to the server that no name can hold. */
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
 * Ours, an RFC 5322 Message-ID with or without angle brackets, or a hosted provider's id, bare or as `gm-<id>`. An
 * unknown one is a 503 while mail is being read for the first time.
 */
export async function findMessage(call: Call, account: AccountRecord, id: string): Promise<MessageRecord> {
  const found = await findKnownMessage(call, account, id)
  if (found.placements.length > 0) return found
  await mustBeRead(call, { id: account.id }, null)
  // its folder may have been read to the end in between
  const now = await call.engine.store.messages.get(account.id, found.id)
  if (now !== null && now.placements.length > 0) return now
  throw notFound('message', id)
}

/** The same, and messages that have left every folder but whose identity is remembered. */
export async function findKnownMessage(call: Call, account: AccountRecord, id: string): Promise<MessageRecord> {
  const { messages } = call.engine.store
  const bare = bareName(id)
  const hosted = bare.startsWith('gm-') ? bare.slice(3) : null
  const find = async (): Promise<MessageRecord | null> =>
    (await messages.find(account.id, bare)) ?? (hosted === null ? null : await messages.find(account.id, hosted))
  return findRead(call, account, ['message', id], find)
}

/** What `find` answers; where it finds nothing, a 503 when the account had not been read whole before it looked. */
export async function findRead<T>(
  call: Call,
  account: AccountRecord,
  named: readonly [kind: string, id: string],
  find: () => Promise<T | null>,
): Promise<T> {
  const { folders } = call.engine.store
  const before = typeof account.completeAt === 'number' ? undefined : await folders.list(account.id)
  const found = await find()
  if (found !== null) return found
  try {
    // That the account is whole is believed of what is there: a folder may have been renamed since.
    await mustBeRead(call, { id: account.id }, null, before)
  } catch (error) {
    // It may have been read to the end meanwhile.
    if (!isAppError(error, 'account_unavailable')) throw error
    await mustBeRead(call, { id: account.id }, null)
    const now = await find()
    if (now !== null) return now
  }
  throw notFound(...named)
}

/** Both ways to a message: wherever it lies, and in one folder. */
export const messagePaths = [
  '/lite/users/{id}/email_accounts/{label}/messages/{message_id}',
  '/lite/users/{id}/email_accounts/{label}/folders/{folder+}/messages/{message_id}',
] as const

export type MessagePattern = (typeof messagePaths)[number]

export interface MessagePath {
  readonly id: string
  readonly label: string
  readonly message_id: string
  readonly folder?: string
}

export interface Located {
  readonly user: UserRecord
  readonly account: AccountRecord
  /** As the call names the message. */
  readonly name: string
  /** Address of the message, in the form that it was asked for. */
  readonly url: string
  /** Its first placement is the one that was asked for: the mail server is asked there first. */
  readonly message: MessageRecord
  /** null when the path names none. */
  readonly folder: FolderRecord | null
  /** In that folder, or everywhere. Never empty. */
  readonly placements: readonly [Placement, ...Placement[]]
}

/** 404 for a message that does not lie in the folder of the path. */
export async function locate(call: Call, path: MessagePath, delimiter?: string, mailbox?: Mailbox): Promise<Located> {
  const { message_id: name } = path
  const { user, account } = mailbox ?? (await findAccount(call, path.id, path.label))
  const folder = path.folder === undefined ? null : await findFolder(call, account, path.folder, delimiter)
  const found = await findMessage(call, account, name)
  const message = folder === null ? found : await inFolder(call, found, folder, name)
  const [first, ...more] =
    folder === null ? message.placements : message.placements.filter((place) => place.folderId === folder.id)
  if (first === undefined) throw notFound('message', name)
  return {
    user,
    account,
    name,
    url: urlsOf(call).message(account, message.id, path.folder),
    message: folder === null ? message : placedFirst(message, folder.id),
    folder,
    placements: [first, ...more],
  }
}

/** A Message-ID may be that of several messages: the one in this folder is meant. All of them are in one thread. */
export async function inFolder(
  call: Call,
  found: MessageRecord,
  folder: FolderRecord,
  id: string,
): Promise<MessageRecord> {
  const lies = (message: MessageRecord): boolean => message.placements.some((place) => place.folderId === folder.id)
  if (lies(found)) return found
  const others =
    found.emailMessageId === null || id === found.id
      ? []
      : await call.engine.store.messages.list(
          found.accountId,
          { folderId: folder.id, threadId: found.threadId },
          { limit: 100, offset: 0 },
        )
  const other = others.find((message) => message.emailMessageId === found.emailMessageId)
  if (other !== undefined) return other
  await mustBeRead(call, { id: found.accountId }, folder)
  await mustBeSame(call, found.accountId, [folder])
  throw notFound('message', id)
}

/**
 * The same message with its places in the folder before the others; a message that lies nowhere else is left as it is.
 */
export function placedFirst(message: MessageRecord, folderId: string): MessageRecord {
  if (message.placements[0]?.folderId === folderId) return message
  const here = message.placements.filter((place) => place.folderId === folderId)
  return { ...message, placements: [...here, ...message.placements.filter((place) => place.folderId !== folderId)] }
}

/** The folder's own flags would be gone with it: only folders that hold mail can be written to. */
export function mustHoldMail(folder: FolderRecord, parameter: string): void {
  if (!folder.selectable) throw badParameter(parameter, `folder ${folder.path} holds no messages`)
}

/**
 * What is gone on the mail server is a 404 like every other: with the id or the name that the caller wrote. `folder`:
 * as the caller names it, and as the server does.
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
