/**
 * Everybody's mail while some mean ill: honest accounts get mail all the time, and everything that test/hostile tries
 * goes on beside them, all at once. Measured against the floor: append → callback beside append → `exists` on a bare
 * connection, /healthz beside the answer of a bare server to a call at the same moment.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { AttackOrder } from './attack/stage.ts'
import { trackArrivals, type Arrival, type Arrivals, type Mailbox } from './lib/arrivals.ts'
import { startBareHttp } from './lib/bare-http.ts'
import { kept, type Kept } from './lib/kept.ts'
import { startFleet, type Fleet } from './lib/fleet.ts'
import type { BenchOptions } from './lib/options.ts'
import { storeLargeMailbox } from './lib/large-mailbox.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round, summarise } from './lib/statistics.ts'
import { watchBare } from './lib/watcher.ts'
import { mostResidentMib } from '../hostile/bystanders.ts'
import type { Service } from '../support/service.ts'

/** The memory as docs/operations.md has it: 1.25 GiB, and two searches in threads of their own. */
const goal = { overP99Ms: 1000, healthMs: 250, listMs: 1000, residentMib: 1280 + 512 }
const appendEveryMs = 200
const mallory = { key: 'mallory-key', secret: 'mallory-secret-0123456789' }

interface Figures extends Kept {
  readonly overP99Ms: number
  readonly healthMs: number
  readonly listMs: number
  readonly peakMib: number
  readonly restarts: number
  /** Honest calls that were reset, refused or failed. */
  readonly failed: number
  /** Attacks that were never done. */
  readonly idle: readonly string[]
}

export async function soak(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 100
  const seconds = options.seconds ?? 600
  header('soak', { store: options.store, accounts, seconds })
  const fleet = await startFleet({ accounts, store: options.store })
  try {
    await fleet.connect()
    await inParallel(fleet.users, 8, (id) =>
      fleet.service.ok('POST', `/lite/users/${id}/webhooks`, { callback_url: `${fleet.receiver.url}/${id}` }),
    )
    // The second developer is made by a start with another key. Calls per hour have no limit, so that all goes on.
    await fleet.service.stop()
    const limits = { MAILROOM_RATE_IMAP_PER_MINUTE: '240' }
    const env = { ...limits, MAILROOM_API_KEY: mallory.key, MAILROOM_API_SECRET: mallory.secret }
    await fleet.service.start(env)
    const large = await storeLargeMailbox(fleet.service, mallory, fleet.mongoUri)
    await fleet.service.start(env)
    return report(options, await measure(fleet, seconds, large))
  } finally {
    await fleet.remove()
  }
}

async function measure(fleet: Fleet, seconds: number, large: string): Promise<Figures> {
  const { service, dovecot, receiver } = fleet
  const mailboxes = await inParallel(fleet.mailboxes, 8, async (name) => ({
    name,
    appender: await dovecot.connect(name),
    watcher: await watchBare(dovecot, name),
  }))
  const arrivals = trackArrivals(mailboxes, receiver)
  for (const mailbox of mailboxes) await arrivals.send(mailbox, 'warm')
  await arrivals.settle(60_000)
  const { pid } = service
  const over = new AbortController()
  const attack = attacked({ url: service.url, ...mallory, seconds, large, dovecot: addressOf(fleet) })
  const waits = watchWaits(service, over.signal)
  await honest(mailboxes, arrivals, seconds)
  await arrivals.settle(30_000)
  over.abort()
  const rounds = Object.entries(await attack)
  for (const [name, { done, failed }] of rounds) say(`  ${name}: ${done} times, ${failed} refused`)
  for (const { appender, watcher } of mailboxes) await Promise.allSettled([watcher.close(), appender.close()])
  sayHeld(service)
  const honestMail = arrivals.all.filter(({ series }) => series === 'honest')
  return {
    ...kept(honestMail),
    overP99Ms: overP99(honestMail),
    ...(await waits),
    peakMib: isAlive(pid) ? mostResidentMib({ pid }) : Infinity,
    restarts: isAlive(pid) ? 0 : 1,
    idle: rounds.flatMap(([name, { done }]) => (done === 0 ? [name] : [])),
  }
}

const addressOf = ({ dovecot: { host, port, password } }: Fleet): AttackOrder['dovecot'] => ({ host, port, password })

/** Resolves with how often each did its thing. */
async function attacked(order: AttackOrder): Promise<Record<string, { done: number; failed: number }>> {
  const script = join(import.meta.dirname, 'attack/index.ts')
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return JSON.parse(printed || '{}') as Record<string, { done: number; failed: number }>
}

async function honest(mailboxes: readonly Mailbox[], arrivals: Arrivals, seconds: number): Promise<void> {
  const until = performance.now() + seconds * 1000
  const sending: Promise<void>[] = []
  for (let index = 0; performance.now() < until; index += 1) {
    const mailbox = mailboxes[index % mailboxes.length]
    if (mailbox !== undefined) sending.push(arrivals.send(mailbox, 'honest'))
    await pause(appendEveryMs)
  }
  await Promise.all(sending)
}

type Answer = { readonly status: number } | { readonly error: string }

/** Milliseconds until a 200; anything else counts as for ever. */
async function timed(name: string, ask: () => Promise<Answer>): Promise<number> {
  const began = performance.now()
  const answer = await ask().catch((error: unknown) => ({ error: String((error as Error).cause ?? error) }))
  if ('status' in answer && answer.status === 200) return performance.now() - began
  say(`  ${name}: ${JSON.stringify(answer)}`)
  return Infinity
}

function longest(name: string, waits: readonly number[]): number {
  const { p50, p99, max } = summarise(waits)
  say(`  ${name}: p50 ${p50} ms, p99 ${p99} ms, longest ${max} ms of ${waits.length}`)
  return max
}

/** The longest waits: for /healthz, over a bare server's answer at the same moment, and for an honest list. */
async function watchWaits(
  service: Service,
  over: AbortSignal,
): Promise<Pick<Figures, 'healthMs' | 'listMs' | 'failed'>> {
  const bare = await startBareHttp(2)
  const pairs: { readonly health: number; readonly floor: number }[] = []
  const lists: number[] = []
  const healths = async (): Promise<void> => {
    while (!over.aborted) {
      const [health, floor] = await Promise.all([
        timed('/healthz', () => service.api('GET', '/healthz')),
        timed('a bare server', async () => {
          const answer = await fetch(bare.url)
          await answer.text()
          return answer
        }),
      ])
      pairs.push({ health, floor })
      await pause(50)
    }
  }
  const path = '/lite/users?limit=25'
  const lookAtLists = async (): Promise<void> => {
    while (!over.aborted) {
      lists.push(await timed(path, () => service.api('GET', path)))
      await pause(200)
    }
  }
  await Promise.all([healths(), lookAtLists()])
  bare.close()
  longest(
    '/healthz',
    pairs.map(({ health }) => health),
  )
  longest(
    'a bare server',
    pairs.map(({ floor }) => floor),
  )
  const healthMs = longest(
    '/healthz over the bare server',
    pairs.map(({ health, floor }) => Math.max(0, health - floor)),
  )
  const failed = [...pairs.map(({ health }) => health), ...lists].filter((ms) => ms === Infinity).length
  return { healthMs, listMs: longest(path, lists), failed }
}

function overP99(mail: readonly Arrival[]): number {
  const callback = summarise(mail.flatMap(({ toldAt, sentAt }) => (toldAt === null ? [] : [toldAt - sentAt])))
  const floor = summarise(mail.flatMap(({ heardAt, sentAt }) => (heardAt === null ? [] : [heardAt - sentAt])))
  table(
    ['append → (ms)', 'n', 'p50', 'p99', 'max'],
    [
      ['callback', callback.count, callback.p50, callback.p99, callback.max],
      ['floor', floor.count, floor.p50, floor.p99, floor.max],
    ],
  )
  return round(callback.p99 - floor.p99)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Whose work held the event loop, as the service says it. */
function sayHeld(service: Service): void {
  const turns = service
    .log()
    .split('\n')
    .filter((line) => line.includes('held the event loop'))
    .map((line) => JSON.parse(line) as { readonly kind: string; readonly id: string | null; readonly ms: number })
  const nameOf = ({ kind, id }: (typeof turns)[number]): string => (kind === 'call' ? `${kind} ${id ?? ''}` : kind)
  for (const [name, own] of Map.groupBy(turns, nameOf)) {
    const { count, p50, max } = summarise(own.map(({ ms }) => ms))
    say(`  the event loop was held ${count} times by ${name}: p50 ${p50} ms, longest ${max} ms`)
  }
}

function report({ store, untimed }: BenchOptions, figures: Figures): boolean {
  const { sent, lost, repeated, overP99Ms, healthMs, listMs, peakMib, restarts, failed, idle } = figures
  const outOfOrder = figures.outOfOrder.length
  table(
    [
      'honest mail',
      'lost',
      'repeated',
      'out of order',
      'over p99',
      '/healthz over',
      'list',
      'MiB',
      'restarts',
      'resets',
    ],
    [[sent, lost, repeated, outOfOrder, overP99Ms, round(healthMs), round(listMs), peakMib, restarts, failed]],
  )
  const whole = lost + repeated + outOfOrder + restarts + failed === 0
  if (idle.length > 0) say(`  never done: ${idle.join(', ')}`)
  const quick = overP99Ms <= goal.overP99Ms && healthMs <= goal.healthMs && listMs <= goal.listMs
  const ok = whole && (untimed || (quick && idle.length === 0 && peakMib <= goal.residentMib))
  const words = `nothing lost, repeated, out of order or reset; p99 within ${goal.overP99Ms} ms of the floor, /healthz ${goal.healthMs} ms of a bare server, a list ${goal.listMs} ms, ${goal.residentMib} MiB`
  say(`goal: ${words}: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('soak', { store, ...figures, outOfOrder, ok })
  return ok
}
