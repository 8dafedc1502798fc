/**
 * A mail server that was away: how soon after its return half of the accounts watch again, and all, and when the last
 * message that came meanwhile is told. Beside the floor, in the same run: bare imapflow clients that open INBOX of the
 * same mailboxes as soon as the server greets.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { part } from '../support/callbacks.ts'
import { until } from '../support/until.ts'
import { startFleet, type Fleet } from './lib/fleet.ts'
import { benchId, benchMail } from './lib/mail.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { allWatched, counterOf, watchingGauge } from './lib/metrics.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { percentile, round } from './lib/statistics.ts'
import { watchBare } from './lib/watcher.ts'

const goal = { halfSeconds: 3, allSeconds: 10 }
const patienceMs = 300_000
const bareAtOnce = 50

/** Seconds after the server greeted again; `cpuMs`: processor time of each account. */
interface Times {
  readonly half: number
  readonly all: number
  readonly cpuMs?: number
}

interface Recovered {
  readonly watching: Times
  /** Of the messages that came while the server was away. */
  readonly told: Times
  readonly lost: number
  readonly repeated: number
  readonly errorCallbacks: number
}

export async function recover(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 200
  const seconds = options.seconds ?? 10
  header('recover', { store: options.store, accounts, secondsAway: seconds })
  const fleet = await startFleet({ accounts, store: options.store })
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    const floor = await bare(fleet)
    await fleet.connect()
    await inParallel(fleet.users, 8, (id) =>
      fleet.service.ok('POST', `/lite/users/${id}/webhooks`, { callback_url: `${fleet.receiver.url}/mail` }),
    )
    await allWatched(fleet.service, accounts, patienceMs)
    return report(options, accounts, floor, await service(fleet, seconds))
  } finally {
    await fleet.remove()
  }
}

/** Answers when the server greeted again: performance.now(). */
async function awayFor({ dovecot }: Fleet, seconds: number, meanwhile: () => void): Promise<number> {
  await dovecot.stop()
  meanwhile()
  await pause(seconds * 1000)
  await dovecot.start()
  return performance.now()
}

const secondsSince = (backAt: number, at: number): number => round(Math.max(0, at - backAt) / 1000)

function timesOf(backAt: number, ends: readonly number[]): Times {
  return { half: secondsSince(backAt, percentile(ends, 50)), all: secondsSince(backAt, percentile(ends, 100)) }
}

const cpuMsOf = (pid: number, before: number, accounts: number): number =>
  round((cpuNanosOf(pid) - before) / 1e6 / accounts)

async function bare(fleet: Fleet): Promise<Times> {
  const backAt = await awayFor(fleet, 0, () => undefined)
  const before = cpuNanosOf(process.pid)
  const opened = await inParallel(fleet.mailboxes, bareAtOnce, async (name) => {
    const watcher = await watchBare(fleet.dovecot, name)
    return { watcher, at: performance.now() }
  })
  const cpuMs = cpuMsOf(process.pid, before, opened.length)
  await inParallel(opened, bareAtOnce, ({ watcher }) => watcher.close())
  const ends = opened.map(({ at }) => at)
  return { ...timesOf(backAt, ends), cpuMs }
}

async function service(fleet: Fleet, seconds: number): Promise<Recovered> {
  const { dovecot, mailboxes, receiver } = fleet
  const told = new Map<string, number>()
  let repeated = 0
  let errorCallbacks = 0
  receiver.onCallback(({ path, body, at }) => {
    if (path !== '/mail') errorCallbacks += 1
    const id = path === '/mail' ? benchId(part(body, 'message_data')['email_message_id']) : null
    if (id !== null && told.has(id)) repeated += 1
    else if (id !== null) told.set(id, at)
  })
  const backAt = await awayFor(fleet, seconds, () => {
    for (const [index, name] of mailboxes.entries()) dovecot.deliver(name, benchMail(`away-${index}`, name))
  })
  const before = cpuNanosOf(fleet.service.pid)
  const watching: number[] = []
  const isOver = async (): Promise<boolean> => {
    const now = await counterOf(fleet.service, watchingGauge)
    while (watching.length < now) watching.push(performance.now())
    return watching.length === mailboxes.length && told.size === mailboxes.length
  }
  await until('the last mail', isOver, { withinMs: patienceMs, everyMs: 250 }).catch(() => undefined)
  const cpuMs = cpuMsOf(fleet.service.pid, before, mailboxes.length)
  // Repetitions, and callbacks of errors.
  await pause(3000)
  while (watching.length < mailboxes.length) watching.push(Infinity)
  return {
    watching: { ...timesOf(backAt, watching), cpuMs },
    told: timesOf(backAt, [...told.values()]),
    lost: mailboxes.length - told.size,
    ...{ repeated, errorCallbacks },
  }
}

function report(options: BenchOptions, accounts: number, floor: Times, recovered: Recovered): boolean {
  const { watching, told, lost, repeated, errorCallbacks } = recovered
  const rows = [
    ['bare clients have INBOX open', floor.half, floor.all],
    ['accounts watch', watching.half, watching.all],
    ['mail that came meanwhile is told', told.half, told.all],
  ]
  table(['seconds after the return', 'half', 'all'], rows)
  say(`processor time of each: ${watching.cpuMs} ms; of a bare client: ${floor.cpuMs} ms`)
  say(`lost ${lost}, twice ${repeated}, callbacks of errors ${errorCallbacks}`)
  const kept = lost === 0 && repeated === 0 && errorCallbacks === 0
  const ok = kept && watching.half <= goal.halfSeconds && Math.max(watching.all, told.all) <= goal.allSeconds
  const words = `half within ${goal.halfSeconds} s, all and their mail within ${goal.allSeconds} s`
  say(`goal: ${words}, 0 lost, 0 twice, no callback of an error: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('recover', { store: options.store, accounts, floor, ...recovered, ok })
  return ok || options.untimed
}
