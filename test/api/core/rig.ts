/** The frame on a real server and a real store, with routes of the test's own. The engine behind it is not touched. */
import { createOperators } from '../../../engine/operators.ts'
import { once } from 'node:events'
import { request, type IncomingHttpHeaders, type Server } from 'node:http'
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

export const apiKey = 'frame-key'
export const apiSecret = 'frame secret & more'

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

export interface CallOptions {
  /** Without it the call carries Basic. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Parsed on demand. */
  readonly json: Record<string, unknown>
}

export interface RigOptions {
  readonly routes: readonly Route[]
  readonly env?: Readonly<Record<string, string>>
  readonly now?: () => number
  readonly log?: Logger
  readonly ready?: () => Promise<boolean>
}

export const basic = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`

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
    revocations: createRevocations(),
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

/** One call with the path exactly as given: fetch would tidy it up. */
export function callRaw(port: number, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const headers = options.headers ?? { authorization: basic }
  const chunked = 'transfer-encoding' in headers
  const length =
    options.body === undefined || chunked ? {} : { 'content-length': String(Buffer.byteLength(options.body)) }
  const call = request({ host: '127.0.0.1', port, method, path, headers: { ...length, ...headers }, agent: false })
  call.once('error', reject)
  call.once('response', (response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.once('error', reject)
    response.once('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        text,
        get json() {
          return JSON.parse(text) as Record<string, unknown>
        },
      })
    })
  })
  call.end(options.body)
  return promise
}
