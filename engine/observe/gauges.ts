/** What is asked at each scrape. Nothing that cannot be told keeps the rest from being told. */
import { statfs } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Backlog, OutboxStore } from '../store/port.ts'

type ByLimit = Readonly<Record<'all' | 'address', number>>

/** Connections to the API: open now; and since the start those that were refused, or closed to make room. */
export interface ConnectionCounts {
  readonly open: number
  /** Calls that have not begun. */
  readonly waiting: number
  readonly refused: ByLimit
  readonly closed: ByLimit
}

type Counts = ReadonlyMap<string, number>

/** Each is asked at each scrape; what is absent is not told. */
export interface Sources {
  /** Actors by tag. */
  readonly accountTags?: () => Counts
  readonly webhookTags?: () => Counts
  /** Accounts by state, by host. */
  readonly hosts?: () => ReadonlyMap<string, Counts>
  readonly connections?: ConnectionCounts | undefined
  /** What waits in memory, by queue. */
  readonly queues?: () => Readonly<Record<'logins' | 'backfill', number>>
  /** What waits in the outbox. */
  readonly outbox?: () => Promise<Backlog>
  readonly ready?: () => Promise<boolean>
  /** Whose disk is told. */
  readonly directory?: string
  /** When the newest backup was made, in ms; null = there is none. */
  readonly lastBackupAt?: () => Promise<number | null>
}

type Sample<TLabel extends string> = readonly [labels: Readonly<Record<TLabel, string>>, value: number]

/** Hosts that are told by name, those with most accounts; the rest are `other`. */
const mostHosts = 20

/** `ownsProcess`: its event loop is measured. */
export function addGauges(registry: Registry, sources: Sources, ownsProcess: boolean): void {
  const registers = [registry]
  const gauge = <TLabel extends string>(
    name: string,
    help: string,
    labelNames: TLabel[],
    read: () => readonly Sample<TLabel>[] | Promise<readonly Sample<TLabel>[]>,
  ) =>
    new Gauge<TLabel>({
      name: `mailroom_${name}`,
      help,
      labelNames,
      registers,
      async collect() {
        const samples = await Promise.resolve()
          .then(read)
          .catch(() => [])
        this.reset()
        for (const [labels, value] of samples) this.set(labels, value)
      },
    })
  const byTag = (counts: Counts = new Map()) => Array.from(counts, ([tag, value]) => [{ tag }, value] as const)
  gauge('accounts', 'Account actors by tag', ['tag'], () => byTag(sources.accountTags?.()))
  gauge('webhooks', 'Webhook actors by tag', ['tag'], () => byTag(sources.webhookTags?.()))
  gauge('host_accounts', `Accounts by mail server (the ${mostHosts} largest) and state`, ['host', 'state'], () =>
    hostSamples(sources.hosts?.() ?? new Map()),
  )
  addConnections(registry, sources.connections)
  const delay = ownsProcess ? createLoopDelay() : () => []
  gauge('event_loop_delay_seconds', 'Delay of the event loop since the last scrape', ['quantile'], delay)
  addWaiting(gauge, sources)
  addState(gauge, sources)
}

type AddGauge = <TLabel extends string>(
  name: string,
  help: string,
  labelNames: TLabel[],
  read: () => readonly Sample<TLabel>[] | Promise<readonly Sample<TLabel>[]>,
) => unknown

function addWaiting(gauge: AddGauge, { queues, outbox, connections }: Sources): void {
  gauge('queue_waiting', 'What waits, by queue', ['queue'], async () => {
    const { pending } = (await outbox?.()) ?? { pending: 0 }
    const { logins = 0, backfill = 0 } = queues?.() ?? {}
    const waiting = { outbox: pending, logins, backfill, api_calls: connections?.waiting ?? 0 }
    return Object.entries(waiting).map(([queue, value]) => [{ queue }, value] as const)
  })
  gauge('outbox_oldest_seconds', 'Age of the oldest callback that waits; 0 = none does', [], async () => {
    const { oldestAt } = (await outbox?.()) ?? { oldestAt: null }
    return [[{}, oldestAt === null ? 0 : Math.max(0, (Date.now() - oldestAt) / 1000)]]
  })
}

function addState(gauge: AddGauge, { ready, directory, lastBackupAt }: Sources): void {
  gauge('ready', '1 = the store takes writes, the actors are started and the process is not ending', [], async () => [
    [{}, (await ready?.()) === true ? 1 : 0],
  ])
  gauge('data_free_bytes', 'Free space of the disk that the data directory lies on', [], async () => {
    if (directory === undefined) return []
    const { bavail, bsize } = await statfs(directory)
    return [[{}, bavail * bsize]]
  })
  gauge('last_backup_timestamp_seconds', 'When the newest backup was made; absent = there is none', [], async () => {
    const at = (await lastBackupAt?.()) ?? null
    return at === null ? [] : [[{}, at / 1000]]
  })
}

/** Percentiles since the last time they were asked for. The histogram costs nothing until there is a delay. */
function createLoopDelay(): () => readonly Sample<'quantile'>[] {
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  return () => {
    const seconds = (nanoseconds: number): number => (Number.isFinite(nanoseconds) ? nanoseconds / 1e9 : 0)
    const samples = [
      [{ quantile: '0.5' }, seconds(delays.percentile(50))],
      [{ quantile: '0.99' }, seconds(delays.percentile(99))],
      [{ quantile: '1' }, seconds(delays.max)],
    ] as const
    delays.reset()
    return samples
  }
}

function hostSamples(hosts: ReadonlyMap<string, Counts>): readonly Sample<'host' | 'state'>[] {
  const total = (states: Counts): number => states.values().reduce((sum, count) => sum + count, 0)
  const largest = [...hosts].sort(([, one], [, other]) => total(other) - total(one))
  const others = new Map<string, number>()
  for (const [, states] of largest.slice(mostHosts))
    for (const [state, count] of states) others.set(state, (others.get(state) ?? 0) + count)
  return [...largest.slice(0, mostHosts), ['other', others] as const].flatMap(([host, states]) =>
    Array.from(states, ([state, count]) => [{ host, state }, count] as const),
  )
}

function addConnections(registry: Registry, counts: ConnectionCounts | undefined): void {
  const registers = [registry]
  new Gauge({
    name: 'mailroom_connections',
    help: 'Open connections to the API',
    registers,
    collect() {
      this.set(counts?.open ?? 0)
    },
  })
  new Counter({
    name: 'mailroom_connections_over_limit_total',
    help: 'Connections to the API that were refused, or closed to make room, by the limit that was reached',
    labelNames: ['limit', 'outcome'],
    registers,
    collect() {
      this.reset()
      for (const limit of ['all', 'address'] as const) {
        this.inc({ limit, outcome: 'refused' }, counts?.refused[limit] ?? 0)
        this.inc({ limit, outcome: 'closed' }, counts?.closed[limit] ?? 0)
      }
    },
  })
}

/** It may take a while: two that ask one after the other get the same answer. */
const backlogKeptMs = 5000

/** What waits in the outbox, of all channels. */
export function createBacklog(outbox: Pick<OutboxStore, 'channels' | 'backlog'>): () => Promise<Backlog> {
  let asked: { readonly at: number; readonly answer: Promise<Backlog> } | null = null
  const ask = async (): Promise<Backlog> => {
    let [pending, oldestAt] = [0, null as number | null]
    for (const channelId of await outbox.channels()) {
      const of = await outbox.backlog(channelId)
      pending += of.pending
      if (of.oldestAt !== null) oldestAt = Math.min(oldestAt ?? of.oldestAt, of.oldestAt)
    }
    return { pending, oldestAt }
  }
  return () => {
    const at = performance.now()
    if (asked === null || at - asked.at > backlogKeptMs) asked = { at, answer: ask() }
    return asked.answer
  }
}
