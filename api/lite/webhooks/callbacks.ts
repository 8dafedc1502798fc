/**
 * Bodies of callbacks, as receivers get them. Nothing is validated with these: engine/webhooks and engine/callbacks
 * make the bodies, the OpenAPI document and the tests read these.
 */
import { z } from 'zod'
import type { SchemaPrinter } from '../../openapi.ts'

const signature = {
  timestamp: z.int().meta({ description: 'when this attempt was signed: Unix timestamp in seconds' }),
  token: z.string().meta({ description: 'random, for the signature' }),
  signature: z.string().meta({
    description: 'hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token',
  }),
}
const exampleSignature = {
  timestamp: 1_700_000_000,
  token: '6f1c0d8e4b7a49325d8c1e0f7a6b3c2d',
  signature: 'b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d',
}

const userId = '5f3c8a2b9d4e1f6a7b8c9d0e'
const webhookId = '6a1f3c8b2d9e4f5a7b8c9d0e'
const owner = {
  account_id: z.string().meta({ description: 'id of the user' }),
  user_id: z.string().meta({ description: 'the same as account_id' }),
}
const exampleOwner = { account_id: userId, user_id: userId }

const person = z.object({ email: z.string(), name: z.string().optional() })
const people = z.array(person)

/** An empty map is `[]`. */
const orEmptyList = <T extends z.ZodType>(map: T) => z.union([map, z.array(z.never())])

const place = z.object({
  label: z.string().meta({ description: 'of the email account' }),
  folder: z.string(),
  uid: z.int(),
  resource_url: z.string().meta({ description: 'the email account' }),
})

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

const bodyPart = z.object({
  type: z.string(),
  charset: z.string(),
  body_section: z.string(),
  content: z.string().optional().meta({
    description: 'with include_body: the text, or its beginning; absent when the mail server could not give it',
  }),
  truncated: z
    .literal(true)
    .optional()
    .meta({ description: 'the text is longer than this: the callback would be too large' }),
  size: z.int().optional().meta({ description: 'with truncated: of the whole part, in bytes, as transferred' }),
  link: z
    .string()
    .optional()
    .meta({ description: 'with truncated: a GET of this API that answers the whole; see body_section' }),
})

const hosted = (what: string) =>
  z
    .string()
    .optional()
    .meta({ description: `${what} at a hosted provider` })

const messageData = z
  .object({
    message_id: z.string().meta({ description: 'id to ask this API for the message' }),
    email_message_id: z.string().meta({ description: 'Message-ID, in angle brackets; empty when there is none' }),
    mailhost_message_id: hosted('id of the message'),
    mailhost_thread_id: hosted('id of the thread'),
    gmail_message_id: hosted('id of the message'),
    gmail_thread_id: hosted('id of the thread'),
    addresses: orEmptyList(
      z.object({
        from: person.optional(),
        sender: people.optional(),
        reply_to: people.optional(),
        to: people.optional(),
        cc: people.optional(),
        bcc: people.optional(),
        return_path: people.optional(),
      }),
    ),
    person_info: orEmptyList(z.record(z.string(), z.object({ thumbnail: z.string() }))),
    references: z.array(z.string()).meta({ description: 'Message-IDs of the thread before it' }),
    subject: z.string(),
    folders: z.array(z.string()).meta({ description: 'right after the event' }),
    date: z.int().meta({ description: 'when it was sent: Unix timestamp in seconds' }),
    date_received: z.int().meta({ description: 'when it came: Unix timestamp in seconds' }),
    bodies: z.array(bodyPart),
    email_accounts: z.array(place).meta({ description: 'where it lies, the place of the event first' }),
    sources: z.array(place).meta({ description: 'the same as email_accounts' }),
    flags: z.object({ flagged: z.boolean(), answered: z.boolean(), draft: z.boolean(), seen: z.boolean() }),
    files: z.array(file).meta({ description: 'attachments' }),
    headers: z
      .union([z.record(z.string(), z.array(z.string())), z.string()])
      .optional()
      .meta({
        description:
          'with include_header: by name in canonical case (`Subject`, `Message-ID`, `DKIM-Signature`), or as text (raw)',
      }),
    message_type: z
      .enum(['created', 'updated'])
      .optional()
      .meta({ description: 'with receive_all_changes: whether this is the first event of the message' }),
    truncated: z
      .literal(true)
      .optional()
      .meta({ description: 'something that was asked for was left out or cut: read it at resource_url' }),
    resource_url: z.string().meta({ description: 'the message' }),
  })
  .meta({ id: 'MessageData' })

const exampleAccount = `https://mail.example.com/lite/users/${userId}/email_accounts/anna%3A%3Aexample`
const examplePlace = { label: 'anna::example', folder: 'INBOX', uid: 4711, resource_url: exampleAccount }
const exampleData = {
  message_id: '8b1a9953c4611296a827abf8',
  email_message_id: '<20231114.1@example.org>',
  addresses: { from: { email: 'ben@example.org', name: 'Ben Lind' }, to: [{ email: 'anna@example.com' }] },
  person_info: {
    'ben@example.org': { thumbnail: 'https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm' },
  },
  references: [],
  subject: 'Hello',
  folders: ['INBOX'],
  date: 1_699_999_990,
  date_received: 1_699_999_995,
  bodies: [{ type: 'text/plain', charset: 'utf-8', body_section: '1', content: 'See you on Monday.\n' }],
  email_accounts: [examplePlace],
  sources: [examplePlace],
  flags: { flagged: false, answered: false, draft: false, seen: false },
  files: [],
  resource_url: `${exampleAccount}/messages/8b1a9953c4611296a827abf8`,
}

const events = ['received', 'sent', 'draft', 'folder_added', 'folder_removed', 'flags_changed', 'deleted'] as const

const message = z
  .object({
    ...owner,
    webhook_id: z.string(),
    sequence: z
      .int()
      .optional()
      .meta({ description: 'number of the event in its email account, as in the change log; of live events alone' }),
    event: z
      .enum(events)
      .optional()
      .meta({ description: 'with receive_all_changes or a filter on folders: what has happened' }),
    test: z.literal(true).optional().meta({ description: 'of a test callback alone' }),
    message_data: messageData,
    ...signature,
  })
  .meta({
    id: 'MessageCallback',
    examples: [
      { ...exampleOwner, webhook_id: webhookId, sequence: 1042, message_data: exampleData, ...exampleSignature },
    ],
  })

const aboutAccount = {
  ...owner,
  server_label: z.string().meta({ description: 'label of the email account' }),
  email_account: z.string().meta({ description: 'its email address' }),
}
const exampleAbout = { ...exampleOwner, server_label: 'anna::example', email_account: 'anna@example.com' }

const status = z
  .object({
    ...aboutAccount,
    failure: z
      .enum(['permanent', 'cleared'])
      .meta({ description: '`permanent` = it is DISABLED now, `cleared` = it is OK again' }),
    failure_message: z.string().meta({ description: 'why, in words; may be empty' }),
    ...signature,
  })
  .meta({
    id: 'StatusCallback',
    examples: [
      {
        ...exampleAbout,
        failure: 'permanent',
        failure_message: 'the mail server rejects the username or the password',
        ...exampleSignature,
      },
    ],
  })

const failure = z
  .object({
    account_id: owner.account_id.optional(),
    user_id: owner.user_id.optional(),
    webhook_id: z.string(),
    data: z.string().meta({ description: 'why, in words' }),
    ...signature,
  })
  .meta({
    id: 'FailureNotification',
    examples: [{ ...exampleOwner, webhook_id: webhookId, data: 'HTTP 503', ...exampleSignature }],
  })

const sync = z
  .object({ ...aboutAccount, sync: z.literal('completed'), ...signature })
  .meta({ id: 'SyncCallback', examples: [{ ...exampleAbout, sync: 'completed', ...exampleSignature }] })

const callbackSchemas = { message, status, failure, sync }

export type Callback = ReturnType<typeof callbackOf>

interface Words {
  readonly summary: string
  readonly description: string
  readonly schema: z.ZodType
}

const callbacks: Readonly<Record<string, Words>> = {
  message: {
    summary: 'Message callback: mail has come, was sent, filed or changed',
    description:
      'To the `callback_url` of each active webhook that the event matches: for the first event of a message, or with ' +
      '`receive_all_changes=1` for every one. The test callback of a webhook has `test: true` and a made-up message.',
    schema: callbackSchemas.message,
  },
  status: {
    summary: 'Status callback: an email account has become DISABLED, or is OK again',
    description: 'To the `status_callback_url` of the email account, or else of the application. Once per change.',
    schema: callbackSchemas.status,
  },
  failure: {
    summary: 'Failure notification: callbacks of a webhook do not arrive',
    description:
      'To the `failure_notif_url` of the webhook, when its `failure` becomes true. Once until it is false again.',
    schema: callbackSchemas.failure,
  },
  sync: {
    summary: 'Sync callback: the mailbox was read for the first time',
    description: 'Historical, of the 2.0 API: to the `callback_url` that a source was created with. Once.',
    schema: callbackSchemas.sync,
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

/** webhooks */
export function callbacksOf(printer: SchemaPrinter): Record<string, { readonly post: Callback }> {
  return Object.fromEntries(
    Object.entries(callbacks).map(([name, words]) => [name, { post: callbackOf(name, words, printer) }]),
  )
}

function callbackOf(name: string, { summary, description, schema }: Words, printer: SchemaPrinter) {
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
    requestBody: { required: true, content: { 'application/json': { schema: printer.print(schema) } } },
    responses: {
      '2XX': { description: 'Taken. Answer before anything else is done; the body of the answer is not read further' },
      '410': { description: 'No more: the webhook becomes inactive' },
      default: { description: 'Tried again later, by the retry schedule' },
    },
  }
}
