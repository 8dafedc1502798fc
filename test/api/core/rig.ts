/** The frame on a real server and a real store, with routes of the test's own. The engine behind it is not touched. */
import { createOperators } from '../../../engine/operators.ts'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApp, createServer, type App } from '../../../api/app.ts'
import type { Route } from '../../../api/route.ts'
import { openBrand } from '../../../engine/connect/brand.ts'
import { keepRecords } from '../../../engine/store/kept-records.ts'
import { createDevelopers, createRevocations } from '../../../engine/developers.ts'
import { createBudget, readConfig, silentLogger, type Engine, type Logger, type Store } from '../../../engine/index.ts'
import { createMetrics } from '../../../engine/observe/metrics.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { ownUses } from '../../../engine/uses.ts'
import { openTestStore } from '../../support/test-store.ts'
import { apiKey, apiSecret, callRaw, type Answer, type CallOptions } from './raw-call.ts'

export interface Rig {
  readonly url: string
  readonly port: number
  readonly app: App
  readonly engine: Engine
  readonly store: Store
  readonly server: Server
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  close(): Promise<void>
}

export interface RigOptions {
  readonly routes: readonly Route[]
  readonly env?: Readonly<Record<string, string>>
  readonly now?: () => number
  readonly log?: Logger
  readonly ready?: () => Promise<boolean>
}

export async function startRig(options: RigOptions): Promise<Rig> {
  const config = readConfig({ MAILROOM_API_KEY: apiKey, MAILROOM_API_SECRET: apiSecret, ...options.env })
  const { store, remove } = await openTestStore()
  let url = ''
  const engine = engineOf(config, store, options, () => config.MAILROOM_PUBLIC_URL ?? url)
  await engine.developers.ensureFirst()
  const app = createApp({
    engine,
    routes: options.routes,
    checkAnswers: true,
    ...(options.now === undefined ? {} : { now: options.now }),
  })
  const server = createServer(app, config).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  url = `http://127.0.0.1:${port}`
  return {
    url,
    port,
    app,
    engine,
    store,
    server,
    call: (method, path, callOptions) => callRaw(port, method, path, callOptions),
    async close() {
      server.closeAllConnections()
      server.close()
      await app.close()
      await remove()
    },
  }
}

/** What the frame asks of an engine; anything else is a mistake of the test and says so. */
function engineOf(config: Engine['config'], store: Store, options: RigOptions, baseUrl: () => string): Engine {
  const sealer = createSealer(Buffer.alloc(32, 7))
  const developers = createDevelopers({ store, sealer, config })
  const known: Partial<Engine> = {
    config,
    brand: openBrand(config),
    log: options.log ?? silentLogger,
    metrics: createMetrics(),
    store: keepRecords(store),
    sealer,
    uses: ownUses,
    developers,
    revocations: createRevocations(store.nodes),
    budget: createBudget(config.MAILROOM_BUFFER_MAX),
    baseUrl,
    operators: createOperators({ store, config }),
    ready: options.ready ?? (() => Promise.resolve(true)),
  }
  return new Proxy(known as Engine, {
    get(target, name) {
      if (Reflect.has(target, name)) return Reflect.get(target, name) as unknown
      throw new Error(`the frame's tests have no engine.${String(name)}`)
    },
  })
}
