/** The overview, the list of accounts and one account, on the real app with a scripted mail server. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../../support/until.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

interface Rows {
  readonly total: number
  readonly accounts: readonly Json[]
}

describe('accounts for operators', () => {
  let rig: AdminRig
  let ann: TestMailbox
  let bob: TestMailbox

  before(async () => {
    rig = await startAdminRig({ env: { MAILROOM_WRONG_KEYS: '0', MAILROOM_BACKOFF_AUTH: '1h' } })
    ann = await rig.mailbox('ann', { subjects: ['the secret plan'] })
    bob = await rig.mailbox('bob')
    await rig.engine.accounts.pause(bob.accountId)
    await until('bob is paused', () => rig.engine.accounts.view(bob.accountId)?.state === 'paused')
  })
  after(() => rig.close())

  const list = async (query: string): Promise<Rows> =>
    (await rig.good('read', 'GET', `/admin/accounts?${query}`)) as unknown as Rows
  const ids = async (query: string) => (await list(query)).accounts.map(({ id }) => id)

  test('the overview counts states, statuses and hosts', async () => {
    const overview = await rig.good('read', 'GET', '/admin/overview')
    assert.deepEqual(overview['accounts'], {
      total: 2,
      states: { watching: 1, paused: 1 },
      statuses: { OK: 2, DISABLED: 0 },
    })
    assert.deepEqual(overview['hosts'], [], 'all are well')
    const hosts: unknown = await rig.good('read', 'GET', '/admin/hosts')
    const [host] = hosts as Json[]
    assert.deepEqual(
      { ...host, logins: Number((host?.['logins'] as Json)['ok']) >= 2 },
      { host: rig.imap.host, accounts: 2, states: { watching: 1, paused: 1 }, logins: true, pace: null },
    )
    assert.equal(overview['ready'], true)
    assert.deepEqual(overview['attention'], [])
  })

  test('the list filters by what is stored and by what is live', async () => {
    const [a, b] = [ann.accountId, bob.accountId]
    const { developerId } = (await rig.engine.store.accounts.get(a)) ?? { developerId: '' }
    assert.deepEqual(new Set(await ids('')), new Set([a, b]))
    assert.deepEqual(await ids('state=watching'), [a])
    assert.deepEqual(await ids('state=paused'), [b])
    assert.deepEqual(await ids('q=ANN@'), [a])
    assert.deepEqual(await ids(`q=${b}`), [b])
    assert.deepEqual(await ids(`user=${ann.userId}`), [a])
    assert.deepEqual(new Set(await ids(`developer=${developerId}&host=${rig.imap.host}&status=OK`)), new Set([a, b]))
    for (const none of ['status=DISABLED', 'host=other.example', 'failure=network', 'older_than=3600', 'q=nobody'])
      assert.deepEqual(await list(none), { total: 0, accounts: [] }, none)
  })

  test('the longest in its state comes first, in pages', async () => {
    const since = (id: string) => rig.engine.accounts.view(id)?.since ?? 0
    const order = [ann.accountId, bob.accountId].toSorted((left, right) => since(left) - since(right))
    assert.deepEqual(await ids(''), order)
    assert.deepEqual(await ids('limit=1&offset=1'), order.slice(1))
    assert.equal((await list('limit=1&offset=1')).total, 2)
    assert.deepEqual(await ids('offset=2'), [])
  })

  test('a filter that is wrong is named', async () => {
    for (const [query, name] of [
      ['limit=201', 'limit'],
      ['offset=-1', 'offset'],
      ['status=BROKEN', 'status'],
      ['failure=nothing', 'failure'],
      ['older_than=x', 'older_than'],
    ] as const) {
      const answer = await rig.as(rig.tokens.read, 'GET', `/admin/accounts?${query}`)
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), new RegExp(`^${name}: `))
    }
  })

  test('one account: states, steps, lines without secrets or mail, folders and queues', async () => {
    const answer = await rig.as(rig.tokens.read, 'GET', `/admin/accounts/${ann.accountId}`)
    assert.equal(answer.status, 200, answer.text)
    const { json } = answer
    assert.equal(json['email'], ann.email)
    assert.equal(json['state'], 'watching')
    assert.ok((json['active'] as string[]).includes('running.life.online.mailbox.watching.alive'))
    const steps = json['steps'] as { event: string; state: string; ms: number | null }[]
    assert.equal(steps[0]?.event, 'start')
    assert.ok(steps.some(({ event }) => event === 'connect done'))
    assert.equal(steps.at(-1)?.ms, null)
    assert.ok(steps.slice(0, -1).every(({ ms }) => ms !== null && ms >= 0))
    const wire = json['wire'] as string[]
    assert.match(wire.join('\n'), /^> \w+ (STATUS|EXAMINE|SELECT|LIST) /m)
    assert.doesNotMatch(answer.text, /secret plan|"secret"/)
    assert.doesNotMatch(wire.join('\n'), /secret/)
    const inbox = (json['folders'] as Json[]).find(({ name }) => name === 'INBOX')
    assert.deepEqual(inbox, { name: 'INBOX', messages: 1, indexed: 1, unseen: 1, complete: true })
    assert.equal(json['frozen'], null)
    assert.deepEqual(
      (json['queues'] as Json[]).map(({ name }) => name),
      ['commands', 'batches of all accounts'],
    )
  })

  test('what is paused says so, and what would change it', async () => {
    const explained = await rig.good('read', 'GET', `/admin/accounts/${bob.accountId}/explain`)
    assert.equal(explained['why'], 'An operator has paused it.')
    assert.equal(explained['next'], 'Nothing, until it is resumed.')
    assert.deepEqual(explained['would_change'], [
      `Resume connects it again (POST /admin/accounts/${bob.accountId}/resume).`,
    ])
  })

  test('a rejected login is seen everywhere: row, reason, frozen lines, counts of the host, what needs a person', async () => {
    const carl = await rig.mailbox('carl')
    rig.imap.setPassword(carl.email, 'another one')
    rig.imap.dropConnections(carl.email)
    await until(
      'the rejection is seen',
      () => rig.engine.accounts.view(carl.accountId)?.lastError?.class === 'auth_rejected',
    )
    const json = await rig.good('read', 'GET', `/admin/accounts/${carl.accountId}`)
    assert.equal(json['failure'], 'auth_rejected')
    const frozen = json['frozen'] as { failure: string; lines: string[] }
    assert.equal(frozen.failure, 'auth_rejected')
    assert.match(frozen.lines.at(-1) ?? '', /^< \w+ NO /)
    assert.match(frozen.lines.join('\n'), /^> \w+ (LOGIN|AUTHENTICATE \S+) \*\*\*$/m)
    const { why, would_change: change } = json['explain'] as { why: string; would_change: string[] }
    assert.match(why, new RegExp(`The last failure at ${rig.imap.host} was at .* \\(auth_rejected\\)`))
    assert.match(change.join('\n'), /another password[^]*\/check\)/)
    assert.deepEqual(await ids('failure=auth_rejected'), [carl.accountId])
    const overview = await rig.good('read', 'GET', '/admin/overview')
    const [host] = overview['hosts'] as Json[]
    assert.ok(Number((host?.['logins'] as Json)['auth_rejected']) >= 1)
  })

  test('routes are for operators who may read', async () => {
    for (const path of ['/admin/overview', '/admin/accounts', `/admin/accounts/${ann.accountId}`])
      await refusesOthers(rig, 'GET', path, 'read')
    await refusesOthers(rig, 'GET', `/admin/accounts/${ann.accountId}/explain`, 'read')
  })

  test('an unknown id is a 404', async () => {
    for (const path of ['/admin/accounts/nobody', '/admin/accounts/nobody/explain']) {
      const answer = await rig.as(rig.tokens.read, 'GET', path)
      assert.equal(answer.status, 404)
      assert.equal(answer.json['value'], 'email account nobody is invalid')
    }
  })
})
