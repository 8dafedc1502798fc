/**
 * Honest mail while networks and mail servers fail at random: connections that end, stall or die without a word, the
 * mail server started anew, passwords changed and back, folders renamed and numbered anew. In the end every account is
 * OK, and each mail was told once, in the order of its mailbox.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { startReceiver } from '../support/callbacks.ts'
import { startService, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { trackArrivals, type Arrivals, type Mailbox } from './lib/arrivals.ts'
import { startFaultGate, type FaultGate } from './lib/fault-gate.ts'
import { kept } from './lib/kept.ts'
import { benchMail } from './lib/mail.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

const appendEveryMs = 100
const faultEveryMs = 4000
/**
 * Sooner than by default IDLE's renewal finds dead connections, rejected logins are tried again, and polls find mail
 * that NOTIFY does not report, as in a folder that is being renamed. Three changes of the password in a row make an
 * account DISABLED: the probe brings the account back.
 */
const env = {
  MAILROOM_FOLDER_POLL: '5s',
  MAILROOM_IDLE_RENEW: '30s',
  MAILROOM_BACKOFF_AUTH: '10s',
  MAILROOM_DISABLED_PROBE: '10s',
  MAILROOM_BACKOFF_MAX: '30s',
  MAILROOM_UIDVALIDITY_CHANGES: '1000',
}
const settleMs = 180_000

interface Stage {
  readonly dovecot: Dovecot
  readonly gate: FaultGate
  readonly service: Service
  readonly users: readonly string[]
  readonly mailboxes: readonly Mailbox[]
  readonly arrivals: Arrivals
}

export async function faults(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 200
  const seconds = options.seconds ?? 900
  header('faults', { store: options.store, accounts, seconds })
  await using parts = new AsyncDisposableStack()
  const stage = await build(accounts, parts)
  const memory = watchMemory(stage.service)
  const done = await disturb(stage, seconds)
  await stage.arrivals.settle(settleMs)
  const growth = memory.end()
  return report(options, stage, { ...(await ends(stage)), done, growth })
}

async function build(accounts: number, parts: AsyncDisposableStack): Promise<Stage> {
  const names = Array.from({ length: accounts }, (_, index) => `u${index}@bench.example`)
  const dovecot = await startDovecot({ mailboxes: accounts * 2 })
  parts.defer(() => dovecot.remove())
  const gate = await startFaultGate(dovecot)
  parts.defer(() => gate.close())
  const receiver = await startReceiver()
  parts.defer(() => receiver.close())
  const service = await startService({ env })
  parts.defer(() => service.remove())
  const mailboxes = names.map((name) => mailboxOf(dovecot, name))
  await inParallel(mailboxes, 8, async ({ name, appender }) => {
    await appender.append('INBOX', [benchMail(`old-${name}`, name)])
    await appender.command('CREATE Work')
  })
  const through = { host: gate.host, port: gate.port, password: dovecot.password }
  const users = await inParallel(names, 8, (name) => createUser(service, through, name))
  await inParallel(users, 8, async (id, index) => {
    await listed(service, id, `bench old-${names[index] ?? ''}`, 120_000)
    await createWebhook(service, id, `${receiver.url}/${id}`)
  })
  return { dovecot, gate, service, users, mailboxes, arrivals: trackArrivals(mailboxes, receiver) }
}

/** Connections of our own end with each restart of the server: one is made for each command. */
function mailboxOf(dovecot: Dovecot, name: string): Mailbox {
  async function once<T>(work: (client: Awaited<ReturnType<Dovecot['connect']>>) => Promise<T>): Promise<T> {
    const client = await dovecot.connect(name)
    try {
      return await work(client)
    } finally {
      await client.close()
    }
  }
  return {
    name,
    appender: {
      command: (text) => once((client) => client.command(text)),
      append: (folder, messages) => once((client) => client.append(folder, messages)),
      close: () => Promise.resolve(),
    },
    watcher: null,
  }
}

/** Mail and faults take turns, so that no mail is on its way to a server that is being stopped. Answers the faults. */
async function disturb(stage: Stage, seconds: number): Promise<string[]> {
  const { mailboxes, arrivals } = stage
  const until = performance.now() + seconds * 1000
  const done: string[] = []
  let next = performance.now() + faultEveryMs
  while (performance.now() < until) {
    await arrivals.send(one(mailboxes), 'honest')
    await pause(appendEveryMs)
    if (performance.now() < next) continue
    const [name, act] = one(Object.entries(all))
    const mailbox = one(mailboxes)
    done.push(`${name} (${mailbox.name}) at ${Math.round(performance.now() / 1000)} s`)
    await act(stage, mailbox)
    next = performance.now() + faultEveryMs
  }
  return done
}

function one<T>(list: readonly T[]): T {
  const chosen = list[Math.floor(Math.random() * list.length)]
  if (chosen === undefined) throw new Error('an empty list')
  return chosen
}

const all: Record<string, (stage: Stage, mailbox: Mailbox) => unknown> = {
  'connections ended': ({ gate }) => gate.drop(0.2),
  'all connections ended': ({ gate }) => gate.drop(1),
  'connections stalled for 8 s': ({ gate }) => gate.stall(0.2, 8000),
  'connections half-open': ({ gate }) => gate.silence(0.05),
  'mail server started anew': ({ dovecot }) => dovecot.restart(),
  async 'mail server away for 5 s'({ dovecot }) {
    await dovecot.stop()
    await pause(5000)
    await dovecot.start()
  },
  async 'password changed and back'({ dovecot }) {
    const { password } = dovecot
    await dovecot.setPassword(`not ${password}`)
    await pause(3000)
    await dovecot.setPassword(password)
  },
  async 'folder renamed'({ arrivals }, mailbox) {
    await arrivals.send(mailbox, 'folder', 'Work')
    await mailbox.appender.command('RENAME Work Other')
    await pause(1000)
    await mailbox.appender.command('RENAME Other Work')
  },
  'folder numbered anew': ({ dovecot }, { name }) =>
    dovecot.renumber(name, one(['INBOX', 'Work']), Math.floor(Date.now() / 1000)),
}

/** Mean resident memory of the second and of the last third of the time, in MiB. */
function watchMemory(service: Service): { end(): readonly [second: number, last: number] } {
  const samples: number[] = []
  const timer = setInterval(() => samples.push(service.rssKib() / 1024), 1000)
  return {
    end() {
      clearInterval(timer)
      const third = Math.floor(samples.length / 3)
      const mean = (part: readonly number[]): number => part.reduce((sum, value) => sum + value, 0) / part.length
      return [mean(samples.slice(third, 2 * third)), mean(samples.slice(2 * third))]
    },
  }
}

/** Accounts that are not OK, with their state, and what the log has of promises without a handler. */
async function ends({
  service,
  users,
}: Stage): Promise<{ readonly bad: readonly string[]; readonly unhandled: number }> {
  const states = async (): Promise<string[]> => {
    const found = await inParallel(users, 8, (id) => service.list(`/lite/users/${id}/email_accounts`))
    return found.flatMap(([account], index) =>
      account?.['status'] === 'OK' ? [] : `${users[index] ?? ''}: ${String(account?.['status'])}`,
    )
  }
  await until('every account OK', async () => (await states()).length === 0, {
    withinMs: 60_000,
    everyMs: 1000,
  }).catch(() => undefined)
  const unhandled = service.log().match(/unhandled|uncaught|a bug in/gi)?.length ?? 0
  return { bad: await states(), unhandled }
}

interface Figures {
  /** The faults, in their order. */
  readonly done: readonly string[]
  readonly bad: readonly string[]
  readonly unhandled: number
  readonly growth: readonly [second: number, last: number]
}

const clock = (ms: number): string => `${Math.round(ms / 1000)} s`

function report(options: BenchOptions, { arrivals }: Stage, figures: Figures): boolean {
  const { bad, unhandled, growth, done } = figures
  const [second, last] = growth.map(round)
  // Of two folders neither comes first.
  const [inbox, inFolders] = ['honest', 'folder'].map((name) =>
    kept(arrivals.all.filter(({ series }) => series === name)),
  )
  const { lost = 0, repeated = 0, sent = 0, outOfOrder: late = [] } = inbox ?? {}
  const outOfOrder = late.length
  const told = {
    sent: sent + (inFolders?.sent ?? 0),
    lost: lost + (inFolders?.lost ?? 0),
    repeated: repeated + (inFolders?.repeated ?? 0),
    outOfOrder,
  }
  table(
    [
      'faults',
      'mail',
      'lost',
      'repeated',
      'out of order',
      'accounts not OK',
      'unhandled',
      'MiB, second third',
      'last third',
    ],
    [[done.length, ...Object.values(told), bad.length, unhandled, second ?? 0, last ?? 0]],
  )
  const isWhole = told.lost + told.repeated + outOfOrder + bad.length + unhandled === 0
  const ok = isWhole && (options.untimed || (last ?? 0) <= (second ?? 0) * 1.05)
  const wrong = arrivals.all
    .filter((one) => one.told !== 1 || late.includes(one))
    .map(
      ({ id, mailbox, told: times, sentAt, toldAt }) =>
        `${id} in ${mailbox}, sent at ${clock(sentAt)}: told ${times} times, first at ${clock(toldAt ?? NaN)}`,
    )
  if (!isWhole) for (const line of [...done, ...bad, ...wrong.slice(0, 20)]) say(`  ${line}`)
  say(
    `goal: all told once and in order, every account OK, memory of the last third within 5 %: ${ok ? 'met' : 'MISSED'}`,
  )
  jsonLine('faults', { store: options.store, ...told, notOk: bad.length, unhandled, second, last, ok })
  return ok
}
