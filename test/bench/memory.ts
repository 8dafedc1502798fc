/** Resident memory of the service process: empty, and per idle account. */
import { startFleet, type Fleet } from './lib/fleet.ts'
import type { BenchOptions } from './lib/options.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'
import { until } from '../support/until.ts'

const goal = { emptyMib: 150, perAccountKib: 400 }
const mailPerAccount = 5

export async function memory(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? options.count ?? 500
  const seconds = options.seconds ?? 30
  header('memory', { store: options.store, accounts, mailPerAccount, settleSeconds: seconds })
  const env = { MAILROOM_COMMAND_IDLE_CLOSE: '2s' }
  const fleet = await startFleet({ accounts, store: options.store, env, mailPerAccount })
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    const emptyKib = await settledRss(fleet, seconds)
    await fleet.connect()
    const connectedKib = fleet.service.rssKib()
    await onlyWatching(fleet, accounts)
    const idleKib = await settledRss(fleet, seconds)
    return report(options, accounts, { emptyKib, connectedKib, idleKib })
  } finally {
    await fleet.remove()
  }
}

/** Until each account has its watching connection and no command connection is left, for five looks in a row. */
export async function onlyWatching(fleet: Fleet, accounts: number): Promise<void> {
  let looks = 0
  const quiet = async (): Promise<boolean> => {
    looks = (await fleet.dovecot.connections()) === accounts ? looks + 1 : 0
    return looks >= 5
  }
  await until(`${accounts} idle connections`, quiet, { withinMs: 300_000, everyMs: 1000 })
}

/** VmRSS once it has moved by less than 1 % for five seconds, but not before `seconds` have passed. */
async function settledRss(fleet: Fleet, seconds: number): Promise<number> {
  const began = performance.now()
  let steady = { kib: 0, since: began }
  const settled = (): boolean => {
    const kib = fleet.service.rssKib()
    const now = performance.now()
    if (Math.abs(kib - steady.kib) > steady.kib * 0.01) steady = { kib, since: now }
    return now - steady.since >= 5000 && now - began >= seconds * 1000
  }
  await until('steady memory', settled, { withinMs: seconds * 1000 + 120_000, everyMs: 500 })
  return fleet.service.rssKib()
}

function report(
  options: BenchOptions,
  accounts: number,
  kib: { readonly emptyKib: number; readonly connectedKib: number; readonly idleKib: number },
): boolean {
  const perAccountKib = round((kib.idleKib - kib.emptyKib) / accounts)
  const mib = (value: number): number => round(value / 1024)
  const emptyMib = mib(kib.emptyKib)
  const rows = [
    ['empty', emptyMib],
    [`right after connecting ${accounts} accounts`, mib(kib.connectedKib)],
    [`${accounts} idle accounts`, mib(kib.idleKib)],
  ]
  table(['resident set', 'MiB'], rows)
  const ok = emptyMib < goal.emptyMib && perAccountKib < goal.perAccountKib
  say(`per idle account: ${perAccountKib} KiB`)
  say(`goal: empty under ${goal.emptyMib} MiB, per account under ${goal.perAccountKib} KiB: ${ok ? 'met' : 'MISSED'}`)
  jsonLine('memory', { store: options.store, accounts, mailPerAccount, ...kib, emptyMib, perAccountKib, ok })
  return ok
}
