/**
 * What is refused before its handler is reached (a bad parameter, a broken body, a wrong method, too many calls) concerns the user
 * and the email account of its path all the same: the answer names them, to the developer whose they are.
 */
import { toAppError, type Engine } from '../../engine/index.ts'
import type { FrameContext, Middleware } from '../exchange.ts'
import { createCall } from '../frame-call.ts'
import type { Call } from '../route.ts'
import { decodePercent } from '../wire.ts'
import type { Limits } from './limits.ts'

interface Deps {
  readonly engine: Engine
  readonly limits: Limits
  /** Notes them on the call. `label` null = the path names no email account. Rejects when they are not there. */
  readonly find: (call: Call, userId: string, label: string | null) => Promise<unknown>
}

export function concerned(deps: Deps): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (thrown) {
      const { fault, code } = toAppError(thrown)
      const { developer, user } = ctx.state.exchange
      // Where a handler had its say, it has noted them; an unknown id has nobody to name.
      if (developer !== null && user === null && fault === 'caller' && code !== 'not_found') await note(deps, ctx)
      throw thrown
    }
  }
}

const ofUser = /^\/(?:lite\/users|2\.0\/accounts)\/([^/]+)(?:\/(?:email_accounts|sources)\/([^/]+))?/

async function note({ find, ...deps }: Deps, ctx: FrameContext): Promise<void> {
  const [, id, label] = ofUser.exec(ctx.state.exchange.target.path) ?? []
  const names = { id: decodePercent(id ?? ''), label: label === undefined ? null : decodePercent(label) }
  if (!names.id || (label !== undefined && names.label === null)) return
  // The refusal is the answer, whatever comes of this.
  await find(createCall(deps, ctx), names.id, names.label).catch(() => undefined)
}
