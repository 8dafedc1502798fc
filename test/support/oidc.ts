/**
 * A real OpenID provider (oidc-provider) on a free port of this machine, and an end user who signs in there without a
 * browser. Its pages take any name with any password; the name is the address in the ID token.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Configuration, type KoaContextWithOIDC, Provider } from 'oidc-provider'

export const client = { id: 'mailroom-test', secret: 'a secret of the client 1' }
/** What reads mail there. */
export const mailScope = 'https://mail.example/imap'
export const scope = `openid email offline_access ${mailScope}`

interface OidcOptions {
  /** Read at the first request. */
  readonly redirectUris: readonly string[]
  /** Of the issuer; another name than the service's is another site to a browser. */
  readonly host?: 'localhost' | '127.0.0.1'
  /** Ending of the issuer, which names a tenant. */
  readonly path?: string
  readonly accessTokenSeconds?: number
  readonly more?: Configuration
}

/** Change it while it runs. */
interface Mood {
  /** The token endpoint does not answer. */
  hangs: boolean
  /** Every request is answered with 503. */
  down: boolean
  refreshTokens: boolean
  /** Scopes that the end user does not grant. */
  withheld: readonly string[]
}

export type Oidc = Awaited<ReturnType<typeof startOidc>>

export async function startOidc(options: OidcOptions) {
  const { host = '127.0.0.1', path = '', accessTokenSeconds = 3600 } = options
  const mood: Mood = { hangs: false, down: false, refreshTokens: true, withheld: [] }
  /** grant_type of each call of the token endpoint, in order of arrival. */
  const asked: string[] = []
  const front = createServer()
  front.listen(0, host)
  await once(front, 'listening')
  const origin = `http://${host}:${(front.address() as AddressInfo).port}`
  let made: Provider | null = null
  const provider = (): Provider => {
    if (made !== null) return made
    made = new Provider(origin + path, configuration(options, mood, accessTokenSeconds))
    const note = (ctx: KoaContextWithOIDC): void => void asked.push(String(ctx.oidc.params?.['grant_type']))
    made.on('grant.success', note)
    made.on('grant.error', note)
    return made
  }
  front.on('request', (request, response) => {
    if (mood.hangs && request.url?.startsWith('/token') === true) return
    if (mood.down) response.writeHead(503).end('try later')
    else void provider().callback()(request, response)
  })
  return {
    issuer: origin + path,
    origin,
    mood,
    asked: asked as readonly string[],
    /** As a mail server asks: whether this token is good now for the mail of this address. */
    async accepts(address: string, accessToken: string): Promise<boolean> {
      const found = await provider().AccessToken.find(accessToken)
      return found?.accountId === address && !found.isExpired && found.scopes.has(mailScope)
    },
    /** The end user takes back what was granted: every token of it ends. */
    async revoke(accessToken: string): Promise<void> {
      const { grantId = '' } = (await provider().AccessToken.find(accessToken)) ?? {}
      await provider().RefreshToken.revokeByGrantId(grantId)
      await provider().AccessToken.revokeByGrantId(grantId)
    },
    close: () => closeServer(front),
  }
}

function configuration({ redirectUris, more }: OidcOptions, mood: Mood, seconds: number): Configuration {
  return {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [...redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    scopes: ['openid', 'offline_access', mailScope],
    claims: { openid: ['sub'], email: ['email'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['a key of the cookies'] },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: id }) }),
    issueRefreshToken: () => mood.refreshTokens,
    rotateRefreshToken: true,
    async loadExistingGrant(ctx) {
      const known = ctx.oidc.session?.grantIdFor(ctx.oidc.client?.clientId ?? '') ?? ctx.oidc.result?.consent?.grantId
      if (known !== undefined) return ctx.oidc.provider.Grant.find(known)
      if (mood.withheld.length === 0 || ctx.oidc.session?.accountId === undefined) return undefined
      const grant = new ctx.oidc.provider.Grant({ clientId: client.id, accountId: ctx.oidc.session.accountId })
      for (const name of scope.split(' ')) {
        if (mood.withheld.includes(name)) grant.rejectOIDCScope(name)
        else grant.addOIDCScope(name)
      }
      await grant.save()
      return grant
    },
    ttl: { AccessToken: seconds, Grant: 86_400, RefreshToken: 86_400, Session: 86_400, Interaction: 3600 },
    ...more,
  }
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

/** Where the provider sends the browser at last: the address with the answer. `says`: to the question for consent. */
export async function signIn(
  url: string,
  redirectUri: string,
  address: string,
  says: 'yes' | 'no' = 'yes',
): Promise<URL> {
  const cookies = new Map<string, string>()
  let next: { readonly url: URL; readonly form?: Readonly<Record<string, string>> } = { url: new URL(url) }
  for (let step = 0; step < 20; step += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(next.url, {
      redirect: 'manual',
      headers: { cookie },
      ...(next.form === undefined ? {} : { method: 'POST', body: new URLSearchParams(next.form) }),
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    const at: URL = next.url
    if (location?.startsWith(redirectUri) === true) return new URL(location)
    if (location !== null) next = { url: new URL(location, at) }
    else {
      const page = await answer.text()
      if (answer.status !== 200) throw new Error(`${at.href} answers ${answer.status}: ${page.slice(0, 2000)}`)
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? ''
      const refuses = says === 'no' && prompt === 'consent'
      next = refuses
        ? { url: new URL(`${at.href}/abort`) }
        : { url: at, form: { prompt, login: address, password: 'any' } }
    }
  }
  throw new Error('the provider sends the browser in circles')
}
