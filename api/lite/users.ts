/** /lite/users */
import { z } from 'zod'
import { type AccountRecord, notFound, type UserEdit, type UserInput, type UserRecord } from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, tagged } from '../route.ts'
import {
  given,
  limitOf,
  offset,
  optional,
  personNames,
  statusFilter,
  success,
  text,
  urlOrEmpty,
  wantedStatus,
  successAt,
} from '../values.ts'
import { emailAccountView, presentAccount, presentFailure, softFailure } from './email_accounts.ts'
import { findUser } from './find.ts'
import {
  exampleMailbox,
  mailboxInput,
  mailboxParameters,
  type MailboxParameters,
  statusCallbackOf,
  wantsMailbox,
} from './mailbox-input.ts'
import { type LiteUrls, liteUrls, seconds } from '../addresses.ts'

export const userView = examples.view('User', {
  id: [z.string(), examples.ids.user],
  username: [z.string(), examples.address],
  created: [z.int(), examples.time],
  suspended: [z.literal(0), 0],
  password_expired: [z.literal(0), 0],
  first_name: [z.string(), 'Anna'],
  last_name: [z.string(), 'Berg'],
  email_addresses: [z.array(z.string()), [examples.address]],
  email_accounts: [z.array(emailAccountView), [examples.exampleOf(emailAccountView)]],
  status_callback_url: optional(
    z.string(),
    'of email accounts that are added later and name none; absent when there is none',
  ),
  resource_url: [z.string(), examples.urls.user],
})

const listQuery = z.object({
  email: optional(text, 'only users with this email address', 'anna@example.com'),
  ...statusFilter,
  limit: limitOf(100),
  offset,
})

const createBody = z
  .object({
    ...mailboxParameters,
    ...personNames,
    migrate_account_id: optional(
      text,
      'id of a 2.0 account that becomes a user as it is; no mailbox parameter is needed with it',
      '5f3c8a2b9d4e1f6a7b8c9d0e',
    ),
  })
  .meta({ examples: [{ ...exampleMailbox, first_name: 'Anna', last_name: 'Berg' }] })

const editBody = z.object({
  ...personNames,
  status_callback_url: optional(
    urlOrEmpty,
    'takes the status callbacks of email accounts that are added later and name none; those that are there keep theirs. Empty removes it',
    'https://app.example.com/status',
  ),
})

const reference = z.object({ label: z.string(), resource_url: z.string() })

/** `success: false` when the mail server refused the login; then nothing was made. */
const createAnswer = z
  .object({
    ...softFailure,
    id: z.string().optional(),
    resource_url: z.string().optional(),
    source: reference.optional(),
    email_account: reference.optional(),
  })
  .meta({ examples: [examples.userMade, examples.loginRefused] })

const editAnswer = successAt(examples.urls.user)

export function presentUser(
  user: UserRecord,
  accounts: readonly AccountRecord[],
  urls: LiteUrls,
): z.input<typeof userView> {
  return {
    id: user.id,
    username: user.emailAddresses[0] ?? user.id,
    created: seconds(user.createdAt),
    suspended: 0,
    password_expired: 0,
    first_name: user.firstName,
    last_name: user.lastName,
    email_addresses: [...user.emailAddresses],
    email_accounts: accounts.map((account) => presentAccount(account, urls)),
    ...(user.statusCallbackUrl ? { status_callback_url: user.statusCallbackUrl } : {}),
    resource_url: urls.user(user),
  }
}

/** The same reference under the 2.0 name and the lite name. */
function presentCreated(user: UserRecord, account: AccountRecord | null, urls: LiteUrls): z.input<typeof createAnswer> {
  const reference = account === null ? null : { label: account.label, resource_url: urls.account(account) }
  return {
    success: true,
    id: user.id,
    resource_url: urls.user(user),
    ...(reference === null ? {} : { source: reference, email_account: reference }),
  }
}

const list = defineRoute('GET /lite/users', {
  summary: 'List users',
  query: listQuery,
  response: z.array(userView),
  async handler({ query }, call) {
    const { store } = call.engine
    const status = wantedStatus(query)
    const users = await store.users.list(call.developer.id, given({ email: query.email, status }), query)
    const accounts = Map.groupBy(
      await store.accounts.listByUsers(users.map((user) => user.id)),
      (account) => account.userId,
    )
    return users.map((user) => presentUser(user, accounts.get(user.id) ?? [], liteUrls(call.baseUrl)))
  },
})

const create = defineRoute('POST /lite/users', {
  summary: 'Create a user, with or without an email account',
  description:
    'With mailbox settings the login is tried first; when the mail server refuses, the answer is 200 with `success: false`, a ' +
    '`feedback_code` and the connection log, and nothing is created. Without them the `status_callback_url` is kept for the email ' +
    'accounts that are added to the user later. With `migrate_account_id` a 2.0 account becomes a user as it is, but for the names and the ' +
    '`status_callback_url` (of all its email accounts; of those that come later when it has none) that are given.',
  body: createBody,
  response: createAnswer,
  async handler({ body }, call) {
    if (body.migrate_account_id) return migrate(call, body.migrate_account_id, body)
    const input: UserInput = {
      ...given({ email: body.email }),
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
  return given({ firstName: body.first_name, lastName: body.last_name })
}

const get = defineRoute('GET /lite/users/{id}', {
  summary: 'Get a user',
  response: userView,
  async handler({ path }, call) {
    const user = await findUser(call, path.id)
    const accounts: AccountRecord[] = await call.engine.store.accounts.listByUser(user.id)
    return presentUser(user, accounts, liteUrls(call.baseUrl))
  },
})

const editRoute = (method: 'POST' | 'PUT') =>
  defineRoute(`${method} /lite/users/{id}`, {
    summary: 'Edit a user: names, and the status callback URL of email accounts that are added later',
    body: editBody,
    response: editAnswer,
    async handler({ path, body }, call) {
      const user = await findUser(call, path.id)
      await call.engine.mailboxes.editUser(user, { ...namesOf(body), ...statusCallbackOf(body) })
      return { success: true, resource_url: liteUrls(call.baseUrl).user(user) }
    },
  })

const remove = defineRoute('DELETE /lite/users/{id}', {
  summary: 'Remove a user, the email accounts and all that is stored of them',
  response: success,
  async handler({ path }, call) {
    await call.engine.mailboxes.removeUser(await findUser(call, path.id))
    return { success: true }
  },
})

export const userRoutes = tagged('Users', [list, create, get, editRoute('POST'), editRoute('PUT'), remove])
