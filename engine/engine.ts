/** Wires the engine: store, secrets, accounts, webhooks and the rest. Starts and stops it. */
import type { RequestListener } from 'node:http'
import { createAccounts, type Accounts } from './accounts/index.ts'
import { createBackups, type Backups } from './backup.ts'
import { createBudget } from './budget.ts'
import type { Config } from './config.ts'
import { openBrand } from './connect/brand.ts'
import { createConnect } from './connect/index.ts'
import { createDevelopers, createRevocations } from './developers.ts'
import { createEveryNode, type EveryNode } from './every-node.ts'
import { createDiscovery, type DiscoveryDeps } from './discovery/discover.ts'
import { createHostProbe } from './discovery/host-probe.ts'
import { ownHosts } from './hosts.ts'
import { createMailboxes } from './mailboxes.ts'
import { createHttpClient } from './net/http.ts'
import { createPeers, ownAddress } from './net/peers.ts'
import { createOperators } from './operators.ts'
import { createConsent } from './oauth/consent.ts'
import { createOAuthServers } from './oauth/providers.ts'
import { createTokens } from './oauth/tokens.ts'
import type { Logger } from './observe/log.ts'
import { watchLoop } from './observe/loop.ts'
import {
  type ConnectionCounts,
  createBacklog,
  createHistory,
  createLoopReport,
  createMetrics,
} from './observe/metrics.ts'
import { createTracing } from './observe/tracing.ts'
import { createReadiness } from './readiness.ts'
import { startRetention } from './maintenance.ts'
import { openSealedStore } from './sealed-store.ts'
import { createSettings, settableConfig } from './settings.ts'
import { createSlotWork } from './slot-work.ts'
import { createUndo } from './creation-undo.ts'
import { keepRecords } from './store/kept-records.ts'
import type { DeveloperRecord } from './store/records.ts'
import { createWebhooks, type Webhooks } from './webhooks/index.ts'
import type { Mail } from './webhooks/parts.ts'
import { createUses } from './uses.ts'
import { withinTime } from './scheduling.ts'

export type Engine = Awaited<ReturnType<typeof createEngine>>

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
export async function createEngine(deps: EngineDeps) {
  const parts = await wire(deps, (): Promise<boolean> => life.ready())
  const life = lifecycle(parts, deps.ownsProcess === true)
  return { ...parts, ...life }
}

type Parts = Awaited<ReturnType<typeof wire>>

async function wire(deps: EngineDeps, ready: () => Promise<boolean>) {
  const { config: configured, log, ownsProcess = false, connections, lookUps, signal, lost = () => undefined } = deps
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
    hosts: () => ownHosts(accounts, opened),
    hostNames: config.MAILROOM_METRICS_TOKEN !== null,
    queues: () => accounts.waiting(),
    outbox: backlog,
    ready,
    ...(config.MONGODB_URI === null
      ? { directory: config.MAILROOM_DATA_DIR, lastBackupAt: () => backups.lastAt() }
      : {}),
  })
  const { store: noticed, writable } = createReadiness(opened, log, metrics)
  const store = keepRecords(noticed)
  const backups: Backups = createBackups({ log, store, config })
  const http = createHttpClient({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
  const budget = createBudget(config.MAILROOM_BUFFER_MAX)
  const revocations = createRevocations(store.nodes)
  const keyChanged = ({ id, revokedAt }: DeveloperRecord): void => {
    if (revokedAt) revocations.end(id)
    webhooks.keyChanged()
  }
  const developers = createDevelopers({ store, sealer, config, keyChanged })
  const operators = createOperators({ store, config, ended: revocations.endEverywhere })
  const servers = createOAuthServers({ config, http })
  const tokens = createTokens({ store, sealer, servers })
  const consent = createConsent({ store, sealer, servers, tokens })
  let baseUrl = config.MAILROOM_PUBLIC_URL ?? `http://${config.MAILROOM_HOST}:${config.MAILROOM_PORT}`

  const tracing = await createTracing(config, log)
  // A store step may still run after its deadline, until the deadline of its last request.
  const undo = createUndo(log, 2 * config.MAILROOM_STORE_TIMEOUT)
  const peers = createPeers(sealer.derive('nodes'), sealer.deriveFormer('nodes'))
  const uses = createUses({ nodes: store.nodes, tellAll: (told) => everyNode.tell('uses', told) })
  const shared = { config, log, metrics, tracing, store, sealer, budget, undo, uses, developers }
  const webhooks: Webhooks = createWebhooks({ ...shared, mail: mailOf(() => accounts), baseUrl: () => baseUrl })
  const accounts: Accounts = createAccounts({ ...shared, tokens, listener: webhooks })
  const mailboxes = createMailboxes({ ...shared, accounts, webhooks })
  const connect = createConnect({ ...shared, mailboxes })
  const probe = createHostProbe({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
  const discovery = createDiscovery({ http, probe, ...lookUps })
  const settings = createSettings({ store, values, setPace: accounts.hosts.setPace })
  const history = createHistory({ metrics })
  const everyNode: EveryNode = createEveryNode({ ...shared, peers, history, accounts, webhooks })
  return {
    ...shared,
    ...{ http, peers, operators, revocations, mailboxes, connect, brand, accounts, webhooks, discovery, consent },
    ...{ history, everyNode, backups, settings, backlog, writable },
    /** MAILROOM_PUBLIC_URL, or the address of this process: for links, whatever Host a call names. */
    baseUrl: () => baseUrl,
    /** Sets the address of this process, once the port is known. MAILROOM_PUBLIC_URL wins. */
    setBaseUrl: (url: string): void => void (baseUrl = config.MAILROOM_PUBLIC_URL ?? url),
  }
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

function lifecycle(parts: Parts, ownsProcess: boolean) {
  const { config, log, metrics, tracing, store, http, peers, budget, undo, accounts, webhooks, history, settings } =
    parts
  const { nodes } = store
  const work = createSlotWork(parts)
  let state: 'starting' | 'started' | 'stopped' = 'starting'
  let draining = false
  const ends: (() => unknown)[] = [() => accounts.stopAll(), () => webhooks.stopAll()]
  return {
    /**
     * Starts the actors of the slots that this process takes. Resolves when all have started. With MongoDB `listener`
     * answers calls that other nodes pass on.
     */
    async start(listener?: RequestListener): Promise<void> {
      if (ownsProcess) ends.push(watchLoop(createLoopReport({ log, metrics })))
      ends.push(history.start())
      const begin = async (): Promise<void> => nodes.start(work, await listenForNodes(parts, listener))
      for (const step of [settings.load, begin]) {
        await step()
        if (state === 'stopped') return
      }
      ends.push(startRetention({ store, config, log }))
      state = 'started'
    },
    /** Makes `ready` false. Calls are still served. */
    drain: (): void => void (draining = true),
    /** Ends every actor, waits for open work up to MAILROOM_SHUTDOWN_TIMEOUT, closes the store. */
    async stop(): Promise<void> {
      state = 'stopped'
      await nodes.leave(config.MAILROOM_SHUTDOWN_TIMEOUT)
      undo.close()
      budget.close()
      await withinTime(config.MAILROOM_SHUTDOWN_TIMEOUT, Promise.allSettled(ends.map((end) => end())))
      await Promise.allSettled([http.close(), peers.close(), tracing.close(), store.close()])
    },
    /** Whether the store takes writes, the actors have started, and `drain` was not called. */
    ready: async () => state === 'started' && !draining && (await parts.writable()) && !draining,
  }
}
