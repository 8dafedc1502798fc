/** Finds the route: 404 for an unknown path, 405 with Allow for a known one, OPTIONS answered here. Never a redirect. */
import type { IncomingMessage } from 'node:http'
import { AppError } from '../../engine/index.ts'
import type { Middleware } from '../exchange.ts'
import type { Router } from '../router.ts'

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
    const match = found.match(ctx.method)
    if (match === null) {
      throw new AppError('method_not_allowed', `method ${ctx.method} is not allowed here; allowed: ${found.allow}`, {
        details: { allow: found.allow },
      })
    }
    exchange.match = match
    exchange.routePath = match.route.path
    exchange.baseUrl = baseUrl(ctx.req)
    await next()
  }
}
