/**
 * Schemas of the bodies of callbacks, for the OpenAPI document and the tests. The engine (webhooks/, callbacks/) makes
 * the bodies and does not validate them with these schemas.
 */
import { z } from 'zod'
import { address, answer, exampleOf, ids, type Json, label, time, urls, view } from '../../examples.ts'
import { orEmptyList } from '../../values.ts'
import { messageFields } from '../messages/schema.ts'

const signature = {
  timestamp: [z.int(), time, 'when this attempt was signed: Unix timestamp in seconds'],
  token: [z.string(), '6f1c0d8e4b7a49325d8c1e0f7a6b3c2d', 'random, for the signature'],
  signature: [
    z.string(),
    'b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d',
    'hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token',
  ],
} as const

const owner = {
  account_id: [z.string(), ids.user, 'id of the user'],
  user_id: [z.string(), ids.user, 'the same as account_id'],
} as const

const person = z.object({ email: z.string(), name: z.string().optional() })
const people = z.array(person).optional()

const place = answer({
  label: [z.string(), label, 'of the email account'],
  folder: [z.string(), 'INBOX'],
  uid: [z.int(), 4711],
  resource_url: [z.string(), urls.account, 'the email account'],
})
const places = [exampleOf(place)]

const file = z.object({
  size: z.int().meta({ description: 'in bytes, as transferred' }),
  type: z.string(),
  file_name: z.string(),
  file_name_structure: z
    .array(z.array(z.string()))
    .meta({ description: 'the pieces of the file name, each with its kind: main, boundary, numeric, date or ext' }),
  main_file_name: z.string(),
  body_section: z.string(),
  file_id: z.string(),
  attachment_id: z.int(),
  is_embedded: z.boolean(),
  content_disposition: z.string(),
  content_id: z.string().nullable(),
})

const optionalText = z.string().optional()

const bodyPart = answer({
  type: [z.string(), 'text/plain'],
  charset: [z.string(), 'utf-8'],
  body_section: [z.string(), '1'],
  content: [
    optionalText,
    'See you on Monday.\n',
    'with include_body: the text, or its beginning; absent when the mail server could not give it',
  ],
  truncated: [z.literal(true).optional(), undefined, 'the text is longer than this: the callback would be too large'],
  size: [z.int().optional(), undefined, 'with truncated: of the whole part, in bytes, as transferred'],
  link: [optionalText, undefined, 'with truncated: a GET of this API that answers the whole; see body_section'],
})

const no = [z.boolean(), false] as const

const hosted = (what: string) => [optionalText, undefined, `${what} at a hosted provider`] as const

const messageData = view('MessageData', {
  message_id: [z.string(), ids.message, 'id to ask this API for the message'],
  email_message_id: [z.string(), ids.emailMessage, 'Message-ID, in angle brackets; empty when there is none'],
  mailhost_message_id: hosted('id of the message'),
  mailhost_thread_id: hosted('id of the thread'),
  gmail_message_id: hosted('id of the message'),
  gmail_thread_id: hosted('id of the thread'),
  addresses: [
    orEmptyList(
      z.object({
        from: person.optional(),
        sender: people,
        reply_to: people,
        to: people,
        cc: people,
        bcc: people,
        return_path: people,
      }),
    ),
    { from: { email: 'ben@example.org', name: 'Ben Lind' }, to: [{ email: address }] },
  ],
  person_info: messageFields.person_info,
  references: [z.array(z.string()), [], 'Message-IDs of the thread before it'],
  subject: [z.string(), 'Hello'],
  folders: [z.array(z.string()), ['INBOX'], 'right after the event'],
  date: [z.int(), 1_699_999_990, 'when it was sent: Unix timestamp in seconds'],
  date_received: [z.int(), 1_699_999_995, 'when it came: Unix timestamp in seconds'],
  bodies: [z.array(bodyPart), [exampleOf(bodyPart)]],
  email_accounts: [z.array(place), places, 'where it lies, the place of the event first'],
  sources: [z.array(place), places, 'the same as email_accounts'],
  flags: answer({ flagged: no, answered: no, draft: no, seen: no }),
  files: [z.array(file), [], 'attachments'],
  headers: [
    z.union([z.record(z.string(), z.array(z.string())), z.string()]).optional(),
    undefined,
    'with include_header: by name in canonical case (`Subject`, `Message-ID`, `DKIM-Signature`), or as text (raw)',
  ],
  message_type: [
    z.enum(['created', 'updated']).optional(),
    undefined,
    'with receive_all_changes: whether this is the first event of the message',
  ],
  truncated: [
    z.literal(true).optional(),
    undefined,
    'something that was asked for was left out or cut: read it at resource_url',
  ],
  resource_url: [z.string(), urls.message, 'the message'],
})

const events = ['received', 'sent', 'draft', 'folder_added', 'folder_removed', 'flags_changed', 'deleted'] as const
export const eventKind = z.enum(events)

const message = view('MessageCallback', {
  ...owner,
  webhook_id: [z.string(), ids.webhook],
  sequence: [
    z.int().optional(),
    1042,
    'number of the event in its email account, as in the change log; of live events alone',
  ],
  event: [eventKind.optional(), undefined, 'with receive_all_changes or a filter on folders: what has happened'],
  test: [z.literal(true).optional(), undefined, 'of a test callback alone'],
  message_data: messageData,
  ...signature,
})

const aboutAccount = {
  ...owner,
  server_label: [z.string(), label, 'label of the email account'],
  email_account: [z.string(), address, 'its email address'],
} as const

const status = view('StatusCallback', {
  ...aboutAccount,
  failure: [
    z.enum(['permanent', 'cleared']),
    'permanent',
    '`permanent` = it is DISABLED now, `cleared` = it is OK again',
  ],
  failure_message: [z.string(), 'the mail server rejects the username or the password', 'why, in words; may be empty'],
  ...signature,
})

const failure = view('FailureNotification', {
  account_id: [optionalText, ids.user, 'id of the user'],
  user_id: [optionalText, ids.user, 'the same as account_id'],
  webhook_id: [z.string(), ids.webhook],
  data: [z.string(), 'HTTP 503', 'why, in words'],
  ...signature,
})

const sync = view('SyncCallback', { ...aboutAccount, sync: [z.literal('completed'), 'completed'], ...signature })

export type Callback = ReturnType<typeof callbackOf>

const callbacks = {
  message: {
    summary: 'Message callback: mail has come, was sent, filed or changed',
    description:
      'To the `callback_url` of each active webhook that the event matches: for the first event of a message, or with ' +
      '`receive_all_changes=1` for every one. The test callback of a webhook has `test: true` and a made-up message.',
    schema: message,
  },
  status: {
    summary: 'Status callback: an email account has become DISABLED, or is OK again',
    description: 'To the `status_callback_url` of the email account, or else of the application. Once per change.',
    schema: status,
  },
  failure: {
    summary: 'Failure notification: callbacks of a webhook do not arrive',
    description:
      'To the `failure_notif_url` of the webhook, when its `failure` becomes true. Once until it is false again.',
    schema: failure,
  },
  sync: {
    summary: 'Sync callback: the mailbox was read for the first time',
    description: 'Historical, of the 2.0 API: to the `callback_url` that a source was created with. Once.',
    schema: sync,
  },
}

const signatureHeaders = [
  [
    'webhook-id',
    'names the callback: the same on every attempt, so that one that comes twice is known',
    '9c4d2e7f1a8b3c5d6e0f7a1b',
  ],
  ['webhook-timestamp', 'when this attempt was signed: Unix timestamp in seconds', '1700000000'],
  [
    'webhook-signature',
    'one `v1,<base64>` per valid key, with a space between: HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Keys are the ' +
      'secrets of the webhook (decoded from base64, without `whsec_`), where there is a webhook, and last the API secret',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ],
] as const

/** `print` makes the JSON Schema. */
export function callbacksOf(print: Print): Record<string, { readonly post: Callback }> {
  return Object.fromEntries(
    Object.entries(callbacks).map(([name, one]) => [name, { post: callbackOf(name, one, print) }]),
  )
}

type Described = (typeof callbacks)[keyof typeof callbacks]
type Print = (schema: z.ZodType) => Json

function callbackOf(name: string, { summary, description, schema }: Described, print: Print) {
  return {
    operationId: `${name}Callback`,
    tags: ['Callbacks'],
    summary,
    description,
    security: [],
    parameters: signatureHeaders.map(([header, words, example]) => ({
      name: header,
      in: 'header' as const,
      required: true,
      description: words,
      schema: { type: 'string' },
      example,
    })),
    requestBody: { required: true, content: { 'application/json': { schema: print(schema) } } },
    responses: {
      '2XX': { description: 'Taken. Answer before anything else is done; the body of the answer is not read further' },
      '410': { description: 'No more: the webhook becomes inactive' },
      default: { description: 'Tried again later, by the retry schedule' },
    },
  }
}
