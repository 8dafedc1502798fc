/** The routes of the service itself: /, /healthz, /readyz, /metrics, /openapi.json and /docs. */
import { z } from 'zod'
import { AppError, type Config, metricsOfAll, sameText } from '../engine/index.ts'
import { docsHeaders, renderDocs } from './docs/page.ts'
import { answer, view } from './examples.ts'
import { choice, optional } from './values.ts'
import { html, renderSmallPage, smallPageHeaders } from './html.ts'
import { buildOpenApi, type OpenApi, serviceName, serviceVersion } from './openapi.ts'
import { type Call, defineRoute, JsonText, type Route, StreamAnswer, tagged } from './route.ts'

const health = view('Health', { status: [z.literal('ok'), 'ok'] })

const site = 'https://mail.example.com'

const rootView = answer({
  name: [z.string(), 'Mailroom'],
  version: [z.string(), '0.1.0'],
  docs: [z.string(), `${site}/docs`],
  openapi: [z.string(), `${site}/openapi.json`],
  health: [z.string(), `${site}/healthz`],
})

/** Only the outline: the OpenAPI specification has the schema of the document. */
const openApiOutline = answer({ openapi: [z.string(), '3.1.0'], paths: [z.record(z.string(), z.unknown()), {}] })

/** The documents describe `resources` and these routes themselves. */
export function systemRoutes(resources: readonly Route[]): readonly Route[] {
  let document: OpenApi | null = null
  /** Makes a text once per configured base URL: anybody may ask for it, with any Host. */
  const kept = <T>(make: (document: OpenApi) => T): ((call: Call) => T) => {
    let last: { readonly baseUrl: string; readonly made: T } | null = null
    return ({ engine }) => {
      const baseUrl = engine.baseUrl()
      document ??= buildOpenApi([...resources, ...own], engine.config.MAILROOM_STATUS_HEADER)
      if (last?.baseUrl !== baseUrl) last = { baseUrl, made: make({ ...document, servers: [{ url: baseUrl }] }) }
      return last.made
    }
  }
  const openApi = kept((whole) => JSON.stringify(whole))
  const docs = kept(renderDocs)
  const page = (name: string, call: Call): Promise<StreamAnswer> => {
    const text = docs(call).get(name)
    if (text === undefined) throw new AppError('not_found', `page ${name} of /docs is unknown`)
    return Promise.resolve(new StreamAnswer(text, docsHeaders))
  }
  const own = tagged('system', [
    rootRoute,
    healthRoute,
    readyRoute,
    metricsRoute,
    defineRoute('GET /openapi.json', {
      auth: 'public',
      summary: 'This document',
      response: openApiOutline,
      handler: (_input, call) => Promise.resolve(new JsonText(openApi(call))),
    }),
    defineRoute('GET /docs', {
      auth: 'public',
      summary: 'The documentation: a quick start, and all operations by task',
      response: 'html',
      handler: (_input, call) => page('', call),
    }),
    defineRoute('GET /docs/{page}', {
      auth: 'public',
      summary: 'The reference of one task',
      response: 'html',
      errors: [404],
      handler: ({ path }, call) => page(path.page, call),
    }),
  ])
  return own
}

const rootRoute = defineRoute('GET /', {
  auth: 'public',
  summary: 'What this is, and where the rest is',
  description: 'A small page; JSON for who asks for JSON (`Accept: application/json`).',
  response: rootView,
  page: true,
  handler(_input, call) {
    const at = (path: string): string => `${call.baseUrl}${path}`
    const links = { docs: at('/docs'), openapi: at('/openapi.json'), health: at('/healthz') }
    return Promise.resolve(
      call.asksForJson()
        ? { name: serviceName, version: serviceVersion, ...links }
        : new StreamAnswer(renderRoot(call), smallPageHeaders),
    )
  },
})

function renderRoot({ baseUrl, engine: { operators, config } }: Call): string {
  const hasConsole = operators.consoleOn && config.MAILROOM_ADMIN_PORT === null
  const link = (path: string, name: string) =>
    html`<li>
      <a href="${baseUrl}${path}">${name} <span>${path}</span></a>
    </li>`
  return renderSmallPage(
    serviceName,
    html`<h1>${serviceName}</h1>
      <p>REST access to IMAP mailboxes, with signed webhooks.<br />Version ${serviceVersion}</p>
      <ul>
        ${link('/docs', 'Quick start and API reference')} ${link('/openapi.json', 'OpenAPI document')}
        ${hasConsole && link('/console', 'Console for operators')} ${link('/healthz', 'Health')}
      </ul>`,
  )
}

const healthRoute = defineRoute('GET /healthz', {
  auth: 'public',
  summary: 'The process is alive',
  response: health,
  handler: () => Promise.resolve({ status: 'ok' as const }),
})

const readyRoute = defineRoute('GET /readyz', {
  auth: 'public',
  summary: 'The store takes writes, the actors are started, and the process is not about to end',
  response: health,
  errors: [503],
  async handler(_input, { engine }) {
    if (await engine.ready()) return { status: 'ok' as const }
    throw new AppError('store_unavailable', 'not ready', { details: { quiet: true } })
  },
})

/** The routes of a listener. With MAILROOM_ADMIN_PORT one listener serves operators, and another one the API. */
export type Served = 'all' | 'api' | 'management'

const healthPaths = ['/healthz', '/readyz']
const operatorPaths = ['/metrics', '/console', '/admin']

/** Paths that are answered also over the limits of connections. */
export const alwaysAnswered: ReadonlySet<string> = new Set([...healthPaths, '/metrics'])

/** Whether a listener serves the route. */
export function servedBy(served: Served, { path }: Route): boolean {
  if (served === 'all' || healthPaths.includes(path)) return true
  return operatorPaths.some((of) => path === of || path.startsWith(`${of}/`)) === (served === 'management')
}

export type MetricsConfig = Pick<Config, 'MAILROOM_METRICS_TOKEN'>

const metricsRoute = defineRoute('GET /metrics', {
  auth: 'public',
  summary: 'Metrics in Prometheus’ text format',
  description:
    'Asks for `Authorization: Bearer <MAILROOM_METRICS_TOKEN>` when that is set. Of this process; with `nodes=all`, which needs that token, of every one that shares the store, each series with its address as the label `node`.',
  query: z.object({ nodes: optional(choice(['all']), 'of every process') }),
  response: 'text',
  errors: [401],
  async handler({ query }, call) {
    const { config } = call.engine
    const isOpen = config.MAILROOM_METRICS_TOKEN === null
    if (!mayMeasure(config, call.header('authorization')) || (isOpen && query.nodes === 'all'))
      throw new AppError('unauthorized', measureWords, { details: { parameter: 'Authorization' } })
    const { registry } = call.engine.metrics
    const all = query.nodes === 'all' ? await call.engine.everyNode.ask('metrics') : null
    const text = all === null ? registry.metrics() : metricsOfAll(all.answers, all.silent)
    return new StreamAnswer(await text, { 'Content-Type': registry.contentType })
  },
})

export const measureWords = 'Authorization: expected Bearer and the metrics token'

export function mayMeasure({ MAILROOM_METRICS_TOKEN: token }: MetricsConfig, authorization = ''): boolean {
  const given = /^Bearer\s(.*)$/i.exec(authorization)?.[1] ?? ''
  return token === null || sameText(token, given.trim())
}
