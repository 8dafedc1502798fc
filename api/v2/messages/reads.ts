/**
 * /2.0/accounts/{id}/messages: the shape of messages in 2.0, the lists of one source, and a message of any source with
 * its parts.
 */
import { z } from 'zod'
import {
  type AccountRecord,
  type AttachmentRecord,
  conversationsOf,
  yieldToLoop,
  describeFile,
  isShownFile,
  type MessageAddresses,
  type MessageRecord,
} from '../../../engine/index.ts'
import { seconds, urlsOf } from '../../addresses.ts'
import * as examples from '../../examples.ts'
import { listMessages, showMessage } from '../../lite/messages/list.ts'
import { rawMessage, readBodies, readHeaders } from '../../lite/messages/parts.ts'
import {
  type Beside,
  type MessageForm,
  type MessageViewer,
  namedFlags,
  presentAddresses,
  presentAttachment,
  presentBody,
  presentFacts,
} from '../../lite/messages/present.ts'
import * as lite from '../../lite/messages/schema.ts'
import { reference } from '../../lite/users.ts'
import { type Call, defineRoute, deprecated, routesAt, StreamAnswer } from '../../route.ts'
import { filledText, flag, given, limit, offset, optional, orEmptyList, text } from '../../values.ts'
import { fileParametersOf, indexedParameters, seenParameter, sieveOf, timesOf } from '../filters.ts'
import {
  findShownFolder,
  hiddenPlaces,
  isShownMessage,
  liteAccount,
  liteMessage,
  locateAnywhere,
  messagePaths,
} from '../find.ts'

export const fileFields = {
  ...lite.attachmentFields,
  file_id: [z.string(), `${examples.ids.message}-0`],
  file_name_structure: [
    z.array(z.array(z.string())),
    [
      ['offer', 'main'],
      ['.pdf', 'ext'],
    ],
    'the name in parts, each with its kind: `main`, `boundary`, `numeric`, `date` or `ext`',
  ],
  main_file_name: [z.string(), 'offer.pdf', 'the name without what tells its versions apart'],
  resource_url: [z.string(), examples.v2Urls.file],
} as const

const messageFileView = examples.view('MessageFile', fileFields)

export const flagsView = examples.answer({ seen: [z.boolean(), true], ...lite.otherFlagFields })

/** Fields of messages and of files. `from` is one address, the other fields of `addresses` are lists. */
export const envelopeFields = {
  addresses: [
    orEmptyList(z.object({ from: lite.address.optional(), ...lite.otherAddresses })),
    { from: { name: 'Ben Lind', email: 'ben@example.org' }, to: [{ name: 'Anna Berg', email: examples.address }] },
  ],
  date: [z.int(), 1_699_999_990],
  date_received: [z.int(), 1_699_999_995],
  date_indexed: [z.int(), 1_700_000_000],
} as const

export const messageView = examples.view('Message20', {
  ...lite.messageFields,
  ...envelopeFields,
  files: [z.array(messageFileView), [examples.exampleOf(messageFileView)]],
  body: [z.array(lite.bodyPartView), [examples.exampleOf(lite.bodyPartView)]],
  flags: [flagsView.optional(), examples.exampleOf(flagsView)],
  thread_size: z.int().optional(),
  sources: [z.array(reference).optional(), [{ label: examples.label, resource_url: examples.v2Urls.source }]],
  resource_url: [z.string(), examples.v2Urls.message],
})

const besideParameters = {
  include_source: optional(flag, '1 = with the source of the message'),
  include_thread_size: optional(flag, '1 = with the number of messages of its thread'),
}

/** Parameters of both lists that lite does not have, or reads in another way. */
const listParameters = {
  ...timesOf('date', 'messages sent'),
  ...besideParameters,
  ...indexedParameters,
  ...fileParametersOf('messages with a file'),
}

const folderListQuery = lite.listQuery.extend({ ...listParameters, flag_seen: seenParameter })

export const listQuery = lite.accountListQuery.omit({ body_search_string: true }).extend({
  ...listParameters,
  folder: optional(
    filledText,
    'only messages in this folder: its full path, or its use, like `\\Sent`',
    'INBOX',
    '\\Sent',
  ),
  source: optional(filledText, 'label of the source; absent = the first one', examples.label),
})

export const messageQuery = lite.messageQuery
  .omit({ body_search_string: true, delimiter: true })
  .extend(besideParameters)

const { subject, email, to, from, cc, bcc, date_before, date_after, folder, source, sort_order } = listQuery.shape
const filters = {
  ...{ email, to, from, cc, bcc, date_before, date_after },
  ...indexedParameters,
  ...{ source, limit, offset },
}
/** Parameters of the lists of threads and of files that filter messages. */
export const threadFilters = { subject, folder, ...filters }
export const fileFilters = { ...filters, sort_order }

export const v2Form: MessageForm = {
  present: presentMessage,
  flags: (flags) => ({ flags: namedFlags(flags) }),
  contents: ({ bodies, ...others }) => (bodies === undefined ? others : { body: bodies, ...others }),
  beside: besideOf,
  sieve: sieveOf,
  folder: findShownFolder,
  hides: hiddenPlaces,
}

function presentMessage(message: MessageRecord, viewer: MessageViewer): z.input<typeof messageView> {
  return {
    ...presentFacts(message, viewer),
    ...presentDates(message),
    addresses: presentPeople(message.addresses),
    files: presentFiles(message, viewer),
    body: message.bodies.map(presentBody),
  }
}

export function presentDates({ sentAt, receivedAt, indexedAt }: MessageRecord) {
  return { date: seconds(sentAt), date_received: seconds(receivedAt), date_indexed: seconds(indexedAt) }
}

export function presentPeople(addresses: MessageAddresses): z.input<typeof messageView>['addresses'] {
  const lists = presentAddresses(addresses)
  if (Array.isArray(lists)) return lists
  const { from: [from] = [], ...others } = lists
  return from === undefined ? others : { from, ...others }
}

type Viewer = Pick<MessageViewer, 'account' | 'urls'>

function presentFiles(message: MessageRecord, viewer: Viewer): z.input<typeof messageFileView>[] {
  return message.attachments
    .filter((file) => isShownFile(viewer.account, file))
    .map((file) => presentMessageFile(message, file, viewer))
}

export function presentMessageFile(message: MessageRecord, file: AttachmentRecord, { account, urls }: Viewer) {
  const described = describeFile(message, file)
  return {
    ...presentAttachment(file),
    ...described,
    file_name_structure: described.file_name_structure.map((piece) => [...piece]),
    resource_url: `${urls.user({ id: account.userId })}/files/${described.file_id}`,
  }
}

function besideOf(call: Call, { include_source, include_thread_size }: lite.Wishes): Beside | undefined {
  if (include_source !== true && include_thread_size !== true) return undefined
  return async (account, messages) => {
    const source = { label: account.label, resource_url: urlsOf(call).account(account) }
    const sources = include_source === true ? [source] : undefined
    const sizes = include_thread_size === true ? await threadSizes(call, account, messages) : null
    return ({ id }) => given({ sources, thread_size: sizes?.get(id) })
  }
}

/** Message id → number of shown messages of its thread. */
async function threadSizes(
  call: Call,
  account: AccountRecord,
  messages: readonly MessageRecord[],
): Promise<ReadonlyMap<string, number>> {
  const { store } = call.engine
  const hidden = hiddenPlaces(account, await store.folders.list(account.id))
  const byThread = new Map<string, number>()
  const threads = Map.groupBy(messages, ({ threadId }) => threadId)
  const first = [...threads.values()].flatMap(([one]) => one ?? [])
  for (const whole of (await conversationsOf(store, account.id, first)).values()) {
    call.signal.throwIfAborted()
    await yieldToLoop()
    const { threadIds } = whole
    const size = whole.isWhole
      ? whole.messages.filter((one) => isShownMessage(one, hidden)).length
      : await store.messages.count(account.id, { threadIds, hidden })
    for (const threadId of threadIds) byThread.set(threadId, size)
  }
  return new Map(messages.map(({ id, threadId }) => [id, byThread.get(threadId) ?? 1]))
}

const base = '/2.0/accounts/{id}'

const description =
  'Answered from the index. Folders of the uses \\\\Trash and \\\\Drafts, and what lies only there, are hidden unless the source has ' +
  '`sync_all_folders`. `include_body` and `include_headers` ask the mail server.'

const listInAccount = defineRoute(`GET ${base}/messages`, {
  instead: `GET ${liteAccount}/messages`,
  summary: 'List messages of one source of an account',
  description,
  query: listQuery,
  response: z.array(messageView),
  handler: ({ path: { id }, query }, call) =>
    listMessages(call, { id, label: query.source ?? '0', folder: query.folder }, query, v2Form),
})

const listInFolder = defineRoute(`GET ${base}/sources/{label}/folders/{folder+}/messages`, {
  instead: `GET ${liteAccount}/folders/{folder}/messages`,
  summary: 'List messages of a folder',
  description: `${description} So does \`body_search_string\`, which only this list has.`,
  query: folderListQuery,
  response: z.array(messageView),
  handler: ({ path, query }, call) => listMessages(call, path, query, v2Form),
})

const get = routesAt('GET', messagePaths, '', {
  instead: `GET ${liteMessage}`,
  summary: 'Get a message',
  description: 'Wherever it lies, in whichever source, hidden or not.',
  query: messageQuery,
  response: messageView,
  handler: async ({ path, query }, call) => showMessage(call, await locateAnywhere(call, path), query, v2Form),
})

const body = routesAt('GET', messagePaths, '/body', {
  instead: `GET ${liteMessage}/body`,
  summary: 'Get the bodies of a message, straight from the mail server',
  query: z.object({ type: optional(text, 'only body parts of this MIME type', 'text/html') }),
  response: z.array(lite.bodyPartView).meta({ examples: [[examples.exampleOf(lite.bodyPartView)]] }),
  handler: async ({ path, query }, call) => readBodies(call, await locateAnywhere(call, path), query.type),
})

const headers = routesAt('GET', messagePaths, '/headers', {
  instead: `GET ${liteMessage}/headers`,
  summary: 'Get the headers of a message',
  description: 'By lower-case name, decoded. With `raw=1` the text of the header block instead of JSON.',
  query: z.object({ raw: optional(flag, '1 = the header block as text, as it is in the message') }),
  response: z.record(z.string(), z.array(z.string())).meta({ examples: [{ subject: ['Hello'] }] }),
  plain: true,
  async handler({ path, query }, call) {
    const headers = await readHeaders(call, await locateAnywhere(call, path), query.raw)
    if (typeof headers !== 'string') return headers
    return new StreamAnswer(headers, { 'Content-Type': 'text/plain; charset=utf-8' })
  },
})

const raw = routesAt('GET', messagePaths, '/source', {
  instead: `GET ${liteMessage}/raw`,
  summary: 'Get the whole message as it is on the mail server',
  response: 'binary',
  handler: async ({ path }, call) => rawMessage(call, await locateAnywhere(call, path)),
})

const flags = routesAt('GET', messagePaths, '/flags', {
  instead: `GET ${liteMessage}/flags`,
  summary: 'Get the flags of a message',
  response: flagsView,
  handler: async ({ path }, call) => namedFlags((await locateAnywhere(call, path)).placements[0].flags),
})

const files = routesAt('GET', messagePaths, '/files', {
  instead: `GET ${liteMessage}/attachments`,
  summary: 'List the files of a message',
  description: 'Without images of signatures and winmail.dat, unless the source has `raw_file_list`.',
  response: z.array(messageFileView),
  async handler({ path }, call) {
    const { account, message } = await locateAnywhere(call, path)
    return presentFiles(message, { account, urls: urlsOf(call) })
  },
})

export const v2MessageReadRoutes = deprecated(
  'messages',
  [listInAccount, listInFolder, get, body, headers, raw, flags, files].flat(),
)
