/** What the service sends, as the `webhooks` of the OpenAPI document: the bodies of callbacks and the headers that sign them. */
import type { z } from 'zod'
import { callbackSchemas } from './lite/webhooks/callbacks.ts'
import type { Json, SchemaPrinter } from './openapi-schema.ts'

export interface Callback {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly security: readonly Json[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: 'header'
    readonly required: true
    readonly description: string
    readonly schema: Json
    readonly example: string
  }[]
  readonly requestBody: {
    readonly required: true
    readonly content: { readonly 'application/json': { readonly schema: Json } }
  }
  readonly responses: Readonly<Record<string, Json>>
}

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

function callbackOf(name: string, { summary, description, schema }: Words, printer: SchemaPrinter): Callback {
  return {
    operationId: `${name}Callback`,
    tags: ['Callbacks'],
    summary,
    description,
    security: [],
    parameters: signatureHeaders.map(([header, words, example]) => ({
      name: header,
      in: 'header',
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
