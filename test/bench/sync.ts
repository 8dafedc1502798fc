/**
 * The first sync of new accounts: processor time of the service for a message, beside a bare imapflow loop that fetches
 * the same from the same mailboxes. Both run at the same time, so the ratio holds on a busy machine; times do not.
 * `--accounts 1 --count 200000`: how soon the newest page of a large mailbox is answered, and how much memory its
 * reading takes.
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
/** Of one large mailbox, read alone. `pageSeconds`: after a bare client has the page. */
const largeGoal = { pageSeconds: 2, moreMib: 100 }
/** Messages of a plan with several rounds; a larger plan has one round. */
const severalRoundsMax = 100_000
/** MAILROOM_SYNC_BATCH where nothing else is set. */
const batch = 100

interface Plan {
  readonly accounts: number
  readonly mailPerAccount: number
}

interface Synced {
  /** Microseconds a message. */
  readonly service: number
  /** From the creation of the last account to the newest page of the first one. */
  readonly pageSeconds: number
  /** Resident memory at most, above that of the empty service. */
  readonly moreMib: number
}

interface Round extends Synced {
  /** Microseconds a message. */
  readonly bare: number
  readonly barePageSeconds: number
}

export async function sync(options: BenchOptions): Promise<boolean> {
  const plan: Plan = { accounts: options.accounts ?? 30, mailPerAccount: options.count ?? 300 }
  const rounds = plan.accounts * plan.mailPerAccount > severalRoundsMax ? 1 : 3
  header('sync', { store: options.store, ...plan, rounds })
  const mailboxes = Array.from({ length: plan.accounts }, (_, index) => `u${index}@bench.example`)
  const dovecot = await startDovecot({ mailboxes: plan.accounts * 2 })
  try {
    await inParallel(mailboxes, 8, (name) => fill(dovecot, name, plan.mailPerAccount))
    const all: Round[] = []
    // The first round warms up what Dovecot keeps of each message.
    for (let index = 0; index <= rounds; index += 1) {
      const bare = startBareSync(dovecot, mailboxes)
      const synced = index === 0 ? null : await firstSync(options, plan, dovecot, mailboxes)
      const { cpuMicros, messages, pageSeconds } = await bare.end()
      if (synced !== null) all.push({ ...synced, bare: cpuMicros / messages, barePageSeconds: round(pageSeconds) })
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
  // Dovecot moves the files of new mail at the first SELECT: three seconds for 200,000.
  await client.command('SELECT INBOX')
  await client.close()
}

function startBareSync({ host, port, password }: Dovecot, mailboxes: readonly string[]) {
  const options: BareSyncOptions = { host, port, password, mailboxes, batch }
  const file = join(import.meta.dirname, 'lib/bare-sync.ts')
  const child = spawn(process.execPath, [file, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const output = text(child.stdout)
  return {
    /** Once it has been through all mailboxes. */
    async end(): Promise<BareSyncFigures> {
      child.stdin.end()
      return JSON.parse(await output) as BareSyncFigures
    },
  }
}

/** A service of its own, from the calls that create its accounts to the last message in its index. */
async function firstSync(
  options: BenchOptions,
  { accounts, mailPerAccount }: Plan,
  dovecot: Dovecot,
  mailboxes: readonly string[],
): Promise<Synced> {
  const store = openBenchStore(options.store)
  const profiling = `--cpu-prof --cpu-prof-dir=${options.profile ?? ''}`
  const env = options.profile === null ? {} : { NODE_OPTIONS: profiling }
  try {
    const service = await startService({ ...store.service, env })
    try {
      const [before, emptyKib] = [cpuNanosOf(service.pid), service.rssKib()]
      let mostKib = emptyKib
      const looking = setInterval(() => (mostKib = Math.max(mostKib, service.rssKib())), 250)
      const users = await inParallel(mailboxes, 8, (email) => createUser(service, dovecot, email))
      const made = performance.now()
      await service.list(`${inbox(users[0] ?? '')}?limit=25`)
      const pageSeconds = round((performance.now() - made) / 1000)
      for (const user of users) {
        const isThere = (): Promise<boolean> => holds(service, user, mailPerAccount)
        await until(`all mail of ${user}`, isThere, { withinMs: 300_000, everyMs: 500 })
      }
      clearInterval(looking)
      const micros = (cpuNanosOf(service.pid) - before) / 1000 / (accounts * mailPerAccount)
      return { service: micros, pageSeconds, moreMib: round((mostKib - emptyKib) / 1024) }
    } finally {
      await service.remove()
    }
  } finally {
    await store.remove()
  }
}

const inbox = (user: string): string => `/lite/users/${user}/email_accounts/0/folders/INBOX/messages`

/** A 503 says that older pages are still being read. */
async function holds(service: Service, user: string, count: number): Promise<boolean> {
  const { body } = await service.api('GET', `${inbox(user)}?limit=1&offset=${count - 1}`)
  return Array.isArray(body) && body.length > 0
}

function report({ store }: BenchOptions, plan: Plan, all: readonly Round[]): boolean {
  const service = round(median(all.map((one) => one.service)))
  const bare = round(median(all.map((one) => one.bare)))
  const ratio = median(all.map((one) => one.bare / one.service))
  const pageSeconds = median(all.map((one) => one.pageSeconds))
  const barePageSeconds = median(all.map((one) => one.barePageSeconds))
  const moreMib = median(all.map((one) => one.moreMib))
  const isLarge = plan.accounts === 1
  const meetsLargeGoal =
    !isLarge || (pageSeconds - barePageSeconds <= largeGoal.pageSeconds && moreMib <= largeGoal.moreMib)
  const ok = ratio >= goal && meetsLargeGoal
  table(
    ['processor time', 'µs a message'],
    [
      ['first sync', service],
      ['bare imapflow loop', bare],
    ],
  )
  say(`the newest page is answered after ${pageSeconds} s; a bare client has it after ${barePageSeconds} s`)
  say(`resident memory: ${moreMib} MiB more than empty, at most`)
  const words = isLarge
    ? `, the page within ${largeGoal.pageSeconds} s of it, at most ${largeGoal.moreMib} MiB more`
    : ''
  say(`goal: ${goal} of a bare loop at least${words}: ${ratio.toFixed(2)}, ${ok ? 'met' : 'MISSED'}`)
  jsonLine('sync', { store, ...plan, rounds: all, service, bare, ratio, pageSeconds, barePageSeconds, moreMib, ok })
  return ok
}
