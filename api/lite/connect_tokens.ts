/** Connect tokens of the application, of users and of email accounts, under three paths; and /connect. */
import { z } from 'zod'
import {
  type AccountRecord,
  checkUrl,
  type ConnectTokenRecord,
  newToken,
  notFound,
  type UserRecord,
} from '../../engine/index.ts'
import { html, renderSmallPage, smallPageHeaders } from '../html.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, StreamAnswer, tagged } from '../route.ts'
import { email, given, optional, personNames, success, url, urlOrEmpty } from '../values.ts'
import { findAccount, findUser } from './find.ts'
import { liteUrls, seconds } from '../addresses.ts'
import { presentUser, userView } from './users.ts'

const tokenView = examples.view(
  'ConnectToken',
  {
    token: [z.string(), examples.ids.token],
    account_lite: [z.literal(true), true],
    created: [z.int(), examples.time],
    used: [z.int(), 0, '0 while unused, else Unix timestamp of use'],
    expires: [z.union([z.int(), z.literal(false)]), 1_700_086_400, 'Unix timestamp while unused; false once used'],
    callback_url: [z.string(), 'https://app.example.com/connected'],
    email: [z.string().optional(), examples.address],
    first_name: [z.string(), 'Anna'],
    last_name: [z.string(), 'Berg'],
    status_callback_url: z.string().optional(),
    browser_redirect_url: [z.string(), examples.urls.redirect],
    serverLabel: optional(z.string(), 'label of the email account, once there is one'),
    email_account_id: optional(z.string(), 'the same, once the token is used'),
    user: optional(userView, 'once the token is used'),
    resource_url: [z.string(), examples.urls.token],
  },
  {
    used: 1_700_000_300,
    expires: false,
    serverLabel: examples.label,
    email_account_id: examples.label,
    user: examples.exampleOf(userView),
  },
)

const createBody = z
  .object({
    callback_url: url.meta({
      description: 'where the browser goes after the wizard, with the token in the query',
      examples: ['https://app.example.com/connected'],
    }),
    email: optional(email, 'address of the mailbox: skips the first step of the wizard', 'anna@example.com'),
    ...personNames,
    status_callback_url: optional(
      urlOrEmpty,
      'takes the status callbacks of the email account that the wizard makes; the URL of the user when none is named',
      'https://app.example.com/status',
    ),
  })
  .meta({ examples: [{ callback_url: 'https://app.example.com/connected', email: 'anna@example.com' }] })

const createAnswer = examples.answer({
  success: [z.boolean(), true],
  token: [z.string(), examples.ids.token],
  resource_url: [z.string(), examples.urls.token],
  browser_redirect_url: [z.string(), examples.urls.redirect],
})

/** `id` and `label` are absent at the level of the application, `label` at the level of a user. */
interface ScopePath {
  readonly id?: string
  readonly label?: string
}

type TokenView = z.input<typeof tokenView>

/** The first page of the wizard: public, good as long as the token. */
function redirectUrl(call: Pick<Call, 'baseUrl' | 'developer'>, token: string): string {
  return `${call.baseUrl}/connect/${token}?developer_key=${encodeURIComponent(call.developer.apiKey)}`
}

/** Users and accounts of all tokens are read once each, however many tokens there are. */
async function presentTokens(call: Call, tokens: readonly ConnectTokenRecord[]): Promise<TokenView[]> {
  const { store } = call.engine
  const ids = [...new Set(tokens.flatMap(({ userId }) => userId ?? []))]
  const users = await Promise.all(ids.map((id) => store.users.get(call.developer.id, id)))
  const accounts = Map.groupBy(await store.accounts.listByUsers(ids), ({ userId }) => userId)
  const byId = new Map(users.flatMap((user) => (user === null ? [] : [[user.id, user] as const])))
  return tokens.map((token) => {
    const user = token.userId === null ? undefined : byId.get(token.userId)
    return presentToken(call, token, user, user === undefined ? [] : (accounts.get(user.id) ?? []))
  })
}

function presentToken(
  call: Call,
  token: ConnectTokenRecord,
  user: UserRecord | undefined,
  accounts: readonly AccountRecord[],
): TokenView {
  const urls = liteUrls(call.baseUrl)
  const account = accounts.find(({ id }) => id === token.accountId)
  const used = token.usedAt !== null
  return given({
    token: token.token,
    account_lite: true as const,
    created: seconds(token.createdAt),
    used: seconds(token.usedAt ?? 0),
    expires: used ? (false as const) : seconds(token.expiresAt),
    callback_url: token.callbackUrl,
    email: token.email ?? (used ? account?.email : undefined),
    first_name: token.firstName ?? '',
    last_name: token.lastName ?? '',
    status_callback_url: token.statusCallbackUrl ?? undefined,
    browser_redirect_url: redirectUrl(call, token.token),
    serverLabel: account?.label,
    email_account_id: used ? account?.label : undefined,
    user: used && user !== undefined ? presentUser(user, accounts, urls) : undefined,
    resource_url: urls.token(token.token),
  })
}

const lifeMs = 24 * 3_600_000

type TokenWishes = Pick<ConnectTokenRecord, 'version' | 'callbackUrl'> &
  Partial<
    Pick<
      ConnectTokenRecord,
      'userId' | 'accountId' | 'email' | 'firstName' | 'lastName' | 'statusCallbackUrl' | 'options'
    >
  >

/**
 * Stored and good for 24 hours. `callbackUrl` is opened by the end user's browser, so it may be a private address;
 * `statusCallbackUrl` is called by us and is checked.
 */
async function issueToken({ engine, developer }: Call, wishes: TokenWishes): Promise<ConnectTokenRecord> {
  const { statusCallbackUrl = null } = wishes
  if (statusCallbackUrl !== null) {
    await checkUrl('status_callback_url', statusCallbackUrl, engine.config.MAILROOM_ALLOW_PRIVATE)
  }
  const now = Date.now()
  const token: ConnectTokenRecord = {
    userId: null,
    accountId: null,
    email: null,
    firstName: null,
    lastName: null,
    options: null,
    ...wishes,
    statusCallbackUrl,
    token: newToken(),
    developerId: developer.id,
    createdAt: now,
    expiresAt: now + lifeMs,
    usedAt: null,
  }
  await engine.store.tokens.create(token)
  return token
}

const levels = [
  { base: '/lite/connect_tokens', of: 'the application', use: 'makes a user with an email account' },
  { base: '/lite/users/{id}/connect_tokens', of: 'a user', use: 'adds an email account to the user' },
  {
    base: '/lite/users/{id}/email_accounts/{label}/connect_tokens',
    of: 'an email account',
    use: 'gives the email account new credentials',
  },
] as const
type Level = (typeof levels)[number]

interface Scope {
  readonly user: UserRecord | null
  readonly account: AccountRecord | null
}

async function findScope(call: Call, path: ScopePath): Promise<Scope> {
  if (path.id === undefined) return { user: null, account: null }
  if (path.label === undefined) return { user: await findUser(call, path.id), account: null }
  return findAccount(call, path.id, path.label)
}

/** A token of this level: of the user or account in the path, when there is one. */
async function findToken(call: Call, path: ScopePath & { readonly token: string }): Promise<ConnectTokenRecord> {
  const { user, account } = await findScope(call, path)
  const token = await call.engine.store.tokens.get(call.developer.id, path.token)
  const here =
    token?.version === 'lite' &&
    (user === null || token.userId === user.id) &&
    (account === null || token.accountId === account.id)
  if (!here) throw notFound('connect token', path.token)
  return token
}

const list = ({ base, of }: Level) =>
  defineRoute(`GET ${base}`, {
    summary: `List the connect tokens of ${of}, used and unused`,
    response: z.array(tokenView),
    async handler({ path }, call) {
      const { user, account } = await findScope(call, path)
      const owner = given({ version: 'lite' as const, userId: user?.id, accountId: account?.id })
      const tokens = await call.engine.store.tokens.list(call.developer.id, owner)
      return presentTokens(call, tokens)
    },
  })

const create = ({ base, of, use }: Level) =>
  defineRoute(`POST ${base}`, {
    summary: `Create a connect token for ${of}`,
    description:
      `Send the end user's browser to \`browser_redirect_url\`: the wizard there ${use}, and then the browser is sent on to ` +
      '`callback_url`. Good for 24 hours, and once. **The wizard is not there yet**: the link leads to a page that says so (501), and ' +
      '`X-Service-Notice` of this answer tells it too.',
    notice: 'browser_redirect_url leads to a page that says 501: the wizard is not there yet',
    body: createBody,
    response: createAnswer,
    async handler({ path, body }, call) {
      const { user, account } = await findScope(call, path)
      const { token } = await issueToken(call, {
        version: 'lite',
        userId: user?.id ?? null,
        accountId: account?.id ?? null,
        callbackUrl: body.callback_url,
        email: body.email ?? account?.email ?? null,
        firstName: body.first_name ?? user?.firstName ?? null,
        lastName: body.last_name ?? user?.lastName ?? null,
        statusCallbackUrl: (body.status_callback_url ?? (account === null ? user?.statusCallbackUrl : null)) || null,
      })
      const resource_url = liteUrls(call.baseUrl).token(token)
      return { success: true, token, resource_url, browser_redirect_url: redirectUrl(call, token) }
    },
  })

const get = ({ base }: Level) =>
  defineRoute(`GET ${base}/{token}`, {
    summary: 'Get a connect token',
    response: tokenView,
    async handler({ path }, call) {
      const token = await findToken(call, path)
      const [view] = await presentTokens(call, [token])
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

export const connectTokenRoutes = tagged(
  'Connect tokens',
  levels.flatMap((level) => [list(level), create(level), get(level), remove(level)]),
)

const words = 'connecting a mailbox in the browser is not there yet; use POST /lite/users'

const notThereYet = z.object({ type: z.literal('error'), value: z.string() }).meta({
  examples: [{ type: 'error', value: words }],
})

const page = renderSmallPage(
  'Not there yet',
  html`<h1>This page is not there yet</h1>
    <p>
      An application has sent you here to connect your mailbox. This service cannot do that in the browser yet. Nothing
      was changed, and nobody has got access to your mail.
    </p>
    <p>Please go back, and tell the people who run the application.</p>`,
)

const connect = defineRoute('GET /connect/{token}', {
  auth: 'public',
  summary: 'The page behind a connect token',
  description:
    'The wizard is not there yet: a page that says so, or the error for who asks for JSON, whatever the token is.',
  response: notThereYet,
  page: true,
  status: 501,
  handler: (_input, call) =>
    Promise.resolve(
      call.asksForJson() ? { type: 'error' as const, value: words } : new StreamAnswer(page, smallPageHeaders),
    ),
})

export const connectRoutes = tagged('Connect tokens', [connect])
