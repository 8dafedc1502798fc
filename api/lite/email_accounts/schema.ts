/** Email accounts on the wire. */
import { z } from 'zod'
import type { ConnectFailure } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { documented, flag, statusFilter } from '../../values.ts'
import { exampleMailbox, mailboxParameters } from '../mailbox-input.ts'

export const emailAccountView = z
  .object({
    server: z.string(),
    label: z.string(),
    username: z.string(),
    port: z.int().min(1).max(65_535),
    use_ssl: z.boolean(),
    type: z.literal('imap'),
    authentication_type: z.enum(['password', 'oauth2']),
    status: z.enum(['OK', 'DISABLED']),
    status_message: z.string().nullable(),
    status_callback_url: z.string().nullable(),
    resource_url: z.string(),
  })
  .meta({ id: 'EmailAccount', examples: [examples.emailAccount] })

export const listQuery = z.object(statusFilter)

export const accountPath = z.object({ id: z.string(), label: z.string() })
export const userPath = z.object({ id: z.string() })

export const createBody = z.object(mailboxParameters).meta({ examples: [exampleMailbox] })

/** 0 is read, so that it can be refused in words of its own. */
const reset = documented(flag.optional(), {
  type: 'integer',
  enum: [1],
  description: '1 = forget a DISABLED state and connect anew',
})

export const editBody = z
  .object({
    ...mailboxParameters,
    status: reset,
    force_status_check: flag
      .optional()
      .meta({ description: '1 = log in now, and answer what the status is since and why' }),
  })
  .meta({ examples: [{ password: 'new-app-password' }] })

/** Every way that a trial login can fail, as `feedback_code` says it, and what it means. */
const feedbackCodes: Readonly<Record<Exclude<ConnectFailure['failure'], 'auth_rejected'>, string>> = {
  auth_unavailable: 'the server cannot check passwords at the moment',
  consent_lost: 'the OAuth grant was taken back or has expired',
  permission: 'the server does not let this login use IMAP, or offers no login method that fits',
  throttled: 'too many logins or too much traffic: try again later',
  connection_limit: 'too many connections to this mailbox',
  network: 'the connection broke',
  tls: 'TLS could not be agreed on, or the certificate is not valid',
  protocol: 'what answers there does not speak IMAP',
  timeout: 'no answer in time',
  connection_refused: 'nothing listens on this port',
  host_not_found: 'there is no host of this name',
  private_address: 'the host has no public address',
}

const codesInWords = Object.entries({ invalid_credentials: 'wrong username or password', ...feedbackCodes })
const feedbackCode = documented(z.string(), {
  type: 'string',
  enum: codesInWords.map(([code]) => code),
  description: `why the login failed: ${codesInWords.map(([code, words]) => `\`${code}\` = ${words}`).join('; ')}`,
})

const soft = {
  success: z.boolean(),
  feedback_code: feedbackCode.optional(),
  feedback: z.string().optional().meta({ description: 'the same in words' }),
  connection_log: z.string().optional().meta({ description: 'lines of the IMAP session, secrets masked' }),
  connectionLog: z.string().optional().meta({ description: 'the same as connection_log' }),
}

/** `success: false` when the mail server refused; then nothing was made or changed. */
export const createAnswer = z
  .object({
    ...soft,
    status: z.string().optional(),
    label: z.string().optional(),
    resource_url: z.string().optional(),
  })
  .meta({
    examples: [examples.accountMade, examples.loginRefused],
  })

/** `label` when the call made the email account. With a failed status check, `success: false` and the status. */
export const editAnswer = z
  .object({
    ...soft,
    label: z.string().optional(),
    status: z.string().optional(),
    status_message: z.string().nullable().optional(),
    resource_url: z.string().optional(),
  })
  .meta({
    examples: [examples.accountEdited, examples.loginRefused],
  })

export const softFailure = soft
