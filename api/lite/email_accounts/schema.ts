/** Email accounts on the wire. */
import { z } from 'zod'
import { flag, statusFilter } from '../../values.ts'
import { mailboxParameters } from '../mailbox-input.ts'

export const emailAccountView = z
  .object({
    server: z.string(),
    label: z.string(),
    username: z.string(),
    port: z.int(),
    use_ssl: z.boolean(),
    type: z.literal('imap'),
    authentication_type: z.enum(['password', 'oauth2']),
    status: z.enum(['OK', 'DISABLED']),
    status_message: z.string().nullable(),
    status_callback_url: z.string().nullable(),
    resource_url: z.string(),
  })
  .meta({ id: 'EmailAccount' })

export const listQuery = z.object(statusFilter)

export const accountPath = z.object({ id: z.string(), label: z.string() })
export const userPath = z.object({ id: z.string() })

export const createBody = z.object(mailboxParameters)

export const editBody = z.object({ ...mailboxParameters, status: flag.optional(), force_status_check: flag.optional() })

const soft = {
  success: z.boolean(),
  feedback_code: z.string().optional(),
  feedback: z.string().optional(),
  connection_log: z.string().optional(),
  connectionLog: z.string().optional(),
}

/** `success: false` when the mail server refused; then nothing was made or changed. */
export const createAnswer = z.object({
  ...soft,
  status: z.string().optional(),
  label: z.string().optional(),
  resource_url: z.string().optional(),
})

/** `label` when the call made the email account. With a failed status check, `success: false` and the status. */
export const editAnswer = z.object({
  ...soft,
  label: z.string().optional(),
  status: z.string().optional(),
  status_message: z.string().nullable().optional(),
  resource_url: z.string().optional(),
})

export const softFailure = soft
