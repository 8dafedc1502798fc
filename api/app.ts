/** Builds the API: a Koa application made of route values. */
import type { RequestListener } from 'node:http'
import Koa from 'koa'
import type { Engine } from '../engine/index.ts'
import { baseUrlReader, pageUrlReader } from './addresses.ts'
import { adminRoutes } from './admin/index.ts'
import { applicationRoutes } from './application.ts'
import type { FrameState } from './call.ts'
import { wizardRoutes } from './connect/index.ts'
import { createWizard, showLost } from './connect/visit.ts'
import { consoleRoutes } from './console/index.ts'
import { createForwarding } from './forward.ts'
import { changeRoutes } from './lite/changes.ts'
import { connectTokenRoutes } from './lite/connect_tokens.ts'
import { contactRoutes } from './lite/contacts.ts'
import { emailAccountRoutes } from './lite/email_accounts.ts'
import { folderRoutes } from './lite/folders.ts'
import { messageListRoutes } from './lite/messages/list.ts'
import { messagePartRoutes } from './lite/messages/parts.ts'
import { messageWriteRoutes } from './lite/messages/writes.ts'
import { providerRoutes, v2ProviderRoutes } from './lite/providers.ts'
import { userRoutes } from './lite/users.ts'
import { deliveryRoutes } from './lite/webhooks/deliveries.ts'
import { v2WebhookRoutes, webhookRoutes } from './lite/webhooks/handlers.ts'
import { authentication } from './middleware/auth.ts'
import { bodyBeginning, bodyRest } from './middleware/body.ts'
import { dispatch } from './middleware/dispatch.ts'
import { errorAnswers } from './middleware/errors.ts'
import { createLimits, createTries } from './limits.ts'
import { createCallLog, requestLog } from './middleware/request-log.ts'
import { createOAuthVerifier } from './oauth1.ts'
import type { Route } from './route.ts'
import { routing } from './router.ts'
import { type Served, servedBy, systemRoutes } from './system.ts'
import { v2AccountRoutes, v2ConnectTokenRoutes } from './v2/accounts.ts'
import { v2ContactRoutes } from './v2/contacts.ts'
import { fileRoutes } from './v2/files.ts'
import { syncRoutes, v2FolderRoutes } from './v2/folders.ts'
import { v2MessageReadRoutes } from './v2/messages/reads.ts'
import { v2MessageFolderRoutes } from './v2/messages/folders.ts'
import { v2MessageWriteRoutes } from './v2/messages/writes.ts'
import { threadRoutes } from './v2/threads.ts'

export { createServer } from './server.ts'

/** Every resource of Mailroom; createApp adds the system routes. */
export const resourceRoutes: readonly Route[] = [
  ...userRoutes,
  ...emailAccountRoutes,
  ...folderRoutes,
  ...messageListRoutes,
  ...messagePartRoutes,
  ...messageWriteRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...changeRoutes,
  ...contactRoutes,
  ...connectTokenRoutes,
  ...providerRoutes,
  ...applicationRoutes,
  ...adminRoutes,
  // The 2.0 API: over the same engine and store, in its own shapes. Deprecated.
  ...v2AccountRoutes,
  ...syncRoutes,
  ...v2ConnectTokenRoutes,
  ...v2MessageReadRoutes,
  ...v2FolderRoutes,
  ...fileRoutes,
  ...threadRoutes,
  ...v2ContactRoutes,
  ...v2ProviderRoutes,
  ...v2MessageWriteRoutes,
  ...v2MessageFolderRoutes,
  ...v2WebhookRoutes,
]

interface AppOptions {
  readonly engine: Engine
  /** The resources, besides the system routes. Default: all of Mailroom. */
  readonly routes?: readonly Route[]
  /** For tests: a JSON answer against its response schema becomes a 500. Default false. */
  readonly checkAnswers?: boolean
  /** Milliseconds since 1970, for signatures and limits. */
  readonly now?: () => number
}

export type App = ReturnType<typeof createApp>

export function createApp({
  engine,
  routes: resources = resourceRoutes,
  checkAnswers = false,
  now = Date.now,
}: AppOptions) {
  const { config, log, store } = engine
  const routes: readonly Route[] = [...resources, ...systemRoutes(resources)]
  const calls = createCallLog({ store: store.calls, log, perDay: config.MAILROOM_CALL_LOG_PER_DAY, now })
  const oauth = createOAuthVerifier({
    authenticate: (apiKey) => engine.developers.authenticate(apiKey),
    nonces: store.nonces,
    windowMs: config.MAILROOM_OAUTH_WINDOW,
    nonceTtlMs: config.MAILROOM_OAUTH_NONCE_TTL,
    now,
  })
  const tries = createTries({ free: config.MAILROOM_WRONG_KEYS, now, log, uses: engine.uses })
  const wizard = createWizard(engine, now)
  const pages = [...consoleRoutes(engine, now), ...wizardRoutes(wizard)]
  const readers = { api: baseUrlReader(config), pages: pageUrlReader(config) }
  // Browsers reach the management listener at its own address, or through a tunnel.
  const ownPages = pageUrlReader({ ...config, MAILROOM_PUBLIC_URL: null, MAILROOM_HOST: config.MAILROOM_ADMIN_HOST })
  const readersOf = (served: Served) => (served === 'management' ? { ...readers, pages: ownPages } : readers)
  const limits = createLimits(config, now, engine.uses)
  const logged = requestLog({ engine, calls, limits, now })
  const authenticated = authentication({ oauth, tries })
  const dispatched = dispatch(limits, checkAnswers)
  const callback = (served: Served): RequestListener => {
    const koa = new Koa<FrameState>()
    koa.on('error', (error: unknown) => log.debug({ err: error }, 'connection failed'))
    koa.use(errorAnswers(log, (ctx, error) => showLost(wizard, ctx, error)))
    koa.use(logged)
    const ownRoutes = [...routes, ...pages].filter((route) => servedBy(served, route))
    koa.use(routing(ownRoutes, readersOf(served)))
    koa.use(bodyBeginning)
    koa.use(authenticated)
    koa.use(bodyRest)
    koa.use(dispatched)
    const handle = koa.callback()
    return (request, response) => void handle(request, response)
  }
  const forwarding = createForwarding(engine)
  return {
    /** Every route of the API, without the console's, for documents and tests. */
    routes,
    /** Answers clients, with the routes that the listener serves. */
    callback: (served: Served = 'all'): RequestListener =>
      forwarding.outer(callback(served), served, readersOf(served).pages),
    /** Answers calls that other nodes forward. */
    peerCallback: (): RequestListener => forwarding.inner(callback('all')),
    /** Writes the rest of the call log. Call it after the server is closed. */
    close: () => calls.close(),
  }
}
