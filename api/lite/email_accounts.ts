/** /lite/users/{id}/email_accounts */
import { z } from 'zod'
import {
  type AccountEdit,
  type AccountInput,
  type AccountRecord,
  badParameter,
  type ConnectFailure,
  isAppError,
  type UserRecord,
} from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, tagged } from '../route.ts'
import { documented, flag, given, optional, statusFilter, success, wantedStatus } from '../values.ts'
import { findAccount, findUser, type Mailbox } from './find.ts'
import {
  credentialOf,
  exampleMailbox,
  isWholeMailbox,
  mailboxInput,
  mailboxParameters,
  type MailboxParameters,
  statusCallbackOf,
} from './mailbox-input.ts'
import { type LiteUrls, liteUrls } from '../addresses.ts'

export const emailAccountView = examples.view('EmailAccount', {
  server: [z.string(), 'imap.example.com'],
  label: [z.string(), examples.label],
  username: [z.string(), examples.address],
  port: [z.int().min(1).max(65_535), 993],
  use_ssl: [z.boolean(), true],
  type: [z.literal('imap'), 'imap'],
  authentication_type: [z.enum(['password', 'oauth2']), 'password'],
  status: [z.enum(['OK', 'DISABLED']), 'OK'],
  status_message: [z.string().nullable(), null],
  status_callback_url: [z.string().nullable(), null],
  resource_url: [z.string(), examples.urls.account],
})

const listQuery = z.object(statusFilter)

const createBody = z.object(mailboxParameters).meta({ examples: [exampleMailbox] })

/** 0 is read, so that it can be refused in words of its own. */
const reset = documented(flag.optional(), {
  type: 'integer',
  enum: [1],
  description: '1 = forget a DISABLED state and connect anew',
})

const editBody = z
  .object({
    ...mailboxParameters,
    status: reset,
    force_status_check: optional(flag, '1 = log in now, and answer what the status is since and why'),
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
  feedback: optional(z.string(), 'the same in words'),
  connection_log: optional(z.string(), 'lines of the IMAP session, secrets masked'),
  connectionLog: optional(z.string(), 'the same as connection_log'),
}

/** `success: false` when the mail server refused; then nothing was made or changed. */
const createAnswer = z
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
const editAnswer = z
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

export function presentAccount(account: AccountRecord, urls: LiteUrls): z.input<typeof emailAccountView> {
  return {
    server: account.server,
    label: account.label,
    username: account.username,
    port: account.port,
    use_ssl: account.useSsl,
    type: 'imap',
    authentication_type: account.authType,
    status: account.status,
    status_message: statusMessage(account),
    status_callback_url: account.statusCallbackUrl,
    resource_url: urls.account(account),
  }
}

/** Why, and when the next try is. */
function statusMessage({ statusMessage: why, resume }: AccountRecord): string | null {
  if (why === null || resume.retryAt === null || resume.retryAt <= Date.now()) return why
  const [date = '', time = ''] = new Date(resume.retryAt).toISOString().split('T')
  return `${why}${/[.!?]$/.test(why) ? '' : '.'} Next try at ${date} ${time.slice(0, 8)} UTC.`
}

/** The mail server said no: a 200 that says so, and nothing was created. */
export function presentFailure({ failure, message, log }: ConnectFailure) {
  return {
    success: false,
    feedback_code: feedbackCodeOf(failure),
    feedback: message,
    connection_log: log,
    connectionLog: log,
  }
}

/** The failure class in the words that clients of the original know. */
function feedbackCodeOf(failure: ConnectFailure['failure']): string {
  return failure === 'auth_rejected' ? 'invalid_credentials' : failure
}

const base = '/lite/users/{id}/email_accounts'

const list = defineRoute(`GET ${base}`, {
  summary: 'List email accounts of a user',
  query: listQuery,
  response: z.array(emailAccountView),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const status = wantedStatus(query)
    const accounts = await call.engine.store.accounts.listByUser(user.id, status === undefined ? {} : { status })
    return accounts.map((account) => presentAccount(account, liteUrls(call.baseUrl)))
  },
})

const create = defineRoute(`POST ${base}`, {
  summary: 'Add an email account to a user',
  description:
    'Logs in first. When the mail server refuses, the answer is 200 with `success: false` and nothing is created.',
  body: createBody,
  response: createAnswer,
  errors: [409],
  async handler({ path, body }, call) {
    return add(call, await findUser(call, path.id), mailboxInput(body))
  },
})

async function add(call: Call, user: UserRecord, input: AccountInput) {
  call.touchesImap(user)
  const made = await call.engine.mailboxes.createAccount(call.developer, user, input)
  if (!made.ok) return presentFailure(made)
  call.concerns(user, made.value)
  return {
    success: true,
    status: made.value.status,
    label: made.value.label,
    resource_url: liteUrls(call.baseUrl).account(made.value),
  }
}

const get = defineRoute(`GET ${base}/{label}`, {
  summary: 'Get an email account',
  response: emailAccountView,
  async handler({ path }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    return presentAccount(account, liteUrls(call.baseUrl))
  },
})

const edit = defineRoute(`POST ${base}/{label}`, {
  summary: 'Edit an email account',
  description:
    'Changes what is named. New credentials or settings are tried first. `status=1` forgets a DISABLED state and connects anew; ' +
    '`force_status_check=1` logs in now: `success` says whether that went well, `feedback_code` why not, `status` what the email account ' +
    'is since. `email` changes the address that the user is found by, and nothing of the login; the label stays. A label that the user does not have yet, with all parameters of a mailbox, makes that email account (`0`: the first one).',
  body: editBody,
  response: editAnswer,
  errors: [409],
  async handler({ path, body }, call) {
    const mailbox = await findUnlessNew(call, path, body)
    if (mailbox === null)
      return add(call, await findUser(call, path.id), { ...mailboxInput(body), ...labelOf(path.label) })
    if (body.status === false) throw badParameter('status', 'only 1 (reset) is possible')
    if (body.force_status_check === true || body.status === true || tried.some((name) => body[name] !== undefined))
      call.touchesImap(mailbox.user)
    const edited = await call.engine.mailboxes.editAccount(call.developer, mailbox.account, editOf(body))
    if (!edited.ok) return presentFailure(edited)
    const { account, failure } =
      body.force_status_check === true
        ? await call.engine.accounts.checkNow(mailbox.account.id)
        : { account: await call.engine.accounts.settled(edited.value), failure: null }
    call.concerns(mailbox.user, account)
    return {
      ...(failure === null ? { success: true } : presentFailure(failure)),
      status: account.status,
      status_message: statusMessage(account),
      resource_url: liteUrls(call.baseUrl).account(account),
    }
  },
})

/** null when the user has no such email account and the call brings all that makes one. */
async function findUnlessNew(
  call: Call,
  { id, label }: { readonly id: string; readonly label: string },
  body: MailboxParameters,
): Promise<Mailbox | null> {
  try {
    return await findAccount(call, id, label)
  } catch (error) {
    const missing = isAppError(error, 'not_found') && error.details.kind === 'email account'
    if (missing && isWholeMailbox(body)) return null
    throw error
  }
}

const longestLabel = 320

/** `0` names no label: it stands for the first. */
function labelOf(label: string): { readonly label?: string } {
  if (label === '0') return {}
  if (label.length > longestLabel || /\p{Cc}/u.test(label))
    throw badParameter('label', `must be at most ${longestLabel} characters, and no control characters`)
  return { label }
}

/** Parameters whose new values are tried on the mail server first. */
const tried = [
  'server',
  'port',
  'use_ssl',
  'username',
  'password',
  'provider_refresh_token',
  'provider_consumer_key',
] as const

function editOf(body: MailboxParameters & { readonly status?: boolean | undefined }): AccountEdit {
  return given({
    credential: credentialOf(body),
    email: body.email,
    server: body.server?.trim().toLowerCase(),
    port: body.port,
    useSsl: body.use_ssl,
    username: body.username,
    ...statusCallbackOf(body),
    reset: body.status === true ? true : undefined,
  })
}

const remove = defineRoute(`DELETE ${base}/{label}`, {
  summary: 'Remove an email account and all that is stored of it',
  response: success,
  async handler({ path }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    await call.engine.mailboxes.removeAccount(account)
    return { success: true }
  },
})

export const emailAccountRoutes = tagged('Email accounts', [list, create, get, edit, remove])
