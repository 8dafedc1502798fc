/**
 * Each store against its bare driver (store/bare-*.ts say what that does) in the same run: sync batches, list pages,
 * single reads, outbox claims, and the bytes of a message. Ratios hold on any machine; the rates do not.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { silentLogger } from '../../engine/observe/log.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import type { Store, SyncBatch } from '../../engine/store/port.ts'
import { dropDatabase } from '../support/store-choice.ts'
import { inParallel } from './lib/parallel.ts'
import { openBenchStore, type BenchOptions, type StoreKind } from './lib/options.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { bareMongo, databaseBytes } from './store/bare-mongo.ts'
import { bareSqlite, fileBytes, openBare } from './store/bare-sqlite.ts'
import { adapter, type Bytes, type Contestant } from './store/contestant.ts'
import { arrivals, backfill, createWorld, flagging, type Box, type World } from './store/mail.ts'
import { during, race, type Outcome, type Pair } from './store/race.ts'

const goals = { write: 0.7, read: 0.8 }
/** Messages of a back-fill batch (MAILROOM_SYNC_BATCH), of a batch of new mail, and of one of flags. */
const sizes = { backfill: 100, arrivals: 20, flags: 50 }
const batchesPerRound = 4
/** Shares of the messages that come as back-fill (the rest is new mail), and whose flags change. */
const shares = { backfill: 0.9, flags: 0.04 }
const reading = { rounds: 50, ms: 100 }
const pageLimit = 25
/** Pages are read from the first this many of a mailbox: far more messages than any cache holds. */
const deepestPage = 40
const claims = { limit: 20, perRound: 10, rounds: 40 }
/** The defaults of the service. */
const pool = 20
const sqliteSync = 'full'

interface Arena {
  readonly kind: StoreKind
  readonly world: World
  readonly ours: Contestant
  readonly bare: Contestant
  /** Steps side by side. node:sqlite has one thread: there, more would only measure commits that are shared. */
  readonly width: number
  remove(): Promise<void>
}

export async function store(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 100
  const messages = options.count ?? 200_000
  header('store', { stores: options.stores.join(', '), accounts, messages })
  let ok = true
  for (const kind of options.stores) {
    const arena = await openArena(kind, accounts, options.stores.length > 1)
    if (arena === null) continue
    try {
      ok = (await run(arena, accounts, messages)) && ok
    } finally {
      await arena.remove()
    }
  }
  return ok
}

/** null: not here, and it was not asked for by name. */
async function openArena(kind: StoreKind, accounts: number, optional: boolean): Promise<Arena | null> {
  const world = createWorld(accounts)
  try {
    return await (kind === 'sqlite' ? sqliteArena(world) : mongoArena(world))
  } catch (error) {
    if (!optional) throw error
    say(`${kind}: not measured: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`)
    return null
  }
}

async function sqliteArena(world: World): Promise<Arena> {
  const directory = mkdtempSync(join(tmpdir(), 'mailroom-bench-'))
  const [ours, bare] = [join(directory, 'ours.sqlite'), join(directory, 'bare.sqlite')]
  const open = (path: string): Promise<Store> => createSqliteStore({ path, sync: sqliteSync })
  const settled = await settledStore(world, await open(ours), await open(bare))
  const looking = openBare(ours, sqliteSync)
  const parts = {
    ours: adapter(settled, () => Promise.try(() => fileBytes(looking))),
    bare: bareSqlite(bare, sqliteSync),
  }
  return {
    kind: 'sqlite',
    world,
    width: 1,
    ...parts,
    async remove() {
      looking.close()
      await parts.ours.close()
      await parts.bare.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function mongoArena(world: World): Promise<Arena> {
  const place = openBenchStore('mongodb')
  const uri = place.service.mongoUri ?? ''
  const bareUri = uri.replace(/(mailroom_bench_\d+)/, '$1_bare')
  const open = (at: string): Promise<Store> => createMongoStore({ uri: at, pool, timeoutMs: 10_000, log: silentLogger })
  const settled = await settledStore(world, await open(uri), await open(bareUri))
  const looking = await MongoClient.connect(uri)
  const parts = { ours: adapter(settled, () => databaseBytes(looking.db())), bare: await bareMongo(bareUri, pool) }
  return {
    kind: 'mongodb',
    world,
    width: 4,
    ...parts,
    async remove() {
      await looking.close()
      await parts.ours.close()
      await parts.bare.close()
      await dropDatabase(bareUri)
      await place.remove()
    },
  }
}

/** People and accounts into both, by the adapter; the second then belongs to the bare driver. */
async function settledStore(world: World, ours: Store, bare: Store): Promise<Store> {
  await world.settle(ours)
  await world.settle(bare)
  await bare.close()
  return ours
}

async function run(arena: Arena, accounts: number, messages: number): Promise<boolean> {
  const filled = Math.floor((messages * shares.backfill) / sizes.backfill)
  const { world } = arena
  const writes = [await writing(arena, 'back-fill', filled, (box) => backfill(box, sizes.backfill))]
  const there = filledBoxes(world).reduce((sum, box) => sum + box.messages.length, 0)
  const perMessage = async (contestant: Contestant): Promise<Bytes> => {
    const { data, indexes } = await contestant.bytes()
    return { data: Math.round(data / there), indexes: Math.round(indexes / there) }
  }
  const bytes = { ours: await perMessage(arena.ours), bare: await perMessage(arena.bare) }
  const fresh = Math.floor((messages * (1 - shares.backfill)) / sizes.arrivals)
  writes.push(await writing(arena, 'new mail', fresh, (box) => arrivals(world, box, sizes.arrivals)))
  const flagged = new Map<Box, number>()
  const changed = Math.floor((messages * shares.flags) / sizes.flags)
  writes.push(
    await writing(arena, 'flags', changed, (box) => {
      const from = flagged.get(box) ?? 0
      flagged.set(box, from + sizes.flags)
      return flagging(world, box, from, sizes.flags)
    }),
  )
  const reads = [await lists(arena), await singles(arena)]
  writes.push(await claiming(arena, fresh * sizes.arrivals + changed * sizes.flags))
  return report(arena.kind, { accounts, messages }, writes, reads, bytes)
}

/** Rows of all kinds that a batch writes for sure: messages (new or changed), changes, callbacks. */
function rowsIn({ added, flagUpdates, changes, outbox }: SyncBatch): number {
  return added.length + flagUpdates.length + changes.length + outbox.length
}

/** Batches of accounts in turn; those of one round are of different accounts, as far as there are enough. */
function writing(
  { world, ours, bare, width }: Arena,
  name: string,
  batches: number,
  next: (box: Box) => SyncBatch,
): Promise<Outcome> {
  let at = 0
  const { boxes } = world
  const perRound = Math.min(batchesPerRound, boxes.length)
  return race(`sync: ${name}`, 'rows', Math.max(2, Math.floor(batches / perRound)), (): Pair => {
    const round = Array.from({ length: perRound }, () => {
      const box = boxes[at % boxes.length]
      at += 1
      return box === undefined ? [] : [next(box)]
    }).flat()
    const rows = round.reduce((sum, batch) => sum + rowsIn(batch), 0)
    const work = (contestant: Contestant) => {
      const steps = round.map((batch) => contestant.prepare(batch))
      return async (): Promise<number> => {
        await inParallel(steps, width, (step) => step())
        return rows
      }
    }
    return { ours: work(ours), bare: work(bare) }
  })
}

function filledBoxes({ boxes }: World): Box[] {
  return boxes.filter(({ messages }) => messages.length > 0)
}

/** A number below `most` for each index and purpose, spread evenly: both pick the same. */
function spread(index: number, purpose: number, most: number): number {
  let mixed = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(purpose + 1, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return ((mixed ^ (mixed >>> 16)) >>> 0) % most
}

function pick<T>(items: readonly T[], index: number, purpose: number): T {
  const item = items[spread(index, purpose, items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

/** Any page of any account, of the whole account and of a folder in turn. */
function lists({ world, ours, bare, width }: Arena): Promise<Outcome> {
  const boxes = filledBoxes(world)
  const one = (contestant: Contestant) => async (index: number) => {
    const box = pick(boxes, index, 0)
    const pages = Math.max(1, Math.floor(box.messages.length / pageLimit))
    const offset = spread(index, 1, Math.min(pages, deepestPage)) * pageLimit
    const folderId = index % 2 === 0 ? box.folderId : null
    const rows = await contestant.page({ accountId: box.account.id, folderId, limit: pageLimit, offset })
    if (rows !== Math.min(pageLimit, box.messages.length)) throw new Error(`a page of ${rows}`)
    return 1
  }
  return timed('list of 25', 'pages', width, one(ours), one(bare))
}

function singles({ world, ours, bare, width }: Arena): Promise<Outcome> {
  const boxes = filledBoxes(world)
  const one = (contestant: Contestant) => async (index: number) => {
    const box = pick(boxes, index, 0)
    if (!(await contestant.message(box.account.id, pick(box.messages, index, 1))))
      throw new Error('a message is missing')
    return 1
  }
  return timed('single message', 'reads', width, one(ours), one(bare))
}

function timed(
  name: string,
  unit: string,
  width: number,
  ours: (index: number) => Promise<number>,
  bare: (index: number) => Promise<number>,
): Promise<Outcome> {
  const [own, other] = [{ next: 0 }, { next: 0 }]
  return race(name, unit, reading.rounds, () => ({
    ours: during(reading.ms, width, own, ours),
    bare: during(reading.ms, width, other, bare),
  }))
}

/** Channels in turn, so that steps side by side never want the same rows. */
function claiming({ world, ours, bare, width }: Arena, waiting: number): Promise<Outcome> {
  const { limit, perRound } = claims
  const rounds = Math.max(1, Math.min(claims.rounds, Math.floor(waiting / (limit * perRound))))
  const work = (contestant: Contestant) => async (): Promise<number> => {
    const channels = Array.from({ length: perRound }, (_, index) => world.channels[index % world.channels.length] ?? '')
    const done = await inParallel(channels, width, (channel) => contestant.claim(channel, limit))
    return done.reduce((sum, rows) => sum + rows, 0)
  }
  return race('outbox claim', 'rows', rounds, () => ({ ours: work(ours), bare: work(bare) }))
}

function report(
  kind: StoreKind,
  settings: Readonly<Record<string, number>>,
  writes: readonly Outcome[],
  reads: readonly Outcome[],
  bytes: { readonly ours: Bytes; readonly bare: Bytes },
): boolean {
  const row = ({ name, unit, ours, bare, ratio, cpuRatio }: Outcome) => [
    `${kind} ${name}`,
    `${unit}/s`,
    ours,
    bare,
    ratio,
    cpuRatio,
  ]
  table(['step', 'unit', 'ours', 'bare', 'ratio', 'by CPU'], [...writes, ...reads].map(row))
  const words = ({ data, indexes }: Bytes): string => `${data + indexes} (indexes ${indexes})`
  say(`bytes stored per message, with its contacts: ${words(bytes.ours)}, bare ${words(bytes.bare)}`)
  const ok = writes.every(({ ratio }) => ratio >= goals.write) && reads.every(({ ratio }) => ratio >= goals.read)
  say(`goal: ratio at least ${goals.write} for writes, ${goals.read} for reads: ${ok ? 'met' : 'MISSED'}`)
  say()
  jsonLine('store', {
    store: kind,
    ...settings,
    writes,
    reads,
    bytesPerMessage: bytes.ours,
    bytesPerMessageBare: bytes.bare,
    ok,
  })
  return ok
}
