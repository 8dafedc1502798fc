/** /healthz, /readyz, /metrics, /openapi.json and /docs: for machines and people who look after the service. */
import { AppError } from '../../engine/index.ts'
import { docsHeaders, renderDocs } from '../docs/page.ts'
import { sameText } from '../oauth1.ts'
import { buildOpenApi, withServer, type OpenApi } from '../openapi.ts'
import { defineRoute, JsonText, StreamAnswer, type Call, type Route } from '../route.ts'
import { health, openApiOutline } from './schema.ts'

/** The documents describe `resources` and these routes themselves. */
export function systemRoutes(resources: readonly Route[]): readonly Route[] {
  let built: OpenApi | null = null
  const describe = (baseUrl: string): OpenApi => withServer((built ??= buildOpenApi([...resources, ...own])), baseUrl)
  const own: readonly Route[] = [
    healthRoute,
    readyRoute,
    metricsRoute,
    openApiRoute(keptText((baseUrl) => JSON.stringify(describe(baseUrl)))),
    docsRoute(keptText((baseUrl) => renderDocs(describe(baseUrl)))),
  ]
  return own
}

/** Keeps the text for the last base URL: almost all clients use the same one. */
function keptText(make: (baseUrl: string) => string): (baseUrl: string) => string {
  let kept: { readonly baseUrl: string; readonly text: string } | null = null
  return (baseUrl) => {
    if (kept?.baseUrl !== baseUrl) kept = { baseUrl, text: make(baseUrl) }
    return kept.text
  }
}

const healthRoute = defineRoute({
  method: 'GET',
  path: '/healthz',
  auth: 'public',
  summary: 'The process is alive',
  tag: 'system',
  request: {},
  response: health,
  handler: () => Promise.resolve({ status: 'ok' as const }),
})

const readyRoute = defineRoute({
  method: 'GET',
  path: '/readyz',
  auth: 'public',
  summary: 'The store answers and the actors are started',
  tag: 'system',
  request: {},
  response: health,
  errors: [503],
  async handler(_input, { engine }) {
    if (await engine.ready()) return { status: 'ok' as const }
    throw new AppError('store_unavailable', 'not ready', { details: { quiet: true } })
  },
})

const metricsRoute = defineRoute({
  method: 'GET',
  path: '/metrics',
  auth: 'public',
  summary: 'Metrics in Prometheus’ text format',
  tag: 'system',
  description: 'Asks for `Authorization: Bearer <MAILROOM_METRICS_TOKEN>` when that is set.',
  request: {},
  response: 'text',
  errors: [401],
  async handler(_input, call) {
    checkMetricsToken(call)
    const { registry } = call.engine.metrics
    return new StreamAnswer(await registry.metrics(), { 'Content-Type': registry.contentType })
  },
})

function checkMetricsToken(call: Call): void {
  const token = call.engine.config.MAILROOM_METRICS_TOKEN
  const given = /^Bearer\s+(.*)$/i.exec(call.header('authorization') ?? '')?.[1] ?? ''
  if (token === null || sameText(token, given.trim())) return
  throw new AppError('unauthorized', 'Authorization: expected Bearer and the metrics token', {
    details: { parameter: 'Authorization' },
  })
}

function openApiRoute(text: (baseUrl: string) => string): Route {
  return defineRoute({
    method: 'GET',
    path: '/openapi.json',
    auth: 'public',
    summary: 'This document',
    tag: 'system',
    request: {},
    response: openApiOutline,
    handler: (_input, { baseUrl }) => Promise.resolve(new JsonText(text(baseUrl))),
  })
}

function docsRoute(text: (baseUrl: string) => string): Route {
  return defineRoute({
    method: 'GET',
    path: '/docs',
    auth: 'public',
    summary: 'The reference, as a page',
    tag: 'system',
    request: {},
    response: 'html',
    handler: (_input, { baseUrl }) => Promise.resolve(new StreamAnswer(text(baseUrl), docsHeaders)),
  })
}
