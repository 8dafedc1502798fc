/** Connect tokens of the application, of a user and of an email account: the same routes under three paths. */
import { z } from 'zod'
import { notFound, type AccountRecord, type ConnectTokenRecord, type UserRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { success } from '../../values.ts'
import { findAccount, findUser } from '../find.ts'
import { liteUrls } from '../urls.ts'
import { issueToken } from './issue.ts'
import { presentTokens, redirectUrl } from './present.ts'
import { createAnswer, createBody, scopePath, tokenPath, tokenView } from './schema.ts'

const tag = 'Connect tokens'

interface Level {
  readonly base: string
  readonly of: string
  readonly use: string
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

interface Scope {
  readonly user: UserRecord | null
  readonly account: AccountRecord | null
}

async function findScope(call: Call, path: z.output<typeof scopePath>): Promise<Scope> {
  if (path.id === undefined) return { user: null, account: null }
  if (path.label === undefined) return { user: await findUser(call, path.id), account: null }
  return findAccount(call, path.id, path.label)
}

/** A token of this level: of the user or account in the path, when there is one. */
async function findToken(call: Call, path: z.output<typeof tokenPath>): Promise<ConnectTokenRecord> {
  const { user, account } = await findScope(call, path)
  const token = await call.engine.store.tokens.get(call.developer.id, path.token)
  const here =
    token?.version === 'lite' &&
    (user === null || token.userId === user.id) &&
    (account === null || token.accountId === account.id)
  if (!here) throw notFound('connect token', path.token)
  return token
}

function list({ base, of }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: base,
    auth: 'developer',
    tag,
    summary: `List the connect tokens of ${of}, used and unused`,
    request: { path: scopePath },
    response: z.array(tokenView),
    async handler({ path }, call) {
      const { user, account } = await findScope(call, path)
      const owner = {
        ...(user === null ? {} : { userId: user.id }),
        ...(account === null ? {} : { accountId: account.id }),
      }
      const tokens = await call.engine.store.tokens.list(call.developer.id, { version: 'lite', ...owner })
      return presentTokens(call, tokens)
    },
  })
}

function create({ base, of, use }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: base,
    auth: 'developer',
    tag,
    summary: `Create a connect token for ${of}`,
    description:
      `Send the end user's browser to \`browser_redirect_url\`: the wizard there ${use}, and then the browser is sent on to ` +
      '`callback_url`. Good for 24 hours, and once. **The wizard is not there yet**: the link leads to a page that says so (501), and ' +
      '`X-Service-Notice` of this answer tells it too.',
    notice: 'browser_redirect_url leads to a page that says 501: the wizard is not there yet',
    request: { path: scopePath, body: createBody },
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
}

function get({ base }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: `${base}/{token}`,
    auth: 'developer',
    tag,
    summary: 'Get a connect token',
    request: { path: tokenPath },
    response: tokenView,
    async handler({ path }, call) {
      const token = await findToken(call, path)
      const [view] = await presentTokens(call, [token])
      if (view === undefined) throw notFound('connect token', path.token)
      return view
    },
  })
}

function remove({ base }: Level): Route {
  return defineRoute({
    method: 'DELETE',
    path: `${base}/{token}`,
    auth: 'developer',
    tag,
    summary: 'Remove a connect token',
    description: 'Its redirect URL is good for nothing any more. What it has made stays.',
    request: { path: tokenPath },
    response: success,
    async handler({ path }, call) {
      const { token } = await findToken(call, path)
      await call.engine.store.tokens.remove(call.developer.id, token)
      return { success: true }
    },
  })
}

export const connectTokenRoutes: readonly Route[] = levels.flatMap((level) => [
  list(level),
  create(level),
  get(level),
  remove(level),
])
