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

/** Answers that are being sent get this time at the end. */
const closeGraceMs = 2000

/** The parts of the process, for its orderly end. Engine and app exist once the store is open. */
interface Running {
  readonly log: Logger
  readonly drainMs: number
  /** An orderly end takes at most so long. */
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
  const { MAILROOM_HOST: host, MAILROOM_PORT: port } = config
  const { MAILROOM_ADMIN_HOST: ownHost, MAILROOM_ADMIN_PORT: ownPort } = config
  const ofClients = ownPort === null ? 'all' : 'api'
  const served = config.MAILROOM_ROLE === 'engine' ? 'management' : ofClients
  const server = createServer(front, config, connections, served)
  // It has its own limit of connections, so health checks are answered while the API is at its limit.
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
    await begin(running, engine, front, url, ownUrl)
  } catch (error) {
    // An orderly stop stores the results of callbacks that were sent, and gives the lead back.
    await withinTime(endWithinMs, stop(running)).catch(() => undefined)
    throw error
  }
  log.info({ store: engine.store.kind }, 'started')
}

/** `consoleUrl`: where the management server listens. */
async function begin(
  running: Running,
  engine: Engine,
  front: ReturnType<typeof createFront>,
  url: string,
  consoleUrl: string,
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
    log.warn({ console: `${consoleUrl}/console`, shownOnce: password }, 'password of the console: keep it')
  running.app = createApp({ engine })
  front.use(running.app)
  await engine.start(running.app.peerCallback())
}

async function stop({ servers, opening, app, engine }: Running, drainMs = 0): Promise<void> {
  opening.abort()
  engine?.drain()
  if (app !== undefined) await sleep(drainMs)
  await Promise.all(servers.map((server) => closeServer(server, closeGraceMs)))
  // The app ends before the engine: it writes its last calls to the engine's store.
  await app?.close()
  await engine?.stop()
}

/** SIGTERM and SIGINT end the process in order. A second signal, or the end of `endWithinMs`, ends it at once. */
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
  // A bug in one actor must not end the others: it is logged, and the process goes on.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled rejection'))
  process.on('uncaughtException', (error) => log.error({ err: error }, 'uncaught exception'))
}

/**
 * Ends the process after other processes have taken over its users; its supervisor starts it again. It waits for no
 * calls: callbacks go out twice until the engine has stopped.
 */
function endLost({ log, endWithinMs, servers, opening, engine, app }: Running): void {
  log.fatal('other processes have taken over the work of this one: it ends')
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

/** Ends the process when it cannot write its output, such as to a file on a full disk. */
function endUnwritten({ message }: Error): void {
  process.stderr.write(`mailroom: the output cannot be written: ${message}\n`)
  process.exit(1)
}

/** Runs a command. Ctrl-C ends commands that run until they are stopped. */
async function commandLine(words: readonly string[]): Promise<number> {
  const over = new AbortController()
  process.once('SIGINT', () => over.abort())
  const { stdout, stderr, env } = process
  // EPIPE: the reader of the output has ended, as in `mailroom top | head`.
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

// Set before the first use of a thread. Half of the threads may look up names; files, zlib and crypto have the rest.
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
