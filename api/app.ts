/** The front: a Koa application made of route values. */
import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Engine } from '../engine/index.ts'
import { baseUrlReader } from './addresses.ts'
import { backupRoutes } from './admin/backup.ts'
import { accountRoutes } from './admin/account-routes.ts'
import { keyRoutes } from './admin/key-routes.ts'
import { adminWebhookRoutes } from './admin/webhook-routes.ts'
import { retentionRoutes } from './admin/retention.ts'
import { logRoutes, statusCallbackRoutes } from './application.ts'
import type { FrameState } from './call.ts'
import { consoleRoutes } from './console/index.ts'
import { changeRoutes } from './lite/changes/handlers.ts'
import { connectRoutes, connectTokenRoutes } from './lite/connect_tokens.ts'
import { contactRoutes } from './lite/contacts.ts'
import { discoveryRoutes } from './lite/discovery.ts'
import { emailAccountRoutes } from './lite/email_accounts.ts'
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
import { dispatch } from './middleware/dispatch.ts'
import { errorAnswers } from './middleware/errors.ts'
import { createLimits } from './limits.ts'
import { createCallLog, requestLog } from './middleware/request-log.ts'
import { createOAuthVerifier } from './oauth1.ts'
import type { Route } from './route.ts'
import { routing } from './router.ts'
import { systemRoutes } from './system.ts'
import { createTries } from './tries.ts'

export { createServer } from './server.ts'

/** Every resource of Mailroom; createApp adds the system routes. */
export const resourceRoutes: readonly Route[] = [
  ...userRoutes,
  ...emailAccountRoutes,
  ...folderRoutes,
  ...messageListRoutes,
  ...messagePartRoutes,
  ...messageFlagRoutes,
  ...messageMoveRoutes,
  ...attachmentRoutes,
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
  ...backupRoutes,
  ...accountRoutes,
  ...adminWebhookRoutes,
  ...keyRoutes,
  ...retentionRoutes,
]

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
  /** Every route of the API, for documents and tests: the console's are no part of it. */
  readonly routes: readonly Route[]
  /** For createServer, which tells the app where each call comes from. */
  callback(): RequestListener
  /** Writes what is left of the call log. After the server is closed. */
  close(): Promise<void>
}

export function createApp({
  engine,
  routes: resources = resourceRoutes,
  checkAnswers = false,
  now = Date.now,
}: AppOptions): App {
  const { config, log, metrics, store, budget } = engine
  const routes: readonly Route[] = [...resources, ...systemRoutes(resources)]
  const calls = createCallLog({ store: store.calls, log })
  const authenticate = (apiKey: string) => engine.developers.authenticate(apiKey)
  const oauth = createOAuthVerifier({
    authenticate,
    nonces: store.nonces,
    windowMs: config.MAILROOM_OAUTH_WINDOW,
    nonceTtlMs: config.MAILROOM_OAUTH_NONCE_TTL,
    now,
  })
  const tries = createTries({ free: config.MAILROOM_WRONG_KEYS, now, log })
  const rest = { limit: config.MAILROOM_BODY_LIMIT, budget }
  const koa = new Koa<FrameState>()
  koa.on('error', (error: unknown) => log.debug({ err: error }, 'connection failed'))
  koa.use(errorAnswers(log))
  koa.use(requestLog({ log, metrics, calls, now }))
  koa.use(routing([...routes, ...consoleRoutes({ config, log, now })], baseUrlReader(config)))
  koa.use(bodyBeginning(config.MAILROOM_BODY_LIMIT))
  const operator = (token: string) => engine.operators.authenticate(token)
  koa.use(authentication({ authenticate, operator, oauth, tries, rest }))
  koa.use(bodyRest(rest))
  koa.use(dispatch(engine, createLimits(config, now), checkAnswers))
  const handle = koa.callback()
  return {
    routes,
    callback: () => (request, response) => void handle(request, response),
    close: () => calls.close(),
  }
}
