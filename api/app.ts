/** The front: a Koa application made of route values. */
import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Engine } from '../engine/index.ts'
import { baseUrlReader, clientAddressReader } from './addresses.ts'
import { logRoutes, statusCallbackRoutes } from './application.ts'
import type { FrameState } from './call.ts'
import { changeRoutes } from './lite/changes/handlers.ts'
import { connectRoutes, connectTokenRoutes } from './lite/connect_tokens.ts'
import { contactRoutes } from './lite/contacts.ts'
import { discoveryRoutes } from './lite/discovery.ts'
import { emailAccountRoutes } from './lite/email_accounts.ts'
import { findAccount, findUser } from './lite/find.ts'
import { folderRoutes } from './lite/folders.ts'
import { messageListRoutes } from './lite/messages/list.ts'
import { attachmentRoutes, messagePartRoutes } from './lite/messages/parts.ts'
import { messageFlagRoutes, messageMoveRoutes } from './lite/messages/writes.ts'
import { oauthProviderRoutes } from './lite/oauth_providers.ts'
import { userRoutes } from './lite/users.ts'
import { deliveryRoutes } from './lite/webhooks/deliveries.ts'
import { explainRoutes, webhookRoutes } from './lite/webhooks/handlers.ts'
import { authentication } from './middleware/auth.ts'
import { bodyBeginning, bodyRest } from './middleware/body.ts'
import { concerned, dispatch } from './middleware/dispatch.ts'
import { errorAnswers } from './middleware/errors.ts'
import { createLimits } from './middleware/limits.ts'
import { createCallLog, requestLog } from './middleware/request-log.ts'
import { routing } from './middleware/routing.ts'
import { createOAuthVerifier } from './oauth1.ts'
import type { Call, Route } from './route.ts'
import { createRouter } from './router.ts'
import { systemRoutes } from './system.ts'
import { createTries } from './tries.ts'

export { createServer } from './server.ts'

interface AppOptions {
  readonly engine: Engine
  /** The resources; /healthz, /readyz, /metrics, /openapi.json and /docs are always there. Default: all of Mailroom. */
  readonly routes?: readonly Route[]
  /** Parse every JSON answer against its response schema: a wrong one becomes a 500. For tests. Default false. */
  readonly checkAnswers?: boolean
  /** Milliseconds since 1970, for signatures and limits. */
  readonly now?: () => number
}

export interface App {
  readonly koa: Koa<FrameState>
  /** Every route that is served, for documents and tests. */
  readonly routes: readonly Route[]
  /** For http.createServer, or better createServer of this file. */
  callback(): RequestListener
  /** Writes what is left of the call log. After the server is closed. */
  close(): Promise<void>
}

export function createApp(options: AppOptions): App {
  const { engine, now = Date.now } = options
  const resources = options.routes ?? resourceRoutes
  const routes: readonly Route[] = [...resources, ...systemRoutes(resources)]
  const calls = createCallLog({ store: engine.store.calls, log: engine.log })
  const koa = new Koa<FrameState>()
  koa.on('error', (error: unknown) => engine.log.debug({ err: error }, 'connection failed'))
  koa.use(errorAnswers(engine.log))
  koa.use(
    requestLog({ log: engine.log, metrics: engine.metrics, calls, now, addressOf: clientAddressReader(engine.config) }),
  )
  useRoutes(koa, { engine, routes, now, checkAnswers: options.checkAnswers ?? false })
  return {
    koa,
    routes,
    callback() {
      const handle = koa.callback()
      return (request, response) => void handle(request, response)
    },
    close: () => calls.close(),
  }
}

function useRoutes(koa: Koa<FrameState>, options: Required<AppOptions>): void {
  const { engine, routes, now, checkAnswers } = options
  const { config } = engine
  const limits = createLimits({
    callsPerHour: config.MAILROOM_RATE_CALLS_PER_HOUR,
    imapPerMinute: config.MAILROOM_RATE_IMAP_PER_MINUTE,
    now,
  })
  const authenticate = (apiKey: string) => engine.developers.authenticate(apiKey)
  const oauth = createOAuthVerifier({
    authenticate,
    nonces: engine.store.nonces,
    windowMs: config.MAILROOM_OAUTH_WINDOW,
    nonceTtlMs: config.MAILROOM_OAUTH_NONCE_TTL,
    now,
  })
  koa.use(routing({ router: createRouter(routes), baseUrl: baseUrlReader(config) }))
  koa.use(bodyBeginning(config.MAILROOM_BODY_LIMIT))
  const tries = createTries({ free: config.MAILROOM_WRONG_KEYS, now, log: engine.log })
  const rest = { limit: config.MAILROOM_BODY_LIMIT, budget: engine.budget }
  koa.use(authentication({ authenticate, oauth, tries, rest }))
  koa.use(bodyRest(rest))
  const find = (call: Call, id: string, label: string | null) =>
    label === null ? findUser(call, id) : findAccount(call, id, label)
  const deps = { engine, limits, find, checkAnswers }
  koa.use(concerned(deps))
  koa.use(limits.calls)
  koa.use(dispatch(deps))
}

const messageRoutes: readonly Route[] = [
  ...messageListRoutes,
  ...messagePartRoutes,
  ...messageFlagRoutes,
  ...messageMoveRoutes,
  ...attachmentRoutes,
]

export const resourceRoutes: readonly Route[] = [
  ...userRoutes,
  ...emailAccountRoutes,
  ...folderRoutes,
  ...messageRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...explainRoutes,
  ...changeRoutes,
  ...contactRoutes,
  ...connectTokenRoutes,
  ...connectRoutes,
  ...discoveryRoutes,
  ...oauthProviderRoutes,
  ...statusCallbackRoutes,
  ...logRoutes,
]
