/** Authenticates the caller: OAuth 1.0a, HTTP Basic (key and secret), Bearer `<key>.<secret>`, or an admin token. */
import type { Hash } from 'node:crypto'
import { AppError, type Authenticated, checkScope, type Engine, sameText, secretsOf } from '../../engine/index.ts'
import type { FrameContext, Middleware } from '../call.ts'
import { isSigned, type OAuthVerifier, type TryKey } from '../oauth1.ts'
import type { Tries } from '../limits.ts'
import { tooLarge } from '../request-body.ts'
import { earlyBytes, hashBody, isForm } from './body.ts'

interface Deps {
  readonly oauth: OAuthVerifier
  readonly tries: Tries
}

/** Dots in a Bearer token that may end the key: a configured key may contain dots itself. */
const mostDots = 8

/** Far longer than any signature with its key, nonce and realm. */
const longestHeader = 8192

export function authentication(deps: Deps): Middleware {
  return async (ctx, next) => {
    const { exchange } = ctx.state
    try {
      if (exchange.auth === 'developer') exchange.knownDeveloper = (await identify(ctx, deps)).developer
      if (exchange.auth === 'operator') await admitOperator(ctx, deps.tries)
    } catch (error) {
      exchange.knownDeveloper = null
      // A bad body explains a wrong signature. Only an authenticated caller learns that the body is too large.
      throw exchange.refusal?.status === 413 ? error : (exchange.refusal ?? error)
    }
    if (exchange.knownDeveloper !== null) exchange.caller = exchange.knownDeveloper.id
    await next()
  }
}

/** Checks the admin token and its scope. A wrong token counts like a wrong API key. */
async function admitOperator(ctx: FrameContext, tries: Tries): Promise<void> {
  const { engine, address, match } = ctx.state.exchange
  const token = /^bearer\s+(\S+)\s*$/i.exec(ctx.req.headers.authorization ?? '')?.[1]
  if (token === undefined || token.length > longestHeader)
    throw refusal('Authorization: expected Bearer and a token of the admin API')
  const found = await tries.run(address, token.slice(0, 32), async () => {
    return (await engine.operators.authenticate(token)) ?? refuse('the token is unknown or revoked')
  })
  ctx.state.exchange.caller = found.id
  ctx.state.exchange.actor = { by: 'token', actorId: found.id, actorName: found.name }
  checkScope(found, match?.route.scope ?? 'read')
}

async function identify(ctx: FrameContext, deps: Deps): Promise<Authenticated> {
  const header = ctx.req.headers.authorization ?? ''
  if (header.length > longestHeader) throw refusal(`Authorization: longer than ${longestHeader} characters`)
  const scheme = /^\S*/.exec(header)?.[0] ?? ''
  const rest = header.slice(scheme.length).trimStart()
  const { exchange } = ctx.state
  const { engine } = exchange
  const tryKey: TryKey = (key, check) => deps.tries.run(exchange.address, key, check)
  if (/^basic$/i.test(scheme)) return byBasic(rest, engine, tryKey)
  if (/^bearer$/i.test(scheme)) return byBearer(rest, engine, tryKey)
  const { path, baseUrl, query, form } = exchange
  const call = {
    method: ctx.method,
    baseUrl,
    path,
    header: /^oauth$/i.test(scheme) ? header : null,
    query,
    form,
    hashBody: ({ developer }: Authenticated, hash: Hash): Promise<void> => {
      exchange.knownDeveloper = developer
      return hashBody(ctx, hash)
    },
  }
  if (isSigned(call)) {
    if (exchange.body?.whole === false && isForm(ctx.req)) throw tooLarge(earlyBytes, ', as a form that is signed')
    return deps.oauth.verify(call, tryKey)
  }
  throw refusal(
    header === ''
      ? 'Authorization is missing: sign the call with OAuth 1.0a, or send key and secret by HTTP Basic or Bearer'
      : `Authorization: scheme ${scheme} is not accepted; use OAuth, Basic or Bearer`,
  )
}

function byBasic(encoded: string, engine: Engine, tryKey: TryKey): Promise<Authenticated> {
  const text = Buffer.from(encoded.trim(), 'base64').toString('utf8')
  const colon = text.indexOf(':')
  const key = colon === -1 ? text : text.slice(0, colon)
  return tryKey(key, async () => (colon === -1 ? null : await check(key, text.slice(colon + 1), engine)) ?? refuse())
}

/** The key ends at the first dot with a valid key and secret around it. All dots together are one try. */
function byBearer(token: string, engine: Engine, tryKey: TryKey): Promise<Authenticated> {
  const text = token.trim()
  return tryKey(text.split('.', 1)[0] ?? '', async () => {
    for (const { index } of text.matchAll(/\./g).take(mostDots)) {
      if (index === 0) break
      const found = await check(text.slice(0, index), text.slice(index + 1), engine)
      if (found !== null) return found
    }
    return refuse()
  })
}

async function check(apiKey: string, secret: string, { developers }: Engine): Promise<Authenticated | null> {
  const found = await developers.authenticate(apiKey)
  return found !== null && secretsOf(found).some((one) => sameText(one, secret)) ? found : null
}

function refuse(words = 'the API key or its secret is wrong'): never {
  throw refusal(`Authorization: ${words}`)
}

function refusal(words: string): AppError {
  return new AppError('unauthorized', words, { details: { parameter: 'Authorization' } })
}
