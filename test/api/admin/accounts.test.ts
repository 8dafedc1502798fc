/** The overview, the list of accounts and one account, on the real app with a scripted mail server. */
import { sentence } from '../../../engine/index.ts'
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { aroundNextCall } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import type { Json, TestMailbox } from '../lite/rig.ts'
import { refusesOthers, startAdminRig, type AdminRig } from './rig.ts'

interface Line {
  readonly at: number
  readonly connection: number | null
  readonly line: string
}

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
    const list = await rig.good('read', 'GET', '/admin/hosts')
    assert.equal(list['total'], 1)
    const [host] = list['hosts'] as Json[]
    assert.deepEqual(
      { ...host, logins: Number((host?.['logins'] as Json)['ok']) >= 2 },
      { host: rig.imap.host, accounts: 2, states: { watching: 1, paused: 1 }, since: null, logins: true, pace: null },
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
      assert.deepEqual(await list(none), { total: 0, accounts: [], silent: [] }, none)
  })

  test('the longest as it is comes first, in pages; how and since when is asked of the store', async () => {
    const [a, b] = [ann.accountId, bob.accountId]
    await rig.engine.accounts.resume(b)
    await until('bob is up', async () => (await ids('condition=up')).includes(b))
    const week = Math.floor(Date.now() / 1000) - 7 * 86_400
    const { store } = rig.engine
    const stored = await store.accounts.get(a)
    const resume = { ...(stored?.resume ?? assert.fail()), condition: { is: 'down', since: week * 1000 } } as const
    await store.accounts.edit(a, { resume })
    assert.deepEqual(await ids('older_than=86400'), [a])
    assert.deepEqual(await ids('older_than=86400&condition=up'), [])
    assert.deepEqual(await ids('condition=up'), [b])
    const answer = await rig.good('read', 'GET', `/admin/accounts/${a}`)
    assert.deepEqual([answer['condition'], answer['since']], ['down', week])
    assert.ok(Number(answer['state_since']) > week)
    assert.equal((answer['explain'] as Json)['since'], week)
    const { hosts } = await rig.good('read', 'GET', '/admin/hosts')
    assert.equal((hosts as Json[])[0]?.['since'], week, 'of the account that is down')
    const named = async () => {
      const overview = await rig.good('read', 'GET', '/admin/overview')
      return (overview['attention'] as Json[]).map(({ kind, id, what, since }) => [kind, id, since, String(what)])
    }
    const words = `ann@${ann.email.split('@')[1] ?? ''} at ${rig.imap.host}`
    assert.deepEqual(await named(), [['account', a, week, `${words}: down`]])
    await store.accounts.edit(a, { resume: { ...resume, condition: { is: 'paused', since: week * 1000 } } })
    assert.deepEqual(await named(), [['account', a, week, `${words}: paused`]])
    const minutes = Date.now() - 600_000
    for (const is of ['down', 'paused'] as const) {
      await store.accounts.edit(a, { resume: { ...resume, condition: { is, since: minutes } } })
      assert.deepEqual(await named(), [], 'not long enough')
    }
    const order = [a, b]
    await store.accounts.edit(a, { resume })
    assert.deepEqual(await ids(''), order)
    assert.deepEqual(await ids('limit=1&offset=1'), order.slice(1))
    assert.equal((await list('limit=1&offset=1')).total, 2)
    assert.deepEqual(await ids('offset=2'), [])
    await rig.engine.accounts.pause(b)
    await until('the pause is in the list', async () => (await ids('condition=paused')).includes(b))
  })

  test('an account that changes while the store is asked is shown, filtered and counted as it is then', async () => {
    const { accountId: id } = await rig.mailbox('hank')
    const stateOf = async (): Promise<unknown> => (await list(`q=${id}`)).accounts[0]?.['state']
    await until('it watches', async () => (await stateOf()) === 'watching')
    const change = async (work: () => Promise<unknown>, state: string): Promise<void> => {
      await work()
      await until(state, () => rig.engine.accounts.view(id)?.state === state)
    }
    const stores = rig.engines.map(({ store }) => store.accounts)
    const during = (work: () => Promise<unknown>, state: string) =>
      aroundNextCall(stores, 'places', async (call) => {
        await change(work, state)
        return call()
      })
    during(() => rig.engine.accounts.pause(id), 'paused')
    assert.equal(await stateOf(), 'paused')
    await change(() => rig.engine.accounts.resume(id), 'watching')
    during(() => rig.engine.accounts.pause(id), 'paused')
    assert.deepEqual(await ids(`state=watching&q=${id}`), [])
    const { states: before } = (await rig.good('read', 'GET', '/admin/overview'))['accounts'] as { states: Json }
    during(() => rig.engine.accounts.resume(id), 'watching')
    const { states: now } = (await rig.good('read', 'GET', '/admin/overview'))['accounts'] as { states: Json }
    assert.equal(Number(now['watching']), Number(before['watching']) + 1)
    await rig.ok('DELETE', `/lite/users/${String((await rig.engine.store.accounts.get(id))?.userId)}`)
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
    const lines = json['wire'] as Line[]
    const wire = lines.map(({ line }) => line)
    assert.ok(
      lines.every(({ at }, index) => at >= (lines[index - 1]?.at ?? 0) && Math.abs(at - Date.now() / 1000) < 600),
    )
    assert.ok(lines.some(({ connection, line }) => connection === 1 && line.startsWith('> ')))
    assert.ok(lines.some(({ connection, line }) => connection === null && line === 'connect done -> syncing'))
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
    assert.deepEqual(explained['would_change'], [`Resume connects it again (mailroom resume ${bob.accountId}).`])
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
    const frozen = json['frozen'] as { failure: string; connection: number; lines: Line[] }
    const own = frozen.lines.filter(({ connection }) => connection === frozen.connection).map(({ line }) => line)
    assert.match(frozen.lines.at(-1)?.line ?? '', /failed: auth_rejected -> /)
    assert.equal(frozen.failure, 'auth_rejected')
    assert.match(own.at(-1) ?? '', /^< \w+ NO /)
    assert.match(own.join('\n'), /^> \w+ (LOGIN|AUTHENTICATE \S+) \*\*\*$/m)
    const { why, would_change: change } = json['explain'] as { why: string; would_change: string[] }
    assert.match(why, new RegExp(`The last failure at ${rig.imap.host} was at .* \\(auth_rejected\\)`))
    assert.match(change.join('\n'), /another password[^]*mailroom check /)
    assert.deepEqual(await ids('failure=auth_rejected'), [carl.accountId])
    // The store learns that an account is down after its actor.
    const host = await until('the host is named', async () => {
      const { hosts } = await rig.good('read', 'GET', '/admin/overview')
      return (hosts as Json[]).at(0)
    })
    assert.ok(Number((host['logins'] as Json)['auth_rejected']) >= 1)
  })

  test('a host whose accounts are down is named while they try to log in, too', async () => {
    const boxes = [
      await rig.mailbox('dora'),
      await rig.mailbox('emil'),
      await rig.mailbox('fred'),
      await rig.mailbox('gina'),
    ]
    const logins = new Set(['LOGIN', 'AUTHENTICATE'])
    // No login is ever answered.
    rig.imap.hooks = { command: ({ name }) => (logins.has(name) ? {} : undefined) }
    rig.imap.dropConnections()
    const trying = () =>
      boxes.every(({ accountId: id }) => {
        const view = rig.engine.accounts.view(id)
        return view?.state === 'connecting' && view.lastError !== null
      })
    await until('they failed, and try again', trying)
    // The store learns that an account is down after its actor.
    await until('the host is named while they try', async () => {
      const { attention, hosts } = await rig.good('read', 'GET', '/admin/overview')
      const named = (attention as Json[]).find(({ kind }) => kind === 'host')
      assert.equal(named?.['id'], rig.imap.host)
      assert.match(String(named['what']), /^[4-6] of \d accounts at .* cannot connect$/)
      assert.equal((hosts as Json[])[0]?.['host'], rig.imap.host)
      return trying()
    })
    rig.imap.hooks = {}
    rig.imap.dropConnections()
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

  test('a sentence of a mail server keeps its own full stop', () => {
    assert.deepEqual(['failed.', 'failed'].map(sentence), ['failed.', 'failed.'])
  })
})
