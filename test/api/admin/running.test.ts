/** Routes of the admin API for running the service: backups, retention. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { runCli } from '../../../api/cli/index.ts'
import { AppError, type OperatorScope } from '../../../engine/index.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig } from '../lite/rig.ts'

suite('running the service over the admin API', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_CALL_LOG_RETENTION: '36h', MAILROOM_REQUEST_TIMEOUT: '6s' } })
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
      { what: 'changes', seconds: 30 * 86_400, setting: 'MAILROOM_CHANGE_RETENTION', set: false },
      { what: 'deliveries', seconds: 30 * 86_400, setting: 'MAILROOM_DELIVERY_RETENTION', set: false },
      { what: 'calls', seconds: 36 * 3600, setting: 'MAILROOM_CALL_LOG_RETENTION', set: false },
      { what: 'audit', seconds: 365 * 86_400, setting: 'MAILROOM_AUDIT_RETENTION', set: false },
    ])
  })

  test('retention is set, and goes back to what the environment says', async () => {
    const { token } = await rig.engine.operators.createToken('t', ['act'])
    const put = (what: string, seconds: unknown) =>
      rig.call('PUT', `/admin/retention/${what}`, { seconds }, { headers: { authorization: `Bearer ${token}` } })
    const calls = async (seconds: unknown) => ((await put('calls', seconds)).json['kept'] as unknown[])[2]
    const setting = 'MAILROOM_CALL_LOG_RETENTION'
    assert.deepEqual(await calls(120), { what: 'calls', seconds: 120, setting, set: true })
    assert.equal(rig.engine.config.MAILROOM_CALL_LOG_RETENTION, 120_000)
    assert.deepEqual(await calls(''), { what: 'calls', seconds: 36 * 3600, setting, set: false })
    const words = 'seconds: expected a whole number from 60 to 3153600000, or nothing'
    for (const seconds of [59, 'a day', 3_153_600_001]) {
      const { status, json } = await put('calls', seconds)
      assert.deepEqual([status, json['value']], [400, words])
    }
    assert.equal((await put('secrets', 60)).status, 404)
    assert.equal((await call('PUT', '/admin/retention/calls', 'read', 'keys')).status, 403)
  })

  test('an old backup needs a person; that there is none does not', async () => {
    const attention = async () => (await call('GET', '/admin/overview', 'read')).json['attention']
    assert.deepEqual(await attention(), [])
    const folder = join(rig.engine.config.MAILROOM_DATA_DIR, 'backups')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, '2026-01-02T03-04-05.678Z.db'), '')
    const what = 'the newest backup is more than 25 hours old'
    const since = Math.floor(Date.parse('2026-01-02T03:04:05.678Z') / 1000)
    const named = [{ kind: 'service', id: 'store', what, since }]
    assert.deepEqual(await attention(), rig.engine.store.kind === 'mongodb' ? [] : named)
    rmSync(folder, { recursive: true })
  })

  test('where MongoDB is backed up by its own tools, the last backup before a copy from SQLite is not asked for', async (t) => {
    const { store } = rig.engine
    const { backup } = store
    t.after(async () => {
      Object.assign(store, { backup })
      await store.settings.remove('last-backup')
    })
    await store.settings.put({ id: 'last-backup', value: Date.parse('2026-01-02T03:04:05Z'), setAt: 1 })
    Object.assign(store, { backup: undefined })
    assert.deepEqual((await call('GET', '/admin/overview', 'read')).json['attention'], [])
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
    const { json } = await call('GET', '/admin/backup', 'read')
    assert.deepEqual([json['name'], json['error']], [made?.json['name'], null])
  })

  test('a backup that takes longer than a call may is asked for until it is made, by the command line too', async (t) => {
    const { engine } = rig
    const { backup } = engine.store
    if (backup === undefined) {
      t.skip('with MongoDB there is none')
      return
    }
    t.after(() => Object.assign(engine.store, { backup }))
    const gate = Promise.withResolvers<undefined>()
    const slowly = (target: string) => gate.promise.then(() => backup(target))
    Object.assign(engine.store, { backup: slowly })
    const { token } = await engine.operators.createToken('t', ['read', 'act'])
    const said: string[] = []
    const status = runCli(['backup', '--url', rig.url, '--token', token], {
      ...{ env: {}, out: (line) => said.push(line), error: (line) => said.push(line), isScreen: false },
      signal: new AbortController().signal,
    })
    await until('under way', async () => (await call('GET', '/admin/backup', 'read')).json['bytes'] === null)
    assert.equal((await call('POST', '/admin/backup', 'act')).status, 409)
    gate.resolve(undefined)
    assert.equal(await status, 0, said.join())
    assert.match(said.join(), /\.db: \d+ bytes in \d/)
    const failed = new AppError('store_unavailable', 'the database cannot be used now', {
      cause: new Error('disk I/O error'),
    })
    Object.assign(engine.store, { backup: () => Promise.reject(failed) })
    const words = 'the database cannot be used now: disk I/O error'
    const answer = await call('POST', '/admin/backup', 'act')
    assert.deepEqual([answer.status, answer.json['value']], [503, words])
    assert.equal((await call('GET', '/admin/backup', 'read')).json['error'], words)
    said.length = 0
    assert.equal(
      await runCli(['backup', '--url', rig.url, '--token', token], {
        ...{ env: {}, out: (line) => said.push(line), error: (line) => said.push(line), isScreen: false },
        signal: new AbortController().signal,
      }),
      1,
    )
    assert.match(said.join(), /the database cannot be used now: disk I\/O error/)
  })
})
