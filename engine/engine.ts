/** Wires the engine: store, secrets, accounts, webhooks and the rest. Starts and stops it. */
import type { RequestListener } from 'node:http'
import { createAccounts, type Accounts } from './accounts/index.ts'
import { createBackups, type Backups } from './backup.ts'
import { createBudget, type Budget } from './budget.ts'
import type { Config } from './config.ts'
import { openBrand, type Brand } from './connect/brand.ts'
import { createConnect, type Connect } from './connect/index.ts'
import { createDevelopers, createRevocations, type Developers, type Revocations } from './developers.ts'
import { createEveryNode, type EveryNode } from './every-node.ts'
import { createDiscovery, type Discovery, type DiscoveryDeps } from './discovery/discover.ts'
import { createHostProbe } from './discovery/host-probe.ts'
import { createMailboxes, type Mailboxes } from './mailboxes.ts'
import { createHttpClient, type HttpClient } from './net/http.ts'
import { createPeers, ownAddress, type Peers } from './net/peers.ts'
import { createOperators, type Operators } from './operators.ts'
import { type Consents, createConsent } from './oauth/consent.ts'
import { createOAuthServers } from './oauth/providers.ts'
import { createTokens } from './oauth/tokens.ts'
import type { Logger } from './observe/log.ts'
import { watchLoop } from './observe/loop.ts'
import {
  type ConnectionCounts,
  countHosts,
  createBacklog,
  createHistory,
  createLoopReport,
  createMetrics,
  type History,
  type Metrics,
} from './observe/metrics.ts'
import { createTracing, type Tracing } from './observe/tracing.ts'
import { createReadiness } from './readiness.ts'
import { startRecount, startRetention } from './maintenance.ts'
import { openSealedStore } from './sealed-store.ts'
import type { Sealer } from './secrets/seal.ts'
import { createSettings, settableConfig, type Settings } from './settings.ts'
import { createSlotWork } from './slot-work.ts'
import { createUndo, type Undo } from './undo.ts'
import { keepRecords, type KeptStore } from './store/kept-records.ts'
import type { Backlog } from './store/port.ts'
import type { DeveloperRecord } from './store/records.ts'
import { createWebhooks, type Webhooks } from './webhooks/index.ts'
import type { Mail } from './webhooks/parts.ts'
import { createUses, type Uses } from './uses.ts'
import { withinTime } from './waits.ts'

export interface Engine {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly store: KeptStore
  readonly sealer: Sealer
  readonly http: HttpClient
  /** HTTP to the other nodes. */
  readonly peers: Peers
  /** Counts of limits that hold over all nodes. */
  readonly uses: Uses
  readonly everyNode: EveryNode
  readonly budget: Budget
  readonly developers: Developers
  readonly operators: Operators
  readonly revocations: Revocations
  readonly mailboxes: Mailboxes
  /** Connect tokens and the connect wizard. */
  readonly connect: Connect
  /** Look of the connect wizard. */
  readonly brand: Brand
  readonly accounts: Accounts
  readonly webhooks: Webhooks
  readonly discovery: Discovery
  /** Sign-in of end users at an OAuth provider. */
  readonly consent: Consents
  /** Figures of the last hour. */
  readonly history: History
  readonly backups: Backups
  readonly settings: Settings
  /** Pending callbacks of all channels, a few seconds old at most. */
  backlog(): Promise<Backlog>
  /** MAILROOM_PUBLIC_URL, or the address of this process: for links, whatever Host a call names. */
  baseUrl(): string
  /** Sets the address of this process, once the port is known. MAILROOM_PUBLIC_URL wins. */
  setBaseUrl(url: string): void
  /**
   * Starts the actors of the slots that this process takes. Resolves when all have started. With MongoDB `listener`
   * answers calls that other nodes pass on.
   */
  start(listener?: RequestListener): Promise<void>
  /** Makes `ready` false. Calls are still served. */
  drain(): void
  /** Ends every actor, waits for open work up to MAILROOM_SHUTDOWN_TIMEOUT, closes the store. */
  stop(): Promise<void>
  /** Whether the store takes writes, the actors have started, and `drain` was not called. */
  ready(): Promise<boolean>
}

export interface EngineDeps {
  readonly config: Config
  readonly log: Logger
  /** No other engine is in this process: its memory and event loop are measured. */
  readonly ownsProcess?: boolean
  /** Connections of the API's server, for the metrics. */
  readonly connections?: ConnectionCounts
  /** Replaces DNS and HTTP of discovery. */
  readonly lookUps?: Partial<Pick<DiscoveryDeps, 'http' | 'probe' | 'resolver'>>
  /** Ends the wait for a store that is away, or that another process serves. */
  readonly signal?: AbortSignal
  /** Called when other nodes have taken this process for dead (MongoDB): it must end. */
  readonly lost?: () => void
}

/** Accounts and webhooks need each other: webhooks fetch bodies from accounts, accounts give changes to webhooks. */
function mailOf(accounts: () => Accounts): Mail {
  return {
    fetchParts: (...request) => accounts().fetchParts(...request),
    fetchMany: (...request) => accounts().fetchMany(...request),
    streamPart: (...request) => accounts().streamPart(...request),
    fetchHeaders: (...request) => accounts().fetchHeaders(...request),
  }
}

/** Opens the store and wires the parts; starts nothing. `bad_request` for a setting that cannot work. */
export async function createEngine({
  config: configured,
  log,
  ownsProcess = false,
  connections,
  lookUps,
  signal,
  lost = () => undefined,
}: EngineDeps): Promise<Engine> {
  const values = new Map<string, number>()
  const config = settableConfig(configured, values)
  const brand = openBrand(config)
  const { store: opened, sealer } = await openSealedStore(config, log, signal, lost)
  const backlog = createBacklog(opened.outbox)
  const metrics = createMetrics({
    ownsProcess,
    connections,
    accountTags: () => accounts.countTags(),
    webhookTags: () => webhooks.countTags(),
    hosts: async () => countHosts(await opened.accounts.places({}), accounts.facts(), opened.nodes.ownsAll()),
    hostNames: config.MAILROOM_METRICS_TOKEN !== null,
    queues: () => accounts.waiting(),
    outbox: backlog,
    ready: () => engine.ready(),
    ...(config.MONGODB_URI === null
      ? { directory: config.MAILROOM_DATA_DIR, lastBackupAt: () => backups.lastAt() }
      : {}),
  })
  const { store: noticed, writable } = createReadiness(opened, log, metrics)
  const store = keepRecords(noticed)
  const backups = createBackups({ log, store, config })
  const http = createHttpClient({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
  const budget = createBudget(config.MAILROOM_BUFFER_MAX)
  const keys = createKeys({ store, sealer, config }, (developerId) => webhooks.keyChanged(developerId))
  const { tokens, consent } = createSignIn({ store, sealer, config, http })
  let baseUrl = config.MAILROOM_PUBLIC_URL ?? `http://${config.MAILROOM_HOST}:${config.MAILROOM_PORT}`

  const tracing = await createTracing(config, log)
  // A store step may still run after its deadline, until the deadline of its last request.
  const undo = createUndo(log, 2 * config.MAILROOM_STORE_TIMEOUT)
  const peers = createPeers(sealer.derive('nodes'), sealer.deriveFormer('nodes'))
  const uses = createUses({ nodes: store.nodes, tellAll: (told) => everyNode.tell('uses', told) })
  const shared = { config, log, metrics, tracing, store, sealer, budget, undo, uses }
  const webhooks: Webhooks = createWebhooks({ ...shared, mail: mailOf(() => accounts), baseUrl: () => baseUrl })
  const accounts: Accounts = createAccounts({ ...shared, tokens, listener: webhooks })
  const mailboxes = createMailboxes({ ...shared, ...keys, accounts, webhooks })
  const connect = createConnect({ ...shared, ...keys, mailboxes })
  const probe = createHostProbe({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
  const discovery = createDiscovery({ http, probe, ...lookUps })
  const settings = createSettings({ store, values, setPace: accounts.hosts.setPace })
  const services = { http, peers, ...keys, mailboxes, connect, brand, accounts, webhooks, discovery, consent }
  const history = createHistory({ metrics })
  const everyNode: EveryNode = createEveryNode({ ...shared, peers, history, accounts, webhooks })
  const parts = { ...shared, ...services, history, everyNode, backups, settings, backlog }
  const engine: Engine = {
    ...parts,
    ...lifecycle(parts, writable, ownsProcess),
    baseUrl: () => baseUrl,
    setBaseUrl: (url) => void (baseUrl = config.MAILROOM_PUBLIC_URL ?? url),
  }
  return engine
}

type Base = Pick<Engine, 'config' | 'store' | 'sealer'>

/** Developers, operators and revocations. `changed`: called when a secret changes, or whether a key is in force. */
function createKeys({ store, sealer, config }: Base, changed: (developerId: string) => void) {
  const revocations = createRevocations()
  const keyChanged = (developer: DeveloperRecord): void => {
    if (developer.revokedAt) revocations.end(developer.id)
    changed(developer.id)
  }
  const developers = createDevelopers({ store, sealer, config, keyChanged })
  return { developers, operators: createOperators({ store, config, ended: revocations.end }), revocations }
}

/** OAuth: access tokens for the accounts, and the sign-in of end users. */
function createSignIn({ store, sealer, config, http }: Base & Pick<Engine, 'http'>) {
  const servers = createOAuthServers({ config, http })
  const tokens = createTokens({ store, sealer, servers })
  return { tokens, consent: createConsent({ store, sealer, servers, tokens }) }
}

type Lifecycle = Pick<Engine, 'start' | 'drain' | 'stop' | 'ready'>

type Parts = Omit<Engine, keyof Lifecycle | 'baseUrl' | 'setBaseUrl'> & {
  readonly tracing: Tracing
  readonly undo: Undo
}

/** Listens for other nodes, and returns the address; null = there are no other nodes. */
async function listenForNodes(
  { config, log, store, peers }: Parts,
  listener: RequestListener | undefined,
): Promise<string | null> {
  if (store.kind === 'sqlite' || listener === undefined) return null
  const { MAILROOM_NODE_HOST: given, MAILROOM_HOST: host, MAILROOM_NODE_PORT: port } = config
  const reachable = given ?? (/^(?:0\.0\.0\.0|[0:]+)$/.test(host) ? ownAddress() : host)
  const address = await peers.listen(listener, reachable, port)
  log.info({ address }, 'listening for other nodes')
  return address
}

function lifecycle(parts: Parts, writable: () => Promise<boolean>, ownsProcess: boolean): Lifecycle {
  const { config, log, metrics, tracing, store, http, peers, budget, undo, accounts, webhooks, history, settings } =
    parts
  const { nodes } = store
  const work = createSlotWork(parts)
  let state: 'starting' | 'started' | 'stopped' = 'starting'
  let draining = false
  const ends: (() => unknown)[] = [() => accounts.stopAll(), () => webhooks.stopAll()]
  return {
    async start(listener) {
      if (ownsProcess) ends.push(watchLoop(createLoopReport({ log, metrics })))
      ends.push(history.start())
      const begin = async (): Promise<void> => nodes.start(work, await listenForNodes(parts, listener))
      for (const step of [settings.load, begin]) {
        await step()
        if (state === 'stopped') return
      }
      ends.push(startRetention({ store, config, log }), startRecount({ store, log }))
      state = 'started'
    },
    drain: () => void (draining = true),
    async stop() {
      state = 'stopped'
      await nodes.leave(config.MAILROOM_SHUTDOWN_TIMEOUT)
      undo.close()
      budget.close()
      await withinTime(config.MAILROOM_SHUTDOWN_TIMEOUT, Promise.allSettled(ends.map((end) => end())))
      await Promise.allSettled([http.close(), peers.close(), tracing.close(), store.close()])
    },
    ready: async () => state === 'started' && !draining && (await writable()) && !draining,
  }
}
