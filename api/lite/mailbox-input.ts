/** The parameters of a mailbox, the same for users and email accounts: settings and a password or an OAuth grant. */
import { z } from 'zod'
import { badParameter, type AccountInput, type Credential } from '../../engine/index.ts'
import { email, flag, lineText, port, urlOrEmpty } from '../values.ts'

const type = z.enum(['imap', 'IMAP'], { error: 'the only supported type is imap' })

export const mailboxParameters = {
  email: email.optional(),
  server: lineText.optional(),
  username: lineText.optional(),
  use_ssl: flag.optional(),
  port: port.optional(),
  type: type.optional(),
  password: lineText.optional(),
  provider_refresh_token: lineText.optional(),
  provider_consumer_key: lineText.optional(),
  status_callback_url: urlOrEmpty.optional(),
}

export type MailboxParameters = z.output<z.ZodObject<typeof mailboxParameters>>

/** Parameters that only a mailbox has: one of them means that a mailbox is wanted. */
const telling = [
  'server',
  'port',
  'use_ssl',
  'username',
  'type',
  'password',
  'provider_refresh_token',
  'provider_consumer_key',
] as const

export function wantsMailbox(body: MailboxParameters): boolean {
  return telling.some((name) => body[name] !== undefined)
}

/** Throws `bad_request` for a status callback URL where no email account can have it. */
export function mustHaveNoCallback({ status_callback_url: url }: MailboxParameters): void {
  if (url) throw badParameter('status_callback_url', 'belongs to an email account, and there is none')
}

const settings = ['email', 'server', 'username', 'use_ssl', 'port'] as const

/** Whether all is there that makes an email account. */
export function isWholeMailbox(body: MailboxParameters): boolean {
  const granted = body.provider_refresh_token !== undefined && body.provider_consumer_key !== undefined
  return settings.every((name) => body[name] !== undefined) && (granted || body.password !== undefined)
}

function required<T>(name: string, value: T | undefined): T {
  if (value === undefined) throw badParameter(name, 'is required')
  return value
}

/** Throws `bad_request` naming what is missing. */
export function mailboxInput(body: MailboxParameters): AccountInput {
  return {
    email: required('email', body.email),
    server: required('server', body.server).trim().toLowerCase(),
    username: required('username', body.username),
    useSsl: required('use_ssl', body.use_ssl),
    port: required('port', body.port),
    credential: required('password', credentialOf(body)),
    ...(body.status_callback_url === undefined ? {} : { statusCallbackUrl: body.status_callback_url || null }),
  }
}

/** A password is ignored when provider_* is set. undefined when neither is named. */
export function credentialOf(body: MailboxParameters): Credential | undefined {
  const { provider_refresh_token: refreshToken, provider_consumer_key: providerKey, password } = body
  if (refreshToken !== undefined || providerKey !== undefined) {
    return {
      kind: 'oauth2',
      refreshToken: required('provider_refresh_token', refreshToken),
      providerKey: required('provider_consumer_key', providerKey),
    }
  }
  return password === undefined ? undefined : { kind: 'password', password }
}
