/** What concerns the whole application, on the wire. */
import { z } from 'zod'
import * as examples from '../examples.ts'
import { filledText, integer, limit, offset, timestamp, url } from '../values.ts'
import { deliveriesQuery, deliveryView } from '../lite/webhooks/schema.ts'

export const statusCallbackView = z
  .object({
    status_callback_url: z.string().meta({ description: 'empty when there is none' }),
    resource_url: z.string(),
  })
  .meta({
    examples: [{ status_callback_url: 'https://app.example.com/status', resource_url: examples.urls.statusCallback }],
  })
export const statusCallbackBody = z.object({
  status_callback_url: url.meta({
    description: 'takes the status callbacks of every email account that has no URL of its own',
    examples: ['https://app.example.com/status'],
  }),
})
export const statusCallbackAnswer = z
  .object({ success: z.boolean(), resource_url: z.string() })
  .meta({ examples: [{ success: true, resource_url: examples.urls.statusCallback }] })

const statusCode = integer(100, 599)

/** Of both logs; times are inclusive. */
const logQuery = {
  account_id: filledText.optional().meta({ description: 'id of the user (lite) or account (2.0)' }),
  timestamp_after: timestamp
    .optional()
    .meta({ description: 'only entries of this Unix timestamp in seconds or later' }),
  timestamp_before: timestamp
    .optional()
    .meta({ description: 'only entries of this Unix timestamp in seconds or earlier' }),
  status_code_from: statusCode.optional().meta({ description: 'only entries with this HTTP status or a higher one' }),
  status_code_to: statusCode.optional().meta({ description: 'only entries with this HTTP status or a lower one' }),
  limit,
  offset,
}

export const webhookLogQuery = z.object({
  webhook_id: filledText.optional().meta({ description: 'only callbacks of this webhook' }),
  ...logQuery,
  label: filledText.optional().meta({ description: 'one email account of `account_id`' }),
  kind: deliveriesQuery.shape.kind,
  state: deliveriesQuery.shape.state,
})

export const callLogQuery = z.object({
  request_method: filledText.optional().meta({ description: 'only calls with this HTTP method', examples: ['GET'] }),
  request_path: filledText.optional().meta({
    description:
      'the whole path, as it was sent; or a regular expression (RE2) between slashes, which may match anywhere in it, without case',
    examples: ['/lite/users', '/\\/messages$/'],
  }),
  ...logQuery,
})

export type LogQuery = Pick<
  z.output<typeof callLogQuery>,
  'timestamp_after' | 'timestamp_before' | 'status_code_from' | 'status_code_to'
>

export const webhookLogView = z
  .object({
    ...deliveryView.shape,
    timestamp: z.int().meta({ description: 'of the last attempt, or of the event while there is none' }),
    status_code: z.int().nullable().meta({ description: 'of the last attempt; null = no answer' }),
    request_method: z.literal('POST'),
  })
  .meta({ id: 'WebhookLogEntry', examples: [examples.webhookLogEntry] })

export const callLogView = z
  .object({
    id: z.string(),
    timestamp: z.int(),
    account_id: z.string().nullable(),
    request_method: z.string(),
    request_path: z.string(),
    status_code: z.int(),
    duration_ms: z.int(),
  })
  .meta({ id: 'CallLogEntry', examples: [examples.callLogEntry] })
