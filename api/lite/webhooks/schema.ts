/** Webhooks and their deliveries on the wire. */
import { z } from 'zod'
import { filterParameters, type FilterParameter } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import {
  choice,
  filledText,
  flag,
  headerMode,
  limitOf,
  offset,
  text,
  timestamp,
  url,
  urlOrEmpty,
  successAt,
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

const filterFields = Object.fromEntries(
  filterKeys.map((key) => [key, text.optional().meta({ description: filterForms[key] })]),
) as Record<FilterParameter, z.ZodOptional<typeof text>>
const filterViews = Object.fromEntries(filterKeys.map((key) => [key, z.string().optional()])) as Record<
  FilterParameter,
  z.ZodOptional<z.ZodString>
>

const shared = {
  failure_notif_url: urlOrEmpty.optional().meta({
    description: 'takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it',
    examples: ['https://app.example.com/webhook-failed'],
  }),
  retry_schedule: text.optional().meta({
    description:
      'Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h ' +
      'of at most 20, each from 1s to 7d. One attempt more than waits.',
  }),
  active: flag.optional().meta({ description: '1 = callbacks are sent (the default), 0 = paused' }),
  ...filterFields,
  include_body: flag
    .optional()
    .meta({ description: '1 = callbacks carry the text of the message, text/plain first; what is too large is cut' }),
  body_type: choice(['text/plain', 'text/html', ''], 'expected text/plain or text/html')
    .optional()
    .meta({
      description: 'with include_body: only body parts of this MIME type; empty or absent = both',
      examples: ['text/plain'],
    }),
  include_header: headerMode.optional().meta({
    description:
      '1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text',
  }),
  receive_all_changes: flag.optional().meta({
    description:
      '1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)',
  }),
  receive_drafts: flag.optional().meta({ description: '1 = callbacks for drafts too (default 0)' }),
  receive_historical: flag.optional().meta({
    description:
      '1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level ' +
      'of those that are added later (default 0)',
  }),
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

const time = (what: string) =>
  z
    .int()
    .optional()
    .meta({ description: `Unix timestamp in seconds: ${what}` })

export const webhookView = z
  .object({
    webhook_id: z.string(),
    callback_url: z.string(),
    failure_notif_url: z.string().optional(),
    retry_schedule: z.string().optional().meta({ description: 'absent = MAILROOM_WEBHOOK_SCHEDULE' }),
    active: z.boolean(),
    failure: z.boolean().meta({ description: 'true from the third failed attempt in a row until the next success' }),
    last_error: z.string().optional().meta({ description: 'of the last attempt, while attempts fail' }),
    failing_since: time('the first of the attempts that have all failed since'),
    abandoned_since: time('it has failed for too long: callbacks wait, and one is tried now and then'),
    retry_at: time(
      'no callback is sent before, then the oldest that waits is tried; absent = each callback has its own time',
    ),
    last_success_at: time('the last delivered callback; while all goes well, up to a minute late'),
    ...filterViews,
    include_body: z.boolean(),
    body_type: z.string().optional(),
    include_header: z.boolean(),
    header_format: z
      .enum(['parsed', 'raw'])
      .optional()
      .meta({ description: 'with include_header: how callbacks carry the header; set by include_header=1 or raw' }),
    receive_all_changes: z.boolean(),
    receive_drafts: z.boolean(),
    receive_historical: z.boolean(),
    developerId: z.string().optional(),
    version: z.string().optional(),
    resource_url: z.string(),
  })
  .meta({ id: 'Webhook', examples: [examples.webhook] })

export const createAnswer = z
  .object({ success: z.boolean(), webhook_id: z.string(), resource_url: z.string() })
  .meta({ examples: [{ success: true, webhook_id: examples.webhook.webhook_id, resource_url: examples.urls.webhook }] })
export const editAnswer = successAt(examples.urls.webhook)

const kinds = ['message', 'status', 'failure', 'sync', 'test'] as const
const states = ['pending', 'delivered', 'failed', 'skipped'] as const

export const deliveryView = z
  .object({
    delivery_id: z.string(),
    webhook_id: z.string().nullable().meta({ description: 'of kind message, test and failure' }),
    url: z
      .string()
      .nullable()
      .meta({ description: 'where the last attempt went, or the first one will go; null = nowhere any more' }),
    kind: z.enum(kinds),
    event: z.string().nullable(),
    state: z.enum(states),
    reason: z.string().nullable(),
    account_id: z.string().nullable(),
    message_id: z.string().nullable(),
    created: z.number(),
    due: z.number().nullable(),
    finished: z.number().nullable(),
    attempt_count: z.int(),
    attempts: z.array(
      z.object({
        timestamp: z.number(),
        url: z.string().nullable(),
        duration_ms: z.number(),
        status_code: z.int().nullable(),
        error: z.string().nullable(),
        response: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'Delivery', examples: [examples.delivery] })

export const deliveriesQuery = z.object({
  state: choice(states).optional().meta({
    description:
      'only callbacks that are `pending`, `delivered`, `failed` (given up) or `skipped` (not sent, see reason)',
  }),
  kind: choice(kinds).optional().meta({ description: 'only callbacks of this kind' }),
  message_id: filledText.optional().meta({ description: 'of the API, or a Message-ID' }),
  timestamp_after: timestamp.optional().meta({ description: 'only events of this Unix timestamp in seconds or later' }),
  timestamp_before: timestamp
    .optional()
    .meta({ description: 'only events of this Unix timestamp in seconds or earlier' }),
  limit: limitOf(25),
  offset,
})

export const redeliverBody = z
  .object({
    from: timestamp.optional().meta({ description: 'events of this Unix timestamp in seconds or later' }),
    to: timestamp.optional().meta({ description: 'events of this Unix timestamp in seconds or earlier' }),
    failed_only: flag
      .optional()
      .meta({ description: '1 = only callbacks that failed. Default 0, but 1 when neither from nor to is given' }),
  })
  .meta({ examples: [{ from: 1_700_000_000, to: 1_700_003_600, failed_only: 1 }] })
const redelivered = z.int().meta({ description: 'callbacks that are queued again' })
const redeliverFields = z.object({ success: z.boolean(), redelivered })
export const redeliverAnswer = redeliverFields.meta({ examples: [{ success: true, redelivered: 1 }] })
const done = z.boolean().meta({ description: 'false = more of that time are being queued' })
export const redeliverManyAnswer = redeliverFields.extend({ done }).meta({ examples: [examples.redelivered] })

export const redeliveryView = z
  .object({
    redelivered,
    done,
    reason: z.string().nullable().meta({ description: 'why it ended before its end' }),
    from: z.number().nullable(),
    to: z.number().nullable(),
    failed_only: z.boolean(),
    started: z.number().nullable().meta({ description: 'null = nothing has been sent again yet' }),
  })
  .meta({ id: 'Redelivery', examples: [examples.redelivery] })
export const secretAnswer = z.object({ success: z.boolean(), secret: z.string() }).meta({ examples: [examples.secret] })

const verdict = z.object({ filter: z.string(), matched: z.boolean(), why: z.string() })

export const dryRunQuery = z.object({
  limit: limitOf(25),
  label: text
    .optional()
    .meta({ description: 'only messages of this email account; at application level together with user_id' }),
})
export const dryRunAnswer = z
  .array(
    z.object({
      account_id: z.string().meta({ description: 'id of the user' }),
      label: z.string().meta({ description: 'of the email account' }),
      message_id: z.string(),
      email_message_id: z.string(),
      subject: z.string(),
      matched: z.boolean(),
      filters: z.array(verdict),
    }),
  )
  .meta({ examples: [examples.dryRun] })

export const explainAnswer = z
  .object({
    message_id: z.string(),
    webhook_id: z.string(),
    indexed: z.number(),
    events: z.array(
      z.object({ kind: z.string(), first: z.boolean(), folder: z.string(), seen: z.number(), sequence: z.int() }),
    ),
    matched: z.boolean(),
    filters: z.array(verdict),
    deliveries: z.array(deliveryView),
  })
  .meta({ examples: [examples.explanation] })
