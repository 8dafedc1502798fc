/** Routes of the two message lists and the single message, and the parts of lists that 2.0 shares. */
import { z } from 'zod'
import {
  type AccountRecord,
  AppError,
  badParameter,
  measured,
  yieldToLoop,
  type FolderRecord,
  type MessageQuery,
  type MessageRecord,
  type Page,
} from '../../../engine/index.ts'
import { keptAnswer } from '../../kept-answers.ts'
import { type Call, defineRoute, JsonText, routesAt, tagged } from '../../route.ts'
import { endOfSecond, given } from '../../values.ts'
import { findAccount, locate, type Located, type MessagePath, messagePaths, placedFirst } from '../find.ts'
import { mustBeRead, mustBeSame, mustReachBack } from '../unread.ts'
import { readAllContents, readContents, wantsContents } from './contents.ts'
import { type Contents, flagsIn, liteForm, type MessageForm, viewerOf } from './present.ts'
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
  handler: ({ path, query }, call) => listMessages(call, { ...path, folder: query.folder }, query, liteForm),
})

const listInFolder = defineRoute(`GET ${base}/folders/{folder+}/messages`, {
  summary: 'List messages of a folder',
  description,
  query: schema.listQuery,
  response: z.array(schema.messageView),
  handler: ({ path, query }, call) => listMessages(call, path, query, liteForm),
})

/** Without a `folder`: of all folders that this version shows. */
export async function listMessages(
  call: Call,
  path: { readonly id: string; readonly label: string; readonly folder?: string | undefined },
  wanted: ListParameters,
  form: MessageForm,
): Promise<JsonText> {
  const { user, account } = await findAccount(call, path.id, path.label)
  const { folders, folder, query, mustBeWhole } = await listingOf(call, account, path.folder, wanted, form)
  const { store } = call.engine
  const { body_search_string: search, limit, offset, include_flags } = wanted
  if (asksServer(wanted)) call.touchesImap(user)
  const found = search === undefined ? null : await searchBodies(call, folder === null ? folders : [folder], search)
  const sieve = form.sieve(account, folder, wanted)
  const sift = (one: MessageRecord): MessageRecord[] => {
    call.signal.throwIfAborted()
    return sieve?.passes(one) === false || found?.has(one) === false ? [] : [one]
  }
  const answer = async (): Promise<JsonText> => {
    const wholeQuery = { ...query, ...sieve?.query, ...given({ ids: found?.few }) }
    const messages =
      sieve === null && (found === null || found.few !== undefined)
        ? await store.messages.list(account.id, wholeQuery, { limit, offset })
        : await store.messages.picked(account.id, wholeQuery, { limit, offset }, sift)
    await mustBeWhole(messages.length, messages.at(-1))
    return new JsonText(await textOf(call, { account, folders, folder }, messages, wanted, form))
  }
  const isKept = !asksServer(wanted) && sieve === null && form.beside(call, wanted) === undefined
  return isKept ? keptAnswer(call, account, [query, limit, offset, include_flags], answer) : answer()
}

type ListParameters = z.output<typeof schema.listQuery> & schema.Wishes

/** The query of a list and its folders. `name`: of the folder; undefined = all folders that this version shows. */
export async function listingOf(
  call: Call,
  account: AccountRecord,
  name: string | undefined,
  wanted: Page & Partial<ListParameters>,
  form: MessageForm,
) {
  // Read before the messages: mail of a folder that is complete here is in the index when the messages are listed.
  const folders = await call.engine.store.folders.list(account.id)
  const folder = name === undefined ? null : await form.folder(call, account, name, wanted.delimiter, folders)
  const hidden = form.hides(account, folders)
  return {
    folders,
    /** null = all of them. */
    folder,
    query: { ...messageQueryOf(wanted, folder), hidden },
    /**
     * Throws the 503 of unread.ts when a page of `found` entries could lack messages: a full page of the newest needs
     * all folders to be read as far back as its last message, another one needs them to be read to their end.
     */
    async mustBeWhole(found: number, last: MessageRecord | undefined): Promise<void> {
      const shown = folders.filter(({ id }) => !hidden.folderIds.includes(id))
      if (last === undefined || found < wanted.limit || wanted.sort_order === 'asc') {
        await mustBeRead(call, account, folder, shown)
        await mustBeSame(call, account.id, folder === null ? shown : [folder])
      } else if (folder === null && account.resume.initialSyncAt === null) await mustReachBack(call, shown, last.sentAt)
    },
  }
}

interface ListPlace {
  readonly account: AccountRecord
  readonly folders: readonly FolderRecord[]
  /** null = all of them. */
  readonly folder: FolderRecord | null
}

/** JSON of the messages, with the contents and fields that `query` asks for. */
export async function textOf(
  call: Call,
  place: ListPlace,
  messages: readonly MessageRecord[],
  query: schema.Wishes,
  form: MessageForm,
): Promise<string> {
  const { account, folder } = place
  const placed = folder === null ? messages : messages.map((message) => placedFirst(message, folder.id))
  const contents = wantsContents(query) ? await readAllContents(call, account.id, placed, query) : null
  const present = await presenterOf(call, place, messages, query, form, contents)
  const texts: string[] = []
  for (const message of messages) {
    // Bodies make up to 32 MiB of text, and a message may be to thousands of people.
    await yieldToLoop()
    texts.push(measured(() => JSON.stringify(present(message))))
  }
  return `[${texts.join(',')}]`
}

/** `contents`: by message id; null = the call wants none. */
async function presenterOf(
  call: Call,
  { account, folders, folder }: ListPlace,
  messages: readonly MessageRecord[],
  query: schema.Wishes,
  form: MessageForm,
  contents: ReadonlyMap<string, Contents> | null,
): Promise<(message: MessageRecord) => object> {
  const viewer = viewerOf(call, account, folders)
  const others = await form.beside(call, query)?.(account, messages)
  return (message) =>
    Object.assign(
      form.present(message, viewer),
      query.include_flags === true ? form.flags(flagsIn(message, folder?.id)) : null,
      form.contents(contents?.get(message.id) ?? {}),
      others?.(message),
    )
}

const get = routesAt('GET', messagePaths, '', {
  summary: 'Get a message',
  description: `${description} With \`body_search_string\` the answer is 404 when the body does not hold the text.`,
  query: schema.messageQuery,
  response: schema.messageView,
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const show = async (): Promise<JsonText> =>
      showMessage(call, await locate(call, path, query.delimiter, mailbox), query, liteForm)
    if (asksServer(query)) return show()
    const { message_id: id, folder }: MessagePath = path
    return keptAnswer(call, mailbox.account, [id, folder, query], show)
  },
})

function asksServer(wanted: schema.Wishes): boolean {
  return wantsContents(wanted) || wanted.body_search_string !== undefined
}

export async function showMessage(
  call: Call,
  located: Located,
  query: schema.Wishes,
  form: MessageForm,
): Promise<JsonText> {
  const { user, account, message, folder } = located
  if (asksServer(query)) call.touchesImap(user)
  if (query.body_search_string !== undefined) await mustHoldText(call, located, query.body_search_string)
  const contents = wantsContents(query) ? new Map([[message.id, await readContents(call, message, query)]]) : null
  const folders = await call.engine.store.folders.list(account.id)
  const present = await presenterOf(call, { account, folders, folder }, [message], query, form, contents)
  return new JsonText(JSON.stringify(present(message)))
}

/** Throws `not_found` for another body. Searches the folder of the path, or the first folder of the message. */
async function mustHoldText(call: Call, { message, folder, placements }: Located, text: string): Promise<void> {
  const { accounts, store } = call.engine
  const where = folder ?? (await store.folders.byPath(message.accountId, placements[0].path))
  const found = where === null ? null : await accounts.searchBody(where, text)
  if (found?.has(message) === true) return
  const problem = `message ${message.id} is invalid: its body does not hold the text of body_search_string`
  throw new AppError('not_found', problem, { details: { kind: 'message', id: message.id } })
}

export const messageListRoutes = tagged('Messages', [listInAccount, listInFolder, ...get])

function messageQueryOf(query: Partial<ListParameters>, folder: FolderRecord | null): MessageQuery {
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

/** Most folders that one call searches. */
const foldersMax = 200

interface Found {
  readonly has: (message: MessageRecord) => boolean
  /** Their ids; undefined = more than `fewMost`, so each message of the index is checked with `has`. */
  readonly few: string[] | undefined
}

const fewMost = 1000

/** Finds the messages whose body holds the text. Rejects when one folder cannot be searched. */
async function searchBodies(call: Call, all: readonly FolderRecord[], text: string): Promise<Found> {
  const folders = all.filter(isRead)
  const problem = `the email account has ${folders.length} folders; name the one to search in`
  if (folders.length > foldersMax) throw badParameter('body_search_string', problem)
  const found = await Array.fromAsync(folders, (one) => {
    call.signal.throwIfAborted()
    return call.engine.accounts.searchBody(one, text)
  })
  const count = found.reduce((sum, one) => sum + one.count, 0)
  const few = count > fewMost ? null : await Promise.all(found.map((one) => one.ids()))
  return { has: (message) => found.some((one) => one.has(message)), few: few ? [...new Set(few.flat())] : undefined }
}

/** Whether the index may have messages of the folder: the sync has read it, and it was not empty. */
function isRead({ selectable, cursor }: FolderRecord): boolean {
  return selectable && cursor !== null && cursor.exists > 0
}
