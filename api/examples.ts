/**
 * Schemas of answers with their examples, for validation, the OpenAPI document and the reference. All examples show one
 * user with one email account. Also the fixed texts of the document.
 */
import { z } from 'zod'

export type Json = Record<string, unknown>

type Field = z.ZodType | readonly [schema: z.ZodType, example: unknown, description?: string]
type Fields = Readonly<Record<string, Field>>
type Shape<F extends Fields> = {
  -readonly [Name in keyof F]: F[Name] extends readonly [infer S extends z.ZodType, ...unknown[]]
    ? S
    : F[Name] extends z.ZodType
      ? F[Name]
      : never
}

/** An answer: each field has its schema, and may have an example and a description. */
export const answer = <const F extends Fields>(fields: F) => view(null, fields)

/**
 * The same with a name in the OpenAPI document. The example consists of the fields' examples, without fields that have
 * none. `others` = the differences of further examples from the first.
 */
export function view<const F extends Fields>(id: string | null, fields: F, ...others: readonly object[]) {
  const shape: Record<string, z.ZodType> = {}
  const first: Json = {}
  for (const [key, field] of Object.entries(fields)) {
    const [schema, example, description] = field instanceof z.ZodType ? [field, exampleOf(field)] : field
    shape[key] = description === undefined ? schema : schema.meta({ description })
    if (example !== undefined) first[key] = example
  }
  const examples = [first, ...others.map((other) => ({ ...first, ...other }))]
  return z.object(shape as Shape<F>).meta({ ...(id === null ? {} : { id }), examples })
}

/** The first example of a schema. */
export function exampleOf<T extends z.ZodType>(schema: T): z.input<T> {
  const { examples = [] } = z.globalRegistry.get(schema) ?? {}
  return (examples as readonly z.input<T>[])[0] as z.input<T>
}

const base = 'https://mail.example.com'
export const ids = {
  user: '5f3c8a2b9d4e1f6a7b8c9d0e',
  webhook: '6a1f3c8b2d9e4f5a7b8c9d0e',
  message: '8b1a9953c4611296a827abf8',
  emailMessage: '<20231114.1@example.org>',
  token: 'k3v9x1m7q2w8e5r4',
  delivery: '9c4d2e7f1a8b3c5d6e0f7a1b',
}
export const label = 'anna::example'
export const address = 'anna@example.com'
/** Unix timestamp in seconds. */
export const time = 1_700_000_000

export const urls = {
  user: `${base}/lite/users/${ids.user}`,
  account: `${base}/lite/users/${ids.user}/email_accounts/anna%3A%3Aexample`,
  message: `${base}/lite/users/${ids.user}/email_accounts/anna%3A%3Aexample/messages/${ids.message}`,
  newFolder: `${base}/lite/users/${ids.user}/email_accounts/anna%3A%3Aexample/folders/Projects%2F2024`,
  webhook: `${base}/lite/users/${ids.user}/webhooks/${ids.webhook}`,
  token: `${base}/lite/connect_tokens/${ids.token}`,
  redirect: `${base}/connect/${ids.token}`,
  provider: `${base}/lite/oauth_providers/my-consumer-key`,
  statusCallback: `${base}/app/status_callback_url`,
}

const v2Account = `${base}/2.0/accounts/${ids.user}`
/** URLs of the 2.0 API. */
export const v2Urls = {
  account: v2Account,
  emailAddress: `${v2Account}/email_addresses/anna%40example.com`,
  source: `${v2Account}/sources/anna%3A%3Aexample`,
  message: `${v2Account}/messages/${ids.message}`,
  file: `${v2Account}/files/${ids.message}-0`,
  thread: `${v2Account}/threads/4d1f0a7be2c95836`,
  contact: `${v2Account}/contacts/ben%40example.org`,
  token: `${base}/2.0/connect_tokens/${ids.token}`,
}

const reference = { label, resource_url: urls.account }
export const userMade = {
  success: true,
  id: ids.user,
  resource_url: urls.user,
  source: reference,
  email_account: reference,
}
export const accountMade = { success: true, status: 'OK', label, resource_url: urls.account }
export const accountEdited = { success: true, status: 'OK', status_message: null, resource_url: urls.account }

const log = 'S: * OK ready\nC: A1 LOGIN anna@example.com ***\nS: A1 NO [AUTHENTICATIONFAILED] invalid credentials'
export const loginRefused = {
  success: false,
  feedback_code: 'invalid_credentials',
  feedback: 'the mail server rejects the username or the password',
  connection_log: log,
  connectionLog: log,
}

export const thumbnail = 'https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm'

/** Description and example of each path parameter. */
export const pathWords: Readonly<Record<string, readonly [description: string, example: string]>> = {
  id: ['id of the user (lite) or account (2.0)', ids.user],
  label: ['label of the email account or source; 0 is the first one', label],
  folder: ['full path of the folder; slashes may be sent raw or as %2F', 'INBOX'],
  message_id: ['id of the message, its Message-ID, or the hosted provider’s id', ids.message],
  webhook_id: ['id of the webhook', ids.webhook],
  delivery_id: ['id of the callback, as its `webhook-id` header has it', ids.delivery],
  attachment_id: ['index of the attachment in its message, from 0', '0'],
  contactid: ['id of the contact, or its email address', 'ben@example.org'],
  email: ['email address', 'ben@example.org'],
  file_id: ['id of the file', `${ids.message}-0`],
  thread_id: ['id of the thread, or `gm-` and that of the hosted provider', '4d1f0a7be2c95836'],
  token: ['the connect token', ids.token],
  key: ['consumer key of the OAuth provider', 'my-consumer-key'],
  page: ['task of the page', 'messages'],
  account: ['id of the email account', '7d2e9f1a4b6c8d0e3f5a7b9c'],
  message: ['id of the message', ids.message],
  attachment: ['index of the attachment in its message, from 0', '0'],
}

/** Path parameters of the admin API. */
export const adminPathWords: typeof pathWords = {
  id: ['id of what the path names: of any developer', ids.user],
  host: ['name of the mail server', 'imap.example.com'],
  what: ['`changes`, `deliveries` or `calls`', 'calls'],
}

/** Example of a folder that does not exist yet, for the operation that creates it. */
export const newFolder = 'Projects/2024'

/** CommonMark, of which the reference shows paragraphs, `**strong**` and `` `code` ``. */
export function introductionOf(statusHeader: string): string {
  const status =
    `**Status of an email account.** Every answer about one email account, errors too, carries \`${statusHeader}\`: the resource URL ` +
    'of the email account, a space, and `OK` or `DISABLED`. While it is `DISABLED`, what needs the mail server answers 503; ' +
    '`status_message` of the email account says why.'
  return [...paragraphs, status].join('\n\n')
}

const paragraphs: readonly string[] = [
  'REST access to IMAP mailboxes, with signed webhooks.',
  '**Authentication.** Every call is signed with OAuth 1.0a, two-legged (HMAC-SHA1 or HMAC-SHA256, empty token), or carries API key and ' +
    'secret by HTTP Basic, or as `Authorization: Bearer <key>.<secret>`.',
  '**Parameters** of a write may come in the query, or in the body as a form, as multipart/form-data or as JSON; unknown ones are ignored. ' +
    'Flags are 1 or 0 (true and false are taken too), lists are comma-separated, times are Unix timestamps in seconds. A trailing slash is ' +
    'optional, and nothing is ever redirected.',
  '**Errors** are `{"type":"error","value":"…"}` with a status that tells whose turn it is: 400 names the parameter that is wrong or ' +
    'missing, 401 means key or signature (`code` 105: the signature; `value` has the base string that the server made), 403 a download ' +
    'link that is not valid, 404 an unknown id, 409 a conflict with what is there, 413 a body that is too large, 500 a failure of the ' +
    'service, 503 a mail server that cannot be reached or an email account that is `DISABLED`, 504 a mail server that is too slow. A mail ' +
    'server that refuses the login of a new or edited email account is no error: the answer is 200 with `success: false` and a ' +
    '`feedback_code`.',
  '**Retry.** 429, 503 and 504 carry `Retry-After`, in seconds, where the same call may succeed later. Without it, and with every other 4xx, ' +
    'the call has to change first. `X-Request-Id` of any answer names the call in the log of the service.',
  '**Limits.** `X-RateLimit-Limit`, `-Remaining` and `-Reset` tell of the calls an hour of the API key; `X-RateLimit-IMAP-*` of the calls a ' +
    'minute that go to the mail servers of one user. Over a limit the answer is 429. Without a limit there are no such headers.',
]

export const securitySchemes: Json = {
  oauth1: {
    type: 'http',
    scheme: 'oauth',
    description:
      'OAuth 1.0a, two-legged (RFC 5849): HMAC-SHA1 or HMAC-SHA256, PLAINTEXT over https; in the Authorization header, the query or a form body. The token is empty.',
  },
  basic: { type: 'http', scheme: 'basic', description: 'API key as user, secret as password.' },
  bearer: { type: 'http', scheme: 'bearer', description: '`<key>.<secret>`' },
  admin: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of the admin API, with the scope that the call needs.',
  },
}

export const errorSchema: Json = {
  type: 'object',
  properties: {
    type: { const: 'error' },
    value: { type: 'string', description: 'what is wrong, naming the parameter or id' },
    code: { type: 'integer', description: '105: the signature is wrong' },
  },
  required: ['type', 'value'],
  examples: [{ type: 'error', value: 'user 5f3c8a2b9d4e1f6a7b8c9d0e is invalid' }],
}
