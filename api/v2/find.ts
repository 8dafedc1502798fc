/**
 * Finds the records that paths of 2.0 name.
 *
 * Lists of 2.0 hide folders of the uses \Trash and \Drafts, and messages that lie only there, unless the source has
 * sync_all_folders; images of signatures and winmail.dat, unless it has raw_file_list; and with expunge_on_deleted_flag
 * messages that are flagged \Deleted. A call that names a hidden message by its id gets it.
 */
import {
  type AccountRecord,
  AppError,
  conversationOf,
  type FolderRecord,
  type HiddenPlaces,
  hostedThread,
  isAppError,
  isMarked,
  type MessageRecord,
  notFound,
  type SpecialUse,
  type UserRecord,
} from '../../engine/index.ts'
import { urlsOf } from '../addresses.ts'
import { bareName, findFolder, findMessage, findRead, findUser, type Located, type Mailbox } from '../lite/find.ts'
import { usesOf } from '../lite/folders.ts'
import type { Call, PathParameters } from '../route.ts'

const hiddenUses: ReadonlySet<SpecialUse | null> = new Set<SpecialUse>(['\\Trash', '\\Drafts'])

export function isShownFolder({ options }: Pick<AccountRecord, 'options'>, { specialUse }: FolderRecord): boolean {
  return options.syncAllFolders || !hiddenUses.has(specialUse)
}

export function hiddenPlaces(account: AccountRecord, folders: readonly FolderRecord[]): HiddenPlaces {
  const hidden = folders.filter((folder) => !isShownFolder(account, folder))
  return { folderIds: hidden.map(({ id }) => id), deleted: account.options.expungeOnDeletedFlag }
}

/** Whether lists show the message: for one of its placements at least. */
export function isShownMessage({ placements }: MessageRecord, { folderIds, deleted }: HiddenPlaces): boolean {
  return placements.some((place) => !folderIds.includes(place.folderId) && !(deleted && isMarked(place)))
}

/** Finds a shown or hidden folder by its name, or by its special use as RFC 6154 or XLIST spells it. */
export const findAnyFolder: typeof findFolder = async (call, account, name, delimiter, known) => {
  const folders = known ?? (await call.engine.store.folders.list(account.id))
  const found = name.startsWith('\\') ? byUse(folders, name) : null
  return found ?? findFolder(call, account, name, delimiter, folders)
}

/** As `findAnyFolder`; 404 for a hidden folder. */
export const findShownFolder: typeof findFolder = async (call, account, name, delimiter, known) => {
  const folder = await findAnyFolder(call, account, name, delimiter, known)
  if (isShownFolder(account, folder)) return folder
  throw new AppError('not_found', `${notFound('folder', name).message}: the source shows it with sync_all_folders=1`, {
    details: { kind: 'folder', id: name },
  })
}

/** null when no folder has this special use. */
export function byUse(folders: readonly FolderRecord[], name: string): FolderRecord | null {
  const wanted = name.toLowerCase()
  const isMeant = (folder: FolderRecord): boolean =>
    Object.values(usesOf(folder)).some((use) => use.toLowerCase() === wanted)
  return folders.find(isMeant) ?? null
}

/** The paths of an email account and of a message in lite, for documents that name the replacement of a route. */
export const liteAccount = '/lite/users/{id}/email_accounts/{label}'
export const liteMessage = `${liteAccount}/messages/{message_id}`

/** Both spellings of a message's path. */
export const messagePaths = [
  '/2.0/accounts/{id}/message/{message_id}',
  '/2.0/accounts/{id}/messages/{message_id}',
] as const
export type MessagePath = PathParameters<(typeof messagePaths)[number]>

/** A message of the first source that has it. An unknown id is a 503 while a source is read for the first time. */
export async function locateAnywhere(call: Call, path: MessagePath): Promise<Located> {
  const user = await findUser(call, path.id)
  const { account, message } = await findInSources(call, user, 'message', path.message_id, (account) =>
    findMessage(call, account, path.message_id),
  )
  const [located] = locatedAs(call, user, account, message, path.message_id)
  if (located === undefined) throw notFound('message', path.message_id)
  call.concerns(user, account)
  return located
}

export const threadPath = '/2.0/accounts/{id}/threads/{thread_id}'
export type ThreadPath = PathParameters<typeof threadPath>

/** Finds a thread in any source. `shown`: the messages that lists show; `messages`: those, else all. */
export async function locateThread(call: Call, { id, thread_id }: ThreadPath) {
  const { store } = call.engine
  const user = await findUser(call, id)
  const { account, message } = await findInSources(call, user, 'thread', thread_id, (one) =>
    anyOf(call, one, thread_id),
  )
  call.concerns(user, account)
  const whole = await conversationOf(store, message)
  const { messages } = whole
  const hidden = hiddenPlaces(account, await store.folders.list(account.id))
  const located = messages.flatMap((one) => locatedAs(call, user, account, one))
  const shown = located.filter((one) => isShownMessage(one.message, hidden))
  return { account, message, whole, shown, messages: shown.length > 0 ? shown : located }
}

/** Finds any message of the thread. */
async function anyOf(call: Call, account: AccountRecord, id: string): Promise<MessageRecord> {
  const threadId = id.startsWith('gm-') ? hostedThread(account.id, id.slice(3)) : id
  return findRead(call, account, ['thread', id], async () => {
    const [found] = await call.engine.store.messages.list(account.id, { threadId }, { limit: 1, offset: 0 })
    return found ?? null
  })
}

/** Empty for a message without placements. */
function locatedAs(
  call: Call,
  user: UserRecord,
  account: AccountRecord,
  message: MessageRecord,
  name = message.id,
): Located[] {
  const [first, ...more] = message.placements
  if (first === undefined) return []
  const url = urlsOf(call).message(account, message.id)
  return [{ user, account, name, url, message, folder: null, placements: [first, ...more] }]
}

/**
 * Searches the sources in their order. 404 when none has the message; the 503 of a source that could not tell wins.
 */
export async function findInSources(
  call: Call,
  user: UserRecord,
  kind: string,
  id: string,
  find: (account: AccountRecord) => Promise<MessageRecord>,
): Promise<{ readonly account: AccountRecord; readonly message: MessageRecord }> {
  let refusal: unknown = notFound(kind, id)
  for (const account of await call.engine.store.accounts.listByUser(user.id)) {
    try {
      return { account, message: await find(account) }
    } catch (error) {
      if (!isAppError(error, 'not_found')) refusal = error
      if (!isAppError(error, 'not_found') && !isAppError(error, 'account_unavailable')) throw error
    }
  }
  throw refusal
}

const mostNamed = 100

/** The messages with this Message-ID in the folder, newest first. */
export async function namedIn(
  call: Call,
  { id, accountId }: FolderRecord,
  emailMessageId: string,
): Promise<MessageRecord[]> {
  const named = await call.engine.store.messages.findAll(accountId, emailMessageId, mostNamed)
  return named.filter(({ placements }) => placements.some(({ folderId }) => folderId === id))
}

/**
 * Recognizes a move that is done already: the call names a Message-ID, and a source before the located one has had that
 * message and lost it. Returns the copy in the folder then, else null: the located message is one of another source.
 */
export async function sentBefore(
  call: Call,
  located: Located,
  { account }: Mailbox,
  to: FolderRecord,
): Promise<Located | null> {
  const name = bareName(located.name)
  if (name !== located.message.emailMessageId) return null
  const { accounts, messages } = call.engine.store
  const named = await namedIn(call, to, name)
  const [copy] = named.flatMap((message) => locatedAs(call, located.user, account, message, located.name))
  if (copy === undefined) return null
  for (const { id } of await accounts.listByUser(located.user.id)) {
    if (id === located.account.id) return null
    const left = await messages.find(id, name)
    if (left?.placements.length === 0) return copy
  }
  return null
}
