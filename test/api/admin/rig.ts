/** The admin API on the whole of Mailroom, with a token of each scope. */
import assert from 'node:assert/strict'
import { operatorScopes, type OperatorScope } from '../../../engine/index.ts'
import type { Answer } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig, type RigOptions } from '../lite/rig.ts'

export interface AdminRig extends LiteRig {
  readonly tokens: Readonly<Record<OperatorScope, string>>
  /** A call with the token of this scope, or with another token. */
  as(token: string, method: string, path: string, body?: Json): Promise<Answer>
  /** For calls that must answer 200: the object. */
  good(scope: OperatorScope, method: string, path: string, body?: Json): Promise<Json>
}

export async function startAdminRig(options: RigOptions = {}): Promise<AdminRig> {
  const rig = await startLiteRig(options)
  const made = operatorScopes.map(async (scope) => {
    return [scope, (await rig.engine.operators.createToken(scope, [scope])).token] as const
  })
  const tokens = Object.fromEntries(await Promise.all(made)) as AdminRig['tokens']
  const as: AdminRig['as'] = (token, method, path, body) =>
    rig.call(method, path, body, { headers: { authorization: `Bearer ${token}` } })
  return {
    ...rig,
    tokens,
    as,
    async good(scope, method, path, body) {
      const answer = await as(tokens[scope], method, path, body)
      assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
      return answer.json
    },
  }
}

/** One route: without a token, with a wrong and a revoked one, and with one that lacks its scope it is refused. */
export async function refusesOthers(rig: AdminRig, method: string, path: string, scope: OperatorScope): Promise<void> {
  const body = method === 'GET' ? undefined : {}
  const { record, token: revoked } = await rig.engine.operators.createToken('gone', operatorScopes)
  await rig.engine.operators.revokeToken(record.id)
  const wrong = `${rig.tokens[scope].slice(0, -1)}${rig.tokens[scope].endsWith('A') ? 'B' : 'A'}`
  for (const token of [wrong, revoked, 'mra_']) {
    const answer = await rig.as(token, method, path, body)
    assert.equal(answer.status, 401, `${method} ${path}: ${answer.text}`)
    assert.match(String(answer.json['value']), /^Authorization: /)
  }
  const developer = await rig.call(method, path, body)
  assert.equal(developer.status, 401, `${method} ${path} with a developer's key: ${developer.text}`)
  for (const other of operatorScopes) {
    if (other === scope) continue
    const answer = await rig.as(rig.tokens[other], method, path, body)
    assert.equal(answer.status, 403, `${method} ${path} as ${other}: ${answer.text}`)
    assert.match(String(answer.json['value']), new RegExp(`Authorization: .*${scope}`))
  }
}
