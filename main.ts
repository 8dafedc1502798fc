#!/usr/bin/env node
/** Wiring only: config → log → store → engine → api → signals. The only process.exit. */
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type App, createApp, createServer } from './api/app.ts'
import { createConnections } from './api/connections.ts'
import { runCli } from './api/cli/index.ts'
import { closeServer, createFront, isWildcard, listen } from './api/server.ts'
import {
  AppError,
  createEngine,
  createLogger,
  type Engine,
  type Logger,
  readConfig,
  runStoreCommand,
  withinTime,
} from './engine/index.ts'

/** For answers that are on their way. */
const closeGraceMs = 2000

/** What has to be ended in order; engine and app are there once the store is open. */
interface Running {
  readonly log: Logger
  readonly drainMs: number
  /** Longest that an orderly end may take. */
  readonly endWithinMs: number
  readonly servers: readonly Server[]
  readonly opening: AbortController
  engine?: Engine
  app?: App
}

async function serve(): Promise<void> {
  const config = readConfig(process.env)
  const log = createLogger(config)
  const front = createFront(config)
  const connections = createConnections(config)
  const {
    MAILROOM_HOST: host,
    MAILROOM_PORT: port,
    MAILROOM_ADMIN_HOST: ownHost,
    MAILROOM_ADMIN_PORT: ownPort,
  } = config
  const server = createServer(front, config, connections, ownPort === null ? 'all' : 'api')
  // It counts its own connections: health is told also while the API's are at their limit.
  const management = ownPort === null ? null : createServer(front, config, createConnections(config), 'management')
  const drainMs = config.MAILROOM_DRAIN_WAIT
  const endWithinMs = drainMs + closeGraceMs + 3 * config.MAILROOM_SHUTDOWN_TIMEOUT
  const running: Running = {
    log,
    drainMs,
    endWithinMs,
    servers: management === null ? [server] : [server, management],
    opening: new AbortController(),
  }
  endOnSignals(running)
  const url = await listen(server, 'MAILROOM', host, port)
  const ownUrl =
    management === null || ownPort === null ? url : await listen(management, 'MAILROOM_ADMIN', ownHost, ownPort)
  log.info({ url, ...(ownUrl === url ? {} : { management: ownUrl }) }, 'listening')
  if (isWildcard(host) && config.MAILROOM_PUBLIC_URL === null) {
    log.warn({ url }, 'links in callbacks begin with this url: set MAILROOM_PUBLIC_URL to the one that clients use')
  }
  const engine = await createEngine({
    config,
    log,
    ownsProcess: true,
    connections,
    signal: running.opening.signal,
    lost: () => endLost(running),
  })
  running.engine = engine
  try {
    await begin(running, engine, { url, ownUrl }, front)
  } catch (error) {
    // Results of callbacks that went out are written, and the lead is given back.
    await withinTime(endWithinMs, stop(running)).catch(() => undefined)
    throw error
  }
  log.info({ store: engine.store.kind }, 'started')
}

async function begin(
  running: Running,
  engine: Engine,
  { url, ownUrl }: { readonly url: string; /** Of the console. */ readonly ownUrl: string },
  front: ReturnType<typeof createFront>,
): Promise<void> {
  const { log } = running
  engine.setBaseUrl(url)
  const generated = await engine.developers.ensureFirst()
  if (generated !== null) {
    log.warn(
      { apiKey: generated.apiKey, shownOnce: generated.apiSecret },
      'first developer: keep its key and secret (shownOnce)',
    )
  }
  if (!engine.operators.consoleOn)
    log.warn({}, 'there is no console: set MAILROOM_ADMIN_PASSWORD, or listen on a loopback address')
  const password = await engine.operators.ensurePassword()
  if (password !== null)
    log.warn({ console: `${ownUrl}/console`, shownOnce: password }, 'password of the console: keep it')
  running.app = createApp({ engine })
  front.use(running.app)
  await engine.start()
}

async function stop({ servers, opening, app, engine }: Running, drainMs = 0): Promise<void> {
  opening.abort()
  engine?.drain()
  if (app !== undefined) await sleep(drainMs)
  await Promise.all(servers.map((server) => closeServer(server, closeGraceMs)))
  // The last calls go to the log of calls, which the engine's store keeps.
  await app?.close()
  await engine?.stop()
}

/** SIGTERM and SIGINT end in order; a second one ends at once, and so does time. */
function endOnSignals(running: Running): void {
  const { log, drainMs, endWithinMs } = running
  let ending = false
  const end = (signal: string): void => {
    if (ending) process.exit(1)
    ending = true
    log.info({ signal }, 'stopping')
    setTimeout(() => {
      log.error({ endWithinMs }, 'stopping took too long')
      process.exit(1)
    }, endWithinMs).unref()
    stop(running, drainMs).then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  // A bug in one actor must not end the others: logged and counted, the process goes on.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled rejection'))
  process.on('uncaughtException', (error) => log.error({ err: error }, 'uncaught exception'))
}

/**
 * Another process serves the database by now: whoever supervises this one starts it again, to stand by. No call is
 * waited for, and the engine ends first: until it has, callbacks go out twice.
 */
function endLost({ log, endWithinMs, servers, opening, engine, app }: Running): void {
  log.fatal('another process has taken the database over: this one ends')
  const end = (): void => process.exit(1)
  opening.abort()
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
  withinTime(endWithinMs, Promise.all([engine?.stop(), app?.close()])).then(end, end)
}

function lastWords(error: unknown): string {
  if (error instanceof AppError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** The output may be a file on a full disk. */
function endUnwritten({ message }: Error): void {
  process.stderr.write(`mailroom: the output cannot be written: ${message}\n`)
  process.exit(1)
}

/** Ctrl-C ends what shows something again and again. */
async function commandLine(words: readonly string[]): Promise<number> {
  const over = new AbortController()
  process.once('SIGINT', () => over.abort())
  const { stdout, stderr, env } = process
  // `mailroom top | head`: who reads the output has seen enough.
  for (const stream of [stdout, stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') over.abort()
      else endUnwritten(error)
    })
  return runCli(words, {
    env,
    out: (line) => void stdout.write(`${line}\n`),
    error: (line) => void stderr.write(`${line}\n`),
    signal: over.signal,
    isScreen: stdout.isTTY,
  })
}

// Before the first use of a thread: of these, half may look up names, and files, zlib and crypto have the rest.
process.env['UV_THREADPOOL_SIZE'] ??= '32'
const [command, ...words] = process.argv.slice(2)
try {
  if (command === 'store') process.exitCode = await runStoreCommand(words, (line) => process.stdout.write(`${line}\n`))
  else if (command === undefined) await serve()
  else process.exitCode = await commandLine([command, ...words])
} catch (error) {
  process.stderr.write(`mailroom: ${lastWords(error)}\n`)
  process.exit(1)
}
