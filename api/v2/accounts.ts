/** /2.0/accounts with their sources, email addresses and connect tokens: users and email accounts in views of 2.0. */
import { z } from 'zod'
import {
  type AccountRecord,
  checkAddress,
  type ConnectTokenRecord,
  defaultSourceOptions,
  notFound,
  type UserRecord,
  yieldToLoop,
} from '../../engine/index.ts'
import { seconds, type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { accountFields, accountRoutesOf, presentAccount, resets } from '../lite/email_accounts.ts'
import { findUser } from '../lite/find.ts'
import { exampleMailbox, mailboxParameters, optionsOf, sourceParameters } from '../lite/mailbox-input.ts'
import { personFields, presentPerson, userRoutesOf } from '../lite/users.ts'
import { type Call, defineRoute, deprecated, type PathParameters } from '../route.ts'
import { email, flag, limitOfWhole, offset, optional, personNames, success, successAt, text } from '../values.ts'
import {
  exampleToken,
  exampleUsed,
  tokenFields,
  type TokenForm,
  tokenParameters,
  tokenRoutesOf,
} from '../lite/connect_tokens.ts'

const sourceView = examples.view('Source', {
  ...accountFields,
  sync_flags: [z.boolean(), true],
  sync_all_folders: [z.boolean(), false],
  expunge_on_deleted_flag: [z.boolean(), false],
  raw_file_list: [z.boolean(), false],
  callback_url: [z.string().nullable(), null],
  resource_url: [z.string(), examples.v2Urls.source],
})

function presentSource(account: AccountRecord, urls: Urls): z.input<typeof sourceView> {
  const { syncFlags, syncAllFolders, expungeOnDeletedFlag, rawFileList, callbackUrl } = account.options
  return {
    ...presentAccount(account, urls),
    sync_flags: syncFlags,
    sync_all_folders: syncAllFolders,
    expunge_on_deleted_flag: expungeOnDeletedFlag,
    raw_file_list: rawFileList,
    callback_url: callbackUrl,
  }
}

const parameters = { ...mailboxParameters, ...sourceParameters }

const sources = deprecated(
  'sources',
  accountRoutesOf({
    base: '/2.0/accounts/{id}/sources',
    one: 'a source',
    words: {
      list: 'List the sources of an account',
      create: 'Add a source to an account',
      edit:
        'Changes what is named. New credentials or settings are tried first; `status=1` forgets a DISABLED state and connects anew, ' +
        '`force_status_check=1` logs in now.',
    },
    view: sourceView,
    createBody: z
      .object({ ...parameters, origin_ip: optional(text, 'taken, and not used', '192.0.2.1') })
      .meta({ examples: [exampleMailbox] }),
    editBody: z.object({ ...parameters, ...resets }).meta({ examples: [{ sync_all_folders: 1 }] }),
    present: presentSource,
  }),
)

const accountView = examples.view('Account', {
  ...personFields,
  sources: [z.array(sourceView), [examples.exampleOf(sourceView)]],
  nb_messages: [z.int().optional(), 1280, 'messages of all sources; absent from connect tokens'],
  nb_files: [
    z.int().optional(),
    96,
    'attachments of all sources, those of raw_file_list too; absent from connect tokens',
  ],
  resource_url: [z.string(), examples.v2Urls.account],
})

function presentOwner(user: UserRecord, accounts: readonly AccountRecord[], urls: Urls): z.input<typeof accountView> {
  return { ...presentPerson(user, urls), sources: accounts.map((account) => presentSource(account, urls)) }
}

async function withCounts(
  call: Call,
  user: UserRecord,
  accounts: readonly AccountRecord[],
): Promise<z.input<typeof accountView>> {
  const { messages } = call.engine.store
  const counts = { nb_messages: 0, nb_files: 0 }
  for (const { id } of accounts) {
    await yieldToLoop()
    const totals = await messages.totals(id)
    counts.nb_messages += totals.messages
    counts.nb_files += totals.attachments
  }
  return { ...presentOwner(user, accounts, urlsOf(call)), ...counts }
}

const accounts = deprecated(
  'accounts',
  userRoutesOf({
    base: '/2.0/accounts',
    one: 'an account',
    words: {
      list: 'List accounts',
      create: 'Create an account, with or without a source',
      creating:
        'With the parameters of a mailbox the login is tried first; when the mail server refuses, the answer is 200 with `success: false` and ' +
        'nothing is created. With only an email there is no source yet.',
      edit: 'Edit an account: its names, and the status callback URL of sources that are added later',
      remove: 'Remove an account, its sources and all that is stored of them',
    },
    example: examples.v2Urls.account,
    view: accountView,
    createBody: z
      .object({
        ...parameters,
        ...personNames,
        email: email.meta({
          description: 'address of the account and, with the parameters of a mailbox, of its first source',
          examples: ['anna@example.com'],
        }),
      })
      .meta({ examples: [{ ...exampleMailbox, first_name: 'Anna' }] }),
    present: withCounts,
  }),
)

const addressFields = {
  email: [z.string(), examples.address],
  validated: [z.int(), examples.time, 'Unix timestamp: when the account was made'],
  primary: [z.union([z.literal(0), z.literal(1)]), 1, '1 = the first one, which is also its username'],
  resource_url: [z.string(), examples.v2Urls.emailAddress],
} as const
const addressView = examples.view('EmailAddress', addressFields)

function present(user: UserRecord, address: string, urls: Urls): z.input<typeof addressView> {
  return {
    email: address,
    validated: seconds(user.createdAt),
    primary: user.emailAddresses[0] === address ? 1 : 0,
    resource_url: `${urls.user(user)}/email_addresses/${encodeURIComponent(address)}`,
  }
}

/** Compares addresses without case: an account has them in lower case. */
async function findAddress(call: Call, path: PathParameters<typeof one>) {
  const user = await findUser(call, path.id)
  const address = user.emailAddresses.find((one) => one === path.email.toLowerCase())
  if (address === undefined) throw notFound('email address', path.email)
  return { user, address }
}

const base = '/2.0/accounts/{id}/email_addresses'
const one = `${base}/{email}` as const

const list = defineRoute(`GET ${base}`, {
  instead: 'GET /lite/users/{id}',
  summary: 'List the email addresses of an account',
  query: z.object({ limit: limitOfWhole, offset }),
  response: z.array(addressView),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const page = user.emailAddresses.slice(query.offset, query.offset + query.limit)
    return page.map((address) => present(user, address, urlsOf(call)))
  },
})

const add = defineRoute(`POST ${base}`, {
  instead: '',
  summary: 'Add an email address to an account',
  description: 'One that it has already stays as it is.',
  body: z.object({
    email_address: email.meta({ description: 'address to add', examples: ['anna@example.net'] }),
  }),
  response: examples.answer({ success: [z.boolean(), true], ...addressFields }),
  async handler({ path, body }, call) {
    const address = body.email_address.toLowerCase()
    const { id } = await findUser(call, path.id)
    const { config, store } = call.engine
    const user = await store.users.editAddresses(id, (list) => {
      checkAddress(config, list, address)
      return list.includes(address) ? list : [...list, address]
    })
    if (user === null) throw notFound('account', id)
    return { success: true, ...present(user, address, urlsOf(call)) }
  },
})

const get = defineRoute(`GET ${one}`, {
  instead: 'GET /lite/users/{id}',
  summary: 'Get an email address of an account',
  response: addressView,
  async handler({ path }, call) {
    const { user, address } = await findAddress(call, path)
    return present(user, address, urlsOf(call))
  },
})

const edit = defineRoute(`POST ${one}`, {
  instead: '',
  summary: 'Make an email address the first one of its account',
  body: z.object({ primary: optional(flag, '1 = it becomes the first one') }),
  response: successAt(examples.v2Urls.emailAddress),
  async handler({ path, body }, call) {
    const { user, address } = await findAddress(call, path)
    if (body.primary === true) {
      // An address that another call has removed stays removed.
      await call.engine.store.users.editAddresses(user.id, (list) =>
        list.includes(address) ? [address, ...list.filter((one) => one !== address)] : list,
      )
    }
    return { success: true, resource_url: present(user, address, urlsOf(call)).resource_url }
  },
})

const remove = defineRoute(`DELETE ${one}`, {
  instead: '',
  summary: 'Remove an email address from an account',
  description:
    'A source with this address stays, and `GET /2.0/accounts?email=` finds the account by it; by no other it does.',
  response: success,
  async handler({ path }, call) {
    const { user, address } = await findAddress(call, path)
    await call.engine.store.users.editAddresses(user.id, (list) => list.filter((one) => one !== address))
    return { success: true }
  },
})

const addresses = deprecated('email addresses', [list, add, get, edit, remove])

export const v2AccountRoutes = [...accounts, ...addresses, ...sources]

/* Connect tokens: as in lite, with the options of the source. */

const tokenView = examples.view(
  'ConnectToken20',
  {
    ...tokenFields,
    source_callback_url: z.string().optional(),
    source_sync_all_folders: [z.boolean(), false],
    source_expunge_on_deleted_flag: [z.boolean(), false],
    source_raw_file_list: [z.boolean(), false],
    account: [z.union([accountView, z.array(z.never())]), [], 'an empty list while the token is unused'],
    resource_url: [z.string(), examples.v2Urls.token],
  },
  { ...exampleUsed, account: examples.exampleOf(accountView) },
)

const tokenBody = z
  .object({
    ...tokenParameters,
    source_callback_url: sourceParameters.callback_url,
    source_sync_all_folders: sourceParameters.sync_all_folders,
    source_sync_folders: sourceParameters.sync_folders,
    source_sync_flags: sourceParameters.sync_flags,
    source_expunge_on_deleted_flag: sourceParameters.expunge_on_deleted_flag,
    source_raw_file_list: sourceParameters.raw_file_list,
  })
  .meta({ examples: [{ ...exampleToken, source_sync_all_folders: 1 }] })

const tokenForm: TokenForm<z.output<typeof tokenBody>> = {
  view: tokenView,
  body: tokenBody,
  example: examples.v2Urls.token,
  more: (call, token, { user, accounts, account }) => ({
    ...presentOptions(token, account),
    account: user === null || token.usedAt === null ? [] : presentOwner(user, accounts, urlsOf(call)),
  }),
  options: (wanted) =>
    optionsOf({
      callback_url: wanted.source_callback_url,
      sync_all_folders: wanted.source_sync_all_folders,
      sync_folders: wanted.source_sync_folders,
      sync_flags: wanted.source_sync_flags,
      expunge_on_deleted_flag: wanted.source_expunge_on_deleted_flag,
      raw_file_list: wanted.source_raw_file_list,
    }) ?? null,
}

/** An option that the token does not name has the value of its source, if there is one, else the default. */
function presentOptions(token: ConnectTokenRecord, source: AccountRecord | undefined) {
  const { callbackUrl, syncAllFolders, expungeOnDeletedFlag, rawFileList } = {
    ...(source?.options ?? defaultSourceOptions),
    ...token.options,
  }
  return {
    ...(callbackUrl === null ? {} : { source_callback_url: callbackUrl }),
    source_sync_all_folders: syncAllFolders,
    source_expunge_on_deleted_flag: expungeOnDeletedFlag,
    source_raw_file_list: rawFileList,
  }
}

const tokenLevels = [
  { base: '/2.0/connect_tokens', of: 'the application', use: 'makes an account with a source' },
  { base: '/2.0/accounts/{id}/connect_tokens', of: 'an account', use: 'adds a source to the account' },
  {
    base: '/2.0/accounts/{id}/sources/{label}/connect_tokens',
    of: 'a source',
    use: 'gives the source new credentials',
  },
] as const

/** The original also serves single tokens of the application below this path, but no list and no POST. */
const belowAccounts = tokenRoutesOf({ ...tokenLevels[0], base: '/2.0/accounts/connect_tokens' }, tokenForm)
  .filter(({ path }) => path.endsWith('/{token}'))
  .map((route) => ({ ...route, instead: `${route.method} /lite/connect_tokens/{token}` }))

export const v2ConnectTokenRoutes = deprecated('connect tokens', [
  ...tokenLevels.flatMap((level) => tokenRoutesOf(level, tokenForm)),
  ...belowAccounts,
])
