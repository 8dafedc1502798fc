/** Finds the route: 404 for an unknown path, 405 with Allow for a known one, OPTIONS answered here. Never a redirect. */
import type { IncomingMessage } from 'node:http'
import { AppError, toAppError } from '../../engine/index.ts'
import type { Middleware } from '../call.ts'
import type { Found, Match, Router } from '../router.ts'

interface Deps {
  readonly router: Router
  readonly baseUrl: (request: IncomingMessage) => string
}

export function routing({ router, baseUrl }: Deps): Middleware {
  return async (ctx, next) => {
    const { exchange } = ctx.state
    const { path } = exchange.target
    const found = router.find(path)
    if (found === null)
      throw new AppError('not_found', `path ${path} is invalid`, { details: { kind: 'path', id: path } })
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204
      ctx.set('Allow', found.allow)
      return
    }
    exchange.baseUrl = baseUrl(ctx.req)
    exchange.auth = found.auth
    try {
      exchange.match = matchOf(found, ctx.method)
      exchange.routePath = exchange.match.route.path
    } catch (error) {
      exchange.refusal = toAppError(error)
    }
    await next()
  }
}

function matchOf(found: Found, method: string): Match {
  const match = found.match(method)
  if (match !== null) return match
  throw new AppError('method_not_allowed', `method ${method} is not allowed here; allowed: ${found.allow}`, {
    details: { allow: found.allow },
  })
}
