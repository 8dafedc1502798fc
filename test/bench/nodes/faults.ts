/**
 * Mail while nodes fail at random: three that work and two for calls, on one database. Killed, stopped for a while, cut
 * from the database, restarted one after the other, joined by another one. In the end each message was told to each
 * webhook, under one id, in the order of its mailbox, each account was watched again soon after a kill, and at no time
 * two nodes wrote one account. `--short`: each fault once, for `npm run test:all`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { part } from '../../support/callbacks.ts'
import type { Json, Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { benchId, benchMail } from '../lib/mail.ts'
import type { BenchOptions } from '../lib/options.ts'
import { header, jsonLine, say, table } from '../lib/report.ts'
import { percentile, round } from '../lib/statistics.ts'
import {
  allWatched,
  evenlyWatched,
  patientMs,
  startCluster,
  watched,
  type Cluster,
  type Node,
  type User,
} from './cluster.ts'

/** `answered`: share of the calls with a 200. While nobody owns a user, calls for the user end with 503. */
const goal = { watchedMs: 30_000, answered: 0.8 }
const times = { cutMs: 20_000, callEveryMs: 100, settleMs: patientMs }
/** `stoppedMs`: a node that is silent for 15 s loses its slots. */
const paces = {
  short: { accounts: 20, seconds: 0, stoppedMs: 18_000, sendEveryMs: 200 },
  long: { accounts: 300, seconds: 600, stoppedMs: 40_000, sendEveryMs: 50 },
} as const
type Pace = (typeof paces)[keyof typeof paces]

interface Stage {
  readonly cluster: Cluster
  readonly workers: Node[]
  readonly fronts: readonly Node[]
  readonly mail: Mail
  readonly pace: Pace
  /** Milliseconds until every account was watched again, by fault. */
  readonly watchedAfter: { readonly fault: string; readonly ms: number }[]
  /** What calls answered that was neither 200 nor 503. */
  readonly wrong: string[]
  calls: number
  /** Calls with a 200. */
  answered: number
  /** Calls without an answer: a connection may end while it is at rest. */
  unanswered: number
}

export async function nodeFaults(options: BenchOptions): Promise<boolean> {
  const pace = options.short ? paces.short : paces.long
  const accounts = options.accounts ?? pace.accounts
  const seconds = options.seconds ?? pace.seconds
  header('nodes --faults', { accounts, seconds })
  const cluster = await startCluster(accounts)
  try {
    const stage = await build(cluster, accounts, pace)
    const over = { isOver: false }
    const beside = [sendAll(stage, over), callAll(stage, over), supervise(stage, over)]
    await disturb(stage, seconds)
    over.isOver = true
    await Promise.all(beside)
    await stage.mail.settle()
    return report(options, stage)
  } finally {
    await cluster.remove()
  }
}

async function build(cluster: Cluster, accounts: number, pace: Pace): Promise<Stage> {
  const fronts = [await cluster.start('api'), await cluster.start('api')]
  const workers = [await cluster.start('engine'), await cluster.start('engine'), await cluster.start('engine')]
  const [front] = fronts
  if (front === undefined) throw new Error('no node')
  await front.service.ok('POST', '/lite/webhooks', { callback_url: `${cluster.receiver.url}/app` })
  await cluster.connect(front.service, accounts)
  await evenlyWatched(cluster, workers)
  const mail = trackMail(cluster)
  const counts = { calls: 0, answered: 0, unanswered: 0 }
  return { cluster, workers, fronts, mail, pace, watchedAfter: [], wrong: [], ...counts }
}

interface Mail {
  /** Appends the next message of this user. */
  send(user: User): Promise<void>
  /** Resolves when all are told of, or after a long time. */
  settle(): Promise<void>
  facts(): { readonly sent: number; readonly lost: number; readonly newIds: number; readonly outOfOrder: number }
}

/** Callbacks by webhook: of each message its ids, and the first ones in their order. */
function trackMail({ dovecot, receiver, users }: Cluster): Mail {
  const counts = new Map<string, number>()
  const ids = new Map<string, Set<string>>()
  const last = new Map<string, number>()
  let outOfOrder = 0
  let sent = 0
  receiver.onCallback(({ body, id }) => {
    const message = benchId(part(body, 'message_data')['email_message_id'])
    const [, user, number] = /^fault-(\d+)-(\d+)$/.exec(message ?? '') ?? []
    if (user === undefined) return
    const webhook = String(body['webhook_id'])
    const known = ids.get(`${webhook} ${message ?? ''}`)
    if (known !== undefined) {
      known.add(id)
      return
    }
    ids.set(`${webhook} ${message ?? ''}`, new Set([id]))
    const line = `${webhook} ${user}`
    if (Number(number) < (last.get(line) ?? -1)) outOfOrder += 1
    else last.set(line, Number(number))
  })
  const told = (): boolean => ids.size >= 2 * sent
  return {
    async send({ mailbox }) {
      const user = users.findIndex((one) => one.mailbox === mailbox)
      const number = counts.get(mailbox) ?? 0
      counts.set(mailbox, number + 1)
      await dovecot.append(mailbox, 'INBOX', benchMail(`fault-${user}-${number}`, mailbox))
      sent += 1
    },
    async settle() {
      await until('every callback', told, { withinMs: times.settleMs, everyMs: 100 }).catch(() => undefined)
      // Repetitions.
      await pause(5000)
    },
    facts: () => ({
      sent,
      lost: 2 * sent - ids.size,
      newIds: [...ids.values()].filter((some) => some.size > 1).length,
      outOfOrder,
    }),
  }
}

interface Over {
  isOver: boolean
}

function one<T>(list: readonly T[]): T {
  const chosen = list[Math.floor(Math.random() * list.length)]
  if (chosen === undefined) throw new Error('an empty list')
  return chosen
}

async function sendAll({ cluster, mail, pace }: Stage, over: Over): Promise<void> {
  while (!over.isOver) {
    await mail.send(one(cluster.users))
    await pause(pace.sendEveryMs)
  }
}

/** Reads and writes of clients, through either node for calls. */
async function callAll(stage: Stage, over: Over): Promise<void> {
  while (!over.isOver) {
    const { service } = one(stage.fronts)
    const path = `/lite/users/${one(stage.cluster.users).id}/email_accounts/0/folders/INBOX/messages`
    const [message] = ((await call(stage, service, 'GET', `${path}?limit=1`)) ?? []) as {
      readonly message_id: string
    }[]
    const flags = `${path}/${encodeURIComponent(message?.message_id ?? '')}/flags`
    if (message !== undefined) await call(stage, service, 'POST', flags, { seen: Math.random() < 0.5 ? 1 : 0 })
    await pause(times.callEveryMs)
  }
}

/** The body of a 200; null = another answer, or none. */
async function call(stage: Stage, service: Service, method: string, path: string, body?: Json): Promise<unknown> {
  const answer = await service.api(method, path, body).catch(() => null)
  stage.calls += 1
  if (answer === null) stage.unanswered += 1
  else if (answer.status === 200) stage.answered += 1
  else if (answer.status !== 503) stage.wrong.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer?.status === 200 ? answer.body : null
}

/** Starts what has ended by itself, as whoever runs the service does. */
async function supervise({ workers, fronts }: Stage, over: Over): Promise<void> {
  while (!over.isOver) {
    for (const { service } of [...workers, ...fronts])
      if (!taken.has(service) && hasEnded(service)) await taking(service, () => startAgain(service))
    await pause(250)
  }
}

/** Processes that a fault, or the supervisor, is ending or starting: never both at a time. */
const taken = new Set<Service>()

async function taking(service: Service, work: () => Promise<void>): Promise<void> {
  taken.add(service)
  await work().finally(() => taken.delete(service))
}

/** A fault of a process that runs. */
async function disturbed({ service }: Node, work: (service: Service) => Promise<void>): Promise<void> {
  await until('the node runs', () => !taken.has(service) && !hasEnded(service), { withinMs: patientMs })
  await taking(service, () => work(service))
}

function hasEnded(service: Service): boolean {
  try {
    process.kill(service.pid, 0)
    return false
  } catch {
    return true
  }
}

async function startAgain(service: Service): Promise<void> {
  await service.kill9()
  await service.start()
}

const all: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  'kill -9': (stage) =>
    disturbed(one(stage.workers), async (service) => {
      await service.kill9()
      await back(stage, 'kill -9', service)
      await service.start()
    }),
  'SIGSTOP, SIGCONT': (stage) =>
    disturbed(one(stage.workers), async (service) => {
      const { pid } = service
      const stoppedAt = performance.now()
      process.kill(pid, 'SIGSTOP')
      await back(stage, 'SIGSTOP', service)
      await pause(Math.max(0, stage.pace.stoppedMs - (performance.now() - stoppedAt)))
      process.kill(pid, 'SIGCONT')
    }),
  async 'cut from the database'(stage) {
    const { proxy } = one(stage.workers)
    proxy.listen(false)
    await pause(times.cutMs)
    proxy.listen(true)
  },
  async 'rolling restart'({ workers, cluster }) {
    for (const node of workers) {
      await disturbed(node, async (service) => {
        await service.stop()
        await service.start()
      })
      await allWatched(cluster, workers)
    }
  },
  async 'join and leave'({ workers, cluster }) {
    const node = await cluster.start('engine')
    workers.push(node)
    await evenlyWatched(cluster, workers)
    workers.splice(workers.indexOf(node), 1)
    await cluster.end(node)
  },
}

/** Until the others watch every account. */
async function back({ cluster, workers, watchedAfter }: Stage, fault: string, but: Service): Promise<void> {
  const began = performance.now()
  await allWatched(
    cluster,
    workers.filter(({ service }) => service !== but),
  )
  watchedAfter.push({ fault, ms: Math.round(performance.now() - began) })
}

/** Each once at least, in any order, and then at random. */
async function disturb(stage: Stage, seconds: number): Promise<void> {
  const end = performance.now() + seconds * 1000
  const waiting = Object.entries(all).sort(() => Math.random() - 0.5)
  while (waiting.length > 0 || performance.now() < end) {
    const [name, act] = waiting.shift() ?? one(Object.entries(all))
    const began = performance.now()
    await act(stage)
    await until('every account is watched', async () => (await watched(stage.workers)) === stage.cluster.users.length, {
      withinMs: patientMs,
      everyMs: 200,
      explain: () => stage.workers.map((node) => `--- ${node.name}\n${node.service.log().slice(-3000)}`).join('\n'),
    })
    say(`${name}: over after ${round((performance.now() - began) / 1000)} s`)
    for (const { proxy } of stage.cluster.nodes) proxy.seen.length = 0
    await pause(2000)
  }
}

function report(options: BenchOptions, stage: Stage): boolean {
  const { mail, watchedAfter, wrong, calls, answered, unanswered, cluster } = stage
  const { claims, writes, refused, double } = cluster.writers.facts()
  const { sent, lost, newIds, outOfOrder } = mail.facts()
  const by = Map.groupBy(watchedAfter, ({ fault }) => fault)
  table(
    ['watched again after', 'times', 'p50 (ms)', 'most (ms)'],
    [...by].map(([fault, some]) => {
      const took = some.map(({ ms }) => ms)
      return [fault, took.length, percentile(took, 50), Math.max(...took)]
    }),
  )
  for (const line of [...wrong.slice(0, 10), ...double.slice(0, 10)]) say(line)
  const bugs = cluster.nodes.flatMap(
    ({ service }) => service.log().match(/.*(?:unhandled|uncaught|a bug in).*/gi) ?? [],
  )
  for (const line of bugs.slice(0, 10)) say(line)
  const longest = Math.max(...watchedAfter.map(({ ms }) => ms))
  say(`sent ${sent}, lost ${lost}, repeated under a new id ${newIds}, out of order ${outOfOrder}`)
  say(`calls ${calls}, answered by 200 ${answered}, wrong answers ${wrong.length}, no answer ${unanswered}`)
  say(`accounts: ${claims} claims, ${writes} writes, ${refused} refused, ${double.length} of two nodes at a time`)
  const isKept = lost === 0 && newIds === 0 && outOfOrder === 0 && wrong.length === 0 && bugs.length === 0
  const isAnswered = answered >= goal.answered * calls
  const ok = isKept && isAnswered && double.length === 0 && (longest <= goal.watchedMs || options.untimed)
  const words = 'nothing lost, repeated, out of order or written by two nodes'
  const numbers = `${goal.answered * 100} % of the calls answered, watched again within ${goal.watchedMs / 1000} s`
  say(`goal: ${words}, ${numbers}: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('nodes --faults', {
    sent,
    lost,
    newIds,
    outOfOrder,
    calls,
    answered,
    wrong: wrong.length,
    unanswered,
    writers: { claims, writes, refused, double: double.length },
    watchedAfter,
    ok,
  })
  return ok
}
