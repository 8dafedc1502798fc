/**
 * What the tests of sign-in stand on: the service, a real OpenID provider, a mail server that asks it whether a token
 * is good, and a receiver of status callbacks. Autoconfig of every domain names that mail server.
 */
import assert from 'node:assert/strict'
import { createLogger } from '../../engine/index.ts'
import { until } from '../support/until.ts'
import { client, type Oidc, scope, signIn, startOidc } from '../support/oidc.ts'
import { type CallbackReceiver, startReceiver } from '../support/callbacks.ts'
import { type Json, type LiteRig, startLiteRig } from '../api/lite/rig.ts'
import { createVisitor, type Visitor } from './visitor.ts'

/** A browser in the wizard of one connect token. */
export interface Start {
  readonly token: string
  readonly email: string
  readonly visitor: Visitor
  readonly path: string
}

interface Steps {
  /** A mailbox, a token for it, and a browser at the page of the login. */
  begin(extra?: Json, headers?: Readonly<Record<string, string>>): Promise<Start>
  /** The URL at the provider that the wizard sends the browser to. */
  leave(start: Pick<Start, 'visitor' | 'path'>): Promise<string>
  /** The answer of the provider: the path with its query. */
  answerOf(start: Omit<Start, 'token'>, email?: string, says?: 'yes' | 'no'): Promise<string>
}

export interface SignInStage extends Steps {
  readonly rig: LiteRig
  readonly oidc: Oidc
  readonly receiver: CallbackReceiver
  readonly logged: () => string
  /** A mailbox that takes access tokens of the provider. */
  mailbox(email: string): void
  /** Of the application, or of what `base` names. */
  token(extra?: Json, base?: string): Promise<string>
  view(token: string): Promise<Json>
  /** The provider takes back what was granted for this mailbox, and its sessions end. */
  revoke(email: string): Promise<void>
  /** Path of the email account that a token has made or is of. */
  accountOf(token: string): Promise<string>
  /** Status callbacks so far, of the account of an address. */
  statuses(): readonly Json[]
  remove(): Promise<void>
}

export const callbackUrl = 'https://app.example.com/connected'

/** `host`: of the provider; another name than the service's is another site to a browser. */
export async function openSignInStage(host: 'localhost' | '127.0.0.1', env = {}): Promise<SignInStage> {
  const parts = new AsyncDisposableStack()
  const redirectUris: string[] = []
  const oidc = await startOidc({ redirectUris, host })
  parts.defer(() => oidc.close())
  const receiver = await startReceiver()
  parts.defer(() => receiver.close())
  const lines: string[] = []
  let port = 0
  const file = (): string =>
    `<clientConfig><emailProvider id="x"><incomingServer type="imap"><hostname>127.0.0.1</hostname><port>${port}</port>` +
    '<socketType>STARTTLS</socketType><username>%EMAILADDRESS%</username><authentication>OAuth2</authentication>' +
    '</incomingServer></emailProvider></clientConfig>'
  const rig = await startLiteRig({
    lookUps: { http: { get: () => Promise.resolve({ status: 200, headers: {}, body: file() }) } },
    log: createLogger({ MAILROOM_LOG_LEVEL: 'trace' }, { write: (line) => void lines.push(line) }),
    env: {
      MAILROOM_OAUTH_ISSUER_A: oidc.issuer,
      MAILROOM_OAUTH_SCOPE_A: scope,
      MAILROOM_OAUTH_PARAMS_A: 'prompt=consent',
      MAILROOM_OAUTH_HOSTS_A: '127.0.0.1',
      MAILROOM_OAUTH_TIMEOUT: '4s',
      MAILROOM_BACKOFF_AUTH: '50ms',
      MAILROOM_STRIKES: '2',
      ...env,
    },
  })
  parts.defer(() => rig.close())
  port = rig.imap.port
  redirectUris.push(`${rig.url}/connect/oauth2callback`)
  const provider = { provider_consumer_key: client.id, provider_consumer_secret: client.secret }
  await rig.ok('POST', '/lite/oauth_providers', { type: 'PROVIDER_A_OAUTH2', ...provider })
  const tokens = new Map<string, string>()
  const view = (token: string): Promise<Json> => rig.ok('GET', `/lite/connect_tokens/${token}`)
  const stage = {
    ...{ rig, oidc, receiver, view },
    logged: () => lines.join('\n'),
    mailbox: (email: string) =>
      rig.imap.addUser(email, {
        accessToken: async (token) => {
          tokens.set(email, token)
          return oidc.accepts(email, token)
        },
      }),
    async token(extra: Json = {}, base = '/lite') {
      const made = await rig.ok('POST', `${base}/connect_tokens`, { callback_url: callbackUrl, ...extra })
      return String(made['token'])
    },
    async revoke(email: string) {
      await oidc.revoke(tokens.get(email) ?? '')
      rig.imap.dropConnections(email)
    },
    async accountOf(token: string) {
      const user = (await until('the user of the token', async () => (await view(token))['user'])) as Json
      return `/lite/users/${String(user['id'])}/email_accounts/0`
    },
    statuses: () => receiver.accepted().map(({ body }) => body),
    remove: () => parts.disposeAsync(),
  }
  return { ...stage, ...stepsOf(stage) }
}

function stepsOf({ rig, oidc, mailbox, token: createToken }: Omit<SignInStage, keyof Steps>): Steps {
  let count = 0
  const steps: Steps = {
    async begin(extra = {}, headers = {}) {
      const email = `user${(count += 1)}@mail.example`
      mailbox(email)
      const token = await createToken({ email, ...extra })
      const visitor = createVisitor(rig.url, headers)
      const path = `/connect/${token}`
      await visitor.open(path)
      return { token, email, visitor, path }
    },
    async leave({ visitor, path }) {
      await visitor.open(`${path}/login`)
      const page = await visitor.send(`${path}/sign-in`, {})
      assert.equal(page.status, 200, page.text)
      const url = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
      assert(url.startsWith(oidc.issuer), page.text)
      assert(page.text.includes(`href="${url.replaceAll('&', '&amp;')}"`))
      assert.match(page.text, /service_token=[^"]+">(?:Cancel, back to|Abbrechen, zurück zu) /)
      return url
    },
    async answerOf(start, email = start.email, says = 'yes') {
      const redirectUri = `${rig.url}/connect/oauth2callback`
      const { pathname, search } = await signIn(await steps.leave(start), redirectUri, email, says)
      return pathname + search
    },
  }
  return steps
}
