/**
 * append → callback, against the floor: append → `exists` on a second, bare imapflow connection to the same mailbox, in
 * the same run. And the same for a second message that follows the first in its mailbox after 0.1, 1 and 5 s.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { trackArrivals, type Arrival, type Arrivals, type Mailbox } from './lib/arrivals.ts'
import { startFleet, type Fleet } from './lib/fleet.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round, summarise, type Summary } from './lib/statistics.ts'
import { watchBare } from './lib/watcher.ts'

/** Above the floor: of the embedded store (issue 1), of MongoDB (its p50 only). Milliseconds. */
const goals = { sqlite: { p50: 25, p99: 100 }, mongodb: { p50: 60, p99: null } }
const followers = [0.1, 1, 5]

interface Series {
  readonly name: string
  readonly callback: Summary
  readonly floor: Summary
  /** Percentile minus percentile. */
  readonly over: { readonly p50: number; readonly p99: number }
  /** Message by message. */
  readonly each: Summary
  readonly lost: number
  readonly repeated: number
}

export async function latency(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 100
  const count = options.count ?? 200
  header('latency', { store: options.store, accounts, messages: count })
  const fleet = await startFleet({ accounts, store: options.store })
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    await fleet.connect()
    await inParallel(fleet.users, 8, (id) =>
      fleet.service.ok('POST', `/lite/users/${id}/webhooks`, { callback_url: `${fleet.receiver.url}/${id}` }),
    )
    const mailboxes = await openMailboxes(fleet)
    const arrivals = trackArrivals(mailboxes, fleet.receiver)
    await warmUp(mailboxes, arrivals)
    await spread(mailboxes, arrivals, count)
    for (const seconds of followers) await pairs(mailboxes, arrivals, seconds, Math.ceil(count / 4))
    await arrivals.settle(30_000)
    await closeMailboxes(mailboxes)
    return report(options, accounts, count, arrivals.all, fleet)
  } finally {
    await fleet.remove()
  }
}

async function openMailboxes(fleet: Fleet): Promise<Mailbox[]> {
  return inParallel(fleet.mailboxes, 8, async (name) => ({
    name,
    appender: await fleet.dovecot.connect(name),
    watcher: await watchBare(fleet.dovecot, name),
  }))
}

async function closeMailboxes(mailboxes: readonly Mailbox[]): Promise<void> {
  for (const { appender, watcher } of mailboxes) {
    await watcher?.close()
    await appender.close()
  }
}

/** One message to everybody: after it every account is known to be watching. Its times count for nothing. */
async function warmUp(mailboxes: readonly Mailbox[], arrivals: Arrivals): Promise<void> {
  for (const mailbox of mailboxes) await arrivals.send(mailbox, 'warm')
  await arrivals.settle(120_000)
  const missing = arrivals.all.filter((arrival) => arrival.told === 0).length
  if (missing > 0) throw new Error(`${missing} of ${mailboxes.length} accounts told nothing of their first message`)
}

/** Evenly in time over all mailboxes. */
async function spread(mailboxes: readonly Mailbox[], arrivals: Arrivals, count: number): Promise<void> {
  const sending: Promise<void>[] = []
  for (let index = 0; index < count; index++) {
    const mailbox = mailboxes[index % mailboxes.length]
    if (mailbox !== undefined) sending.push(arrivals.send(mailbox, 'single'))
    await pause(100)
  }
  await Promise.all(sending)
  await arrivals.settle(30_000)
}

/** Two messages in one mailbox, the second `seconds` after the first. */
async function pairs(mailboxes: readonly Mailbox[], arrivals: Arrivals, seconds: number, count: number): Promise<void> {
  const sending = mailboxes.slice(0, count).map(async (mailbox, index) => {
    await pause(index * 150)
    const due = performance.now() + seconds * 1000
    await arrivals.send(mailbox, `first-${seconds}s`)
    await pause(Math.max(0, due - performance.now()))
    await arrivals.send(mailbox, `after-${seconds}s`)
  })
  await Promise.all(sending)
  await arrivals.settle(30_000)
}

function measure(name: string, arrivals: readonly Arrival[]): Series {
  const times = (of: (arrival: Arrival) => number | null): number[] =>
    arrivals.map(of).filter((value): value is number => value !== null)
  const callback = summarise(times((one) => (one.toldAt === null ? null : one.toldAt - one.sentAt)))
  const floor = summarise(times((one) => (one.heardAt === null ? null : one.heardAt - one.sentAt)))
  return {
    name,
    callback,
    floor,
    over: { p50: round(callback.p50 - floor.p50), p99: round(callback.p99 - floor.p99) },
    each: summarise(times((one) => (one.toldAt === null || one.heardAt === null ? null : one.toldAt - one.heardAt))),
    lost: arrivals.filter((one) => one.told === 0).length,
    repeated: arrivals.filter((one) => one.told > 1).length,
  }
}

function report(
  options: BenchOptions,
  accounts: number,
  count: number,
  all: readonly Arrival[],
  fleet: Fleet,
): boolean {
  const names = ['single', ...followers.map((seconds) => `after-${seconds}s`)]
  const series = names.map((name) =>
    measure(
      name,
      all.filter((one) => one.series === name),
    ),
  )
  const row = ({ name, callback, floor, over, lost, repeated }: Series) => [
    ...[name, callback.count, callback.p50, callback.p99, floor.p50, floor.p99, over.p50, over.p99],
    ...[lost, repeated],
  ]
  const columns = ['append → (ms)', 'n', 'callback p50', 'p99', 'floor p50', 'p99', 'over p50', 'p99', 'lost', 'twice']
  table(columns, series.map(row))
  const goal = goals[options.store]
  const lost = all.filter((one) => one.told === 0).length
  const repeated = all.filter((one) => one.told > 1).length
  const ok =
    lost === 0 &&
    repeated === 0 &&
    series.every(({ over }) => over.p50 <= goal.p50 && (goal.p99 === null || over.p99 <= goal.p99))
  const words = `p50 within ${goal.p50} ms of the floor${goal.p99 === null ? '' : `, p99 within ${goal.p99} ms`}`
  say(`goal: ${words}, 0 lost, 0 twice: ${ok ? 'met' : 'MISSED'}`)
  const rssMib = round(fleet.service.rssKib() / 1024)
  jsonLine('latency', {
    store: options.store,
    accounts,
    messages: count,
    sent: all.length,
    lost,
    repeated,
    series,
    rssMib,
    ok,
  })
  return ok
}
