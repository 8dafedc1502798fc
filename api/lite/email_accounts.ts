/** /lite/users/{id}/email_accounts: the routes of email accounts; 2.0 builds its sources from the same routes. */
import { z } from 'zod'
import {
  type AccountInput,
  type AccountRecord,
  badParameter,
  type ConnectFailure,
  notFound,
  sentence,
  type UserRecord,
  utc,
} from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, tagged } from '../route.ts'
import { documented, flag, given, optional, statusFilter, success, wantedStatus } from '../values.ts'
import { findAccount, findUser, kinds, lookUpAccount, type Mailbox } from './find.ts'
import {
  accountEdit,
  exampleMailbox,
  isWholeMailbox,
  mailboxInput,
  mailboxParameters,
  type MailboxParameters,
  namesLogin,
} from './mailbox-input.ts'
import { type Urls, urlsOf } from '../addresses.ts'

export const accountFields = {
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
} as const

export const emailAccountView = examples.view('EmailAccount', {
  ...accountFields,
  resource_url: [z.string(), examples.urls.account],
})

/** Parameters of an edit besides those of the mailbox. */
export const resets = {
  /** The schema takes 0, so that the handler can refuse it with its own error text. */
  status: documented(flag.optional(), {
    type: 'integer',
    enum: [1],
    description: '1 = forget a DISABLED state and connect anew',
  }),
  force_status_check: optional(flag, '1 = log in now, and answer what the status is since and why'),
}

/** Failure class of a trial login, which is its `feedback_code`, and its meaning. */
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

/** Fields of an answer to a call that logs in. */
export const softFailure = {
  success: z.boolean(),
  feedback_code: feedbackCode.optional(),
  feedback: optional(z.string(), 'the same in words'),
  connection_log: optional(z.string(), 'lines of the IMAP session, secrets masked'),
  connectionLog: optional(z.string(), 'the same as connection_log'),
}

/** `success: false` when the mail server refused the login; then nothing was created or changed. */
const outcome = z.object({
  ...softFailure,
  status: z.string().optional(),
  label: z.string().optional(),
  resource_url: z.string().optional(),
})

export function presentAccount(account: AccountRecord, urls: Urls): z.input<typeof emailAccountView> {
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

/** Why the email account does not work, and the time of the next try. null = it works. */
function statusMessage({ statusMessage: why, resume }: AccountRecord): string | null {
  if (why === null || resume.retryAt === null || resume.retryAt <= Date.now()) return why
  return `${sentence(why)} Next try at ${utc(resume.retryAt)}.`
}

/** The 200 answer to a login that the mail server refused. */
export function presentFailure({ failure, message, log }: ConnectFailure) {
  return {
    success: false,
    // Clients of the original know this name.
    feedback_code: failure === 'auth_rejected' ? 'invalid_credentials' : failure,
    feedback: message,
    connection_log: log,
    connectionLog: log,
  }
}

/** The differences between the API versions: paths, words of the documents, request bodies, views of email accounts. */
interface AccountForm {
  readonly base: '/lite/users/{id}/email_accounts' | '/2.0/accounts/{id}/sources'
  /** 'an email account' */
  readonly one: string
  readonly words: Readonly<Record<'list' | 'create' | 'edit', string>>
  readonly view: z.ZodType<unknown, object>
  readonly createBody: z.ZodType<MailboxParameters>
  readonly editBody: z.ZodType<EditParameters>
  present(account: AccountRecord, urls: Urls): object
}

const liteForm: AccountForm = {
  base: '/lite/users/{id}/email_accounts',
  one: 'an email account',
  words: {
    list: 'List email accounts of a user',
    create: 'Add an email account to a user',
    edit:
      'Changes what is named. New credentials or settings are tried first. `status=1` forgets a DISABLED state and connects anew; ' +
      '`force_status_check=1` logs in now: `success` says whether that went well, `feedback_code` why not, `status` what the email account ' +
      'is since. `email` changes the address that the user is found by, and nothing of the login; the label stays. A label that the user does not have yet, with all parameters of a mailbox, makes that email account (`0`: the first one).',
  },
  view: emailAccountView,
  createBody: z.object(mailboxParameters).meta({ examples: [exampleMailbox] }),
  editBody: z.object({ ...mailboxParameters, ...resets }).meta({ examples: [{ password: 'new-app-password' }] }),
  present: presentAccount,
}

const list = ({ base, words, view, present }: AccountForm) =>
  defineRoute(`GET ${base}`, {
    summary: words.list,
    query: z.object(statusFilter),
    response: z.array(view),
    async handler({ path, query }, call) {
      const user = await findUser(call, path.id)
      const found = await call.engine.store.accounts.listByUser(user.id, given({ status: wantedStatus(query) }))
      return found.map((account) => present(account, urlsOf(call)))
    },
  })

const create = ({ base, words, createBody }: AccountForm) =>
  defineRoute(`POST ${base}`, {
    summary: words.create,
    description:
      'Logs in first. When the mail server refuses, the answer is 200 with `success: false` and nothing is created.',
    body: createBody,
    response: outcome.meta({ examples: [examples.accountMade, examples.loginRefused] }),
    errors: [409],
    handler: async ({ path, body }, call) => addAccount(call, await findUser(call, path.id), mailboxInput(body)),
  })

async function addAccount(call: Call, user: UserRecord, input: AccountInput) {
  call.touchesImap(user)
  const made = await call.engine.mailboxes.createAccount(user, input)
  if (!made.ok) return presentFailure(made)
  const account = made.value
  call.concerns(user, account)
  return { success: true, status: account.status, label: account.label, resource_url: urlsOf(call).account(account) }
}

const get = ({ base, one, view, present }: AccountForm) =>
  defineRoute(`GET ${base}/{label}`, {
    summary: `Get ${one}`,
    response: view,
    handler: async ({ path }, call) => present((await findAccount(call, path.id, path.label)).account, urlsOf(call)),
  })

const edit = ({ base, one, words, editBody }: AccountForm) =>
  defineRoute(`POST ${base}/{label}`, {
    summary: `Edit ${one}`,
    description: words.edit,
    body: editBody,
    // Has `label` when the call created the email account. A failed status check is `success: false` with the status.
    response: outcome
      .extend({ status_message: z.string().nullable().optional() })
      .meta({ examples: [examples.accountEdited, examples.loginRefused] }),
    errors: [409],
    async handler({ path, body }, call) {
      const { user, account } = await lookUpAccount(call, path.id, path.label)
      if (account === null && !isWholeMailbox(body)) throw notFound(kinds[call.version].account, path.label)
      call.concerns(user, account ?? undefined)
      return account === null
        ? addAccount(call, user, { ...mailboxInput(body), ...labelOf(path.label) })
        : editAccount(call, { user, account }, body)
    },
  })

type EditParameters = MailboxParameters & Partial<z.output<z.ZodObject<typeof resets>>>

async function editAccount(call: Call, { user, account: known }: Mailbox, body: EditParameters) {
  if (body.status === false) throw badParameter('status', 'only 1 (reset) is possible')
  const logsIn = body.force_status_check === true || body.status === true || namesLogin(body)
  if (logsIn) call.touchesImap(user)
  const edited = await call.engine.mailboxes.editAccount(known, {
    ...accountEdit(body),
    ...given({ reset: body.status }),
  })
  if (!edited.ok) return presentFailure(edited)
  const { account, failure } =
    body.force_status_check === true
      ? await call.engine.accounts.checkNow(known.id)
      : { account: await call.engine.accounts.settled(edited.value), failure: null }
  call.concerns(user, account)
  return {
    ...(failure === null ? { success: true } : presentFailure(failure)),
    status: account.status,
    status_message: statusMessage(account),
    resource_url: urlsOf(call).account(account),
  }
}

const longestLabel = 320

/** The label of a new email account; none for `0`, which means the first account. */
function labelOf(label: string): { readonly label?: string } {
  if (label === '0') return {}
  if (label.length > longestLabel || /\p{Cc}/u.test(label))
    throw badParameter('label', `must be at most ${longestLabel} characters, and no control characters`)
  return { label }
}

const remove = ({ base, one }: AccountForm) =>
  defineRoute(`DELETE ${base}/{label}`, {
    summary: `Remove ${one} and all that is stored of it`,
    response: success,
    async handler({ path }, call) {
      const { account } = await findAccount(call, path.id, path.label)
      await call.engine.mailboxes.removeAccount(account)
      return { success: true }
    },
  })

export const accountRoutesOf = (form: AccountForm) => [list(form), create(form), get(form), edit(form), remove(form)]

export const emailAccountRoutes = tagged('Email accounts', accountRoutesOf(liteForm))
