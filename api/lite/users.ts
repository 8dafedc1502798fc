/** /lite/users: the routes of users; 2.0 builds its accounts from the same routes. */
import { z } from 'zod'
import {
  type AccountRecord,
  AppError,
  notFound,
  type UserEdit,
  type UserInput,
  type UserRecord,
} from '../../engine/index.ts'
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
  successAt,
  urlOrEmpty,
  wantedStatus,
} from '../values.ts'
import { emailAccountView, presentAccount, presentFailure, softFailure } from './email_accounts.ts'
import { findUser } from './find.ts'
import {
  exampleMailbox,
  mailboxInput,
  mailboxParameters,
  type MailboxParameters,
  namesLogin,
  statusCallbackOf,
} from './mailbox-input.ts'
import { type Urls, urlsOf, seconds } from '../addresses.ts'

export const personFields = {
  id: [z.string(), examples.ids.user],
  username: [z.string(), examples.address],
  created: [z.int(), examples.time],
  suspended: [z.literal(0), 0],
  password_expired: [z.literal(0), 0],
  first_name: [z.string(), 'Anna'],
  last_name: [z.string(), 'Berg'],
  email_addresses: [z.array(z.string()), [examples.address]],
} as const

export const userView = examples.view('User', {
  ...personFields,
  email_accounts: [z.array(emailAccountView), [examples.exampleOf(emailAccountView)]],
  status_callback_url: optional(
    z.string(),
    'of email accounts that are added later and name none; absent when there is none',
  ),
  resource_url: [z.string(), examples.urls.user],
})

export const reference = z.object({ label: z.string(), resource_url: z.string() })

/** `success: false` when the mail server refused the login; then nothing was created. */
const userCreated = z
  .object({
    ...softFailure,
    id: z.string().optional(),
    resource_url: z.string().optional(),
    source: reference.optional(),
    email_account: reference.optional(),
  })
  .meta({ examples: [examples.userMade, examples.loginRefused] })

export function presentUser(
  user: UserRecord,
  accounts: readonly AccountRecord[],
  urls: Urls,
): z.input<typeof userView> {
  return {
    ...presentPerson(user, urls),
    email_accounts: accounts.map((account) => presentAccount(account, urls)),
    ...given({ status_callback_url: user.statusCallbackUrl || undefined }),
  }
}

export function presentPerson(user: UserRecord, urls: Urls) {
  return {
    id: user.id,
    username: user.emailAddresses[0] ?? user.id,
    created: seconds(user.createdAt),
    suspended: 0 as const,
    password_expired: 0 as const,
    first_name: user.firstName,
    last_name: user.lastName,
    email_addresses: [...user.emailAddresses],
    resource_url: urls.user(user),
  }
}

/** Lite has the reference to the email account twice: under its 2.0 name `source`, and as `email_account`. */
function presentCreated(call: Call, user: UserRecord, account: AccountRecord | null): z.input<typeof userCreated> {
  const urls = urlsOf(call)
  const source = account === null ? undefined : { label: account.label, resource_url: urls.account(account) }
  return {
    success: true,
    id: user.id,
    resource_url: urls.user(user),
    ...given({ source, email_account: call.version === 'lite' ? source : undefined }),
  }
}

/** The differences between the API versions: paths, words of the documents, request bodies and views of users. */
interface UserForm {
  readonly base: '/lite/users' | '/2.0/accounts'
  /** 'a user' */
  readonly one: string
  readonly words: Readonly<Record<'list' | 'create' | 'creating' | 'edit' | 'remove', string>>
  /** Address of a user, for the documents. */
  readonly example: string
  readonly view: z.ZodType<unknown, object>
  readonly createBody: z.ZodType<CreateParameters>
  present(call: Call, user: UserRecord, accounts: readonly AccountRecord[]): object | Promise<object>
}

const liteForm: UserForm = {
  base: '/lite/users',
  one: 'a user',
  words: {
    list: 'List users',
    create: 'Create a user, with or without an email account',
    creating:
      'With mailbox settings the login is tried first; when the mail server refuses, the answer is 200 with `success: false`, a ' +
      '`feedback_code` and the connection log, and nothing is created. Without them the `status_callback_url` is kept for the email ' +
      'accounts that are added to the user later. With `migrate_account_id` a 2.0 account becomes a user as it is, but for the names and the ' +
      '`status_callback_url` (of all its email accounts; of those that come later when it has none) that are given. Its webhooks stay, and ' +
      'send what lite sends.',
    edit: 'Edit a user: names, and the status callback URL of email accounts that are added later',
    remove: 'Remove a user, the email accounts and all that is stored of them',
  },
  example: examples.urls.user,
  view: userView,
  createBody: z
    .object({
      ...mailboxParameters,
      ...personNames,
      migrate_account_id: optional(
        text,
        'id of a 2.0 account that becomes a user as it is; no mailbox parameter is needed with it',
        '5f3c8a2b9d4e1f6a7b8c9d0e',
      ),
    })
    .meta({ examples: [{ ...exampleMailbox, first_name: 'Anna', last_name: 'Berg' }] }),
  present: (call, user, accounts) => presentUser(user, accounts, urlsOf(call)),
}

const list = ({ base, words, view, present }: UserForm) =>
  defineRoute(`GET ${base}`, {
    summary: words.list,
    query: z.object({
      email: optional(text, 'only users with this email address', 'anna@example.com'),
      ...statusFilter,
      limit: limitOf(100),
      offset,
    }),
    response: z.array(view),
    async handler({ query }, call) {
      const { store } = call.engine
      const wanted = given({ email: query.email, status: wantedStatus(query) })
      const users = await store.users.list(call.developer.id, wanted, query)
      const found = await store.accounts.listByUsers(users.map((user) => user.id))
      const accounts = Map.groupBy(found, (account) => account.userId)
      // One at a time: 2.0 counts the mail of each user, which takes a while.
      return Array.fromAsync(users, (user) => present(call, user, accounts.get(user.id) ?? []))
    },
  })

const create = ({ base, words, createBody }: UserForm) =>
  defineRoute(`POST ${base}`, {
    summary: words.create,
    description: words.creating,
    body: createBody,
    response: userCreated,
    async handler({ body }, call) {
      return body.migrate_account_id ? migrate(call, body.migrate_account_id, body) : createUser(call, body)
    },
  })

async function createUser(call: Call, body: CreateParameters) {
  const hasMailbox = body.type !== undefined || namesLogin(body)
  const input: UserInput = {
    ...given({ email: body.email }),
    ...namesOf(body),
    ...(hasMailbox ? { account: mailboxInput(body) } : statusCallbackOf(body)),
  }
  const made = await call.engine.mailboxes.createUser(call.developer, input)
  if (!made.ok) return presentFailure(made)
  const { user, account } = made.value
  call.concerns(user, account ?? undefined)
  if (account !== null) call.touchesImap(user)
  return presentCreated(call, user, account)
}

type Names = z.output<z.ZodObject<typeof personNames>>
type CreateParameters = MailboxParameters & Names & { readonly migrate_account_id?: string | undefined }

/** Both API versions share one user record, so id, mail and index stay. The user's webhooks become webhooks of lite. */
async function migrate(call: Call, accountId: string, body: CreateParameters) {
  const { store, mailboxes } = call.engine
  const user = await store.users.get(call.developer.id, accountId)
  if (user === null) throw notFound('account', accountId)
  // Calls are passed on to the owner's node by the id in their body, unless the body is too long to be held.
  if (!store.nodes.owns(user.id)) throw new AppError('account_unavailable', 'another process has the account')
  const accounts = await store.accounts.listByUser(user.id)
  const [account = null] = accounts
  call.concerns(user, account ?? undefined)
  const callback = statusCallbackOf(body)
  if ('statusCallbackUrl' in callback) for (const one of accounts) await mailboxes.editAccount(one, callback)
  await mailboxes.editUser(user, { ...namesOf(body), ...(account === null ? callback : {}) })
  await call.engine.webhooks.toLite(user.id)
  return presentCreated(call, user, account)
}

function namesOf(body: Names): UserEdit {
  return given({ firstName: body.first_name, lastName: body.last_name })
}

const get = ({ base, one, view, present }: UserForm) =>
  defineRoute(`GET ${base}/{id}`, {
    summary: `Get ${one}`,
    response: view,
    async handler({ path }, call) {
      const user = await findUser(call, path.id)
      return present(call, user, await call.engine.store.accounts.listByUser(user.id))
    },
  })

const edit = ({ base, words, example }: UserForm, method: 'POST' | 'PUT') =>
  defineRoute(`${method} ${base}/{id}`, {
    summary: words.edit,
    body: z.object({
      ...personNames,
      status_callback_url: optional(
        urlOrEmpty,
        'takes the status callbacks of email accounts that are added later and name none; those that are there keep theirs. Empty removes it',
        'https://app.example.com/status',
      ),
    }),
    response: successAt(example),
    async handler({ path, body }, call) {
      const user = await findUser(call, path.id)
      await call.engine.mailboxes.editUser(user, { ...namesOf(body), ...statusCallbackOf(body) })
      return { success: true, resource_url: urlsOf(call).user(user) }
    },
  })

const remove = ({ base, words }: UserForm) =>
  defineRoute(`DELETE ${base}/{id}`, {
    summary: words.remove,
    response: success,
    async handler({ path }, call) {
      await call.engine.mailboxes.removeUser(await findUser(call, path.id))
      return { success: true }
    },
  })

export const userRoutesOf = (form: UserForm) => [
  list(form),
  create(form),
  get(form),
  edit(form, 'POST'),
  edit(form, 'PUT'),
  remove(form),
]

export const userRoutes = tagged('Users', userRoutesOf(liteForm))
