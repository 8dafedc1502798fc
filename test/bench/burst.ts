/**
 * Many messages at once: events per second until every callback has arrived, lost, repeated, out of order, with small
 * bodies fetched. Then the other half: rows that wait for a dead receiver, and what they cost in memory.
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
  readonly afterMib: number
  /** Peak less before. */
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
        ['rows waiting', 'RSS before (MiB)', 'peak', 'after', 'growth'],
        [[waiting.rows, waiting.beforeMib, waiting.peakMib, waiting.afterMib, waiting.growthMib]],
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

/**
 * Application-wide webhooks to a port where nobody listens: one row for each message and webhook. The same number of
 * messages goes in before without any webhook, so that what is measured is the rows and not the reading of mail.
 */
async function dead(fleet: Fleet, rows: number, withinMs: number): Promise<Waiting> {
  const { service } = fleet
  const messages = Math.ceil(rows / deadWebhooks)
  await ingest(fleet, 'unheard', messages, withinMs)
  await rest()
  const url = `http://127.0.0.1:${await freePort()}/dead`
  const webhooks: string[] = []
  for (let index = 0; index < deadWebhooks; index++) {
    webhooks.push(String((await service.ok('POST', '/lite/webhooks', { callback_url: url }))['webhook_id']))
  }
  const before = service.rssKib()
  let peak = before
  const watching = setInterval(() => (peak = Math.max(peak, service.rssKib())), 100)
  try {
    await ingest(fleet, 'dead', messages, withinMs)
    for (const webhook of webhooks) await hasPending(fleet, webhook, messages)
    await rest()
  } finally {
    clearInterval(watching)
  }
  const mib = (kib: number): number => round(kib / 1024)
  return {
    rows: messages * deadWebhooks,
    beforeMib: mib(before),
    peakMib: mib(peak),
    afterMib: mib(service.rssKib()),
    growthMib: mib(peak - before),
  }
}

/** Appends that many messages and waits until all are in the index. */
async function ingest(fleet: Fleet, series: string, messages: number, withinMs: number): Promise<void> {
  const indexed = () => counterOf(fleet.service, 'mailroom_messages_indexed_total')
  const target = (await indexed()) + messages
  await appendAll(fleet, series, messages)
  const complete = async (): Promise<boolean> => (await indexed()) >= target
  await until(`${messages} messages in the index`, complete, { withinMs, everyMs: 500 })
}

/** The delivery log holds at least that many waiting rows of the webhook. */
async function hasPending(fleet: Fleet, webhook: string, count: number): Promise<void> {
  const path = `/lite/webhooks/${webhook}/deliveries?state=pending&limit=1&offset=${count - 1}`
  const there = async (): Promise<boolean> => (await fleet.service.list(path)).length === 1
  await until(`${count} waiting rows of ${webhook}`, there, { withinMs: 60_000, everyMs: 500 })
}

/** Time for attempts, retries and the garbage collector. */
async function rest(): Promise<void> {
  const over = performance.now() + 15_000
  await until('15 s', () => performance.now() > over, { withinMs: 30_000, everyMs: 200 })
}
