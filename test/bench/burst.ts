/**
 * Many messages at once: events per second until every callback has arrived, lost, repeated, out of order, with small bodies
 * fetched. Then the other half: rows that wait for a dead receiver, and what they cost in memory.
 */
import { startFleet, type Fleet } from './lib/fleet.ts'
import { benchMail } from './lib/mail.ts'
import { trackOrder, type OrderedArrivals } from './lib/order.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'
import { freePort } from '../support/port.ts'
import { until } from '../support/until.ts'
import { counterOf } from './lib/metrics.ts'

const goal = { eventsPerSecond: 400, growthMib: 64 }
const deadWebhooks = 10

interface Burst {
  readonly seconds: number
  readonly eventsPerSecond: number
  readonly lost: number
  readonly repeated: number
  readonly outOfOrder: number
  readonly withoutBody: number
}

interface Waiting {
  readonly rows: number
  readonly beforeMib: number
  readonly peakMib: number
  readonly growthMib: number
}

export async function burst(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 50
  const count = options.count ?? 2000
  const rows = options.rows ?? 100_000
  header('burst', { store: options.store, accounts, messages: count, rowsForDeadReceiver: rows })
  const fleet = await startFleet({ accounts, store: options.store })
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    await fleet.connect()
    const told = await live(fleet, count)
    table(
      ['burst', 'events/s', 'seconds', 'lost', 'repeated', 'out of order', 'without body'],
      [[count, told.eventsPerSecond, told.seconds, told.lost, told.repeated, told.outOfOrder, told.withoutBody]],
    )
    const waiting = rows === 0 ? null : await dead(fleet, rows, (options.seconds ?? 300) * 1000)
    if (waiting !== null) {
      table(
        ['rows waiting', 'RSS before (MiB)', 'peak', 'growth'],
        [[waiting.rows, waiting.beforeMib, waiting.peakMib, waiting.growthMib]],
      )
    }
    return verdict(options, accounts, count, told, waiting)
  } finally {
    await fleet.remove()
  }
}

function verdict(
  options: BenchOptions,
  accounts: number,
  count: number,
  told: Burst,
  waiting: Waiting | null,
): boolean {
  const kept = told.lost === 0 && told.repeated === 0 && told.outOfOrder === 0 && told.withoutBody === 0
  const ok = kept && told.eventsPerSecond >= goal.eventsPerSecond && (waiting?.growthMib ?? 0) <= goal.growthMib
  const words = `at least ${goal.eventsPerSecond} events/s, 0 lost, growth at most ${goal.growthMib} MiB`
  say(`goal: ${words}: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('burst', { store: options.store, accounts, messages: count, ...told, waiting, ok })
  return ok
}

/** Appends `count` messages spread over all mailboxes, each mailbox's share in one APPEND. */
async function appendAll(fleet: Fleet, series: string, count: number): Promise<void> {
  const share = Math.ceil(count / fleet.mailboxes.length)
  await inParallel(fleet.mailboxes, fleet.mailboxes.length, async (name, index) => {
    const from = index * share
    const mine = Array.from({ length: Math.max(0, Math.min(share, count - from)) }, (_, offset) =>
      benchMail(`${series}-${from + offset}`, name),
    )
    if (mine.length === 0) return
    const client = await fleet.dovecot.connect(name)
    await client.append('INBOX', mine)
    await client.close()
  })
}

async function live(fleet: Fleet, count: number): Promise<Burst> {
  const webhooks = await inParallel(fleet.users, 8, async (id) => {
    const callback = { callback_url: `${fleet.receiver.url}/live`, include_body: 1, body_type: 'text/plain' }
    return [id, String((await fleet.service.ok('POST', `/lite/users/${id}/webhooks`, callback))['webhook_id'])] as const
  })
  const arrivals = trackOrder(fleet.receiver)
  const began = performance.now()
  await appendAll(fleet, 'burst', count)
  const complete = (): boolean => arrivals.first.size >= count
  await until('all callbacks', complete, { withinMs: 120_000, everyMs: 20 }).catch(() => undefined)
  const seconds = ((arrivals.lastFirstAt ?? performance.now()) - began) / 1000
  await quietFor(arrivals, 3000)
  await inParallel(webhooks, 8, ([id, webhook]) => fleet.service.ok('DELETE', `/lite/users/${id}/webhooks/${webhook}`))
  return {
    seconds: round(seconds),
    eventsPerSecond: Math.round(arrivals.first.size / seconds),
    lost: count - arrivals.first.size,
    repeated: arrivals.repeated,
    outOfOrder: arrivals.outOfOrder,
    withoutBody: arrivals.withoutBody,
  }
}

async function quietFor(arrivals: OrderedArrivals, ms: number): Promise<void> {
  let seen = -1
  let since = 0
  const quiet = (): boolean => {
    const now = performance.now()
    if (arrivals.total !== seen) [seen, since] = [arrivals.total, now]
    return now - since >= ms
  }
  await until('quiet', quiet, { withinMs: ms * 10, everyMs: 100 })
}

/** Application-wide webhooks to a port where nobody listens: one row for each message and webhook. */
async function dead(fleet: Fleet, rows: number, withinMs: number): Promise<Waiting> {
  const { service } = fleet
  const url = `http://127.0.0.1:${await freePort()}/dead`
  for (let index = 0; index < deadWebhooks; index++) {
    await service.ok('POST', '/lite/webhooks', { callback_url: url })
  }
  const before = service.rssKib()
  let peak = before
  const look = (): void => void (peak = Math.max(peak, service.rssKib()))
  const watching = setInterval(look, 100)
  try {
    const messages = Math.ceil(rows / deadWebhooks)
    const target = (await counterOf(service, 'mailroom_messages_indexed_total')) + messages
    await appendAll(fleet, 'dead', messages)
    const indexed = async (): Promise<boolean> =>
      (await counterOf(service, 'mailroom_messages_indexed_total')) >= target
    await until(`${messages} messages in the index`, indexed, { withinMs, everyMs: 500 })
    const settled = performance.now() + 15_000
    await until('the rows to wait for a while', () => performance.now() > settled, { withinMs: 30_000, everyMs: 200 })
  } finally {
    clearInterval(watching)
  }
  const mib = (kib: number): number => round(kib / 1024)
  return { rows, beforeMib: mib(before), peakMib: mib(peak), growthMib: mib(peak - before) }
}
