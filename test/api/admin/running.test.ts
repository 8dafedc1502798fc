/** Routes of the admin API for running the service: backups, retention. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { OperatorScope } from '../../../engine/index.ts'
import { startLiteRig, type LiteRig } from '../lite/rig.ts'

suite('running the service over the admin API', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_CALL_LOG_RETENTION: '36h' } })
  })
  after(() => rig.close())

  const call = async (method: string, path: string, ...scopes: OperatorScope[]) => {
    const { token } = await rig.engine.operators.createToken('t', scopes)
    return rig.call(method, path, undefined, { headers: { authorization: `Bearer ${token}` } })
  }

  test('retention is shown with the setting that sets it', async () => {
    const { status, json } = await call('GET', '/admin/retention', 'read')
    assert.equal(status, 200)
    assert.deepEqual(json['kept'], [
      { what: 'changes', seconds: 30 * 86_400, setting: 'MAILROOM_CHANGE_RETENTION' },
      { what: 'deliveries', seconds: 30 * 86_400, setting: 'MAILROOM_DELIVERY_RETENTION' },
      { what: 'calls', seconds: 36 * 3600, setting: 'MAILROOM_CALL_LOG_RETENTION' },
    ])
  })

  test('a backup needs the scope act, and is made one at a time; with MongoDB its tool is named', async () => {
    assert.equal((await call('POST', '/admin/backup', 'read', 'keys')).status, 403)
    assert.equal((await rig.call('POST', '/admin/backup')).status, 401)
    const answers = await Promise.all([call('POST', '/admin/backup', 'act'), call('POST', '/admin/backup', 'act')])
    const by = answers.map(({ status }) => status).sort()
    if (rig.engine.store.kind === 'mongodb') {
      assert.deepEqual(by, [400, 400])
      assert.match(answers[0].text, /mongodump/)
      return
    }
    assert.deepEqual(by, [200, 409], answers.map(({ text }) => text).join())
    const made = answers.find(({ status }) => status === 200)
    assert.match(String(made?.json['name']), /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/)
    assert(Number(made?.json['bytes']) > 0)
  })
})
