import type { Json } from './openapi.ts'

/** Examples of answers, for the OpenAPI document and the reference: all of one user with one email account. */
const base = 'https://mail.example.com'
const userId = '5f3c8a2b9d4e1f6a7b8c9d0e'
const webhookId = '6a1f3c8b2d9e4f5a7b8c9d0e'
const messageId = '8b1a9953c4611296a827abf8'
const token = 'k3v9x1m7q2w8e5r4'
const label = 'anna::example'
const emailMessageId = '<20231114.1@example.org>'

export const urls = {
  user: `${base}/lite/users/${userId}`,
  account: `${base}/lite/users/${userId}/email_accounts/anna%3A%3Aexample`,
  message: `${base}/lite/users/${userId}/email_accounts/anna%3A%3Aexample/messages/${messageId}`,
  newFolder: `${base}/lite/users/${userId}/email_accounts/anna%3A%3Aexample/folders/Projects%2F2024`,
  webhook: `${base}/lite/users/${userId}/webhooks/${webhookId}`,
  token: `${base}/lite/connect_tokens/${token}`,
  redirect: `${base}/connect/${token}`,
  provider: `${base}/lite/oauth_providers/my-consumer-key`,
  statusCallback: `${base}/app/status_callback_url`,
}

export const emailAccount = {
  server: 'imap.example.com',
  label,
  username: 'anna@example.com',
  port: 993,
  use_ssl: true,
  type: 'imap',
  authentication_type: 'password',
  status: 'OK',
  status_message: null,
  status_callback_url: null,
  resource_url: urls.account,
} as const

export const user = {
  id: userId,
  username: 'anna@example.com',
  created: 1_700_000_000,
  suspended: 0,
  password_expired: 0,
  first_name: 'Anna',
  last_name: 'Berg',
  email_addresses: ['anna@example.com'],
  email_accounts: [emailAccount],
  resource_url: urls.user,
}

const reference = { label, resource_url: urls.account }
export const userMade = {
  success: true,
  id: userId,
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

export const folder = {
  name: 'INBOX',
  nb_messages: 1280,
  nb_unseen_messages: 12,
  delimiter: '/',
  symbolic_name: '\\Inbox',
  xlist_name: '\\Inbox',
  resource_url: `${urls.account}/folders/INBOX`,
}

export const attachment = {
  size: 48_213,
  type: 'application/pdf',
  body_section: '2',
  file_name: 'offer.pdf',
  content_disposition: 'attachment',
  content_id: null,
  attachment_id: 0,
  x_attachment_id: '',
  encoding: 'base64',
  is_embedded: false,
}

export const bodyPart = {
  body_section: '1',
  type: 'text/plain',
  encoding: 'quoted-printable',
  size: 18,
  charset: 'utf-8',
  content: 'See you on Monday.',
}

const ben = { name: 'Ben Lind', email: 'ben@example.org' }
const thumbnail = 'https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm'
export const flags = { read: true, answered: false, flagged: false, draft: false, raw: ['\\Seen'] }
export const flagsWritten = {
  success: true,
  flags: { read: true, answered: false, flagged: false, deleted: false, draft: false },
}
export const headers = {
  resource_url: urls.message,
  headers: { from: ['Ben Lind <ben@example.org>'], subject: ['Hello'] },
}

export const message = {
  sent_at: 1_699_999_990,
  received_at: 1_699_999_995,
  addresses: { from: [ben], to: [{ name: 'Anna Berg', email: 'anna@example.com' }] },
  person_info: { 'ben@example.org': { thumbnail } },
  subject: 'Hello',
  message_id: messageId,
  email_message_id: emailMessageId,
  list_headers: [],
  in_reply_to: null,
  references: [],
  attachments: [attachment],
  bodies: [bodyPart],
  received_headers: ['from mx.example.org by imap.example.com; Tue, 14 Nov 2023 22:13:15 +0000'],
  folders: ['INBOX'],
  flags,
  resource_url: urls.message,
}

export const webhook = {
  webhook_id: webhookId,
  callback_url: 'https://app.example.com/mail',
  active: true,
  failure: false,
  last_success_at: 1_700_000_003,
  filter_from: '*@example.org',
  include_body: true,
  body_type: 'text/plain',
  include_header: false,
  receive_all_changes: false,
  receive_drafts: false,
  receive_historical: false,
  resource_url: urls.webhook,
}

const deliveryId = '9c4d2e7f1a8b3c5d6e0f7a1b'
export const delivery = {
  delivery_id: deliveryId,
  webhook_id: webhookId,
  url: webhook.callback_url,
  kind: 'message',
  event: 'received',
  state: 'delivered',
  reason: null,
  account_id: userId,
  message_id: messageId,
  created: 1_700_000_000,
  due: null,
  finished: 1_700_000_003,
  attempt_count: 1,
  attempts: [
    {
      timestamp: 1_700_000_002,
      url: webhook.callback_url,
      duration_ms: 84,
      status_code: 200,
      error: null,
      response: 'ok',
    },
  ],
} as const
export const webhookLogEntry = {
  ...delivery,
  timestamp: 1_700_000_002,
  status_code: 200,
  request_method: 'POST',
} as const

export const redelivery = {
  redelivered: 17,
  done: true,
  reason: null,
  from: 1_700_000_000,
  to: 1_700_003_600,
  failed_only: true,
  started: 1_700_010_000,
}
export const redelivered = { success: true, redelivered: 17, done: true }
export const secret = { success: true, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDQmSSnjK2ZzQ=' }

const verdict = { filter: 'filter_from', matched: true, why: 'ben@example.org fits *@example.org' }
export const dryRun = [
  {
    account_id: userId,
    label,
    message_id: messageId,
    email_message_id: emailMessageId,
    subject: 'Hello',
    matched: true,
    filters: [verdict],
  },
]
export const explanation = {
  message_id: messageId,
  webhook_id: webhookId,
  indexed: 1_700_000_000,
  events: [{ kind: 'received', first: true, folder: 'INBOX', seen: 1_700_000_000, sequence: 1042 }],
  matched: true,
  filters: [verdict],
  deliveries: [delivery],
}

export const change = {
  id: 'c3d5e7f9a1b2c4d6e8f0a1b2',
  sequence: 1042,
  timestamp: 1_700_000_000,
  account_id: userId,
  label,
  event: 'received',
  first: true,
  message_id: messageId,
  folder: 'INBOX',
  uid: 4711,
  flags: [],
  folders: ['INBOX'],
  resource_url: urls.message,
} as const

export const contact = {
  email: 'ben@example.org',
  name: 'Ben Lind',
  total_count: 42,
  direct_count: 12,
  indirect_count: 30,
  last_received: 1_700_000_000,
  service_user_id: userId,
  contact_id: 'd1e2f3a4b5c6d7e8f9a0b1c2',
}

/** Unused. */
export const connectToken = {
  token,
  account_lite: true,
  created: 1_700_000_000,
  used: 0,
  expires: 1_700_086_400,
  callback_url: 'https://app.example.com/connected',
  email: 'anna@example.com',
  first_name: 'Anna',
  last_name: 'Berg',
  browser_redirect_url: urls.redirect,
  resource_url: urls.token,
} as const
export const connectTokenUsed = {
  ...connectToken,
  used: 1_700_000_300,
  expires: false,
  serverLabel: label,
  email_account_id: label,
  user,
} as const

export const discovery = {
  email: 'anna@example.com',
  found: true,
  resource_url: `${base}/lite/discovery?email=anna%40example.com`,
  type: 'generic',
  imap: { server: 'imap.example.com', username: 'anna@example.com', port: 993, use_ssl: true, oauth: false },
  documentation: [{ description: 'Set up your mail program', url: 'https://help.example.com/imap' }],
} as const

export const provider = {
  type: 'GMAIL_OAUTH2',
  provider_consumer_key: 'my-consumer-key',
  provider_consumer_secret: 'my-[...]ret',
  resource_url: urls.provider,
} as const

export const callLogEntry = {
  id: 'e5f7a9b1c3d5e7f9a1b3c5d7',
  timestamp: 1_700_000_000,
  account_id: userId,
  request_method: 'GET',
  request_path: '/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts',
  status_code: 200,
  duration_ms: 6,
}

type PathWords = readonly [description: string, example: string]

const id: PathWords = ['id of the user (lite) or account (2.0)', '5f3c8a2b9d4e1f6a7b8c9d0e']

/** Path parameters by their usual names: what they are, and an example. */
export const pathWords: Readonly<Record<string, PathWords>> = {
  id,
  label: ['label of the email account or source; 0 is the first one', 'anna::example'],
  folder: ['full path of the folder; slashes may be sent raw or as %2F', 'INBOX'],
  message_id: ['id of the message, its Message-ID, or the hosted provider’s id', '8b1a9953c4611296a827abf8'],
  webhook_id: ['id of the webhook', '6a1f3c8b2d9e4f5a7b8c9d0e'],
  delivery_id: ['id of the callback, as its `webhook-id` header has it', '9c4d2e7f1a8b3c5d6e0f7a1b'],
  attachment_id: ['index of the attachment in its message, from 0', '0'],
  contactid: ['id of the contact, or its email address', 'ben@example.org'],
  token: ['the connect token', 'k3v9x1m7q2w8e5r4'],
  key: ['consumer key of the OAuth provider', 'my-consumer-key'],
  account: ['id of the email account', '7d2e9f1a4b6c8d0e3f5a7b9c'],
  message: ['id of the message', '8b1a9953c4611296a827abf8'],
  attachment: ['index of the attachment in its message, from 0', '0'],
}

/** For the operation that makes a folder: one that is not there yet. */
export const newFolder = 'Projects/2024'

/** CommonMark, of which the reference shows paragraphs, `**strong**` and `` `code` ``. */
export function introductionOf(statusHeader: string): string {
  return paragraphs
    .concat(
      `**Status of an email account.** Every answer about one email account, errors too, carries \`${statusHeader}\`: the resource URL ` +
        'of the email account, a space, and `OK` or `DISABLED`. While it is `DISABLED`, what needs the mail server answers 503; ' +
        '`status_message` of the email account says why.',
    )
    .join('\n\n')
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
