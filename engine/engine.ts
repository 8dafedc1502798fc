/**
 * Wiring of the engine: store, secrets, accounts, webhooks. Everything gets what it needs from here and nothing else.
 */
import { createAccounts, type Accounts } from './accounts/index.ts'
import { createBackups, type Backups } from './backup.ts'
import { createBudget, type Budget } from './budget.ts'
import type { Config } from './config.ts'
import { createDevelopers, type Developers } from './developers.ts'
import { createDiscovery, type Discovery, type DiscoveryDeps } from './discovery/discover.ts'
import { createLoopGuard } from './loop-guard.ts'
import { createMailboxes, type Mailboxes } from './mailboxes.ts'
import { createHttpClient, type HttpClient } from './net/http.ts'
import { createOperators, type Operators } from './operators.ts'
import { createTokens } from './oauth/tokens.ts'
import type { Logger } from './observe/log.ts'
import { watchLoop } from './observe/loop.ts'
import { createBacklog } from './observe/gauges.ts'
import { createHistory, type History } from './observe/history.ts'
import { createMetrics, type ConnectionCounts, type Metrics } from './observe/metrics.ts'
import { createTracing, type Tracing } from './observe/tracing.ts'
import { createReadiness } from './readiness.ts'
import { startRecount } from './recount.ts'
import { startRetention } from './retention.ts'
import { openSealedStore } from './sealed-store.ts'
import type { Sealer } from './secrets/seal.ts'
import type { Store } from './store/port.ts'
import { createWebhooks } from './webhooks/index.ts'
import type { Webhooks } from './webhooks/types.ts'
import { withinTime } from './waits.ts'

export interface Engine {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly store: Store
  readonly sealer: Sealer
  readonly http: HttpClient
  readonly budget: Budget
  readonly developers: Developers
  /** The console's password and sessions, tokens of the admin API. */
  readonly operators: Operators
  readonly mailboxes: Mailboxes
  readonly accounts: Accounts
  readonly webhooks: Webhooks
  readonly discovery: Discovery
  /** Figures of the last hour. */
  readonly history: History
  readonly backups: Backups
  /**
   * MAILROOM_PUBLIC_URL, or where this process listens: for links in callbacks and for the documents, whatever Host a
   * call names.
   */
  baseUrl(): string
  /** Where clients reach us, for links in callbacks; set once the port is known. MAILROOM_PUBLIC_URL wins. */
  setBaseUrl(url: string): void
  /** Starts every actor. Resolves when all are started. */
  start(): Promise<void>
  /** From now on not ready: the process is about to end. Calls are still served. */
  drain(): void
  /** Ends every actor, waits for open work up to MAILROOM_SHUTDOWN_TIMEOUT, closes the store. */
  stop(): Promise<void>
  /** true when the store takes writes, the actors are started, and the process is not about to end. */
  ready(): Promise<boolean>
}

export interface EngineDeps {
  readonly config: Config
  readonly log: Logger
  /** The process is this engine's alone: its metrics are told, and its event loop is watched. */
  readonly ownsProcess?: boolean
  /** Of the API's server, for the metrics. */
  readonly connections?: ConnectionCounts
  /** Where discovery looks instead of the network's DNS and HTTP. */
  readonly lookUps?: Partial<Pick<DiscoveryDeps, 'http' | 'resolver'>>
  /** Ends the wait for a store that is away, or that another process serves. */
  readonly signal?: AbortSignal
  /** Another process has taken the store over (MongoDB): this one has to end. */
  readonly lost?: () => void
}

/** Opens the store and wires the parts; starts nothing. Rejects with `bad_request` for a setting that cannot work. */
export async function createEngine({
  config,
  log,
  ownsProcess = false,
  connections,
  lookUps,
  signal,
  lost = () => undefined,
}: EngineDeps): Promise<Engine> {
  const { store: opened, sealer } = await openSealedStore(config, log, signal, lost)
  const metrics = createMetrics({
    processMetrics: ownsProcess,
    connections,
    accountTags: () => accounts.countTags(),
    webhookTags: () => webhooks.countTags(),
    hosts: () => accounts.countHosts(),
    queues: () => accounts.waiting(),
    outbox: createBacklog(opened.outbox),
    ready: () => engine.ready(),
    lastBackupAt: () => backups.lastAt(),
    ...(config.MONGODB_URI === null ? { directory: config.MAILROOM_DATA_DIR } : {}),
  })
  const { store, writable } = createReadiness(opened, log, (kind, seconds) =>
    metrics.storeSeconds.observe({ kind }, seconds),
  )
  const backups = createBackups({ store, config })
  const http = createHttpClient()
  const budget = createBudget(config.MAILROOM_BUFFER_MAX)
  const developers = createDevelopers({ store, sealer, config })
  const operators = createOperators({ store, config })
  const tokens = createTokens({ config, store, sealer, http })
  let baseUrl = config.MAILROOM_PUBLIC_URL ?? `http://${config.MAILROOM_HOST}:${config.MAILROOM_PORT}`

  // The two need each other: webhooks ask accounts for bodies, accounts tell webhooks of changes.
  const mail: Pick<Accounts, 'fetchParts' | 'streamPart' | 'fetchHeaders'> = {
    fetchParts: (...request) => accounts.fetchParts(...request),
    streamPart: (...request) => accounts.streamPart(...request),
    fetchHeaders: (...request) => accounts.fetchHeaders(...request),
  }
  const tracing = await createTracing(config, log)
  const shared = { config, log, metrics, tracing, store, sealer, budget }
  const webhooks: Webhooks = createWebhooks({ ...shared, mail, baseUrl: () => baseUrl })
  const accounts: Accounts = createAccounts({ ...shared, tokens, listener: webhooks })
  const mailboxes = createMailboxes({ config, log, store, sealer, developers, accounts, webhooks })
  const discovery = createDiscovery({ http, allowPrivate: config.MAILROOM_ALLOW_PRIVATE, ...lookUps })
  const history = createHistory({ metrics })
  const services = { http, developers, operators, mailboxes, accounts, webhooks, discovery }
  const parts = { ...shared, ...services, history, backups }
  const engine: Engine = {
    ...parts,
    ...lifecycle(parts, writable, ownsProcess),
    baseUrl: () => baseUrl.replace(/(?<!\/)\/+$/, ''),
    setBaseUrl: (url) => void (baseUrl = config.MAILROOM_PUBLIC_URL ?? url),
  }
  return engine
}

type Parts = Pick<
  Engine,
  'config' | 'log' | 'metrics' | 'store' | 'http' | 'budget' | 'mailboxes' | 'accounts' | 'webhooks' | 'history'
> & { readonly tracing: Tracing }

function lifecycle(
  { config, log, metrics, tracing, store, http, budget, mailboxes, accounts, webhooks, history }: Parts,
  writable: () => Promise<boolean>,
  ownsProcess: boolean,
): Pick<Engine, 'start' | 'drain' | 'stop' | 'ready'> {
  let [started, draining] = [false, false]
  const ends: (() => unknown)[] = [() => accounts.stopAll(), () => webhooks.stopAll()]
  return {
    async start() {
      if (ownsProcess) ends.push(watchLoop(config.MAILROOM_DATA_DIR, createLoopGuard({ log, metrics, accounts })))
      ends.push(history.start())
      await webhooks.startAll()
      await accounts.startAll()
      ends.push(startRetention({ store, config, log }), startRecount({ store, log }))
      started = true
    },
    drain: () => void (draining = true),
    async stop() {
      started = false
      mailboxes.close()
      budget.close()
      await withinTime(config.MAILROOM_SHUTDOWN_TIMEOUT, Promise.allSettled(ends.map((end) => end())))
      await Promise.allSettled([http.close(), tracing.close(), store.close()])
    },
    ready: async () => started && !draining && (await writable()) && !draining,
  }
}
