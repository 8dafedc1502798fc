/** Several processes on one database: the admin API, the console and the metrics of any of them show all of them. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { startReceiver, type CallbackReceiver } from '../support/callbacks.ts'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import { needs } from '../support/require.ts'
import { startService, type Json, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { quickRetries } from './stage.ts'

const accounts = 6
const password = 'a password of operators'
const metricsToken = 'a token of who measures'
const metering = { authorization: `Bearer ${metricsToken}` }
const publicUrl = 'https://mail.example.com'

/** A process, and its console as a browser that goes through its management port has it. */
interface Process {
  readonly service: Service
  /** Of its management port. */
  readonly own: string
}

suite('any of several processes', { timeout: 300_000, ...needs('mongodb', 'dovecot') }, () => {
  const processes: Process[] = []
  let mongoUri = ''
  let dovecot: Dovecot
  let receiver: CallbackReceiver
  let cookie = ''
  let token = ''
  const users: { readonly id: string; readonly email: string; readonly webhookId: string }[] = []

  before(async () => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_views_${randomBytes(4).toString('hex')}`)
    dovecot = await startDovecot({ mailboxes: accounts })
    receiver = await startReceiver()
    const first = await start('all')
    for (let at = 0; at < accounts; at += 1) {
      const email = `user${at}@mail.example`
      await dovecot.append(email, 'INBOX', mail({ to: email, subject: `old ${email}` }))
      const id = await createUser(first.service, dovecot, email)
      await listed(first.service, id, `old ${email}`)
      users.push({ id, email, webhookId: await createWebhook(first.service, id, `${receiver.url}/user`) })
    }
    await first.service.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/app` })
    await start('all')
    await start('api')
    await login(processes[1] as Process)
    token = await newToken(processes[0] as Process)
    const parts = async (): Promise<unknown[]> => (await nodesOf(first)).map(({ accounts: its }) => its)
    await until('the owners share the accounts', async () => {
      const its = await parts()
      const owning = its.filter((count) => Number(count) > 0)
      return (
        its.length === 3 && owning.length === 2 && owning.reduce<number>((sum, n) => sum + Number(n), 0) === accounts
      )
    })
    await until('every account is watched', async () => (await watched(first)) === accounts)
    // One that was handed over has yet to read what is pending.
    await until('every webhook is idle', async () => {
      const { webhooks } = (await admin(first, '/admin/overview')) as { webhooks: { states: Json } }
      return webhooks.states['idle'] === accounts + 1
    })
  })
  after(async () => {
    for (const { service } of processes) await service.remove()
    await receiver.close()
    await dovecot.remove()
    await dropDatabase(mongoUri)
  })

  async function start(role: 'all' | 'api'): Promise<Process> {
    const env = {
      ...{ MAILROOM_SECRET: 'ab'.repeat(32), MAILROOM_ADMIN_PASSWORD: password, ...quickRetries },
      ...{
        MAILROOM_METRICS_TOKEN: metricsToken,
        MAILROOM_ROLE: role,
        MAILROOM_ADMIN_PORT: '0',
        MAILROOM_PUBLIC_URL: publicUrl,
      },
    }
    const service = await startService({ mongoUri, env })
    const own = /"management":"([^"]+)"/.exec(service.log())?.[1] ?? assert.fail(service.log())
    processes.push({ service, own })
    return { service, own }
  }

  /** As a browser with the session's cookie. */
  async function browse({ own }: Process, path: string, form?: Readonly<Record<string, string>>) {
    const post = form && { method: 'POST', body: new URLSearchParams(form) }
    const headers = { cookie, origin: own, 'sec-fetch-site': 'same-origin' }
    const answer = await fetch(own + path, { headers, redirect: 'manual', ...post })
    return { status: answer.status, to: answer.headers.get('location') ?? '', answer, text: await answer.text() }
  }
  async function login(at: Process): Promise<void> {
    const { status, answer } = await browse(at, '/console/login', { password, to: '/console' })
    assert.equal(status, 303)
    cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  }
  /** What an action makes is shown by the page that it leads to. */
  async function act(at: Process, path: string, form: Readonly<Record<string, string>> = {}): Promise<string> {
    const page = await browse(at, '/console')
    const csrf = /name="csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? assert.fail(page.text)
    const done = await browse(at, path, { csrf, ...form })
    assert.equal(done.status, 303, done.text)
    return (await browse(at, done.to)).text
  }
  async function newToken(at: Process): Promise<string> {
    const shown = await act(at, '/console/tokens', { name: 'test', read: '1', act: '1' })
    return /mra_[\w-]+/.exec(shown)?.[0] ?? assert.fail(shown)
  }

  async function admin({ own }: Process, path: string, method = 'GET', body?: Json): Promise<Json> {
    const sent = body && { body: JSON.stringify(body) }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(own + path, { method, headers, ...sent })
    const text = await answer.text()
    assert.equal(answer.status, 200, `${method} ${path}: ${text}`)
    return JSON.parse(text) as Json
  }
  const nodesOf = async (at: Process) => (await admin(at, '/admin/nodes')) as unknown as Json[]
  const total = async (at: Process, path: string): Promise<number> => Number((await admin(at, path))['total'])
  const watched = (at: Process): Promise<number> => total(at, '/admin/accounts?state=watching')

  test('lists every actor, page by page', async () => {
    const emails = users.map(({ email }) => email).sort()
    for (const at of processes) {
      const seen: Json[] = []
      for (let offset = 0; offset < accounts; offset += 4) {
        const page = await admin(at, `/admin/accounts?state=watching&limit=4&offset=${offset}`)
        assert.equal(page['total'], accounts)
        assert.deepEqual(page['silent'], [])
        seen.push(...(page['accounts'] as Json[]))
      }
      assert.deepEqual(seen.map(({ email }) => String(email)).sort(), emails)
      // without a filter that asks the actors, too
      const { accounts: rows } = (await admin(at, '/admin/accounts')) as { accounts: Json[] }
      assert.deepEqual(new Set(rows.map(({ state }) => state)), new Set(['watching']))
      assert.equal(await total(at, '/admin/accounts?state=waiting'), 0)
      const { webhooks } = (await admin(at, '/admin/webhooks')) as { webhooks: Json[] }
      assert.equal(webhooks.length, accounts + 1)
      assert.deepEqual(new Set(webhooks.map(({ state }) => state)), new Set(['idle']))
      const { hosts } = (await admin(at, '/admin/hosts')) as { hosts: Json[] }
      assert.deepEqual(
        hosts.map(({ accounts: count, states }) => [count, states]),
        [[accounts, { watching: accounts }]],
      )
      const overview = await admin(at, '/admin/overview')
      assert.deepEqual((overview['accounts'] as Json)['states'], { watching: accounts })
      assert.deepEqual(overview['webhooks'], {
        total: accounts + 1,
        states: { idle: accounts + 1 },
        pending: 0,
        oldest: null,
      })
    }
  })

  test('counts the logins of all at a mail server', async () => {
    const { logins } =
      ((await admin(processes[2] as Process, '/admin/hosts'))['hosts'] as { logins: Json }[])[0] ?? assert.fail()
    for (const { email } of users) {
      const { accounts: rows } = (await admin(processes[0] as Process, `/admin/accounts?q=${email}`)) as {
        accounts: Json[]
      }
      await admin(processes[0] as Process, `/admin/accounts/${String(rows[0]?.['id'])}/check`, 'POST')
    }
    for (const at of processes) {
      const [host] = (await admin(at, '/admin/hosts'))['hosts'] as { logins: Json }[]
      assert(Number(host?.logins['ok']) >= accounts, JSON.stringify([logins, host]))
    }
  })

  test('lists the processes', async () => {
    for (const at of processes) {
      const nodes = await nodesOf(at)
      assert.equal(nodes.length, 3)
      assert.equal(
        nodes.reduce((sum, { slots }) => sum + Number(slots), 0),
        4096,
      )
      assert.deepEqual(nodes.map(({ role }) => role).sort(), ['all', 'all', 'api'])
      assert.deepEqual(
        nodes.map(({ state }) => state),
        ['joined', 'joined', 'joined'],
      )
      assert.deepEqual(
        nodes.filter(({ here }) => here === true).map(({ pid }) => pid),
        [at.service.pid],
      )
      assert(
        nodes.every(({ beat_age: age }) => Number(age) < 15),
        JSON.stringify(nodes),
      )
      const page = await browse(at, '/console/nodes')
      for (const { address } of nodes) assert(page.text.includes(String(address)), page.text)
    }
  })

  test('has its own metrics, and those of all', async () => {
    let sum = 0
    for (const { own } of processes) {
      const [mine, all] = await Promise.all(
        ['', '?nodes=all'].map(async (query) => (await fetch(`${own}/metrics${query}`, { headers: metering })).text()),
      )
      sum += Number(/^mailroom_accounts\{tag="watching"\} (\d+)$/m.exec(mine ?? '')?.[1] ?? 0)
      assert(!mine?.includes('node="'))
      const counts = [...(all ?? '').matchAll(/^mailroom_accounts\{tag="watching",node="([^"]+)"\} (\d+)$/gm)]
      assert.equal(new Set(counts.map(([, node]) => node)).size, 2, String(all))
      assert.equal(
        counts.reduce((total, [, , count]) => total + Number(count), 0),
        accounts,
      )
      assert.equal([...(all ?? '').matchAll(/^mailroom_node_up\{node="[^"]+"\} 1$/gm)].length, 3)
      const hosts = [...(all ?? '').matchAll(/^mailroom_host_accounts\{.*node="[^"]+"\} (\d+)$/gm)]
      assert.equal(
        hosts.reduce((total, [, count]) => total + Number(count), 0),
        accounts,
      )
    }
    assert.equal(sum, accounts)
  })

  test('has the console, with one login for all, and reaches the owner', async () => {
    for (const at of processes) {
      const list = await browse(at, '/console/accounts')
      assert.equal(list.status, 200)
      const ids = [...list.text.matchAll(/href="\/console\/accounts\/([0-9a-f]{24})"/g)].map(([, id]) => String(id))
      assert.equal(ids.length, accounts)
      for (const id of ids) {
        const page = await browse(at, `/console/accounts/${id}`)
        assert.match(page.text, /It is connected and hears of new mail/, id)
        const over = AbortSignal.timeout(20_000)
        const events = await fetch(`${at.own}/console/events?page=/console/accounts/${id}`, {
          ...{ headers: { cookie }, signal: over },
        })
        let sent = ''
        for await (const chunk of (events.body ?? assert.fail()).pipeThrough(new TextDecoderStream()))
          if ((sent += chunk).includes('data: ')) break
        assert.match(sent, /running\.life\.online|It is connected and hears of new mail/)
      }
      const [id = ''] = ids
      assert.match(await act(at, `/console/accounts/${id}/pause`), /role="status">[^<]*paused/i)
      await until('it is paused', async () => (await admin(at, `/admin/accounts/${id}`))['state'] === 'paused')
      assert.match(await act(at, `/console/accounts/${id}/resume`), /role="status">/)
      await until('it is watched', async () => (await admin(at, `/admin/accounts/${id}`))['state'] === 'watching')
      for (const of of ids.slice(0, 2)) {
        const shown = await act(at, `/console/accounts/${of}/link`)
        assert.match(shown, /https:\/\/mail\.example\.com\/connect\/[a-z0-9]{16}/)
      }
      assert.match(
        await act(at, '/console/hosts', { host: dovecot.host, what: 'slow', pace: '600' }),
        /at most 600 a minute/,
      )
    }
    const wrong = await fetch(`${(processes[2] as Process).own}/console/login`, {
      ...{ method: 'POST', redirect: 'manual', headers: { origin: publicUrl } },
      body: new URLSearchParams({ password }),
    })
    assert.equal(wrong.status, 403, 'a form of another address')
  })

  test('says behind what callbacks wait, and sends them again', async () => {
    receiver.behave(() => 503)
    for (const { email } of users) await dovecot.append(email, 'INBOX', mail({ to: email, subject: `new ${email}` }))
    const first = processes[0] as Process
    const pendings = async (at: Process) => (await admin(at, '/admin/deliveries?state=pending'))['deliveries'] as Json[]
    await until('all wait', async () => (await pendings(first)).length === 2 * accounts, { withinMs: 30_000 })
    for (const at of processes)
      await until(
        'each says why',
        async () => (await pendings(at)).every(({ waits }) => (waits as Json)['behind'] !== 'turn'),
        {
          withinMs: 30_000,
        },
      )
    assert.equal(await total(processes[2] as Process, '/admin/webhooks?failing=1'), accounts + 1)
    // a 410 ends what waits as failed
    receiver.behave(() => 410)
    await until(
      'all have failed',
      async () => Number((await admin(first, '/admin/deliveries'))['failed']) === 2 * accounts,
      {
        withinMs: 60_000,
      },
    )
    receiver.behave(() => 200)
    for (const { id, webhookId } of users)
      await first.service.ok('POST', `/lite/users/${id}/webhooks/${webhookId}`, { active: 1 })
    const begun = await admin(processes[2] as Process, '/admin/deliveries/redeliver', 'POST', {
      webhook: `${receiver.url}/user`,
    })
    assert.equal(begun['total'], accounts, JSON.stringify(begun))
    await until(
      'they have come',
      () =>
        new Set(
          receiver
            .accepted()
            .filter(({ path }) => path === '/user')
            .map(({ id }) => id),
        ).size === accounts,
      {
        withinMs: 30_000,
      },
    )
    for (const at of processes) {
      const { resending } = (await admin(at, '/admin/deliveries')) as { resending: Json | null }
      assert.equal(resending?.['queued'], accounts, JSON.stringify(resending))
    }
  })

  test('names the one that does not answer, and a login outlives its process', async () => {
    const [first, second] = processes as [Process, Process]
    const address = (await nodesOf(second)).find(({ here }) => here === true)?.['address']
    process.kill(second.service.pid, 'SIGSTOP')
    const list = await admin(first, '/admin/accounts?limit=3')
    assert.deepEqual([list['total'], list['silent']], [accounts, [address]])
    const { attention } = (await admin(first, '/admin/overview')) as { attention: Json[] }
    assert(
      attention.some(({ what }) => what === `the process at ${String(address)} does not answer`),
      JSON.stringify(attention),
    )
    const node = (await nodesOf(first)).find((one) => one['address'] === address)
    assert.deepEqual([node?.['state'], node?.['accounts']], ['silent', null])
    const metrics = await (await fetch(`${first.own}/metrics?nodes=all`, { headers: metering })).text()
    assert(metrics.includes(`mailroom_node_up{node="${String(address)}"} 0`), metrics)
    process.kill(second.service.pid, 'SIGKILL')
    await until('the other one has all', async () => (await watched(processes[2] as Process)) === accounts, {
      withinMs: 60_000,
    })
    for (const at of [first, processes[2] as Process]) {
      const page = await browse(at, '/console')
      assert.equal(page.status, 200)
      assert(!page.text.includes('does not answer'))
    }
    assert.equal((await act(first, '/console/logout')).includes('Log in'), true)
    for (const at of [first, processes[2] as Process]) assert.equal((await browse(at, '/console')).status, 303)
  })
})
