/** /lite/users/{id}/email_accounts */
import { z } from 'zod'
import { badParameter, type AccountEdit, type Engine } from '../../../engine/index.ts'
import { defineRoute, type Route } from '../../route.ts'
import { success, wantedStatus } from '../../values.ts'
import { findAccount, findUser, type Mailbox } from '../find.ts'
import { credentialOf, mailboxInput, type MailboxParameters } from '../mailbox-input.ts'
import { liteUrls } from '../urls.ts'
import { presentAccount, presentFailure } from './present.ts'
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
  async handler({ path, body }, call) {
    const user = await findUser(call, path.id)
    const input = mailboxInput(body)
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
  },
})

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
    '`force_status_check=1` connects now and answers the true status.',
  request: { path: accountPath, body: editBody },
  response: editAnswer,
  errors: [503, 504],
  async handler({ path, body }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    if (body.status === false) throw badParameter('status', 'only 1 (reset) is possible')
    if (body.force_status_check === true || tried.some((name) => body[name] !== undefined))
      call.touchesImap(mailbox.user)
    const edited = await call.engine.mailboxes.editAccount(call.developer, mailbox.account, editOf(body))
    if (!edited.ok) return presentFailure(edited)
    const account = body.force_status_check === true ? await check(call.engine, mailbox) : edited.value
    call.concerns(mailbox.user, account)
    return {
      success: true,
      status: account.status,
      status_message: account.statusMessage,
      resource_url: liteUrls(call.baseUrl).account(account),
    }
  },
})

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

function check(engine: Engine, { account }: Mailbox) {
  return engine.accounts.checkNow(account.id)
}

function editOf(body: MailboxParameters & { readonly status?: boolean | undefined }): AccountEdit {
  const credential = credentialOf(body)
  return {
    ...(credential === undefined ? {} : { credential }),
    ...(body.server === undefined ? {} : { server: body.server.trim().toLowerCase() }),
    ...(body.port === undefined ? {} : { port: body.port }),
    ...(body.use_ssl === undefined ? {} : { useSsl: body.use_ssl }),
    ...(body.username === undefined ? {} : { username: body.username }),
    ...(body.status_callback_url === undefined ? {} : { statusCallbackUrl: body.status_callback_url || null }),
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
