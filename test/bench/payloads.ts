/**
 * Callbacks as large as they may be, for receivers that are dead or slow: 1,000 webhooks that each have one waiting,
 * and what that costs the service in memory. A small callback to a receiver that is well goes out meanwhile, and must
 * not wait.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startFleet, type Fleet } from './lib/fleet.ts'
import { benchMail } from './lib/mail.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'
import { freePort } from '../support/port.ts'
import { until } from '../support/until.ts'

const goal = { residentMib: 768, smallMs: 3000 }
const bodyBytes = 6 * 2 ** 20

interface Figures {
  readonly beforeMib: number
  readonly deadMib: number
  readonly slowMib: number
  /** The slowest small callback to a receiver that is well: alone, and while all others wait for theirs. */
  readonly aloneMs: number
  readonly smallMs: number
}

export async function payloads(options: BenchOptions): Promise<boolean> {
  const count = options.count ?? 1000
  const accounts = options.accounts ?? 4
  header('payloads', { store: options.store, callbacks: count, accounts, bodyMib: bodyBytes / 2 ** 20 })
  const env = { MAILROOM_WEBHOOK_TIMEOUT: '2s', MAILROOM_WEBHOOK_SCHEDULE: '1h', MAILROOM_WEBHOOK_PROBE: '1h' }
  const fleet = await startFleet({ accounts: accounts + 1, store: options.store, env })
  const slow = await slowReceiver()
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    await fleet.connect()
    return report(options, count, accounts, await measure(fleet, slow, count, (options.seconds ?? 600) * 1000))
  } finally {
    slow.server.closeAllConnections()
    slow.server.close()
    await fleet.remove()
  }
}

interface SlowReceiver {
  readonly server: Server
  readonly url: string
  /** Paths that were asked for. */
  readonly seen: Set<string>
}

/** Takes connections and the first bytes, and neither reads on nor answers. */
async function slowReceiver(): Promise<SlowReceiver> {
  const seen = new Set<string>()
  const server = createServer((request) => void seen.add(request.url ?? ''))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

async function measure(fleet: Fleet, slow: SlowReceiver, count: number, withinMs: number): Promise<Figures> {
  const { service, mailboxes } = fleet
  const dead = `http://127.0.0.1:${await freePort()}`
  const hooks = await createHooks(fleet, count, dead)
  const peak = peakOf(fleet)
  const small = smallOnes(fleet, mailboxes.at(-1) ?? '')
  try {
    const beforeMib = peak.since()
    const aloneMs = await small.slowest()
    for (const [index, name] of mailboxes.slice(0, -1).entries()) {
      await fleet.dovecot.append(name, 'INBOX', benchMail(`large-${index}`, name, bodyBytes))
    }
    await until('every callback was tried', () => allTried(fleet, count), { withinMs, everyMs: 500 })
    const deadMib = peak.since()
    await inParallel(hooks, 8, (path) =>
      service.ok('POST', path, { callback_url: `${slow.url}/${path.split('/').at(-1) ?? ''}`, active: 1 }),
    )
    await until('every callback hung', () => slow.seen.size >= count, { withinMs, everyMs: 500 })
    return { beforeMib, deadMib, slowMib: peak.since(), aloneMs, smallMs: await small.slowest() }
  } finally {
    peak.end()
    await small.end()
  }
}

/** The users of the large messages share the webhooks evenly; the last user is the one whose receiver is well. */
async function createHooks({ service, users, receiver }: Fleet, count: number, dead: string): Promise<string[]> {
  const owners = users.slice(0, -1)
  const well = { callback_url: `${receiver.url}/well`, include_body: 1 }
  await service.ok('POST', `/lite/users/${users.at(-1) ?? ''}/webhooks`, well)
  return inParallel([...Array(count).keys()], 8, async (index) => {
    const base = `/lite/users/${owners[index % owners.length] ?? ''}/webhooks`
    const made = await service.ok('POST', base, { callback_url: `${dead}/${index}`, include_body: 1 })
    return `${base}/${String(made['webhook_id'])}`
  })
}

/** The largest resident set since the last look. */
function peakOf({ service }: Fleet) {
  let kib = service.rssKib()
  const watching = setInterval(() => (kib = Math.max(kib, service.rssKib())), 50)
  return {
    since(): number {
      const mib = round(kib / 1024)
      kib = service.rssKib()
      return mib
    },
    end: () => clearInterval(watching),
  }
}

async function allTried({ service, users }: Fleet, count: number): Promise<boolean> {
  const lists = await Promise.all(users.map((id) => service.list(`/lite/users/${id}/webhooks`)))
  return lists.flat().filter((webhook) => 'failing_since' in webhook).length >= count
}

/** Small messages one after the other, until the end. */
function smallOnes({ dovecot, receiver }: Fleet, name: string) {
  let ended = false
  let times: number[] = []
  const work = (async () => {
    for (let index = 0; !ended; index += 1) {
      const before = receiver.all.length
      const began = performance.now()
      await dovecot.append(name, 'INBOX', benchMail(`small-${index}`, name))
      await until('a small callback', () => receiver.all.length > before, { withinMs: 60_000, everyMs: 2 })
      times.push(performance.now() - began)
    }
  })()
  return {
    /** Of at least five since the last look, from APPEND to callback, in milliseconds. */
    async slowest(): Promise<number> {
      await until('five small callbacks', () => times.length >= 5, { withinMs: 300_000, everyMs: 100 })
      const slowest = Math.round(Math.max(...times))
      times = []
      return slowest
    },
    async end(): Promise<void> {
      ended = true
      await work
    },
  }
}

function report(options: BenchOptions, callbacks: number, accounts: number, figures: Figures): boolean {
  const { beforeMib, deadMib, slowMib, aloneMs, smallMs } = figures
  table(
    ['resident set', 'MiB'],
    [
      ['before', beforeMib],
      [`${callbacks} callbacks for a dead receiver`, deadMib],
      [`${callbacks} callbacks for a slow receiver`, slowMib],
    ],
  )
  const peakMib = Math.max(deadMib, slowMib)
  const ok = peakMib <= goal.residentMib && smallMs <= goal.smallMs
  say(`slowest small callback: ${aloneMs} ms alone, ${smallMs} ms meanwhile`)
  say(`goal: at most ${goal.residentMib} MiB, ${goal.smallMs} ms: ${ok ? 'met' : 'MISSED'}`)
  const bound = { boundMib: goal.residentMib, ratio: Math.round((peakMib / goal.residentMib) * 100) / 100 }
  jsonLine('payloads', { store: options.store, callbacks, accounts, ...figures, peakMib, ...bound, ok })
  return ok
}
