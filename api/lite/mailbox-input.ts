/** Mailbox parameters of users and email accounts (settings, password or OAuth grant), and engine input from them. */
import type { z } from 'zod'
import {
  type AccountEdit,
  badParameter,
  type AccountInput,
  type Credential,
  type SourceOptions,
} from '../../engine/index.ts'
import { choice, email, flag, given, lineText, optional, port, text, urlOrEmpty } from '../values.ts'

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

/** Parameters of an email account with a password, for the examples of the reference. */
export const exampleMailbox = {
  email: 'anna@example.com',
  server: 'imap.example.com',
  username: 'anna@example.com',
  use_ssl: 1,
  port: 993,
  type: 'imap',
  password: 'app-password',
}

/** Parameters that only a source of 2.0 has. */
export const sourceParameters = {
  sync_all_folders: optional(
    flag,
    '1 = every folder and its mail is shown; 0 (the default) = folders of the uses \\Trash and \\Drafts, and what lies only there, are hidden',
  ),
  sync_folders: optional(text, 'the same as a list: with `All` or `Trash` in it every folder is shown', 'All,Trash'),
  expunge_on_deleted_flag: optional(flag, '1 = messages with the flag \\Deleted are hidden; 0 is the default'),
  raw_file_list: optional(
    flag,
    '1 = every attachment is shown; 0 (the default) = images of signatures and winmail.dat are hidden',
  ),
  sync_flags: optional(flag, 'kept and answered; flags are always up to date. 1 is the default'),
  callback_url: optional(urlOrEmpty, 'gets a POST when the first sync is complete', 'https://app.example.com/synced'),
}

type SourceParameters = Partial<z.output<z.ZodObject<typeof sourceParameters>>>
export type MailboxParameters = z.output<z.ZodObject<typeof mailboxParameters>> & SourceParameters

/** The source options that the body names; undefined when it names none. */
export function optionsOf(body: SourceParameters): Partial<SourceOptions> | undefined {
  const shown = body.sync_folders?.split(',').some((name) => /^(?:all|trash)$/i.test(name.trim()))
  const options = given({
    syncAllFolders: body.sync_all_folders ?? shown,
    expungeOnDeletedFlag: body.expunge_on_deleted_flag,
    rawFileList: body.raw_file_list,
    syncFlags: body.sync_flags,
    callbackUrl: body.callback_url === undefined ? undefined : body.callback_url || null,
  })
  return Object.keys(options).length === 0 ? undefined : options
}

/** Parameters of the login: a change of one is tried on the mail server first. */
const loginParameters = [
  'server',
  'port',
  'use_ssl',
  'username',
  'password',
  'provider_refresh_token',
  'provider_consumer_key',
] as const

export function namesLogin(body: MailboxParameters): boolean {
  return loginParameters.some((name) => body[name] !== undefined)
}

/** The URL as commands of the engine take it: null removes it, absent leaves it. */
export function statusCallbackOf({ status_callback_url: url }: Pick<MailboxParameters, 'status_callback_url'>) {
  return url === undefined ? {} : { statusCallbackUrl: url || null }
}

const settings = ['email', 'server', 'username', 'use_ssl', 'port'] as const

/** Whether the body has every parameter that a new email account needs. */
export function isWholeMailbox(body: MailboxParameters): boolean {
  const granted = body.provider_refresh_token !== undefined && body.provider_consumer_key !== undefined
  return settings.every((name) => body[name] !== undefined) && (granted || body.password !== undefined)
}

function required<T>(name: string, value: T | undefined): T {
  if (value === undefined) throw badParameter(name, 'is required')
  return value
}

/** Throws `bad_request` naming a missing parameter. */
export function mailboxInput(body: MailboxParameters): AccountInput {
  for (const name of settings) required(name, body[name])
  const named = accountEdit(body)
  required('password', named.credential)
  return named as AccountInput
}

/** The parameters that the body names, as commands of the engine take them. */
export function accountEdit(body: MailboxParameters): AccountEdit {
  return given({
    email: body.email,
    server: body.server?.trim().toLowerCase(),
    username: body.username,
    useSsl: body.use_ssl,
    port: body.port,
    credential: credentialOf(body),
    ...statusCallbackOf(body),
    options: optionsOf(body),
  })
}

/** A password is ignored when a provider_* parameter is set. undefined when the body names neither. */
function credentialOf(body: MailboxParameters): Credential | undefined {
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
