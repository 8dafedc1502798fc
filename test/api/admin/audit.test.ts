/** The audit trail: each write of an operator, whichever way it came, and no secret in it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createLogger, operatorScopes } from '../../../engine/index.ts'
import { until } from '../../support/until.ts'
import { createVisitor } from '../../connect/visitor.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { startAdminRig, type AdminRig } from './rig.ts'

const password = 'a password of an operator'

describe('the audit trail', () => {
  let rig: AdminRig
  let box: TestMailbox
  const lines: string[] = []

  before(async () => {
    const log = createLogger({ MAILROOM_LOG_LEVEL: 'info' }, { write: (line) => void lines.push(line) })
    rig = await startAdminRig({ log, env: { MAILROOM_ADMIN_PASSWORD: password } })
    box = await rig.mailbox('abel')
  })
  after(() => rig.close())

  const trail = async (query = '', wanted = 1): Promise<Json[]> =>
    until(`${wanted} records`, async () => {
      const answer = await rig.as(rig.tokens.read, 'GET', `/admin/audit?${query}`)
      const rows = answer.json as unknown as Json[]
      return rows.length >= wanted && rows
    })

  test('a write by a token is recorded with who, from where, what, on which, and what came of it', async () => {
    const { accountId } = box
    await rig.good('act', 'POST', `/admin/accounts/${accountId}/pause`)
    assert.equal((await rig.as(rig.tokens.read, 'POST', `/admin/accounts/${accountId}/resume`)).status, 403)
    await rig.good('read', 'GET', `/admin/accounts/${accountId}`)
    const [refused, done, ...others] = await trail(`target=${accountId}`, 2)
    assert.deepEqual(others, [], 'what only reads leaves none')
    const record = await rig.engine.operators.authenticate(rig.tokens.act)
    assert.deepEqual(
      { ...done, at: 0 },
      {
        ...{ at: 0, by: 'token', actor: record?.id, name: record?.name, address: '127.0.0.1' },
        ...{ action: 'accounts pause', target: accountId, target_name: box.email, details: {} },
        ...{ outcome: 'done', status: 200 },
      },
    )
    assert.deepEqual(
      [refused?.['action'], refused?.['outcome'], refused?.['status']],
      ['accounts resume', 'refused', 403],
    )
    assert.equal((await trail(`target=${box.email.toUpperCase()}`, 2)).length, 2, 'it is named by its address too')
    assert.deepEqual(await trail(`target=${box.userId}`, 0), [])
    const logged = lines.filter((line) => line.includes('an operator acted')).map((line) => JSON.parse(line) as Json)
    assert.ok(logged.some(({ level, audit }) => level === 'info' && (audit as Json)['action'] === 'accounts pause'))
  })

  test('logins and forms of the console are recorded, and no password', async () => {
    const browser = createVisitor(rig.url)
    const login = (typed: string) => browser.send('/console/login', { password: typed, to: '/console' })
    assert.equal((await login('a wrong password')).status, 401)
    assert.equal((await login(password)).status, 303)
    await browser.open(`/console/accounts/${box.accountId}`)
    assert.equal((await browser.send(`/console/accounts/${box.accountId}/resume`, {})).status, 303)
    const rows = await trail('limit=3', 3)
    const resumed = await until('resumed', async () =>
      (await trail('limit=3')).find(({ action }) => action === 'accounts resume'),
    )
    assert.match(String(resumed['actor']), /^[0-9a-f]{8}$/)
    assert.deepEqual([resumed['by'], resumed['outcome']], ['session', 'done'])
    const logins = (await trail('limit=9', 5)).filter(({ action }) => action === 'login')
    assert.deepEqual(
      logins.map(({ outcome, actor }) => [outcome, actor]),
      [
        ['done', resumed['actor']],
        ['refused', ''],
      ],
    )
    const host = String((await rig.engine.store.accounts.get(box.accountId))?.server)
    const { length } = await trail('limit=200')
    assert.equal((await browser.send('/console/hosts', { host, what: 'stop' })).status, 303)
    await browser.send('/console/hosts', { host, what: 'free' })
    await browser.send('/console/hosts', { host, what: 'slow', pace: '7' })
    await browser.send('/console/hosts', { host, what: 'stop now', pace: '10' })
    await browser.send('/console/tokens', { name: 'graphs', read: '1', act: '1' })
    await browser.send('/console/developers', { name: 'Ada' })
    const [made, token, , , freed, ...before] = await trail('limit=200', length + 5)
    assert.equal(token?.['target_name'], 'graphs')
    assert.deepEqual(
      [made?.['action'], String(made?.['target']).length, made?.['target_name']],
      ['developers create', 24, 'Ada'],
    )
    assert.deepEqual([freed?.['action'], freed?.['target'], before.length], ['hosts', host, length])
    const page = await browser.open('/console/audit')
    const details = [...page.text.matchAll(/data-label="Details">([^<]*)</g)].map(([, words]) => words)
    assert.deepEqual(details.slice(0, 5), [
      'name Ada',
      'name graphs, read, act',
      'logins stopped',
      'at most 7 logins a minute',
      'logins as configured',
    ])
    assert.doesNotMatch(page.text, /<small>303</)
    assert.match(page.text, /accounts resume/)
    for (const text of [JSON.stringify(rows), lines.join(''), page.text])
      assert.ok(!/wrong password|of an operator/.test(text))
  })

  test('a new token is named with its scopes, never with itself; a call without a token leaves nothing', async () => {
    const { token: mine } = await rig.engine.operators.createToken('all', operatorScopes)
    const { token, id } = (await rig.as(mine, 'POST', '/admin/tokens', { name: 'graphs', scopes: 'read' })).json
    await rig.good('keys', 'DELETE', `/admin/tokens/${String(id)}`)
    assert.equal((await rig.as('mra_0_x', 'POST', '/admin/backup')).status, 401)
    const [revoked, made] = await trail('limit=2', 2)
    assert.equal(made?.['target'], id)
    assert.deepEqual([made?.['action'], made?.['details']], ['tokens create', { name: 'graphs', scopes: 'read' }])
    assert.deepEqual([revoked?.['action'], revoked?.['target']], ['tokens revoke', id])
    assert.ok(!lines.join('').includes(String(token)))
  })
})
