/** Schemas of webhooks, their deliveries and redeliveries, and the explanation of a message. */
import { z } from 'zod'
import { filterParameters, type FilterParameter } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import {
  choice,
  filledText,
  flag,
  headerMode,
  limit,
  offset,
  optional,
  text,
  timestamp,
  url,
  urlOrEmpty,
} from '../../values.ts'

const filterKeys: readonly FilterParameter[] = Object.values(filterParameters)

const regex = 'a regular expression between slashes, which may match anywhere'
const list = `a comma list of them, or ${regex}; an item in double quotes is plain text`
const namesOrAddresses = `A whole address or name, with the shell wildcards * ? []; ${list}.`
const domains = `A domain, which stands for its sub-domains too, with the shell wildcards * ? []; ${list}.`
const folder = `The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or ${regex}.`

const filterForms: Readonly<Record<FilterParameter, string>> = {
  filter_to: namesOrAddresses,
  filter_from: namesOrAddresses,
  filter_cc: namesOrAddresses,
  filter_subject: `Part of the subject, with the wildcards * and ?; or ${regex}. Commas, brackets and quotes stand for themselves.`,
  filter_thread: 'Any Message-ID of the thread, with or without angle brackets, or a mailhost_thread_id.',
  filter_file_name: `The whole name of an attached file, with the shell wildcards * ? []; ${list}.`,
  filter_folder_added: folder,
  filter_folder_removed: folder,
  filter_to_domain: domains,
  filter_from_domain: domains,
  body_search: `Part of any text part, attached text files included, of HTML the text that is seen, with the shell wildcards * ? []; or ${regex}. No list.`,
}

function perFilter<T>(schemaOf: (filter: FilterParameter) => T): Record<FilterParameter, T> {
  return Object.fromEntries(filterKeys.map((key) => [key, schemaOf(key)])) as Record<FilterParameter, T>
}

const filterFields = perFilter((filter) => optional(text, filterForms[filter]))
const filterViews = perFilter(() => z.string().optional())

const shared = {
  failure_notif_url: optional(
    urlOrEmpty,
    'takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it',
    'https://app.example.com/webhook-failed',
  ),
  retry_schedule: optional(
    text,
    'Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h ' +
      'of at most 20, each from 1s to 7d. One attempt more than waits.',
  ),
  active: optional(flag, '1 = callbacks are sent (the default), 0 = paused'),
  ...filterFields,
  include_body: optional(
    flag,
    '1 = callbacks carry the text of the message, text/plain first; what is too large is cut',
  ),
  body_type: optional(
    choice(['text/plain', 'text/html', ''], 'expected text/plain or text/html'),
    'with include_body: only body parts of this MIME type; empty or absent = both',
    'text/plain',
  ),
  include_header: optional(
    headerMode,
    '1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text',
  ),
  receive_all_changes: optional(
    flag,
    '1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)',
  ),
  receive_drafts: optional(flag, '1 = callbacks for drafts too (default 0)'),
  receive_historical: optional(
    flag,
    '1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level ' +
      'of those that are added later (default 0)',
  ),
}

const callbackUrl = url.meta({
  description: 'takes the callbacks: POST with a JSON body, to be answered 200 at once',
  examples: ['https://app.example.com/mail'],
})

export const createBody = z.object({ callback_url: callbackUrl, ...shared }).meta({
  examples: [
    {
      callback_url: 'https://app.example.com/mail',
      filter_from: '*@example.com',
      include_body: 1,
      body_type: 'text/plain',
    },
  ],
})
export const editBody = z
  .object({ callback_url: callbackUrl.optional(), ...shared })
  .meta({ examples: [{ active: 0 }] })
export type WebhookParameters = z.output<typeof editBody>

const time = (what: string) => optional(z.int(), `Unix timestamp in seconds: ${what}`)

const webhookFields = {
  webhook_id: [z.string(), examples.ids.webhook],
  callback_url: [z.string(), 'https://app.example.com/mail'],
  failure_notif_url: z.string().optional(),
  retry_schedule: optional(z.string(), 'absent = MAILROOM_WEBHOOK_SCHEDULE'),
  active: [z.boolean(), true],
  failure: [z.boolean(), false, 'true from the third failed attempt in a row until the next success'],
  last_error: optional(z.string(), 'of the last attempt, while attempts fail'),
  failing_since: time('the first of the attempts that have all failed since'),
  abandoned_since: time('it has failed for too long: callbacks wait, and one is tried now and then'),
  retry_at: time(
    'no callback is sent before, then the oldest that waits is tried; absent = each callback has its own time',
  ),
  last_success_at: [time('the last delivered callback; while all goes well, up to a minute late'), 1_700_000_003],
  ...filterViews,
  filter_from: [filterViews.filter_from, '*@example.org'],
  include_body: [z.boolean(), true],
  body_type: [z.string().optional(), 'text/plain'],
  include_header: [z.boolean(), false],
  header_format: optional(
    z.enum(['parsed', 'raw']),
    'with include_header: how callbacks carry the header; set by include_header=1 or raw',
  ),
  receive_all_changes: [z.boolean(), false],
  receive_drafts: [z.boolean(), false],
  receive_historical: [z.boolean(), false],
} as const

export const webhookView = examples.view('Webhook', {
  ...webhookFields,
  developerId: optional(z.string(), 'at application level'),
  version: optional(z.string(), 'of its callbacks: `lite` or `2.0`; at application level, and of webhooks of 2.0'),
  resource_url: [z.string(), examples.urls.webhook],
})
export const v2WebhookView = examples.view('Webhook20', webhookFields)

const kinds = ['message', 'status', 'failure', 'sync', 'test'] as const
export const deliveryStates = ['pending', 'delivered', 'failed', 'skipped'] as const

const attempt = examples.answer({
  timestamp: [z.number(), 1_700_000_002],
  url: [z.string().nullable(), 'https://app.example.com/mail'],
  duration_ms: [z.number(), 84],
  status_code: [z.int().nullable(), 200],
  error: [z.string().nullable(), null],
  response: [z.string().nullable(), 'ok'],
})
export const deliveryFields = {
  delivery_id: [z.string(), examples.ids.delivery],
  webhook_id: [z.string().nullable(), examples.ids.webhook, 'of kind message, test and failure'],
  url: [
    z.string().nullable(),
    'https://app.example.com/mail',
    'where the last attempt went, or the first one will go; null = nowhere any more',
  ],
  kind: [z.enum(kinds), 'message'],
  event: [z.string().nullable(), 'received'],
  state: [z.enum(deliveryStates), 'delivered'],
  reason: [z.string().nullable(), null],
  account_id: [z.string().nullable(), examples.ids.user],
  message_id: [z.string().nullable(), examples.ids.message],
  created: [z.number(), examples.time],
  due: [z.number().nullable(), null],
  finished: [z.number().nullable(), 1_700_000_003],
  attempt_count: [z.int(), 1],
  attempts: [z.array(attempt), [examples.exampleOf(attempt)]],
} as const
export const deliveryView = examples.view('Delivery', deliveryFields)

export const deliveriesQuery = z.object({
  state: optional(
    choice(deliveryStates),
    'only callbacks that are `pending`, `delivered`, `failed` (given up) or `skipped` (not sent, see reason)',
  ),
  kind: optional(choice(kinds), 'only callbacks of this kind'),
  message_id: optional(filledText, 'of the API, or a Message-ID'),
  timestamp_after: optional(timestamp, 'only events of this Unix timestamp in seconds or later'),
  timestamp_before: optional(timestamp, 'only events of this Unix timestamp in seconds or earlier'),
  limit,
  offset,
})

export const redeliveryProgress = {
  redelivered: [z.int(), 17, 'callbacks that are queued again'],
  done: [z.boolean(), true, 'false = more of that time are being queued'],
} as const
export const redeliverAnswer = examples.answer({
  success: [z.boolean(), true],
  redelivered: [z.int(), 1, 'callbacks that are queued again'],
})
export const redeliveryView = examples.view('Redelivery', {
  ...redeliveryProgress,
  reason: [z.string().nullable(), null, 'why it ended before its end'],
  from: [z.number().nullable(), examples.time],
  to: [z.number().nullable(), 1_700_003_600],
  failed_only: [z.boolean(), true],
  started: [z.number().nullable(), 1_700_010_000, 'null = nothing has been sent again yet'],
})

const verdict = examples.answer({
  filter: [z.string(), 'filter_from'],
  matched: [z.boolean(), true],
  why: [z.string(), 'ben@example.org fits *@example.org'],
})

export const dryRunQuery = z.object({
  limit,
  label: optional(text, 'only messages of this email account; at application level together with user_id'),
  user_id: optional(z.string(), 'only messages of this user', examples.ids.user),
})
const dryRunRow = examples.answer({
  account_id: [z.string(), examples.ids.user, 'id of the user'],
  label: [z.string(), examples.label, 'of the email account'],
  message_id: [z.string(), examples.ids.message],
  email_message_id: [z.string(), examples.ids.emailMessage],
  subject: [z.string(), 'Hello'],
  matched: [z.boolean(), true],
  filters: [z.array(verdict), [examples.exampleOf(verdict)]],
})
export const dryRunAnswer = z.array(dryRunRow).meta({ examples: [[examples.exampleOf(dryRunRow)]] })

const event = examples.answer({
  kind: [z.string(), 'received'],
  first: [z.boolean(), true],
  folder: [z.string(), 'INBOX'],
  seen: [z.number(), examples.time],
  sequence: [z.int(), 1042],
})
export const explainAnswer = examples.answer({
  message_id: [z.string(), examples.ids.message],
  webhook_id: [z.string(), examples.ids.webhook],
  indexed: [z.number(), examples.time],
  events: [z.array(event), [examples.exampleOf(event)]],
  matched: [z.boolean(), true],
  filters: [z.array(verdict), [examples.exampleOf(verdict)]],
  deliveries: [z.array(deliveryView), [examples.exampleOf(deliveryView)]],
})
