/** The audit trail: each write of the admin API and of the console adds a record and a log line. */
import { type Engine, newId } from '../engine/index.ts'
import type { Exchange } from './call.ts'
import type { Route } from './route.ts'

/** Parameters that never hold a secret. */
const shownDetails = [
  'host',
  'pace',
  'what',
  'seconds',
  'name',
  'scopes',
  'read',
  'act',
  'keys',
  'folder',
  'overlap',
  'developer',
  'account',
  'webhook',
  'state',
  'q',
  'within',
  'from',
  'until',
]
const longestDetail = 200

/** Called after the answer. A call over a rate limit adds no record. */
export function audited({ store, log }: Engine, exchange: Exchange, status: number, at: number): void {
  const { actor, match, address, values } = exchange
  if (actor === null || match === null || match.route.method === 'GET' || status === 429) return
  const { route, parameters } = match
  const details: Record<string, string> = {}
  for (const name of shownDetails) {
    const value = values[name]
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    if (value !== undefined) details[name] = text.slice(0, longestDetail)
  }
  const named = [exchange.madeId, ...Object.values(parameters), values['host'], values['what']]
  const target = named.find((one) => typeof one === 'string') ?? ''
  const record = { id: newId(at), at, ...actor, address, action: actionOf(route), target, details, status }
  log.info({ audit: record }, 'an operator acted')
  store.audit.append(record).catch((error: unknown) => log.error({ err: error, audit: record }, 'audit record lost'))
}

const madeByPost = /^(?:tokens|developers)$/

/** 'accounts pause' for POST /admin/accounts/{id}/pause and for the console's form. */
function actionOf({ method, path }: Route): string {
  const [, , ...segments] = path.split('/')
  const words = segments.filter((segment) => !segment.startsWith('{')).join(' ')
  if (method === 'DELETE') return `${words} revoke`
  return method === 'POST' && madeByPost.test(words) ? `${words} create` : words
}
