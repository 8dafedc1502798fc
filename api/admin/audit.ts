/** The audit trail: actions of operators, with the operator, the address and the outcome. */
import { z } from 'zod'
import { type Engine, idsMeant, namesOf } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { address, answer, time } from '../examples.ts'
import { filledText, optional } from '../values.ts'
import { adminRoute, paging } from './shared.ts'

const auditView = answer({
  at: [z.int(), time],
  by: [z.enum(['token', 'session', 'local']), 'token', 'session: of the console; local: in the data directory'],
  actor: [z.string(), '5e8d7c6b5a4938271605f4e3', 'id of the token, or name of the session'],
  name: [z.string(), 'grafana', 'name of the token'],
  address: [z.string(), '192.0.2.7'],
  action: [z.string(), 'accounts pause'],
  target: [z.string(), '7c9e6679f81d4b1c8a2e3d4f', 'id or name of what it was done to'],
  target_name: [z.string().nullable(), address, 'address, name or URL of it, while it is known'],
  details: [z.record(z.string(), z.string()), {}, 'parameters that are no secrets'],
  outcome: [
    z.enum(['done', 'refused', 'failed', 'unknown']),
    'done',
    'unknown: the caller went away before the answer',
  ],
  status: [z.int(), 200, 'HTTP status of the answer'],
})
export type AuditRow = z.input<typeof auditView>

export const auditQuery = z.object({
  target: optional(filledText, 'only what was done to what has this id, address, name or URL'),
  ...paging,
})

/** A page of the audit trail, newest first. */
export async function auditTrail(engine: Engine, query: z.output<typeof auditQuery>): Promise<AuditRow[]> {
  const { store, webhooks } = engine
  const targets = query.target === undefined ? undefined : await idsMeant(engine, query.target)
  const records = await store.audit.list(targets, query)
  const ids = records.map(({ target }) => target)
  const tokens = records.flatMap(({ action, target }) => (action.startsWith('tokens ') ? [target] : []))
  const hooks = await webhooks.several(ids)
  const name = await namesOf(store, { accounts: ids, developers: ids, users: ids, tokens })
  return records.map(({ at, by, actorId, actorName, address, action, target, details, status }) => ({
    ...{ at: seconds(at), by, actor: actorId, name: actorName, address },
    ...{ action, target, details: { ...details }, status },
    target_name: name(target) ?? hooks.get(target)?.callbackUrl ?? null,
    outcome: status < 400 ? 'done' : status === 499 ? 'unknown' : status < 500 ? 'refused' : 'failed',
  }))
}

export const auditRoute = adminRoute('GET /admin/audit', {
  summary: 'What operators have done, newest first',
  description: 'Each write of the admin API and of the console, with refused ones. Kept for MAILROOM_AUDIT_RETENTION.',
  query: auditQuery,
  response: z.array(auditView),
  handler: ({ query }, { engine }) => auditTrail(engine, query),
})
