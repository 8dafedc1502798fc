/** From the path of one message to the message, and to the places of it that the call is about. */
import {
  type AccountRecord,
  AppError,
  type FolderRecord,
  isAppError,
  type MessageRecord,
  notFound,
  type Placement,
  type UserRecord,
} from '../../../engine/index.ts'
import type { Call } from '../../route.ts'
import { findAccount, findFolder, findMessage, mustBeRead } from '../find.ts'
import { liteUrls } from '../../addresses.ts'

const base = '/lite/users/{id}/email_accounts/{label}'

/** Both ways to a message: wherever it lies, and in one folder. */
export const messagePaths = [
  `${base}/messages/{message_id}`,
  `${base}/folders/{folder+}/messages/{message_id}`,
] as const

export type MessagePattern = (typeof messagePaths)[number]

/** Parameters of such a path. */
export interface MessagePath {
  readonly id: string
  readonly label: string
  readonly message_id: string
  readonly folder?: string
}

export interface Located {
  readonly user: UserRecord
  readonly account: AccountRecord
  /** Its first placement is the one that was asked for: the mail server is asked there first. */
  readonly message: MessageRecord
  /** null when the path names none. */
  readonly folder: FolderRecord | null
  /** In that folder, or everywhere. Never empty. */
  readonly placements: readonly [Placement, ...Placement[]]
}

/** 404 for a message that does not lie in the folder of the path. */
export async function locate(call: Call, path: MessagePath, delimiter?: string): Promise<Located> {
  const { user, account } = await findAccount(call, path.id, path.label)
  const folder = path.folder === undefined ? null : await findFolder(call, account, path.folder, delimiter)
  const found = await findMessage(call, account, path.message_id)
  const message = folder === null ? found : await inFolder(call, found, folder, path.message_id)
  const [first, ...more] =
    folder === null ? message.placements : message.placements.filter((place) => place.folderId === folder.id)
  if (first === undefined) throw notFound('message', path.message_id)
  return {
    user,
    account,
    message: folder === null ? message : placedFirst(message, folder.id),
    folder,
    placements: [first, ...more],
  }
}

/** A Message-ID may be that of several messages: the one in this folder is meant. All of them are in one thread. */
async function inFolder(call: Call, found: MessageRecord, folder: FolderRecord, id: string): Promise<MessageRecord> {
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
  await mustBeRead(call, found.accountId, folder)
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

/** Address of what the call asked for, in the form that it was asked in. */
export function partUrl(call: Call, { account, message }: Located, path: MessagePath, part: string): string {
  return `${liteUrls(call.baseUrl).message(account, message.id, path.folder)}/${part}`
}

/** The folder's own flags would be gone with it: only folders that hold mail can be written to. */
export function mustHoldMail(folder: FolderRecord, parameter: string): void {
  if (!folder.selectable)
    throw new AppError('bad_request', `${parameter}: folder ${folder.path} holds no messages`, {
      details: { parameter },
    })
}

interface Names {
  readonly message: string
  /** The folder that the caller named, and what the server calls it. */
  readonly folder?: { readonly name: string; readonly path: string }
}

/** What is gone on the mail server is a 404 like every other: with the id or the name that the caller wrote. */
export async function asNamed<T>({ message, folder }: Names, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    const { kind, id } = error.details
    const meant = folder !== undefined && kind === 'folder' && folder.path === id
    throw meant ? notFound('folder', folder.name) : notFound('message', message)
  }
}
