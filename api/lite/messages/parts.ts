/** Routes of the parts of one message: bodies, headers, source, attachments, and signed links to attachments. */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import {
  AppError,
  type AttachmentRecord,
  isAppError,
  type MessageRecord,
  notFound,
  streamBytes,
  transliterate,
  sameText,
  secretsOf,
} from '../../../engine/index.ts'
import { ownUrl } from '../../addresses.ts'
import * as examples from '../../examples.ts'
import { type Call, defineRoute, routesAt, StreamAnswer, tagged } from '../../route.ts'
import { documented, filledText, flag, given, optional } from '../../values.ts'
import { asNamed, findMessage, locate, type Located, type Mailbox, messagePaths } from '../find.ts'
import { delimiter } from '../folders.ts'
import { readContents } from './contents.ts'
import { presentAttachment } from './present.ts'
import * as schema from './schema.ts'

const bodies = routesAt('GET', messagePaths, '/body', {
  summary: 'Get the bodies of a message',
  description: 'Text parts as UTF-8, transfer encoding and charset undone. `type` = only parts of this MIME type.',
  query: z.object({ delimiter, type: schema.mimeType }),
  response: examples.answer({
    resource_url: [z.string(), examples.urls.message],
    bodies: [z.array(schema.bodyPartView), [examples.exampleOf(schema.bodyPartView)]],
  }),
  async handler({ path, query }, call) {
    const located = await locate(call, path, query.delimiter)
    return { resource_url: `${located.url}/body`, bodies: await readBodies(call, located, query.type) }
  },
})

export async function readBodies(call: Call, { user, name, message }: Located, type: string | undefined) {
  call.touchesImap(user)
  const wishes = { include_body: true, body_type: type }
  const { bodies = [] } = await asNamed(name, readContents(call, message, wishes))
  return bodies
}

const headers = routesAt('GET', messagePaths, '/headers', {
  summary: 'Get the headers of a message',
  query: z.object({
    delimiter,
    raw: optional(flag, '1 = the header block as one text, as it is in the message; 0 = decoded, by lower-case name'),
  }),
  response: examples.answer({
    resource_url: [z.string(), examples.urls.message],
    headers: [schema.headersView, { from: ['Ben Lind <ben@example.org>'], subject: ['Hello'] }],
  }),
  async handler({ path, query }, call) {
    const located = await locate(call, path, query.delimiter)
    return { resource_url: `${located.url}/headers`, headers: await readHeaders(call, located, query.raw) }
  },
})

/** Returns an object of the header fields, or with `raw` the text of the header block. */
export async function readHeaders(call: Call, { user, name, message }: Located, raw: boolean | undefined) {
  call.touchesImap(user)
  const wishes = { include_headers: raw === true ? ('raw' as const) : ('1' as const) }
  const { headers = {} } = await asNamed(name, readContents(call, message, wishes))
  return headers
}

const raw = routesAt('GET', messagePaths, '/raw', {
  summary: 'Get the whole message as it is on the mail server',
  query: schema.delimiterQuery,
  response: 'binary',
  handler: async ({ path, query }, call) => rawMessage(call, await locate(call, path, query.delimiter)),
})

export async function rawMessage(call: Call, { user, name, message }: Located): Promise<StreamAnswer> {
  call.touchesImap(user)
  await call.reserve(streamBytes)
  const stream = await asNamed(name, call.engine.accounts.streamRaw(message))
  return new StreamAnswer(stream, fileHeaders('message/rfc822', `${message.id}.eml`))
}

/** `type` comes from the message. Every answer has X-Content-Type-Options, so browsers do not guess another type. */
function fileHeaders(type: string, name: string): Readonly<Record<string, string>> {
  return {
    'Content-Type': /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${transliterate(name)}"`,
    'Content-Security-Policy': "sandbox; default-src 'none'",
  }
}

const list = routesAt('GET', messagePaths, '/attachments', {
  summary: 'List the attachments of a message',
  query: schema.delimiterQuery,
  response: z.array(schema.attachmentView),
  async handler({ path, query }, call) {
    const { message } = await locate(call, path, query.delimiter)
    return message.attachments.map(presentAttachment)
  },
})

const files = routesAt('GET', messagePaths, '/attachments/{attachment_id}', {
  summary: 'Download an attachment',
  description:
    'The file as it was sent, byte for byte. When the mail server gives less of it than it says, the header `X-Service-Notice` begins with `truncated`. With `as_link=1` the JSON `{"link": …}` instead: an address that needs no authentication and expires.',
  query: z.object({
    delimiter,
    as_link: optional(
      flag,
      '1 = answer a signed link to the file, good for 15 minutes without a key, instead of the bytes',
    ),
  }),
  response: 'binary',
  async handler({ path, query }, call) {
    const located = await locate(call, path, query.delimiter)
    const attachment = attachmentOf(located.message, path.attachment_id)
    if (query.as_link !== true) return download(call, located, attachment)
    const link = await linkTo(call, located, attachment)
    return new StreamAnswer(JSON.stringify({ link }), { 'Content-Type': 'application/json' })
  },
})

export function download(call: Call, { user, name, message }: Located, attachment: AttachmentRecord) {
  call.touchesImap(user)
  return asNamed(name, fileOf(call, message, attachment))
}

export function attachmentOf({ attachments }: MessageRecord, id: string): AttachmentRecord {
  const found = /^\d{1,6}$/.test(id) ? attachments[Number(id)] : undefined
  if (found === undefined) throw notFound('attachment', id)
  return found
}

const shortNotice = 'truncated: the mail server gives less of this file than it says'

async function fileOf(call: Call, message: MessageRecord, attachment: AttachmentRecord): Promise<StreamAnswer> {
  const { section, encoding, fileName, type } = attachment
  await call.reserve(streamBytes)
  const stream = await call.engine.accounts.streamPart(message, section, encoding)
  const notice = stream.short === true ? { 'X-Service-Notice': shortNotice } : {}
  return new StreamAnswer(stream, { ...fileHeaders(type, fileName), ...notice })
}

/** A link that is valid for MAILROOM_LINK_TTL. */
export async function linkTo(
  call: Call,
  { account, message }: Pick<Located, 'account' | 'message'>,
  { index }: AttachmentRecord,
): Promise<string> {
  const developer = await call.engine.developers.get(call.developer.id)
  if (developer === null) throw invalidLink()
  const { config } = call.engine
  const expires = String(Math.ceil((Date.now() + config.MAILROOM_LINK_TTL) / 1000))
  const target = signedTarget(developer.secret, account.id, message.id, String(index), expires)
  return ownUrl(config, call.baseUrl) + target
}

const linked = defineRoute('GET /downloads/{account}/{message}/{attachment}', {
  auth: 'link',
  summary: 'Download by a signed link',
  description:
    'The address that `as_link=1` answers. 403 when it has expired, or is not letter for letter as it was answered.',
  query: z.object({
    // Text: the signature covers one spelling of the number.
    expires: documented(filledText, { type: 'integer', minimum: 0 }).meta({
      description: 'end of the link, as it has it: Unix timestamp in seconds',
      examples: [1_700_000_900],
    }),
    signature: filledText.meta({ description: 'of the whole link, as it has it', examples: ['q1w2e3r4t5y6u7i8o9p0'] }),
  }),
  response: 'binary',
  errors: [403, 404, 429, 503, 504],
  async handler({ path, query }, call) {
    const { store, developers } = call.engine
    const account = await store.accounts.get(path.account)
    const developer = account === null ? null : await developers.get(account.developerId)
    // An unknown account gets the error of a wrong signature, so the answer does not tell which accounts exist.
    if (account === null || developer === null) throw invalidLink()
    const { message, attachment } = path
    const right = (secret: string) => signedTarget(secret, account.id, message, attachment, query.expires)
    if (!secretsOf(developer).some((secret) => sameText(right(secret), call.target))) throw invalidLink()
    if (Number(query.expires) * 1000 <= Date.now())
      throw new AppError('forbidden', 'the download link has expired; ask for a new one with as_link=1')
    const user = await store.users.get(account.developerId, account.userId)
    if (user === null) throw invalidLink()
    return linkedFile(call, { user, account }, path)
  },
})

/** The file of a link. Errors of the mail server lose their text: the client may not be the owner of the mailbox. */
async function linkedFile(
  call: Call,
  { user, account }: Mailbox,
  path: { readonly message: string; readonly attachment: string },
): Promise<StreamAnswer> {
  try {
    const message = await findMessage(call, account, path.message)
    call.touchesImap(user)
    return await fileOf(call, message, attachmentOf(message, path.attachment))
  } catch (error) {
    if (!isAppError(error) || error.fault !== 'remote') throw error
    const options = given({ cause: error, retryAfterMs: error.retryAfterMs ?? undefined })
    throw new AppError(error.code, 'the file cannot be read from the mail server now', options)
  }
}

export const messagePartRoutes = [
  ...tagged('Messages', [...bodies, ...headers, ...raw]),
  ...tagged('Attachments', [...list, ...files, linked]),
]

const label = 'mailroom/download-link/v1'

/**
 * Path and query of a signed download link, in its only valid spelling. A client with the link may read one attachment
 * until the link expires. The signature is an HMAC-SHA256 of all names in the link. Its key is made from the
 * developer's secret and the label, so the link becomes invalid with the secret.
 */
function signedTarget(secret: string, account: string, message: string, attachment: string, expires: string): string {
  const key = createHmac('sha256', secret).update(label).digest()
  const named = JSON.stringify([account, message, attachment, expires])
  const signature = createHmac('sha256', key).update(named).digest('base64url')
  return `/downloads/${account}/${message}/${attachment}?expires=${expires}&signature=${signature}`
}

function invalidLink(): AppError {
  return new AppError('forbidden', 'the download link is not valid')
}
