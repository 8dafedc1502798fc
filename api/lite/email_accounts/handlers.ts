/** /lite/users/{id}/email_accounts */
import { z } from 'zod'
import {
  badParameter,
  isAppError,
  type AccountEdit,
  type AccountInput,
  type UserRecord,
} from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { success, wantedStatus } from '../../values.ts'
import { findAccount, findUser, type Mailbox } from '../find.ts'
import {
  credentialOf,
  isWholeMailbox,
  mailboxInput,
  statusCallbackOf,
  type MailboxParameters,
} from '../mailbox-input.ts'
import { liteUrls } from '../urls.ts'
import { presentAccount, presentFailure, statusMessage } from './present.ts'
import {
  accountPath,
  createAnswer,
  createBody,
  editAnswer,
  editBody,
  emailAccountView,
  listQuery,
  userPath,
} from './schema.ts'

const tag = 'Email accounts'
const base = '/lite/users/{id}/email_accounts'

const list = defineRoute({
  method: 'GET',
  path: base,
  auth: 'developer',
  tag,
  summary: 'List email accounts of a user',
  request: { path: userPath, query: listQuery },
  response: z.array(emailAccountView),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const status = wantedStatus(query)
    const accounts = await call.engine.store.accounts.listByUser(user.id, status === undefined ? {} : { status })
    return accounts.map((account) => presentAccount(account, liteUrls(call.baseUrl)))
  },
})

const create = defineRoute({
  method: 'POST',
  path: base,
  auth: 'developer',
  tag,
  summary: 'Add an email account to a user',
  description:
    'Logs in first. When the mail server refuses, the answer is 200 with `success: false` and nothing is created.',
  request: { path: userPath, body: createBody },
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

const get = defineRoute({
  method: 'GET',
  path: `${base}/{label}`,
  auth: 'developer',
  tag,
  summary: 'Get an email account',
  request: { path: accountPath },
  response: emailAccountView,
  async handler({ path }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    return presentAccount(account, liteUrls(call.baseUrl))
  },
})

const edit = defineRoute({
  method: 'POST',
  path: `${base}/{label}`,
  auth: 'developer',
  tag,
  summary: 'Edit an email account',
  description:
    'Changes what is named. New credentials or settings are tried first. `status=1` forgets a DISABLED state and connects anew; ' +
    '`force_status_check=1` logs in now: `success` says whether that went well, `feedback_code` why not, `status` what the email account ' +
    'is since. `email` changes the address that the user is found by, and nothing of the login; the label stays. A label that the user does not have yet, with all parameters of a mailbox, makes that email account (`0`: the first one).',
  request: { path: accountPath, body: editBody },
  response: editAnswer,
  errors: [409, 503, 504],
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
  const credential = credentialOf(body)
  return {
    ...(credential === undefined ? {} : { credential }),
    ...(body.email === undefined ? {} : { email: body.email }),
    ...(body.server === undefined ? {} : { server: body.server.trim().toLowerCase() }),
    ...(body.port === undefined ? {} : { port: body.port }),
    ...(body.use_ssl === undefined ? {} : { useSsl: body.use_ssl }),
    ...(body.username === undefined ? {} : { username: body.username }),
    ...statusCallbackOf(body),
    ...(body.status === true ? { reset: true } : {}),
  }
}

const remove = defineRoute({
  method: 'DELETE',
  path: `${base}/{label}`,
  auth: 'developer',
  tag,
  summary: 'Remove an email account and all that is stored of it',
  request: { path: accountPath },
  response: success,
  async handler({ path }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    await call.engine.mailboxes.removeAccount(account)
    return { success: true }
  },
})

export const emailAccountRoutes: readonly Route[] = [list, create, get, edit, remove]
