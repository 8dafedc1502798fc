/** The two message lists and the single message, from the index; the mail server is asked for what only it has. */
import { z } from 'zod'
import {
  AppError,
  badParameter,
  createGiveWay,
  type FolderRecord,
  type MessageQuery,
  type MessageRecord,
} from '../../../engine/index.ts'
import { type Call, defineRoute, JsonText, tagged } from '../../route.ts'
import { endOfSecond, given } from '../../values.ts'
import { findAccount, findFolder, type Mailbox, mustBeRead, mustReachBack } from '../find.ts'
import { type Contents, readAllContents, readContents, wantsContents } from './contents.ts'
import { locate, messagePaths, type MessagePattern, placedFirst } from './locate.ts'
import { flagsIn, listText, messageTextWith, presentFlags, viewerOf } from './present.ts'
import * as schema from './schema.ts'

const base = '/lite/users/{id}/email_accounts/{label}'
const description =
  'Answered from the index; `include_body`, `include_headers` and `body_search_string` ask the mail server. A message of a list whose ' +
  'contents the server does not give carries `body_error`; a body part over 1 MiB in a list (16 MiB alone) is cut and marked `truncated`. ' +
  'While a folder is read for the first time, a page that could lack messages (shorter than `limit`, or oldest first) and an unknown ' +
  'message id are a 503 that says how far the reading is.'

const listInAccount = defineRoute(`GET ${base}/messages`, {
  summary: 'List messages of an email account',
  description,
  query: schema.accountListQuery,
  response: z.array(schema.messageView),
  async handler({ path, query }, call) {
    return listMessages(call, await findAccount(call, path.id, path.label), query.folder, query)
  },
})

const listInFolder = defineRoute(`GET ${base}/folders/{folder+}/messages`, {
  summary: 'List messages of a folder',
  description,
  query: schema.listQuery,
  response: z.array(schema.messageView),
  async handler({ path, query }, call) {
    return listMessages(call, await findAccount(call, path.id, path.label), path.folder, query)
  },
})

async function listMessages(
  call: Call,
  { user, account }: Mailbox,
  name: string | undefined,
  query: schema.ListParameters,
): Promise<JsonText> {
  const { store } = call.engine
  // Before the messages, which may be coming in: what these folders call read is in the list.
  const folders = await store.folders.list(account.id)
  const folder = name === undefined ? null : await findFolder(call, account, name, query.delimiter, folders)
  const asksServer = wantsContents(query) || query.body_search_string !== undefined
  if (asksServer) call.touchesImap(user)
  const ids =
    query.body_search_string === undefined
      ? undefined
      : await searchBodies(call, account.id, folder, query.body_search_string)
  const wanted = { ...messageQueryOf(query, folder), ...(ids === undefined ? {} : { ids }) }
  const messages = await store.messages.list(account.id, wanted, { limit: query.limit, offset: query.offset })
  // The newest of a folder come first while it is read: a full page of them lacks nothing.
  const last = messages.length < query.limit || query.sort_order === 'asc' ? undefined : messages.at(-1)
  if (last === undefined) await mustBeRead(call, account.id, folder, folders)
  else if (folder === null && account.resume.initialSyncAt === null) await mustReachBack(call, folders, last.sentAt)
  const viewer = viewerOf(call.baseUrl, account, folders)
  if (!wantsContents(query) && query.include_flags !== true) return new JsonText(listText(messages, viewer))
  const placed = folder === null ? messages : messages.map((message) => placedFirst(message, folder.id))
  const contents = wantsContents(query) ? await readAllContents(call, account.id, placed, query) : null
  const more = (message: MessageRecord) => ({ ...flagsFor(message, folder, query), ...contents?.get(message.id) })
  const giveWay = createGiveWay()
  const texts: string[] = []
  for (const message of messages) {
    // With bodies that is up to 32 MiB of text.
    if (contents !== null) await giveWay()
    texts.push(messageTextWith(message, viewer, more(message)))
  }
  return new JsonText(`[${texts.join(',')}]`)
}

function flagsFor(
  message: MessageRecord,
  folder: FolderRecord | null,
  query: { readonly include_flags?: boolean | undefined },
) {
  return query.include_flags === true ? { flags: presentFlags(flagsIn(message, folder?.id)) } : {}
}

type Parameters = z.output<typeof schema.messageQuery>

const getRoute = (path: MessagePattern) =>
  defineRoute(`GET ${path}`, {
    summary: 'Get a message',
    description: `${description} With \`body_search_string\` the answer is 404 when the body does not hold the text.`,
    query: schema.messageQuery,
    response: schema.messageView,
    async handler({ path, query }, call) {
      const { user, account, message, folder } = await locate(call, path, query.delimiter)
      const asksServer = wantsContents(query) || query.body_search_string !== undefined
      if (asksServer) call.touchesImap(user)
      await mustHoldText(call, message, folder, query)
      const contents: Contents = wantsContents(query) ? await readContents(call, message, query) : {}
      const viewer = viewerOf(call.baseUrl, account, await call.engine.store.folders.list(account.id))
      return new JsonText(messageTextWith(message, viewer, { ...flagsFor(message, folder, query), ...contents }))
    },
  })

/** Searches where the message lies: in the folder of the path, or in one of its own. */
async function mustHoldText(
  call: Call,
  message: MessageRecord,
  folder: FolderRecord | null,
  { body_search_string: text }: Parameters,
): Promise<void> {
  if (text === undefined) return
  const { accounts, store } = call.engine
  const place = message.placements[0]
  const where = folder ?? (place === undefined ? null : await store.folders.byPath(message.accountId, place.path))
  const ids = where === null ? [] : await accounts.searchBody(message.accountId, where, text)
  if (ids.includes(message.id)) return
  throw new AppError(
    'not_found',
    `message ${message.id} is invalid: its body does not hold the text of body_search_string`,
    {
      details: { kind: 'message', id: message.id },
    },
  )
}

export const messageListRoutes = tagged('Messages', [listInAccount, listInFolder, ...messagePaths.map(getRoute)])

function messageQueryOf(query: schema.ListParameters, folder: FolderRecord | null): MessageQuery {
  const filled = (list: string[] | undefined): string[] | undefined => (list?.length === 0 ? undefined : list)
  return given({
    folderId: folder?.id,
    subject: query.subject,
    email: filled(query.email),
    to: filled(query.to),
    from: filled(query.from),
    cc: filled(query.cc),
    bcc: filled(query.bcc),
    sentFrom: query.date_after,
    sentUntil: endOfSecond(query.date_before),
    order: query.sort_order ?? ('desc' as const),
  })
}

/** More are not searched in one call: the caller names a folder. */
const foldersMax = 200

/** Ids of the messages whose body holds the text. Rejects when one folder cannot be searched. */
async function searchBodies(
  call: Call,
  accountId: string,
  folder: FolderRecord | null,
  text: string,
): Promise<string[]> {
  const { accounts, store } = call.engine
  const folders = (folder === null ? await store.folders.list(accountId) : [folder]).filter(isRead)
  if (folders.length > foldersMax) {
    throw badParameter(
      'body_search_string',
      `the email account has ${folders.length} folders; name the one to search in`,
    )
  }
  const found = new Set<string>()
  for (const one of folders) {
    call.signal.throwIfAborted()
    for (const id of await accounts.searchBody(accountId, one, text)) found.add(id)
  }
  return [...found]
}

/** What was never opened, or was empty when it was last read, has no message in the index that a search could name. */
function isRead({ selectable, cursor }: FolderRecord): boolean {
  return selectable && cursor !== null && cursor.exists > 0
}
