/** The parameters of a mailbox, the same for users and email accounts: settings and a password or an OAuth grant. */
import type { z } from 'zod'
import { badParameter, type AccountInput, type Credential } from '../../engine/index.ts'
import { choice, email, flag, lineText, optional, port, urlOrEmpty } from '../values.ts'

const type = choice(['imap'], 'the only supported type is imap')

const together =
  'A new email account takes email, server, username, use_ssl and port together, and a password or both provider_* parameters.'

export const mailboxParameters = {
  email: optional(email, `address of the mailbox. ${together}`, 'anna@example.com'),
  server: optional(lineText, 'host name or IP address of the IMAP server', 'imap.example.com'),
  username: optional(lineText, 'login name on the IMAP server, often the address', 'anna@example.com'),
  use_ssl: optional(
    flag,
    '1 = TLS from the first byte, usually port 993; 0 = STARTTLS, usually port 143: a public server has to offer it',
    1,
  ),
  port: optional(port, 'TCP port of the IMAP server', 993),
  type: optional(type, 'protocol of the mailbox: `imap` is the only one, and the default', 'imap'),
  password: optional(
    lineText,
    'password of the mailbox, often an app password; ignored when provider_* are set',
    'app-password',
  ),
  provider_refresh_token: optional(
    lineText,
    'OAuth 2.0 refresh token of the mailbox, instead of a password; together with provider_consumer_key',
    '1//0gRefreshToken',
  ),
  provider_consumer_key: optional(
    lineText,
    'consumer key of a registered OAuth provider; together with provider_refresh_token',
    'my-consumer-key',
  ),
  status_callback_url: optional(
    urlOrEmpty,
    'takes the status callbacks of this email account, instead of the application’s URL; empty removes it. When the user ' +
      'has one, a new email account that names none takes it over',
    'https://app.example.com/status',
  ),
}

/** What makes an email account with a password, for the examples of the reference. */
export const exampleMailbox = {
  email: 'anna@example.com',
  server: 'imap.example.com',
  username: 'anna@example.com',
  use_ssl: 1,
  port: 993,
  type: 'imap',
  password: 'app-password',
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

/** As commands take it: null removes it, absent leaves it. */
export function statusCallbackOf({ status_callback_url: url }: Pick<MailboxParameters, 'status_callback_url'>) {
  return url === undefined ? {} : { statusCallbackUrl: url || null }
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
    ...statusCallbackOf(body),
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
