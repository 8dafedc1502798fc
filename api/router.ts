/**
 * Finds the route of a call, with @koa/router. Each route is a regular expression over the undecoded path: a signature
 * covers the path as sent, and labels, folders and message ids arrive encoded or raw.
 *
 * - `{name}` is one segment. A literal segment is tried before a parameter; the path decides first, then the method.
 * - `{folder+}` runs to the last 'messages' segment, to a final 'expunge' where a route has it, or to the end.
 * - `{message_id}` is one segment, or several with an '@' in one of them: a Message-ID with raw slashes.
 * - One slash may follow the last segment. Nothing is ever redirected.
 */
import Router from '@koa/router'
import { AppError, toAppError } from '../engine/index.ts'
import type { BaseUrlReader } from './addresses.ts'
import type { Exchange, Middleware } from './call.ts'
import type { Match, Route } from './route.ts'
import { decodePathValue } from './wire.ts'

type Pattern = ReturnType<typeof patternOf>

const segmentWithoutAt = '(?:[^/@%]|%(?!40))*'
const messageId = `([^/]+|(?:${segmentWithoutAt}/){0,15}${segmentWithoutAt}(?:@|%40)[^/]*(?:/[^/]*){0,15}?)`
/** Lazy and only after a whole segment: finds the next 'messages' without reading any character twice. */
const noMoreMessages = '(?=/|$)(?!.*?/messages(?:/|$))'

/** Returns the most specific pattern first. Throws when two routes have the same method and path. */
export function compileRoutes(routes: readonly Route[]): Pattern[] {
  const byShape = Map.groupBy(routes, ({ path }) => path.replaceAll(/\{(?!folder\+|message_id)\w+\}/g, '{}'))
  return [...byShape.values()].map(patternOf).sort((a, b) => (orderOf(a.path) < orderOf(b.path) ? -1 : 1))
}

/** `all` = the routes with one path. */
function patternOf(all: readonly Route[]) {
  const path = all[0]?.path ?? ''
  const routes = new Map<string, Route>()
  for (const route of all) {
    if (routes.has(route.method) || route.path !== path) throw new Error(`two routes for ${route.method} ${route.path}`)
    routes.set(route.method, route)
  }
  const segments = path.slice(1).split('/')
  const methods = [...routes.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return {
    path,
    regexp: new RegExp(`^/${segments.map(segmentSource).join('/')}${path === '/' ? '' : '/?'}$`),
    /** Names of the captures, in order. */
    names: segments.flatMap((segment) => /^\{(\w+)\+?\}$/.exec(segment)?.[1] ?? []),
    routes,
    /** Pages have a stricter base URL. */
    kind: /^\/(?:console|connect|downloads)(?:\/|$)/.test(path) ? ('pages' as const) : ('api' as const),
    /** Authentication for the path, also for a method without a route. */
    auth: all.find(({ auth }) => auth === 'developer' || auth === 'operator')?.auth ?? 'public',
    /** For the Allow header: 'GET, HEAD, POST, OPTIONS'. */
    allow: [...methods, 'OPTIONS'].join(', '),
  }
}

function segmentSource(segment: string, index: number, all: readonly string[]): string {
  const isLast = index === all.length - 1
  if (segment === '{folder+}') return isLast ? '(?!.*?/messages(?:/|$))(.+?)' : '(.+)'
  if (segment === '{message_id}') return messageId
  if (segment.startsWith('{')) return '([^/]+)'
  const literal = segment.replaceAll('.', '\\.')
  return segment === 'messages' && all[index - 1] === '{folder+}' ? `${literal}${noMoreMessages}` : literal
}

/** Sorts literals before parameters, one segment before several, and longer paths before their beginnings. */
function orderOf(path: string): string {
  const kinds: Readonly<Record<string, string>> = { '{folder+}': '3', '{message_id}': '2' }
  const kindOf = (segment: string): string => kinds[segment] ?? (segment.startsWith('{') ? '1' : '0')
  return `${path.slice(1).split('/').map(kindOf).join('')}9`
}

/** null = no route for the method. GET answers HEAD. Throws `bad_request` for bad percent-encoding. */
export function matchOf(pattern: Pattern, method: string, captures: readonly string[]): Match | null {
  const route = pattern.routes.get(method === 'HEAD' ? 'GET' : method)
  if (route === undefined) return null
  const parameters: Record<string, string> = {}
  pattern.names.forEach((name, index) => (parameters[name] = decodePathValue(name, captures[index] ?? '')))
  return { route, parameters }
}

/** Answers OPTIONS, and an unknown path with a 404. Other errors become the call's refusal. */
export function routing(
  routes: readonly Route[],
  readers: Readonly<Record<'api' | 'pages', BaseUrlReader>>,
): Middleware {
  // A router tries all its patterns. So each first and last segment of a path has its own router, with few patterns.
  const finders = new Map<string, Finder>()
  for (const [first, patterns] of Map.groupBy(compileRoutes(routes), ({ path }) => firstOf(path)))
    for (const last of new Set(['', ...patterns.map(({ path }) => lastOf(path))]))
      finders.set(`${first} ${last}`, finderOf(patterns.filter(({ path }) => [last, ''].includes(lastOf(path)))))
  return (ctx, next) => {
    const { exchange } = ctx.state
    const { path } = exchange
    const first = firstOf(path)
    const found = (finders.get(`${first} ${lastOf(path)}`) ?? finders.get(`${first} `))?.(path)
    if (found === undefined)
      throw new AppError('not_found', `path ${path} is invalid`, { details: { kind: 'path', id: path } })
    const [pattern, captures] = found
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204
      ctx.set('Allow', pattern.allow)
      return
    }
    choose(exchange, pattern, ctx.method, captures)
    exchange.baseUrl = readers[pattern.kind](ctx.req)
    return next()
  }
}

function firstOf(path: string): string {
  return path.split('/', 2)[1] ?? ''
}

/** The last segment; '' for a pattern that ends with a parameter. */
function lastOf(path: string): string {
  const end = path.endsWith('/') ? path.length - 1 : path.length
  const last = path.slice(path.lastIndexOf('/', end - 1) + 1, end)
  return last.startsWith('{') ? '' : last
}

type Finder = (path: string) => readonly [pattern: Pattern, captures: readonly string[]] | undefined

function finderOf(patterns: readonly Pattern[]): Finder {
  const router = new Router()
  for (const { regexp } of patterns) router.all(regexp, () => undefined)
  return (path) => {
    const at = router.stack.findIndex((layer) => layer.match(path))
    const pattern = patterns[at]
    return pattern && [pattern, router.stack[at]?.captures(path) ?? []]
  }
}

function choose(exchange: Exchange, pattern: Pattern, method: string, captures: readonly string[]): void {
  exchange.auth = pattern.auth
  exchange.captured = (name) => captures[pattern.names.indexOf(name)]
  try {
    exchange.match = matchOf(pattern, method, captures)
    if (exchange.match !== null) return
    const { allow } = pattern
    const words = `method ${method} is not allowed here; allowed: ${allow}`
    exchange.refusal = new AppError('method_not_allowed', words, { details: { allow } })
  } catch (error) {
    exchange.refusal = toAppError(error)
  }
}
