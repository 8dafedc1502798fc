/** /lite/users */
import { z } from 'zod'
import { notFound, type AccountRecord, type UserEdit, type UserInput } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { success, wantedStatus } from '../../values.ts'
import { presentFailure } from '../email_accounts/present.ts'
import { findUser } from '../find.ts'
import { mailboxInput, statusCallbackOf, wantsMailbox, type MailboxParameters } from '../mailbox-input.ts'
import { liteUrls } from '../urls.ts'
import { presentCreated, presentUser } from './present.ts'
import { createAnswer, createBody, editAnswer, editBody, listQuery, userPath, userView } from './schema.ts'

const tag = 'Users'

const list = defineRoute({
  method: 'GET',
  path: '/lite/users',
  auth: 'developer',
  tag,
  summary: 'List users',
  request: { query: listQuery },
  response: z.array(userView),
  async handler({ query }, call) {
    const { store } = call.engine
    const status = wantedStatus(query)
    const filter = {
      ...(query.email === undefined ? {} : { email: query.email }),
      ...(status === undefined ? {} : { status }),
    }
    const users = await store.users.list(call.developer.id, filter, query)
    const accounts = Map.groupBy(
      await store.accounts.listByUsers(users.map((user) => user.id)),
      (account) => account.userId,
    )
    return users.map((user) => presentUser(user, accounts.get(user.id) ?? [], liteUrls(call.baseUrl)))
  },
})

const create = defineRoute({
  method: 'POST',
  path: '/lite/users',
  auth: 'developer',
  tag,
  summary: 'Create a user, with or without an email account',
  description:
    'With mailbox settings the login is tried first; when the mail server refuses, the answer is 200 with `success: false`, a ' +
    '`feedback_code` and the connection log, and nothing is created. Without them the `status_callback_url` is kept for the email ' +
    'accounts that are added to the user later. With `migrate_account_id` a 2.0 account becomes a user as it is, but for the names and the ' +
    '`status_callback_url` (of all its email accounts; of those that come later when it has none) that are given.',
  request: { body: createBody },
  response: createAnswer,
  async handler({ body }, call) {
    if (body.migrate_account_id) return migrate(call, body.migrate_account_id, body)
    const input: UserInput = {
      ...(body.email === undefined ? {} : { email: body.email }),
      ...namesOf(body),
      ...(wantsMailbox(body) ? { account: mailboxInput(body) } : statusCallbackOf(body)),
    }
    const made = await call.engine.mailboxes.createUser(call.developer, input)
    if (!made.ok) return presentFailure(made)
    const { user, account } = made.value
    call.concerns(user, account ?? undefined)
    if (account !== null) call.touchesImap(user)
    return presentCreated(user, account, liteUrls(call.baseUrl))
  },
})

interface Names {
  readonly first_name?: string | undefined
  readonly last_name?: string | undefined
}

/** One record serves both API versions, so the 2.0 account is a lite user already: its id, mail and webhooks stay. */
async function migrate(call: Call, accountId: string, body: MailboxParameters & Names) {
  const { store, mailboxes } = call.engine
  const user = await store.users.get(call.developer.id, accountId)
  if (user === null) throw notFound('account', accountId)
  const accounts = await store.accounts.listByUser(user.id)
  const [account = null] = accounts
  call.concerns(user, account ?? undefined)
  const callback = statusCallbackOf(body)
  for (const one of body.status_callback_url === undefined ? [] : accounts)
    await mailboxes.editAccount(call.developer, one, callback)
  await mailboxes.editUser(user, { ...namesOf(body), ...(account === null ? callback : {}) })
  return presentCreated(user, account, liteUrls(call.baseUrl))
}

function namesOf(body: Names): UserEdit {
  return {
    ...(body.first_name === undefined ? {} : { firstName: body.first_name }),
    ...(body.last_name === undefined ? {} : { lastName: body.last_name }),
  }
}

const get = defineRoute({
  method: 'GET',
  path: '/lite/users/{id}',
  auth: 'developer',
  tag,
  summary: 'Get a user',
  request: { path: userPath },
  response: userView,
  async handler({ path }, call) {
    const user = await findUser(call, path.id)
    const accounts: AccountRecord[] = await call.engine.store.accounts.listByUser(user.id)
    return presentUser(user, accounts, liteUrls(call.baseUrl))
  },
})

function editRoute(method: 'POST' | 'PUT') {
  return defineRoute({
    method,
    path: '/lite/users/{id}',
    auth: 'developer',
    tag,
    summary: 'Edit a user: names, and the status callback URL of email accounts that are added later',
    request: { path: userPath, body: editBody },
    response: editAnswer,
    async handler({ path, body }, call) {
      const user = await findUser(call, path.id)
      await call.engine.mailboxes.editUser(user, { ...namesOf(body), ...statusCallbackOf(body) })
      return { success: true, resource_url: liteUrls(call.baseUrl).user(user) }
    },
  })
}

const remove = defineRoute({
  method: 'DELETE',
  path: '/lite/users/{id}',
  auth: 'developer',
  tag,
  summary: 'Remove a user, the email accounts and all that is stored of them',
  request: { path: userPath },
  response: success,
  async handler({ path }, call) {
    await call.engine.mailboxes.removeUser(await findUser(call, path.id))
    return { success: true }
  },
})

export const userRoutes: readonly Route[] = [list, create, get, editRoute('POST'), editRoute('PUT'), remove]
