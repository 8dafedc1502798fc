/**
 * What idle accounts cost: processor time of the service while nothing happens, and its memory for each account. Beside
 * the floor, in the same run: bare imapflow connections in IDLE on the same mailboxes.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startFleet, type Fleet } from './lib/fleet.ts'
import { benchMail } from './lib/mail.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'
import { watchBare } from './lib/watcher.ts'
import { onlyWatching } from './memory.ts'

const goal = { percentOfCore: 1, perAccountKib: 200 }
const bareAtOnce = 50
/** Past the first sync: the command connections are closed, and garbage is collected. */
const restSeconds = 90

export async function idle(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 1000
  const seconds = options.seconds ?? 120
  header('idle', { store: options.store, accounts, seconds, restSeconds })
  const env = { MAILROOM_COMMAND_IDLE_CLOSE: '2s' }
  const fleet = await startFleet({ accounts, store: options.store, env })
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    const bare = await bareShare(fleet, seconds)
    const emptyKib = fleet.service.rssKib()
    await fleet.connect()
    // A host is trusted to push to IDLE once it has pushed: until then each INBOX is asked every ten seconds.
    fleet.dovecot.deliver(fleet.mailboxes[0] ?? '', benchMail('push', fleet.mailboxes[0] ?? ''))
    await onlyWatching(fleet, accounts)
    await pause(restSeconds * 1000)
    const service = await shareOf(fleet.service.pid, seconds)
    return report(options, accounts, { bare, service, emptyKib, idleKib: fleet.service.rssKib() })
  } finally {
    await fleet.remove()
  }
}

/** Percent of a core. */
async function shareOf(pid: number, seconds: number): Promise<number> {
  const before = cpuNanosOf(pid)
  await pause(seconds * 1000)
  return round((cpuNanosOf(pid) - before) / (seconds * 1e7))
}

/** This process holds the bare connections, and does nothing else. */
async function bareShare({ dovecot, mailboxes }: Fleet, seconds: number): Promise<number> {
  const watchers = await inParallel(mailboxes, bareAtOnce, (name) => watchBare(dovecot, name))
  await pause(10_000)
  const share = await shareOf(process.pid, seconds)
  await inParallel(watchers, bareAtOnce, (watcher) => watcher.close())
  return share
}

interface Figures {
  /** Percent of a core. */
  readonly bare: number
  readonly service: number
  readonly emptyKib: number
  readonly idleKib: number
}

function report(options: BenchOptions, accounts: number, figures: Figures): boolean {
  const { bare, service, emptyKib, idleKib } = figures
  const perAccountKib = round((idleKib - emptyKib) / accounts)
  table(
    [`${accounts} idle accounts`, 'measured'],
    [
      ['bare imapflow connections, % of a core', bare],
      ['the service, % of a core', service],
      ['memory for each account, KiB', perAccountKib],
    ],
  )
  const ok = service <= goal.percentOfCore && perAccountKib <= goal.perAccountKib
  say(`goal: at most ${goal.percentOfCore} % and ${goal.perAccountKib} KiB each: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('idle', { store: options.store, accounts, ...figures, perAccountKib, ok })
  return ok || options.untimed
}
