/** Wiring only: config → log → store → engine → api → signals. The only process.exit of the house. */
import type { Server } from 'node:http'
import { createApp, createServer, type App } from './api/app.ts'
import { closeServer, listen } from './api/listen.ts'
import { AppError, createEngine, createLogger, readConfig, type Engine, type Logger } from './engine/index.ts'

async function serve(): Promise<void> {
  const config = readConfig(process.env)
  const log = createLogger(config)
  const engine = await createEngine({ config, log, processMetrics: true })
  const generated = await engine.developers.ensureFirst()
  if (generated !== null) {
    log.warn(
      { apiKey: generated.apiKey, shownOnce: generated.apiSecret },
      'first developer made: keep this key and its secret (shownOnce)',
    )
  }
  const app = createApp({ engine })
  const server = createServer(app, config)
  const url = await listen(server, config)
  engine.setBaseUrl(url)
  log.info({ url, store: engine.store.kind }, 'listening')
  endOnSignals({ engine, app, server, log })
  await engine.start()
  log.info('started')
}

/** For answers that are on their way. */
const closeGraceMs = 2000

interface Running {
  readonly engine: Engine
  readonly app: App
  readonly server: Server
  readonly log: Logger
}

/** SIGTERM and SIGINT end in order; a second one ends at once. */
function endOnSignals({ engine, app, server, log }: Running): void {
  let ending = false
  const end = (signal: string): void => {
    if (ending) process.exit(1)
    ending = true
    log.info({ signal }, 'stopping')
    closeServer(server, closeGraceMs)
      // The last calls go to the log of calls, which the engine's store keeps.
      .then(() => app.close())
      .then(() => engine.stop())
      .then(
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

try {
  await serve()
} catch (error) {
  const message =
    error instanceof AppError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.stderr.write(`mailroom: ${message}\n`)
  process.exit(1)
}
