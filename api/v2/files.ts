/** /2.0/accounts/{id}/files: the attachments of a source as resources of their own. */
import { z } from 'zod'
import {
  type AccountRecord,
  type AttachmentRecord,
  describeMail,
  isAppError,
  mainFileName,
  type MessageRecord,
  nameMessage,
  notFound,
  type Page,
} from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { attachmentOf, download, linkTo } from '../lite/messages/parts.ts'
import { type MessageViewer, pathsOf, peopleOf, viewerOf } from '../lite/messages/present.ts'
import { messageFields } from '../lite/messages/schema.ts'
import { findAccount, kinds } from '../lite/find.ts'
import { listingOf } from '../lite/messages/list.ts'
import { type Call, defineRoute, deprecated, StreamAnswer } from '../route.ts'
import { flag, limitOf, offset, optional } from '../values.ts'
import { fileFilter, fileParametersOf, isIndexedWithin } from './filters.ts'
import { liteAccount, liteMessage, locateAnywhere } from './find.ts'
import {
  envelopeFields,
  fileFields,
  fileFilters,
  presentDates,
  presentMessageFile,
  presentPeople,
  v2Form,
} from './messages/reads.ts'

const { person_info, subject, message_id, email_message_id, folders } = messageFields
const { mailhost_message_id, mailhost_thread_id, gmail_message_id, gmail_thread_id } = messageFields

export const fileView = examples.view('File', {
  ...fileFields,
  ...{ person_info, subject, message_id, email_message_id, folders },
  ...{ mailhost_message_id, mailhost_thread_id, gmail_message_id, gmail_thread_id },
  ...envelopeFields,
})

export const fileListQuery = z.object({ ...fileParametersOf('files'), ...fileFilters })

type FileQuery = z.output<typeof fileListQuery>

export async function listFiles(call: Call, id: string, wanted: FileQuery): Promise<z.input<typeof fileView>[]> {
  const { account } = await findAccount(call, id, wanted.source ?? '0')
  const isWanted = fileFilter(account, wanted)
  return filesIn(call, account, wanted, (file, message) => isWanted(file) && isIndexedWithin(message, wanted))
}

async function filesIn(
  call: Call,
  account: AccountRecord,
  wanted: Page & Partial<FileQuery>,
  isWanted: (file: AttachmentRecord, message: MessageRecord) => boolean,
): Promise<z.input<typeof fileView>[]> {
  const { folders, query, mustBeWhole } = await listingOf(call, account, undefined, wanted, v2Form)
  const attached = { ...query, hasAttachments: true }
  const found = await call.engine.store.messages.picked(account.id, attached, wanted, (message) => {
    call.signal.throwIfAborted()
    const files = message.attachments.filter((file) => isWanted(file, message))
    return files.map((attachment) => ({ message, attachment }))
  })
  await mustBeWhole(found.length, found.at(-1)?.message)
  const viewer = viewerOf(call, account, folders)
  return found.map(({ message, attachment }) => presentFile(message, attachment, viewer))
}

function presentFile(message: MessageRecord, file: AttachmentRecord, viewer: MessageViewer): z.input<typeof fileView> {
  return {
    ...nameMessage(message),
    ...describeMail(message, peopleOf(message), pathsOf(message), viewer.folderName),
    addresses: presentPeople(message.addresses),
    ...presentDates(message),
    ...presentMessageFile(message, file, viewer),
  }
}

/** Finds a file in any source of the account. A missing message or attachment is a 404 of the file. */
async function findFile(call: Call, { id, file_id }: { readonly id: string; readonly file_id: string }) {
  const [, message_id, index] = /^([0-9a-f]{24})-(\d{1,6})$/.exec(file_id) ?? []
  try {
    if (message_id === undefined || index === undefined) throw notFound('file', file_id)
    const located = await locateAnywhere(call, { id, message_id })
    return { ...located, file: attachmentOf(located.message, index) }
  } catch (error) {
    const isUnknown = isAppError(error, 'not_found') && error.details.kind !== kinds['2.0'].user
    throw isUnknown ? notFound('file', file_id) : error
  }
}

const base = '/2.0/accounts/{id}/files'

const list = defineRoute(`GET ${base}`, {
  instead: `GET ${liteAccount}/messages`,
  summary: 'List the files of one source of an account',
  description:
    'Those of the newest mail first, without images of signatures and winmail.dat, unless the source has `raw_file_list`.',
  query: fileListQuery,
  response: z.array(fileView),
  handler: ({ path, query }, call) => listFiles(call, path.id, query),
})

const get = defineRoute(`GET ${base}/{file_id}`, {
  instead: `GET ${liteMessage}`,
  summary: 'Get a file: what is known of it',
  response: fileView,
  async handler({ path }, call) {
    const { account, message, file } = await findFile(call, path)
    const folders = await call.engine.store.folders.list(account.id)
    return presentFile(message, file, viewerOf(call, account, folders))
  },
})

const pageQuery = z.object({ limit: limitOf(100), offset })

/** The other files of the source with the same key, newest first; `keyOf` makes the key of a `main_file_name`. */
const alike = (part: 'related' | 'revisions', summary: string, description: string, keyOf: (main: string) => string) =>
  defineRoute(`GET ${base}/{file_id}/${part}`, {
    instead: '',
    summary,
    description,
    query: pageQuery,
    response: z.array(fileView),
    async handler({ path, query }, call) {
      const { account, message, file } = await findFile(call, path)
      const key = ({ fileName }: AttachmentRecord): string => keyOf(mainFileName(fileName).toLowerCase())
      const isShown = fileFilter(account, {})
      return filesIn(call, account, query, (other, { id }) => {
        const isItself = id === message.id && other.index === file.index
        return !isItself && isShown(other) && key(other) === key(file)
      })
    },
  })

const revisions = alike(
  'revisions',
  'List the other revisions of a file',
  'Files of the same source whose names differ in numbers and dates alone: `main_file_name` is the same.',
  (main) => main,
)

const related = alike(
  'related',
  'List the files that are related to a file',
  'Its revisions, and those in other formats: `main_file_name` is the same, whatever it ends with.',
  (main) => main.replace(/(?<=.)\.[^.]*$/, ''),
)

const content = defineRoute(`GET ${base}/{file_id}/content`, {
  instead: `GET ${liteMessage}/attachments/{attachment_id}`,
  summary: 'Download a file',
  description:
    'The bytes as they were sent. With `as_link=1`, or `Accept: text/uri-list`, the bare address of the file as text/uri-list: it needs no authentication and expires.',
  query: z.object({
    as_link: optional(
      flag,
      '1 = answer the bare address of the file as text/uri-list, good for 15 minutes without a key; absent = the header Accept decides',
    ),
  }),
  response: 'binary',
  async handler({ path, query }, call) {
    const located = await findFile(call, path)
    const asLink = query.as_link ?? /(^|,)\s*text\/uri-list\s*([,;]|$)/i.test(call.header('accept') ?? '')
    if (!asLink) return download(call, located, located.file)
    return new StreamAnswer(await linkTo(call, located, located.file), { 'Content-Type': 'text/uri-list' })
  },
})

export const fileRoutes = deprecated('files', [list, get, related, revisions, content])
