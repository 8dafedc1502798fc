/** Connect tokens of the application, of users and of email accounts; 2.0 builds its tokens from the same routes. */
import { z } from 'zod'
import {
  type AccountRecord,
  checkLimit,
  checkUrl,
  type ConnectTokenRecord,
  newToken,
  notFound,
  connectUrl,
  tokenLifeMs,
  type TokenFilter,
  type UserRecord,
  yieldToLoop,
} from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, tagged } from '../route.ts'
import { type ApiVersion, seconds, urlsOf } from '../addresses.ts'
import { listText, stepsOf } from '../list-text.ts'
import { email, given, optional, personNames, success, url, urlOrEmpty } from '../values.ts'
import { findAccount, findUser, type Mailbox } from './find.ts'
import { presentUser, userView } from './users.ts'

export const tokenFields = {
  token: [z.string(), examples.ids.token],
  created: [z.int(), examples.time],
  used: [z.int(), 0, '0 while unused, else Unix timestamp of use'],
  expires: [z.union([z.int(), z.literal(false)]), 1_700_086_400, 'Unix timestamp while unused; false once used'],
  callback_url: [z.string(), 'https://app.example.com/connected'],
  email: [z.string().optional(), examples.address],
  first_name: [z.string(), 'Anna'],
  last_name: [z.string(), 'Berg'],
  status_callback_url: z.string().optional(),
  browser_redirect_url: [z.string(), examples.urls.redirect],
  serverLabel: optional(z.string(), 'label of the email account, or source, once there is one'),
} as const

/** Fields of the used token among the examples; its other fields are those of the unused one. */
export const exampleUsed = { used: 1_700_000_300, expires: false, serverLabel: examples.label } as const

const tokenView = examples.view(
  'ConnectToken',
  {
    ...tokenFields,
    account_lite: [z.literal(true), true],
    email_account_id: optional(z.string(), 'the same, once the token is used'),
    user: optional(userView, 'once the token is used'),
    resource_url: [z.string(), examples.urls.token],
  },
  { ...exampleUsed, email_account_id: examples.label, user: examples.exampleOf(userView) },
)

export const tokenParameters = {
  callback_url: url.meta({
    description: 'where the browser goes after the wizard, with the token in the query',
    examples: ['https://app.example.com/connected'],
  }),
  email: optional(email, 'address of the mailbox: skips the first step of the wizard', 'anna@example.com'),
  ...personNames,
  status_callback_url: optional(
    urlOrEmpty,
    'takes the status callbacks of the email account that the wizard makes; empty = none; not named = that of the user, or what the account has already',
    'https://app.example.com/status',
  ),
}

export const exampleToken = { callback_url: 'https://app.example.com/connected', email: 'anna@example.com' }

type TokenParameters = z.output<z.ZodObject<typeof tokenParameters>>

/** The user of a token, the user's email accounts, and the one of them that the token is for or has made. */
interface TokenOwner {
  readonly user: UserRecord | null
  readonly accounts: readonly AccountRecord[]
  readonly account: AccountRecord | undefined
}

/** The differences between the API versions: request body, fields and view of a token. */
export interface TokenForm<P extends TokenParameters = TokenParameters> {
  readonly view: z.ZodType<unknown, object>
  readonly body: z.ZodType<P>
  /** Address of a token, for the documents. */
  readonly example: string
  /** The fields that only this version has. */
  more(call: Call, token: ConnectTokenRecord, owner: TokenOwner): Readonly<Record<string, unknown>>
  /** The source options that the body names; null = none. */
  options(body: P): ConnectTokenRecord['options']
}

/** The part of a form that shows tokens; its type does not depend on the request body. */
type TokenView = Pick<TokenForm, 'view' | 'more'>

const liteForm: TokenForm = {
  view: tokenView,
  body: z.object(tokenParameters).meta({ examples: [exampleToken] }),
  example: examples.urls.token,
  more: (call, { usedAt }, { user, accounts, account }) => ({
    account_lite: true,
    ...(user === null || usedAt === null
      ? {}
      : given({ email_account_id: account?.label, user: presentUser(user, accounts, urlsOf(call)) })),
  }),
  options: () => null,
}

/** Address of the first page of the wizard. It is public, and valid as long as the token. */
function redirectUrl({ baseUrl, developer }: Call, token: string): string {
  return `${connectUrl(baseUrl, token)}?developer_key=${encodeURIComponent(developer.apiKey)}`
}

/** The list has no pages; it ends after the newest thousand tokens. */
const mostListed = 1000
/** Tokens that the store is asked for at once. */
const tokensAtOnce = 100

async function* tokenSteps(call: Call, filter: TokenFilter, form: TokenView): AsyncGenerator<readonly object[]> {
  let lastListed: ConnectTokenRecord | undefined
  for (let at = 0; at < mostListed; at += tokensAtOnce) {
    const tokens = await call.engine.store.tokens.list(call.developer.id, filter, tokensAtOnce, lastListed)
    yield* await presentTokens(call, tokens, form)
    if (tokens.length < tokensAtOnce) return
    lastListed = tokens.at(-1)
  }
}

/** Reads the users and accounts of all these tokens with one query each, and none for tokens without a user. */
async function presentTokens(call: Call, found: readonly ConnectTokenRecord[], { more }: TokenView) {
  const { store, connect } = call.engine
  const tokens = await Promise.all(found.map((token) => connect.settle(token)))
  const ids = [...new Set(tokens.flatMap(({ userId }) => userId ?? []))]
  const [used, owned] =
    ids.length === 0 ? [[], []] : await Promise.all([store.users.several(ids), store.accounts.listByUsers(ids)])
  const users = new Map(used.map((user) => [user.id, user]))
  const accounts = Map.groupBy(owned, ({ userId }) => userId)
  // Rows of many callers may arrive in the same turn of the event loop.
  await yieldToLoop()
  return stepsOf(tokens, (token) => {
    const user = users.get(token.userId ?? '') ?? null
    const own = user === null ? [] : (accounts.get(user.id) ?? [])
    const owner = { user, accounts: own, account: own.find(({ id }) => id === token.accountId) }
    return { ...presentFacts(call, token, owner), ...more(call, token, owner) }
  })
}

function presentFacts(call: Call, token: ConnectTokenRecord, { user, account }: TokenOwner) {
  const isUsed = token.usedAt !== null
  // A token without a status callback URL shows that of its email account, or of its user.
  const statusCallbackUrl = token.statusCallbackUrl ?? (account ?? user)?.statusCallbackUrl
  return given({
    token: token.token,
    created: seconds(token.createdAt),
    used: seconds(token.usedAt ?? 0),
    expires: isUsed ? false : seconds(token.expiresAt),
    callback_url: token.callbackUrl,
    email: token.email ?? (isUsed ? account?.email : undefined),
    first_name: token.firstName ?? '',
    last_name: token.lastName ?? '',
    status_callback_url: statusCallbackUrl || undefined,
    browser_redirect_url: redirectUrl(call, token.token),
    serverLabel: account?.label,
    resource_url: urlsOf(call).token(token.token),
  })
}

/**
 * Stores a new token, valid for 24 hours. The end user's browser opens the callback URL, so that may be a private
 * address; this service calls the other URLs, so they are checked.
 */
async function issueToken(
  { engine, developer, version }: Call,
  { user, account }: Partial<Mailbox>,
  body: TokenParameters,
  options: ConnectTokenRecord['options'],
): Promise<string> {
  const existing = await engine.store.tokens.count(developer.id)
  checkLimit(engine.config, 'MAILROOM_TOKENS_PER_DEVELOPER', 'connect tokens of one developer', existing)
  const { status_callback_url: statusCallbackUrl = null } = body
  const called = { status_callback_url: statusCallbackUrl, source_callback_url: options?.callbackUrl }
  for (const [name, address] of Object.entries(called))
    if (address) await checkUrl(name, address, engine.config.MAILROOM_ALLOW_PRIVATE)
  const token = newToken()
  const now = Date.now()
  await engine.store.tokens.create({
    token,
    developerId: developer.id,
    version,
    userId: user?.id ?? null,
    accountId: account?.id ?? null,
    callbackUrl: body.callback_url,
    email: body.email ?? account?.email ?? null,
    firstName: body.first_name ?? user?.firstName ?? null,
    lastName: body.last_name ?? user?.lastName ?? null,
    statusCallbackUrl,
    options,
    createdAt: now,
    expiresAt: now + tokenLifeMs,
    usedAt: null,
  })
  return token
}

const levels: readonly Level[] = [
  { base: '/lite/connect_tokens', of: 'the application', use: 'makes a user with an email account' },
  { base: '/lite/users/{id}/connect_tokens', of: 'a user', use: 'adds an email account to the user' },
  {
    base: '/lite/users/{id}/email_accounts/{label}/connect_tokens',
    of: 'an email account',
    use: 'gives the email account new credentials',
  },
]

/** One level of tokens: its path, its owner, and the effect of the wizard, in words of the documents. */
export interface Level {
  readonly base: `/${ApiVersion}/${string}connect_tokens`
  readonly of: string
  readonly use: string
}

/** `id` and `label` are absent at the level of the application, `label` at the level of a user. */
interface ScopePath {
  readonly id?: string
  readonly label?: string
}

async function findScope(call: Call, { id, label }: ScopePath): Promise<Partial<Mailbox>> {
  if (id === undefined) return {}
  return label === undefined ? { user: await findUser(call, id) } : findAccount(call, id, label)
}

/** 404 for a token of another API version, or of another user or account than the path names. */
async function findToken(call: Call, path: ScopePath & { readonly token: string }): Promise<ConnectTokenRecord> {
  const { user, account } = await findScope(call, path)
  const token = await call.engine.store.tokens.get(call.developer.id, path.token)
  const isInScope =
    token?.version === call.version &&
    (user === undefined || token.userId === user.id) &&
    (account === undefined || token.accountId === account.id)
  if (!isInScope) throw notFound('connect token', path.token)
  return token
}

const list = ({ base, of }: Level, form: TokenView) =>
  defineRoute(`GET ${base}`, {
    summary: `List the connect tokens of ${of}, used and unused`,
    response: z.array(form.view),
    async handler({ path }, call) {
      const { user, account } = await findScope(call, path)
      const filter = given({ version: call.version, userId: user?.id, accountId: account?.id })
      return listText(call, tokenSteps(call, filter, form))
    },
  })

const create = <P extends TokenParameters>({ base, of, use }: Level, form: TokenForm<P>) =>
  defineRoute(`POST ${base}`, {
    summary: `Create a connect token for ${of}`,
    description:
      `Send the end user's browser to \`browser_redirect_url\`: the wizard there ${use}, and then the browser is sent on to ` +
      '`callback_url` with the token in the query. Good for 24 hours, for 20 tries, and once.',
    body: form.body,
    response: examples.answer({
      success: [z.boolean(), true],
      token: [z.string(), examples.ids.token],
      resource_url: [z.string(), form.example],
      browser_redirect_url: [z.string(), examples.urls.redirect],
    }),
    async handler({ path, body }, call) {
      const token = await issueToken(call, await findScope(call, path), body, form.options(body))
      const resource_url = urlsOf(call).token(token)
      return { success: true, token, resource_url, browser_redirect_url: redirectUrl(call, token) }
    },
  })

const get = ({ base }: Level, form: TokenView) =>
  defineRoute(`GET ${base}/{token}`, {
    summary: 'Get a connect token',
    response: form.view,
    async handler({ path }, call) {
      const token = await findToken(call, path)
      const [[view] = []] = await presentTokens(call, [token], form)
      if (view === undefined) throw notFound('connect token', path.token)
      return view
    },
  })

const remove = ({ base }: Level) =>
  defineRoute(`DELETE ${base}/{token}`, {
    summary: 'Remove a connect token',
    description: 'Its redirect URL is good for nothing any more. What it has made stays.',
    response: success,
    async handler({ path }, call) {
      const { token } = await findToken(call, path)
      await call.engine.store.tokens.remove(call.developer.id, token)
      return { success: true }
    },
  })

export const tokenRoutesOf = <P extends TokenParameters>(level: Level, form: TokenForm<P>) => [
  list(level, form),
  create(level, form),
  get(level, form),
  remove(level),
]

export const connectTokenRoutes = tagged(
  'Connect tokens',
  levels.flatMap((level) => tokenRoutesOf(level, liteForm)),
)
