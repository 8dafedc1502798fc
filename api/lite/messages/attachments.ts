/** Attachments: the list from the index, the file streamed from the mail server byte for byte, or a link to it. */
import { z } from 'zod'
import {
  AppError,
  isAppError,
  notFound,
  streamBytes,
  type AccountRecord,
  type AttachmentRecord,
  type MessageRecord,
  type UserRecord,
} from '../../../engine/index.ts'
import { defineRoute, StreamAnswer, type Call, type Route } from '../../route.ts'
import { findMessage } from '../find.ts'
import { fileHeaders } from './file-answer.ts'
import { checkLink, invalidLink, signedPath } from './links.ts'
import { locate, messagePaths, type Located } from './locate.ts'
import { asNamed } from './named.ts'
import { presentAttachment } from './present.ts'
import {
  attachmentPath,
  attachmentView,
  delimiterQuery,
  downloadPath,
  downloadQuery,
  type linkAnswer,
  linkQuery,
  messagePath,
} from './schema.ts'

const tag = 'Attachments'

function listRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path: `${path}/attachments`,
    auth: 'developer',
    tag,
    summary: 'List the attachments of a message',
    request: { path: messagePath, query: delimiterQuery },
    response: z.array(attachmentView),
    async handler({ path, query }, call) {
      const { message } = await locate(call, path, query.delimiter)
      return message.attachments.map(presentAttachment)
    },
  })
}

function fileRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path: `${path}/attachments/{attachment_id}`,
    auth: 'developer',
    tag,
    summary: 'Download an attachment',
    description:
      'The file as it was sent, byte for byte. When the mail server gives less of it than it says, the header `X-Service-Notice` begins with `truncated`. With `as_link=1` the JSON `{"link": …}` instead: an address that needs no authentication and expires.',
    request: { path: attachmentPath, query: downloadQuery },
    response: 'binary',
    errors: [503, 504],
    async handler({ path, query }, call) {
      const located = await locate(call, path, query.delimiter)
      const attachment = attachmentOf(located.message, path.attachment_id)
      if (query.as_link === true) return linkTo(call, located, attachment)
      call.touchesImap(located.user)
      return asNamed({ message: path.message_id }, fileOf(call, located.message, attachment))
    },
  })
}

function attachmentOf({ attachments }: MessageRecord, id: string): AttachmentRecord {
  const found = /^\d{1,6}$/.test(id) ? attachments[Number(id)] : undefined
  if (found === undefined) throw notFound('attachment', id)
  return found
}

const shortNotice = 'truncated: the mail server gives less of this file than it says'

async function fileOf(call: Call, message: MessageRecord, attachment: AttachmentRecord): Promise<StreamAnswer> {
  const { section, encoding, fileName, type } = attachment
  await call.reserve(streamBytes)
  const stream = await call.engine.accounts.streamPart(message.accountId, message, section, encoding)
  const notice = stream.short === true ? { 'X-Service-Notice': shortNotice } : {}
  return new StreamAnswer(stream, { ...fileHeaders(type, fileName), ...notice })
}

async function linkTo(call: Call, { account, message }: Located, attachment: AttachmentRecord): Promise<StreamAnswer> {
  const path = await downloadLink(call, { accountId: account.id, messageId: message.id, attachment: attachment.index })
  const answer: z.input<typeof linkAnswer> = { link: `${call.baseUrl}${path}` }
  return new StreamAnswer(JSON.stringify(answer), { 'Content-Type': 'application/json' })
}

/** Path and query of a link that is valid for MAILROOM_LINK_TTL. */
export async function downloadLink(call: Call, target: Parameters<typeof signedPath>[1]): Promise<string> {
  const developer = await call.engine.developers.get(call.developer.id)
  if (developer === null) throw invalidLink()
  return signedPath(developer.secret, target, Date.now() + call.engine.config.MAILROOM_LINK_TTL)
}

const download = defineRoute({
  method: 'GET',
  path: '/downloads/{account}/{message}/{attachment}',
  auth: 'link',
  tag,
  summary: 'Download by a signed link',
  description: 'The address that `as_link=1` answers. 403 when it was changed or has expired.',
  request: { path: downloadPath, query: linkQuery },
  response: 'binary',
  errors: [403, 404, 429, 503, 504],
  async handler({ path, query }, call) {
    const { store, developers } = call.engine
    const account = await store.accounts.get(path.account)
    const developer = account === null ? null : await developers.get(account.developerId)
    // An unknown account answers like a wrong signature: a guesser learns nothing.
    if (account === null || developer === null) throw invalidLink()
    checkLink(
      developer.secret,
      { accountId: path.account, messageId: path.message, attachment: path.attachment },
      query,
      Date.now(),
    )
    const user = await store.users.get(account.developerId, account.userId)
    if (user === null) throw invalidLink()
    return linkedFile(call, { user, account }, path)
  },
})

/** Whoever has the link is to know the file, and neither whose it is nor what the mailbox and its server are like. */
async function linkedFile(
  call: Call,
  { user, account }: { readonly user: UserRecord; readonly account: AccountRecord },
  path: z.output<typeof downloadPath>,
): Promise<StreamAnswer> {
  try {
    const message = await findMessage(call, account, path.message)
    call.touchesImap(user)
    return await fileOf(call, message, attachmentOf(message, String(path.attachment)))
  } catch (error) {
    if (!isAppError(error) || error.fault !== 'remote') throw error
    const wait = error.retryAfterMs === null ? {} : { retryAfterMs: error.retryAfterMs }
    throw new AppError(error.code, 'the file cannot be read from the mail server now', { cause: error, ...wait })
  }
}

export const attachmentRoutes: readonly Route[] = [
  ...messagePaths.flatMap((path) => [listRoute(path), fileRoute(path)]),
  download,
]
