/** Hosts, developers and tokens for operators, on the real app with a scripted mail server. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { runCli } from '../../../api/cli/index.ts'
import { newId } from '../../../engine/store/ids.ts'
import { until } from '../../support/until.ts'
import { accountRecord } from '../../support/records.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

describe('hosts, developers and tokens for operators', () => {
  let rig: AdminRig
  let box: TestMailbox

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_WRONG_KEYS: '0' } })
    box = await rig.mailbox('ann')
  })
  after(() => rig.close())

  const state = () => rig.engine.accounts.view(box.accountId)?.state
  const next = async (): Promise<string> =>
    String((await rig.good('read', 'GET', `/admin/accounts/${box.accountId}/explain`))['next'])
  const list = async (path: string): Promise<Json[]> => (await rig.good('read', 'GET', path)) as unknown as Json[]
  const developerCall = (developer: Json) =>
    rig.call('GET', '/lite/users', undefined, {
      headers: { authorization: `Bearer ${String(developer['api_key'])}.${String(developer['api_secret'])}` },
    })
  const statuses = (of: readonly Json[]) =>
    Promise.all(of.map(async (developer) => (await developerCall(developer)).status))

  test('a host that is stopped lets nobody in until it is freed', async () => {
    const path = `/admin/hosts/${rig.imap.host}`
    const stopped = await rig.good('act', 'PUT', path, { pace: 0 })
    assert.deepEqual([stopped['host'], stopped['accounts'], stopped['pace']], [rig.imap.host, 1, 0])
    await rig.good('act', 'POST', `/admin/accounts/${box.accountId}/reconnect`)
    await until('queued', () => state() === 'queued')
    assert.match(await next(), /^Nothing, until its host is freed/)
    const accepted = rig.imap.accepted
    const overview = await rig.good('read', 'GET', '/admin/overview')
    const [first] = overview['attention'] as Json[]
    assert.deepEqual([first?.['kind'], first?.['id']], ['host', rig.imap.host])
    const { hosts } = (await rig.good('read', 'GET', '/admin/hosts')) as { hosts?: readonly Json[] }
    assert.equal(hosts?.[0]?.['pace'], 0)
    assert.equal(rig.imap.accepted, accepted)
    const freed = await rig.good('act', 'PUT', path, { pace: '' })
    assert.equal(freed['pace'], null)
    await until('watching', () => state() === 'watching')
  })

  test('a host that is slowed lets in as many as it was told', async () => {
    const path = `/admin/hosts/${rig.imap.host}`
    assert.equal((await rig.good('act', 'PUT', path, { pace: 1 }))['pace'], 1)
    let [reconnects, logins] = [0, -1]
    await until('queued', async () => {
      // Not before the one that was asked for has come.
      if (state() === 'watching' && rig.imap.accepted > logins) {
        logins = rig.imap.accepted
        reconnects += 1
        await rig.good('act', 'POST', `/admin/accounts/${box.accountId}/reconnect`)
      }
      return state() === 'queued'
    })
    assert(reconnects <= 2, `${reconnects} logins were let in at once`)
    assert.match(await next(), /slowed its host down to 1 logins a minute/)
    await rig.good('act', 'PUT', path, { pace: '' })
    await until('watching', () => state() === 'watching')
  })

  test('a pace that is wrong, and a host without accounts', async () => {
    for (const pace of [-1, 'fast', 6001]) {
      const answer = await rig.as(rig.tokens.act, 'PUT', `/admin/hosts/${rig.imap.host}`, { pace })
      assert.deepEqual(
        [answer.status, answer.json['value']],
        [400, 'pace: expected a whole number from 0 to 6000, or nothing'],
      )
    }
    const missing = await rig.as(rig.tokens.act, 'PUT', `/admin/hosts/${rig.imap.host}`, {})
    assert.deepEqual([missing.status, missing.json['value']], [400, 'pace: is required'])
    assert.equal((await rig.as(rig.tokens.act, 'PUT', '/admin/hosts/nowhere.example', { pace: 1 })).status, 404)
  })

  test('a host that is stopped can be freed when its last account has gone', async () => {
    const gone = { host: 'gone.example', accounts: 0, states: {}, since: null, logins: {} }
    const { userId, developerId } = (await rig.engine.store.accounts.get(box.accountId)) ?? assert.fail()
    const account = accountRecord({ id: userId, developerId }, { server: gone.host, email: 'last@gone.example' })
    await rig.engine.store.accounts.create(account)
    const path = '/admin/hosts/Gone.example'
    assert.equal((await rig.good('act', 'PUT', path, { pace: 0 }))['pace'], 0)
    await rig.engine.store.accounts.remove(account.id)
    const found = async (q: string) => (await rig.good('read', 'GET', `/admin/hosts?q=${q}`))['hosts']
    assert.deepEqual(await found('GONE'), [{ ...gone, pace: 0 }])
    const { hosts, total } = await rig.good('read', 'GET', '/admin/hosts?limit=1')
    assert.deepEqual([(hosts as Json[])[0]?.['host'], total], [rig.imap.host, 2])
    const { attention } = await rig.good('read', 'GET', '/admin/overview')
    assert.deepEqual((attention as Json[])[0]?.['what'], 'logins to gone.example are stopped by an operator')
    assert.deepEqual(await rig.good('act', 'PUT', path, { pace: '' }), { ...gone, pace: null })
    assert.deepEqual(await found('gone'), [])
    assert.equal((await rig.as(rig.tokens.act, 'PUT', path, { pace: 0 })).status, 404)
  })

  test('a developer is made, gets another secret, is revoked and restored', async () => {
    const made = await rig.good('keys', 'POST', '/admin/developers', { name: 'Example' })
    assert.equal(made['name'], 'Example')
    assert.equal((await developerCall(made)).status, 200)
    const path = `/admin/developers/${String(made['id'])}`
    const first = await rig.good('keys', 'POST', `${path}/rotate`)
    assert.ok(Math.abs(Number(first['old_secret_until']) - Date.now() / 1000 - 86_400) < 60)
    assert.deepEqual([(await developerCall(made)).status, (await developerCall(first)).status], [200, 200])
    const second = await rig.good('keys', 'POST', `${path}/rotate`)
    assert.deepEqual(
      await statuses([made, first, second]),
      [200, 200, 200],
      'each that was replaced within the overlap',
    )
    assert.equal((await rig.good('keys', 'POST', `${path}/end-overlap`))['old_secret_until'], null)
    assert.deepEqual(await statuses([made, first, second]), [401, 401, 200])
    const rotated = await rig.good('keys', 'POST', `${path}/rotate`, { overlap: 0 })
    assert.equal(rotated['api_key'], made['api_key'])
    assert.deepEqual(await statuses([second, rotated]), [401, 200])
    const revoked = await rig.good('keys', 'POST', `${path}/revoke`)
    assert.equal(typeof revoked['revoked'], 'number')
    assert.equal((await developerCall(rotated)).status, 401)
    assert.equal((await rig.good('keys', 'POST', `${path}/restore`))['revoked'], null)
    assert.equal((await developerCall(rotated)).status, 200)
  })

  test('developers are listed with their users and accounts, without secrets', async () => {
    const rows = await list('/admin/developers')
    const { developerId } = (await rig.engine.store.accounts.get(box.accountId)) ?? {}
    const own = rows.find(({ id }) => id === developerId)
    assert.deepEqual([own?.['users'], own?.['accounts']], [1, 1])
    assert.ok(rows.every((row) => !('api_secret' in row)))
    assert.equal((await list('/admin/developers?limit=1')).length, 1)
  })

  test('a token is made with its scopes, works, is listed and revoked', async () => {
    const maker = await rig.engine.operators.createToken('maker', ['read', 'keys'])
    const { json: made } = await rig.as(maker.token, 'POST', '/admin/tokens', { name: 'grafana', scopes: 'read' })
    const token = String(made['token'])
    assert.equal((await rig.as(token, 'GET', '/admin/hosts')).status, 200)
    assert.equal((await rig.as(token, 'POST', '/admin/tokens', { name: 'x', scopes: 'read' })).status, 403)
    const listed = (await list('/admin/tokens')).find(({ id }) => id === made['id'])
    assert.deepEqual([listed?.['name'], listed?.['scopes'], listed?.['revoked']], ['grafana', ['read'], null])
    assert.ok(!JSON.stringify(listed).includes(token))
    const revoked = await rig.good('keys', 'DELETE', `/admin/tokens/${String(made['id'])}`)
    assert.equal(typeof revoked['revoked'], 'number')
    assert.equal((await rig.as(token, 'GET', '/admin/hosts')).status, 401)
  })

  test('what is wrong with a new token is named', async () => {
    for (const [body, name] of [
      [{ name: 'x', scopes: 'all' }, 'scopes'],
      [{ name: 'x', scopes: '' }, 'scopes'],
      [{ scopes: 'read' }, 'name'],
    ] as const) {
      const answer = await rig.as(rig.tokens.keys, 'POST', '/admin/tokens', body)
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), new RegExp(`^${name}`))
    }
  })

  test('routes are for operators of their scope', async () => {
    for (const path of ['/admin/hosts', '/admin/developers', '/admin/tokens'])
      await refusesOthers(rig, 'GET', path, 'read')
    await refusesOthers(rig, 'PUT', `/admin/hosts/${rig.imap.host}`, 'act')
    for (const path of ['developers', 'developers/x/rotate', 'developers/x/revoke', 'developers/x/restore', 'tokens'])
      await refusesOthers(rig, 'POST', `/admin/${path}`, 'keys')
    await refusesOthers(rig, 'DELETE', '/admin/tokens/x', 'keys')
  })

  test('an unknown id is a 404', async () => {
    for (const action of ['rotate', 'revoke', 'restore']) {
      const answer = await rig.as(rig.tokens.keys, 'POST', `/admin/developers/nobody/${action}`)
      assert.deepEqual([answer.status, answer.json['value']], [404, 'developer nobody is invalid'])
    }
    const token = await rig.as(rig.tokens.keys, 'DELETE', '/admin/tokens/nobody')
    assert.deepEqual([token.status, token.json['value']], [404, 'token nobody is invalid'])
  })

  test('of many tokens the newest is listed too, page by page', async () => {
    const { operators, store } = rig.engine
    const { record } = await operators.createToken('old', ['read'])
    const many = Array.from({ length: 1000 }, () => store.operators.put({ ...record, id: newId(), createdAt: 1 }))
    await Promise.all(many)
    const made = await operators.createToken('newest', ['read'])
    const ids = (await operators.tokens()).map(({ id }) => id)
    assert.equal(ids.at(-1), made.record.id)
    const rows = await list('/admin/tokens?limit=2&offset=1000')
    assert.deepEqual(
      rows.map(({ id }) => id),
      ids.slice(1000, 1002),
    )
    const said: string[] = []
    const io = { env: {}, out: (line: string) => said.push(line), error: (line: string) => said.push(line) }
    const words = ['tokens', 'list', '--json', '--url', rig.url, '--token', made.token]
    assert.equal(await runCli(words, { ...io, isScreen: false, signal: new AbortController().signal }), 0, said.join())
    assert.deepEqual(
      (JSON.parse(said.join('')) as Json[]).map(({ id }) => id),
      ids,
    )
  })

  test('a token without a scope is refused: it could do nothing', async () => {
    await assert.rejects(
      rig.engine.operators.createToken('idle', []),
      /scopes: expected one or more of read, act, keys/,
    )
  })
})
