/** What several nodes cost, and how long they take, without faults but those that are measured. */
import { setTimeout as pause } from 'node:timers/promises'
import { MongoClient, type Document } from 'mongodb'
import { slotOf } from '../../../engine/store/slots.ts'
import { commandName } from '../../store/mongo-proxy.ts'
import { part } from '../../support/callbacks.ts'
import type { Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { benchId, benchMail } from '../lib/mail.ts'
import { inParallel } from '../lib/parallel.ts'
import { cpuNanosOf } from '../lib/processor.ts'
import { percentile, round } from '../lib/statistics.ts'
import { allWatched, evenlyWatched, patientMs, watchedBy, type Cluster, type Node, type User } from './cluster.ts'

export interface Idle {
  readonly nodes: number
  readonly accounts: number
  readonly operationsPerSecond: number
  /** Of all nodes together, of one core. */
  readonly cpuPercent: number
}

/** Commands to the database of a cluster that does nothing, and its processor time. */
export async function idle({ nodes, users }: Cluster, seconds: number): Promise<Idle> {
  const operationsIn = async (ms: number): Promise<number> => {
    for (const { proxy } of nodes) proxy.seen.length = 0
    await pause(ms)
    return nodes.reduce((sum, { proxy }) => sum + proxy.seen.length, 0)
  }
  // Slots are shared out for a while after users were made, and accounts that have moved write once more some seconds
  // later; a beat is two commands.
  const isAtRest = async (): Promise<boolean> => (await operationsIn(10_000)) <= 25 * nodes.length
  await until('nothing but beats', isAtRest, { withinMs: patientMs })
  const cpu = cpuOf(nodes)
  const began = performance.now()
  const operations = await operationsIn(seconds * 1000)
  const tookMs = performance.now() - began
  return {
    nodes: nodes.length,
    accounts: users.length,
    operationsPerSecond: round((operations * 1000) / tookMs),
    cpuPercent: round((cpu() / tookMs) * 100),
  }
}

/** Commands of the nodes to the database since, but for what they ask about one another. */
function operationsOf(nodes: readonly Node[]): () => number {
  const sum = (): number =>
    nodes.reduce((all, { proxy }) => all + proxy.seen.filter((command) => !isAboutNodes(command)).length, 0)
  const before = sum()
  return () => sum() - before
}

function isAboutNodes(command: Document): boolean {
  return /^(?:nodes|slots|news)$/.test(String(command[commandName(command)]))
}

/** Answers the way to the milliseconds of processor time that they have used since. */
function cpuOf(nodes: readonly Node[]): () => number {
  const sum = (): number => nodes.reduce((all, { service }) => all + cpuNanosOf(service.pid) / 1e6, 0)
  const before = sum()
  return () => sum() - before
}

export interface Spread {
  readonly p50: number
  readonly p99: number
}

const two = (value: number): number => Math.round(value * 100) / 100

const spreadOf = (times: readonly number[]): Spread => ({
  p50: round(percentile(times, 50)),
  p99: round(percentile(times, 99)),
})

/** Milliseconds until each account of a node that ended without a word is watched again, over several rounds. */
export async function takeover(
  cluster: Cluster,
  rounds: number,
  end: (node: Node) => Promise<void> | void,
): Promise<Spread> {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const [victim, ...others] = cluster.nodes
    if (victim === undefined) throw new Error('no node')
    const lost = await watchedBy(victim)
    const began = performance.now()
    await end(victim)
    let back = 0
    await until(
      'the accounts are watched again',
      async () => {
        const now = (await Promise.all(others.map(watchedBy))).reduce((sum, own) => sum + own, 0)
        const again = now - (cluster.users.length - lost)
        for (; back < again; back += 1) times.push(performance.now() - began)
        return back === lost
      },
      { withinMs: 120_000, everyMs: 20 },
    )
    await victim.service.kill9()
    await victim.service.start()
    await evenlyWatched(cluster, cluster.nodes)
  }
  return spreadOf(times)
}

export interface Latency extends Spread {
  readonly operationsPerEvent: number
}

/** Milliseconds from mail to callback, of mail to every account all the time while `work` is done. */
export async function latencyDuring(cluster: Cluster, series: string, work: () => Promise<void>): Promise<Latency> {
  const operations = operationsOf(cluster.nodes)
  const sent = new Map<string, number>()
  const told = new Map<string, number>()
  cluster.receiver.onCallback(({ body, at }) => {
    const id = benchId(part(body, 'message_data')['email_message_id'])
    if (id !== null && !told.has(id)) told.set(id, at)
  })
  const state = { isOver: false }
  const sending = inParallel(cluster.users, 8, async ({ mailbox }, index) => {
    const client = await cluster.dovecot.connect(mailbox)
    for (let count = 0; !state.isOver; count += 1) {
      const id = `${series}-${index}-${count}`
      sent.set(id, performance.now())
      await client.append('INBOX', [benchMail(id, mailbox)])
      await pause(500)
    }
    await client.close()
  })
  await work().finally(() => (state.isOver = true))
  await sending
  await until('every callback', () => [...sent.keys()].every((id) => told.has(id)), {
    withinMs: 60_000,
    explain: () => [...sent.keys()].filter((id) => !told.has(id)).join(' '),
  })
  cluster.receiver.onCallback(() => undefined)
  const spread = spreadOf([...sent].map(([id, at]) => (told.get(id) ?? Infinity) - at))
  return { ...spread, operationsPerEvent: two(operations() / sent.size) }
}

/** Every node is replaced, one after the other. */
export async function rollingRestart(cluster: Cluster): Promise<void> {
  for (const { service } of cluster.nodes) {
    await service.stop()
    await service.start()
    await allWatched(cluster, cluster.nodes)
  }
}

export interface Hop {
  readonly call: string
  readonly atOwner: Spread
  readonly throughOther: Spread
  /** To the database, of all nodes together. */
  readonly operationsPerCall: number
}

/** Milliseconds of calls for one user, at the owner and through another node, by turns. */
export async function hops(cluster: Cluster, times: number): Promise<Hop[]> {
  const [user] = cluster.users
  if (user === undefined) throw new Error('no user')
  const owner = await ownerOf(cluster, user)
  const other = cluster.nodes.find((node) => node !== owner) ?? owner
  const path = `/lite/users/${user.id}/email_accounts/0/folders/INBOX/messages`
  const [message] = await owner.service.list(`${path}?limit=1`)
  const one = `${path}/${encodeURIComponent(String(message?.['message_id']))}`
  const calls: readonly (readonly [string, (service: Service, at: number) => Promise<unknown>])[] = [
    ['list of 20 messages', (service) => service.list(`${path}?limit=20`)],
    ['a body', (service) => service.ok('GET', `${one}/body`)],
    ['a flag', (service, at) => service.ok('POST', `${one}/flags`, { seen: at % 2 })],
  ]
  const measured: Hop[] = []
  for (const [call, of] of calls) {
    const took = { owner: [] as number[], other: [] as number[] }
    const operations = operationsOf(cluster.nodes)
    for (let at = 0; at < times; at += 1)
      for (const [which, { service }] of [
        ['owner', owner],
        ['other', other],
      ] as const) {
        const began = performance.now()
        await of(service, at)
        took[which].push(performance.now() - began)
      }
    const operationsPerCall = two(operations() / (2 * times))
    measured.push({ call, atOwner: spreadOf(took.owner), throughOther: spreadOf(took.other), operationsPerCall })
  }
  return measured
}

async function ownerOf({ mongoUri, nodes }: Cluster, { id }: User): Promise<Node> {
  const client = await MongoClient.connect(mongoUri)
  try {
    const slot = await client
      .db()
      .collection('slots')
      .findOne({ slot: slotOf(id) })
    const owner = await client
      .db()
      .collection<{ _id: string; pid: number }>('nodes')
      .findOne({ _id: String(slot?.['owner']) })
    const found = nodes.find(({ service }) => service.pid === owner?.pid)
    if (found === undefined) throw new Error('nobody owns the user')
    return found
  } finally {
    await client.close()
  }
}

export interface Burst {
  readonly nodes: number
  readonly eventsPerSecond: number
  /** Of all nodes together. */
  readonly cpuMsPerEvent: number
  /** Without what they use in that time when nothing comes. */
  readonly beyondIdle: number
  readonly operationsPerEvent: number
}

/** Mail to all accounts at once, until each message is told of. */
export async function burst(cluster: Cluster, series: string, count: number, rest?: Idle): Promise<Burst> {
  const { users, receiver, dovecot, nodes } = cluster
  const told = new Set<string>()
  receiver.onCallback(({ body }) => {
    const id = benchId(part(body, 'message_data')['email_message_id'])
    if (id?.startsWith(`${series}-`)) told.add(id)
  })
  const share = Math.ceil(count / users.length)
  const clients = await inParallel(users, 8, ({ mailbox }) => dovecot.connect(mailbox))
  const cpu = cpuOf(nodes)
  const operations = operationsOf(nodes)
  const began = performance.now()
  await inParallel(users, users.length, async ({ mailbox }, index) => {
    const mail = Array.from({ length: share }, (_, at) => benchMail(`${series}-${index}-${at}`, mailbox))
    await clients[index]?.append('INBOX', mail)
  })
  await until('every callback', () => told.size >= share * users.length, { withinMs: 120_000 })
  const seconds = (performance.now() - began) / 1000
  // What is written down of the last callbacks.
  await pause(1000)
  const cpuMs = cpu()
  const idleMs = ((rest?.cpuPercent ?? 0) / 100) * (performance.now() - began)
  receiver.onCallback(() => undefined)
  await inParallel(clients, 8, (client) => client.close())
  return {
    nodes: nodes.length,
    eventsPerSecond: Math.round(told.size / seconds),
    cpuMsPerEvent: two(cpuMs / told.size),
    beyondIdle: two((cpuMs - idleMs) / told.size),
    operationsPerEvent: two(operations() / told.size),
  }
}
