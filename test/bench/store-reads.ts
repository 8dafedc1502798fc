/**
 * What a read costs on MongoDB, beside SQLite and beside the driver alone: two services, one on each store, read the
 * same mailboxes of one Dovecot. Each path is asked for once, so that no kept answer serves it.
 */
import { MongoClient } from 'mongodb'
import { type Collections, openCollections, shapes } from '../../engine/store/mongo/documents.ts'
import { startService, type Service } from '../support/service.ts'
import { createUser } from '../support/users.ts'
import { until } from '../support/until.ts'
import { type Both, callAll, callRounds, inTurn, type Next, openCaller } from './lib/calls.ts'
import { startFleet } from './lib/fleet.ts'
import { workLoad } from './lib/load.ts'
import { openBenchStore } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { median, type Row, rowOf } from './lib/ratios.ts'
import { table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

const accounts = 10
const mailPerAccount = 200
const plan = { rounds: 12, calls: 100 }
const callerCounts = [1, 16] as const
const env = { MAILROOM_FOLDER_POLL: '1h' }

const goals = { processor: 2.5, overFind: 0.6, commands: 2 }

interface OverFind {
  readonly callers: number
  /** Calls, and finds, a second. */
  readonly ours: number
  readonly bare: number
  readonly ratio: number
}

interface Commands {
  readonly name: string
  readonly perCall: number
  readonly each: string
}

export interface StoreReads {
  /** Processor time of a call: SQLite's as `before`, MongoDB's as `now`. */
  readonly processor: readonly Row[]
  readonly overFind: readonly OverFind[]
  readonly commands: readonly Commands[]
}

type Check = [words: string, value: number, met: boolean]

export async function storeReads(): Promise<StoreReads> {
  const parts = new AsyncDisposableStack()
  try {
    const fleet = await startFleet({ accounts, store: 'sqlite', mailPerAccount, env })
    parts.defer(() => fleet.remove())
    await fleet.connect()
    const store = openBenchStore('mongodb')
    parts.defer(() => store.remove())
    const mongo = await startService({ ...store.service, env })
    parts.defer(() => mongo.remove())
    const users = await inParallel(fleet.mailboxes, 4, (email) => createUser(mongo, fleet.dovecot, email))
    const services: Both<Service> = [fleet.service, mongo]
    const reads = await Promise.all([readsOf(fleet.service, fleet.users), readsOf(mongo, users)])
    const client = await MongoClient.connect(store.service.mongoUri ?? '', { maxPoolSize: 20 })
    parts.defer(() => client.close())
    const find = await findsOf(openCollections(client.db()))
    const processor = await processorRows(services, reads)
    const overFind = await besideFind(mongo, reads[1].list, find)
    await mongo.stop()
    await mongo.start({ NODE_OPTIONS: `--import ${import.meta.resolve('./lib/count-commands.ts')}` })
    const commands = await commandsOf(mongo, reads[1])
    return { processor, overFind, commands }
  } finally {
    await parts.disposeAsync()
  }
}

const kinds = ['list', 'message'] as const
type Reads = Readonly<Record<(typeof kinds)[number], Next>>
const names = { list: 'a list of 25', message: 'one message' } as const

/** Seconds since 1970 that no mail has come to. */
const farAway = 3_000_000_000

async function readsOf(service: Service, users: readonly string[]): Promise<Reads> {
  const ids = await inParallel(users, 4, async (user) => {
    const account = `/lite/users/${user}/email_accounts/0`
    const last = async (): Promise<boolean> => {
      const answer = await service.api('GET', `${account}/messages?limit=1&offset=${mailPerAccount - 1}`)
      return Array.isArray(answer.body) && answer.body.length > 0
    }
    await until(`all mail of ${user}`, last, { withinMs: 300_000, everyMs: 200 })
    const found = await service.list(`${account}/messages?limit=100`)
    return found.map((message) => `${account}/messages/${String(message['message_id'])}`)
  })
  const inbox = inTurn(users.map((user) => `/lite/users/${user}/email_accounts/0/folders/INBOX/messages`))
  const message = inTurn(ids.flat())
  let asked = 0
  return {
    list: () => `${inbox()}?date_before=${farAway + (asked += 1)}`,
    message: () => `${message()}?delimiter=${String.fromCodePoint(0x4e00 + ((asked += 1) % 0x5000))}`,
  }
}

async function processorRows(services: Both<Service>, [sqlite, mongo]: Both<Reads>): Promise<Row[]> {
  const rows: Row[] = []
  for (const kind of kinds) {
    rows.push(rowOf(names[kind], 'µs a call', await callRounds(services, [sqlite[kind], mongo[kind]], plan)))
  }
  return rows
}

type Find = () => Promise<number>

/** The same pages by the driver, in this process. */
async function findsOf({ folders, messages }: Collections): Promise<Find> {
  const all = await folders.find({ path: 'INBOX' }).toArray()
  let asked = 0
  return async () => {
    asked += 1
    const { accountId, _id } = all[asked % all.length] as (typeof all)[number]
    const where = { accountId, live: true, keys: `f:${_id}`, sentAt: { $lte: (farAway + asked) * 1000 } }
    const page = messages.find(where, { projection: shapes.messages.only }).sort({ sentAt: -1, _id: -1 }).limit(25)
    return (await page.toArray()).length
  }
}

/** In turns, so that what else the machine does hits both. */
async function besideFind({ url }: Service, next: Next, find: Find): Promise<OverFind[]> {
  const results: OverFind[] = []
  for (const callers of callerCounts) {
    const caller = openCaller(url, callers)
    const rate = async (work: () => Promise<number>): Promise<number> =>
      (
        await workLoad(
          '',
          Array.from({ length: callers }, () => work),
          2,
        )
      ).perSecond
    const rounds: { readonly ours: number; readonly bare: number }[] = []
    for (let round = 0; round < plan.rounds; round += 1) {
      rounds.push({ ours: await rate(() => caller.get(next())), bare: await rate(find) })
    }
    caller.close()
    const [ours, bare] = [median(rounds.map((round) => round.ours)), median(rounds.map((round) => round.bare))]
    results.push({ callers, ours, bare, ratio: median(rounds.map((round) => round.ours / round.bare)) })
  }
  return results
}

/** By a service that counts what its driver sends. */
async function commandsOf(service: Service, reads: Reads): Promise<Commands[]> {
  const counted = async (): Promise<Readonly<Record<string, number>>> => {
    const seen = service.log().length
    process.kill(service.pid, 'SIGUSR2')
    const line = await until('the counts', () => /^commands (.*)$/m.exec(service.log().slice(seen))?.[1])
    return JSON.parse(line) as Record<string, number>
  }
  const results: Commands[] = []
  for (const kind of kinds) {
    await callAll(service.url, reads[kind], plan.calls)
    const before = await counted()
    await callAll(service.url, reads[kind], plan.calls)
    const of = Object.entries(await counted()).map(([name, count]) => [
      name,
      (count - (before[name] ?? 0)) / plan.calls,
    ])
    const each = of.filter(([, count]) => Number(count) > 0)
    results.push({
      name: names[kind],
      perCall: each.reduce((sum, [, count]) => sum + Number(count), 0),
      each: each.map(([name, count]) => `${name} ${Number(count).toFixed(2)}`).join(', '),
    })
  }
  return results
}

/** Tables and verdicts. */
export function storeReadChecks({ processor, overFind, commands }: StoreReads): [string, number, boolean][] {
  table(
    ['each path once', 'SQLite µs', 'MongoDB µs', 'ratio'],
    processor.map(({ name, before, now, ratio }) => [name, Math.round(before), Math.round(now), two(ratio)]),
  )
  table(
    ['a list of 25 beside a bare find', 'a second', 'bare', 'ratio'],
    overFind.map(({ callers, ours, bare, ratio }) => [`callers: ${callers}`, round(ours), round(bare), two(ratio)]),
  )
  table(
    ['commands to MongoDB', 'a call', ''],
    commands.map(({ name, perCall, each }) => [name, two(perCall), each]),
  )
  return [
    ...processor.map(({ name, ratio }): Check => [
      `${name}: processor time of MongoDB over that of SQLite (at most ${goals.processor})`,
      two(ratio),
      ratio <= goals.processor,
    ]),
    ...overFind.map(({ callers, ratio }): Check => [
      `a list of 25 over a bare find, callers: ${callers} (at least ${goals.overFind})`,
      two(ratio),
      ratio >= goals.overFind,
    ]),
    ...commands.map(({ name, perCall }): Check => [
      `${name}: commands to MongoDB (at most ${goals.commands})`,
      two(perCall),
      perCall <= goals.commands,
    ]),
  ]
}

const two = (value: number): number => Math.round(value * 100) / 100
