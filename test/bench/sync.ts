/**
 * The first sync of new accounts: processor time of the service for a message, beside a bare imapflow loop that fetches
 * the same from the same mailboxes. Both run at the same time, so the ratio holds on a busy machine; times do not.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { startService, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'
import type { BareSyncFigures, BareSyncOptions } from './lib/bare-sync.ts'
import { variedMail } from './lib/mail.ts'
import { type BenchOptions, openBenchStore } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { median } from './lib/ratios.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

/** The bare loop's processor time, as a part of the service's. */
const goal = 0.7
const rounds = 3
/** MAILROOM_SYNC_BATCH where nothing else is set. */
const batch = 100

interface Plan {
  readonly accounts: number
  readonly mailPerAccount: number
}

/** Microseconds a message. */
interface Round {
  readonly service: number
  readonly bare: number
}

export async function sync(options: BenchOptions): Promise<boolean> {
  const plan: Plan = { accounts: options.accounts ?? 30, mailPerAccount: options.count ?? 300 }
  header('sync', { store: options.store, ...plan, rounds })
  const mailboxes = Array.from({ length: plan.accounts }, (_, index) => `u${index}@bench.example`)
  const dovecot = await startDovecot({ mailboxes: plan.accounts * 2 })
  try {
    await inParallel(mailboxes, 8, (name) => fill(dovecot, name, plan.mailPerAccount))
    const all: Round[] = []
    // The first round warms up what Dovecot keeps of each message.
    for (let index = 0; index <= rounds; index += 1) {
      const bare = startBareSync(dovecot, mailboxes)
      const service = index === 0 ? 0 : await firstSync(options, plan, dovecot, mailboxes)
      const one = { service, bare: await bare.end() }
      if (index > 0) all.push(one)
    }
    return report(options, plan, all)
  } finally {
    await dovecot.remove()
  }
}

async function fill(dovecot: Dovecot, name: string, count: number): Promise<void> {
  const client = await dovecot.connect(name)
  const own = name.split('@', 1)[0]
  await client.append(
    'INBOX',
    Array.from({ length: count }, (_, index) => variedMail(`old-${own}`, index, name)),
  )
  await client.close()
}

function startBareSync({ host, port, password }: Dovecot, mailboxes: readonly string[]) {
  const options: BareSyncOptions = { host, port, password, mailboxes, batch }
  const file = join(import.meta.dirname, 'lib/bare-sync.ts')
  const child = spawn(process.execPath, [file, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const output = text(child.stdout)
  return {
    /** Once it has been through all mailboxes: microseconds a message. */
    async end(): Promise<number> {
      child.stdin.end()
      const { cpuMicros, messages } = JSON.parse(await output) as BareSyncFigures
      return cpuMicros / messages
    },
  }
}

/** A service of its own, from the calls that create its accounts to the last message in its index. */
async function firstSync(
  options: BenchOptions,
  { accounts, mailPerAccount }: Plan,
  dovecot: Dovecot,
  mailboxes: readonly string[],
): Promise<number> {
  const store = openBenchStore(options.store)
  const profiling = `--cpu-prof --cpu-prof-dir=${options.profile ?? ''}`
  const env = options.profile === null ? {} : { NODE_OPTIONS: profiling }
  try {
    const service = await startService({ ...store.service, env })
    try {
      const before = cpuNanosOf(service.pid)
      const users = await inParallel(mailboxes, 8, (email) => createUser(service, dovecot, email))
      for (const user of users) {
        const isThere = (): Promise<boolean> => holds(service, user, mailPerAccount)
        await until(`all mail of ${user}`, isThere, { withinMs: 300_000, everyMs: 500 })
      }
      return (cpuNanosOf(service.pid) - before) / 1000 / (accounts * mailPerAccount)
    } finally {
      await service.remove()
    }
  } finally {
    await store.remove()
  }
}

/** A 503 says that older pages are still being read. */
async function holds(service: Service, user: string, count: number): Promise<boolean> {
  const path = `/lite/users/${user}/email_accounts/0/folders/INBOX/messages?limit=1&offset=${count - 1}`
  const { body } = await service.api('GET', path)
  return Array.isArray(body) && body.length > 0
}

function report({ store }: BenchOptions, plan: Plan, all: readonly Round[]): boolean {
  const service = round(median(all.map((one) => one.service)))
  const bare = round(median(all.map((one) => one.bare)))
  const ratio = median(all.map((one) => one.bare / one.service))
  const ok = ratio >= goal
  table(
    ['processor time', 'µs a message'],
    [
      ['first sync', service],
      ['bare imapflow loop', bare],
    ],
  )
  say(`goal: ${goal} of a bare loop at least: ${ratio.toFixed(2)}, ${ok ? 'met' : 'MISSED'}`)
  jsonLine('sync', { store, ...plan, rounds: all, service, bare, ratio, ok })
  return ok
}
