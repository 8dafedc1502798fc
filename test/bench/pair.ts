/**
 * Another commit and the work tree side by side: both services run at the same time over the same mailboxes of one
 * Dovecot, and do the same work. Ratios of processor time of two such processes hold on a busy machine; times do not.
 */
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { startReceiver, type CallbackReceiver } from '../support/callbacks.ts'
import { startService, type Service } from '../support/service.ts'
import { createUser, createWebhook } from '../support/users.ts'
import { until } from '../support/until.ts'
import { type Both, callRounds, inTurn, type Next, unknownId } from './lib/calls.ts'
import { baselineCommit, checkOut } from './lib/checkout.ts'
import { allWatched } from './lib/metrics.ts'
import { benchMail } from './lib/mail.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { type Pair, type Row, rowOf, tooHigh } from './lib/ratios.ts'
import { header, jsonLine, say, table } from './lib/report.ts'

interface Plan {
  readonly accounts: number
  readonly mailPerAccount: number
  readonly idleSeconds: number
  /** Rounds of calls, and calls of each service in a round. */
  readonly rounds: number
  readonly calls: number
  readonly bursts: number
  readonly events: number
}

const whole: Plan = {
  accounts: 100,
  mailPerAccount: 200,
  idleSeconds: 120,
  rounds: 100,
  calls: 600,
  bursts: 5,
  events: 1000,
}
const short: Plan = {
  accounts: 40,
  mailPerAccount: 50,
  idleSeconds: 20,
  rounds: 16,
  calls: 400,
  bursts: 3,
  events: 400,
}

interface Stage {
  readonly plan: Plan
  readonly dovecot: Dovecot
  readonly receiver: CallbackReceiver
  /** That of the other commit and that of the work tree. */
  readonly services: Both<Service>
  readonly mailboxes: readonly string[]
}

export async function pair(options: BenchOptions): Promise<boolean> {
  const plan: Plan = { ...(options.short ? short : whole), ...given(options) }
  const commit = options.commit ?? baselineCommit()
  header('pair', { commit, ...plan })
  const checkout = options.beside === null ? checkOut(commit) : null
  const parts = new AsyncDisposableStack()
  parts.defer(() => checkout?.remove())
  try {
    const stage = await build(plan, options.beside ?? checkout?.directory ?? '', parts)
    const rows = await measure(stage)
    return report(rows, commit, options.failOver)
  } finally {
    await parts.disposeAsync()
  }
}

function given({ accounts, count, seconds }: BenchOptions): Partial<Plan> {
  return {
    ...(accounts === null ? {} : { accounts }),
    ...(count === null ? {} : { mailPerAccount: count }),
    ...(seconds === null ? {} : { idleSeconds: seconds }),
  }
}

async function build(plan: Plan, other: string, parts: AsyncDisposableStack): Promise<Stage> {
  const mailboxes = Array.from({ length: plan.accounts }, (_, index) => `u${index}@bench.example`)
  const dovecot = await startDovecot({ mailboxes: plan.accounts * 4 })
  parts.defer(() => dovecot.remove())
  const receiver = await startReceiver()
  parts.defer(() => receiver.close())
  await inParallel(mailboxes, 8, (name) => append(dovecot, name, 'old', plan.mailPerAccount))
  const start = async (checkout: { readonly checkout?: string }): Promise<Service> => {
    const service = await startService({ ...checkout, env: { MAILROOM_COMMAND_IDLE_CLOSE: '2s' } })
    parts.defer(() => service.remove())
    return service
  }
  // A first start compiles, and keeps what it compiled: no later start of that checkout holds it.
  for (const checkout of [{ checkout: other }, {}]) await (await startService(checkout)).remove()
  const services = await Promise.all([start({ checkout: other }), start({})])
  return { plan, dovecot, receiver, services, mailboxes }
}

async function append(dovecot: Dovecot, name: string, series: string, count: number): Promise<void> {
  const client = await dovecot.connect(name)
  const own = name.split('@', 1)[0]
  const mails = Array.from({ length: count }, (_, index) => benchMail(`${series}-${own}-${index}`, name))
  await client.append('INBOX', mails)
  await client.close()
}

async function measure(stage: Stage): Promise<Row[]> {
  const { plan } = stage
  const empty = await memoryOf(stage, 5)
  const { users, sync } = await connect(stage)
  await onlyWatching(stage)
  await pushOnce(stage)
  const idle = await idleRounds(stage)
  const connected = await memoryOf(stage, 5)
  const calls: Row[] = []
  for (const [name, paths] of await pathsOf(stage, users)) {
    calls.push(rowOf(name, 'µs a call', await callRounds(stage.services, paths, plan)))
  }
  const bursts = await burstRounds(stage, users)
  const starts = await startRounds(stage)
  return [
    ...calls,
    rowOf('one event of a burst', 'ms', bursts),
    rowOf(`first sync of ${plan.accounts} × ${plan.mailPerAccount}`, 's', [sync]),
    rowOf(`${plan.accounts} idle accounts`, '% of a core', idle),
    rowOf(`a start with ${plan.accounts} accounts`, 's', starts),
    rowOf('resident memory, empty', 'MiB', [empty]),
    rowOf(`resident memory, ${plan.accounts} accounts`, 'MiB', [connected]),
  ]
}

async function both<T, R>(all: Both<T>, work: (one: T, index: number) => Promise<R>): Promise<Both<R>> {
  return Promise.all([work(all[0], 0), work(all[1], 1)])
}

/** Processor time of each service while `work` runs, in nanoseconds. */
async function spent({ services }: Stage, work: () => Promise<unknown>): Promise<Pair> {
  const [before, now] = services.map(({ pid }) => cpuNanosOf(pid)) as [number, number]
  await work()
  return { before: cpuNanosOf(services[0].pid) - before, now: cpuNanosOf(services[1].pid) - now }
}

const scaled = ({ before, now }: Pair, by: number): Pair => ({ before: before / by, now: now / by })

function rest(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}

/** The smallest of several looks: what a garbage collection has just left. */
async function memoryOf({ services }: Stage, seconds: number): Promise<Pair> {
  const looks: Pair[] = []
  for (let look = 0; look < seconds * 4; look += 1) {
    await rest(0.25)
    looks.push({ before: services[0].rssKib() / 1024, now: services[1].rssKib() / 1024 })
  }
  return { before: Math.min(...looks.map(({ before }) => before)), now: Math.min(...looks.map(({ now }) => now)) }
}

async function connect(stage: Stage): Promise<{ users: Both<string[]>; sync: Pair }> {
  const { services, dovecot, mailboxes, plan } = stage
  let users: Both<string[]> = [[], []]
  const sync = await spent(stage, async () => {
    users = await both(services, (service) => inParallel(mailboxes, 8, (email) => createUser(service, dovecot, email)))
    await both(services, (service, index) =>
      inParallel(users[index] ?? [], 4, (id) =>
        until(`all mail of ${id}`, () => holds(service, id, plan.mailPerAccount), {
          withinMs: 300_000,
          everyMs: 250,
        }),
      ),
    )
  })
  return { users, sync: scaled(sync, 1e9) }
}

const inbox = (user: string): string => `/lite/users/${user}/email_accounts/0/folders/INBOX/messages`

/** A 503 says that older pages are still being read. */
async function holds(service: Service, user: string, count: number): Promise<boolean> {
  const answer = await service.api('GET', `${inbox(user)}?limit=1&offset=${count - 1}`)
  return Array.isArray(answer.body) && answer.body.length > 0
}

/** Until each service has one connection for each account, for three looks in a row. */
async function onlyWatching({ dovecot, mailboxes }: Stage): Promise<void> {
  let looks = 0
  const quiet = async (): Promise<boolean> => {
    looks = (await dovecot.connections()) <= 2 * mailboxes.length ? looks + 1 : 0
    return looks >= 3
  }
  await until('idle connections only', quiet, { withinMs: 120_000, everyMs: 1000 })
}

/**
 * A host is trusted to push to IDLE once it has pushed: until then each INBOX is asked every ten seconds. Mail that
 * comes while its INBOX is asked is no push, so several mailboxes have mail.
 */
async function pushOnce({ dovecot, mailboxes }: Stage): Promise<void> {
  for (const name of mailboxes.slice(0, 5)) {
    await append(dovecot, name, 'push', 1)
    await rest(3)
  }
}

const idleParts = 4

async function idleRounds(stage: Stage): Promise<Pair[]> {
  const seconds = stage.plan.idleSeconds / idleParts
  const rounds: Pair[] = []
  for (let part = 0; part < idleParts; part += 1) {
    rounds.push(scaled(await spent(stage, () => rest(seconds)), seconds * 1e7))
  }
  return rounds
}

async function pathsOf({ services }: Stage, users: Both<string[]>): Promise<[name: string, paths: Both<Next>][]> {
  const each = (path: (user: string) => string): Both<Next> => [inTurn(users[0].map(path)), inTurn(users[1].map(path))]
  const messages = await both(services, (service, index) =>
    inParallel((users[index] ?? []).slice(0, 20), 4, async (user) => {
      const [first] = await service.list(`${inbox(user)}?limit=1`)
      return `/lite/users/${user}/email_accounts/0/messages/${String(first?.['message_id'])}`
    }),
  )
  return [
    ['a list of 25', each(inbox)],
    ['one message', [inTurn(messages[0]), inTurn(messages[1])]],
    ['folders', each((user) => `/lite/users/${user}/email_accounts/0/folders`)],
    ['a 404', each((user) => `/lite/users/${user}/email_accounts/0/messages/${unknownId}`)],
  ]
}

/** Each message is told to both services' webhooks. The first burst warms up. */
async function burstRounds(stage: Stage, users: Both<string[]>): Promise<Pair[]> {
  const { plan, services, receiver, mailboxes, dovecot } = stage
  await both(services, (service, index) =>
    inParallel(users[index] ?? [], 8, (id) =>
      createWebhook(service, id, `${receiver.url}/${index}`, { include_body: 1, body_type: 'text/plain' }),
    ),
  )
  const share = Math.ceil(plan.events / mailboxes.length)
  const rounds: Pair[] = []
  for (let burst = 0; burst <= plan.bursts; burst += 1) {
    const wanted = receiver.all.length + 2 * share * mailboxes.length
    const round = await spent(stage, async () => {
      await inParallel(mailboxes, mailboxes.length, (name) => append(dovecot, name, `burst${burst}`, share))
      await until('all callbacks', () => receiver.all.length >= wanted, { withinMs: 120_000, everyMs: 50 })
      await rest(2)
    })
    if (burst > 0) rounds.push(scaled(round, share * mailboxes.length * 1e6))
  }
  return rounds
}

/** Processor time from the start of the process until all accounts are watched. */
async function startRounds({ services, mailboxes, plan }: Stage): Promise<Pair[]> {
  const rounds: Pair[] = []
  for (let round = 0; round < plan.bursts; round += 1) {
    const [before, now] = await both(services, async (service) => {
      await service.stop()
      await service.start()
      await allWatched(service, mailboxes.length, 120_000)
      await rest(2)
      return cpuNanosOf(service.pid)
    })
    rounds.push(scaled({ before, now }, 1e9))
  }
  return rounds
}

function report(rows: readonly Row[], commit: string, failOver: number | null): boolean {
  const two = (value: number): string => value.toFixed(2)
  table(
    ['', 'unit', commit.slice(0, 12), 'work tree', 'ratio', 'spread of the rounds'],
    rows.map(({ name, unit, before, now, ratio, spread }) => [
      name,
      unit,
      two(before),
      two(now),
      two(ratio),
      spread === 0 ? '' : two(spread),
    ]),
  )
  const over = failOver === null ? [] : tooHigh(rows, failOver)
  if (failOver !== null)
    say(over.length === 0 ? `no ratio is over ${failOver}` : `over ${failOver}: ${over.join(', ')}`)
  jsonLine('pair', { commit, rows, ok: over.length === 0 })
  return over.length === 0
}
