/** Users on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import { limitOf, offset, personNames, statusFilter, text, urlOrEmpty } from '../../values.ts'
import { emailAccountView, softFailure } from '../email_accounts/schema.ts'
import { exampleMailbox, mailboxParameters } from '../mailbox-input.ts'

export const userView = z
  .object({
    id: z.string(),
    username: z.string(),
    created: z.int(),
    suspended: z.literal(0),
    password_expired: z.literal(0),
    first_name: z.string(),
    last_name: z.string(),
    email_addresses: z.array(z.string()),
    email_accounts: z.array(emailAccountView),
    status_callback_url: z
      .string()
      .optional()
      .meta({ description: 'of email accounts that are added later and name none; absent when there is none' }),
    resource_url: z.string(),
  })
  .meta({ id: 'User', examples: [examples.user] })

export const listQuery = z.object({
  email: text.optional().meta({ description: 'only users with this email address', examples: ['anna@example.com'] }),
  ...statusFilter,
  limit: limitOf(100),
  offset,
})

export const userPath = z.object({ id: z.string() })

export const createBody = z
  .object({
    ...mailboxParameters,
    ...personNames,
    migrate_account_id: text.optional().meta({
      description: 'id of a 2.0 account that becomes a user as it is; no mailbox parameter is needed with it',
      examples: ['5f3c8a2b9d4e1f6a7b8c9d0e'],
    }),
  })
  .meta({ examples: [{ ...exampleMailbox, first_name: 'Anna', last_name: 'Berg' }] })

export const editBody = z.object({
  ...personNames,
  status_callback_url: urlOrEmpty.optional().meta({
    description:
      'takes the status callbacks of email accounts that are added later and name none; those that are there keep theirs. Empty removes it',
    examples: ['https://app.example.com/status'],
  }),
})

const reference = z.object({ label: z.string(), resource_url: z.string() })

/** `success: false` when the mail server refused the login; then nothing was made. */
export const createAnswer = z
  .object({
    ...softFailure,
    id: z.string().optional(),
    resource_url: z.string().optional(),
    source: reference.optional(),
    email_account: reference.optional(),
  })
  .meta({ examples: [examples.userMade, examples.loginRefused] })

export const editAnswer = z
  .object({ success: z.boolean(), resource_url: z.string() })
  .meta({ examples: [{ success: true, resource_url: examples.urls.user }] })
