/** Several processes of the service on one database of their own, each behind a proxy, with Dovecot and a receiver. */
import { setTimeout as pause } from 'node:timers/promises'
import { createProxy, type Proxy } from '../../store/mongo-proxy.ts'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { startService, type Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { createUser, createWebhook, listed } from '../../support/users.ts'
import { benchMail } from '../lib/mail.ts'
import { openBenchStore } from '../lib/options.ts'
import { inParallel } from '../lib/parallel.ts'
import { trackWriters, type Writers } from './writers.ts'

export interface Node {
  readonly name: string
  readonly service: Service
  /** Between the node and the database. */
  readonly proxy: Proxy
}

export interface User {
  readonly id: string
  readonly mailbox: string
}

export interface Cluster {
  readonly dovecot: Dovecot
  readonly receiver: CallbackReceiver
  readonly mongoUri: string
  /** Those that run, or are to be started again. */
  readonly nodes: Node[]
  readonly users: User[]
  readonly writers: Writers
  start(role?: 'all' | 'api' | 'engine'): Promise<Node>
  /** Stops it in order. */
  end(node: Node): Promise<void>
  /** Users with one email account and one webhook each, through this node, after one old message. */
  connect(through: Service, count: number): Promise<void>
  remove(): Promise<void>
}

const env = {
  MAILROOM_SECRET: 'ab'.repeat(32),
  MAILROOM_WEBHOOK_SCHEDULE: Array<string>(20).fill('1s').join(','),
  MAILROOM_WEBHOOK_JITTER: '0',
}

export async function startCluster(mostAccounts: number): Promise<Cluster> {
  const parts = new AsyncDisposableStack()
  const store = openBenchStore('mongodb')
  parts.defer(() => store.remove())
  const mongoUri = store.service.mongoUri ?? ''
  const nodes: Node[] = []
  const users: User[] = []
  const writers = trackWriters()
  let names = 0
  try {
    const dovecot = await startDovecot({ mailboxes: mostAccounts * 2 })
    parts.defer(() => dovecot.remove())
    const receiver = await startReceiver()
    parts.defer(() => receiver.close())
    parts.defer(async () => {
      await Promise.all(nodes.map(remove))
    })
    return {
      ...{ dovecot, receiver, mongoUri, nodes, users, writers },
      async start(role = 'all') {
        const name = `${role} ${(names += 1)}`
        const proxy = await createProxy(mongoUri, writers.watch(name))
        const service = await startService({ mongoUri: proxy.uri, env: { ...env, MAILROOM_ROLE: role } })
        const node = { name, service, proxy }
        nodes.push(node)
        return node
      },
      async end(node) {
        nodes.splice(nodes.indexOf(node), 1)
        await remove(node)
      },
      async connect(through, count) {
        const made = Array.from({ length: count }, (_, index) => `u${users.length + index}@bench.example`)
        const added = await inParallel(made, 8, async (mailbox) => {
          const old = `old-${mailbox.split('@')[0] ?? ''}`
          await dovecot.append(mailbox, 'INBOX', benchMail(old, mailbox))
          const id = await connected(through, dovecot, mailbox)
          await listed(through, id, `bench ${old}`, 120_000)
          await createWebhook(through, id, `${receiver.url}/user`)
          return { id, mailbox }
        })
        users.push(...added)
      },
      remove: () => parts.disposeAsync(),
    }
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

/** As a client does that is told to come back: it looks whether the user is there by now, before it asks again. */
async function connected(through: Service, dovecot: Dovecot, mailbox: string): Promise<string> {
  const create = (): Promise<string> => createUser(through, dovecot, mailbox)
  return create().catch(() =>
    until(
      `the user ${mailbox}`,
      async () => {
        const [user] = await through.list(`/lite/users?email=${encodeURIComponent(mailbox)}`)
        return user === undefined ? create() : String(user['id'])
      },
      { withinMs: patientMs, everyMs: 2000 },
    ),
  )
}

async function remove({ service, proxy }: Node): Promise<void> {
  await service.remove()
  await proxy.close()
}

const askMs = 2000
/** A machine that is busy with something else must not end a run without a verdict. */
export const patientMs = 300_000

/** Accounts that the node watches; 0 when it does not answer. */
export async function watchedBy({ service }: Node): Promise<number> {
  try {
    const answer = await fetch(`${service.url}/metrics`, { signal: AbortSignal.timeout(askMs) })
    const counts = [...(await answer.text()).matchAll(/^mailroom_accounts\{tag="watching"\} (\d+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  } catch {
    return 0
  }
}

export async function watched(nodes: readonly Node[]): Promise<number> {
  return (await Promise.all(nodes.map(watchedBy))).reduce((sum, count) => sum + count, 0)
}

/** Resolves when these nodes watch every account, each one of them. */
export async function allWatched({ users }: Cluster, nodes: readonly Node[], withinMs = patientMs): Promise<void> {
  await until('every account is watched', async () => (await watched(nodes)) === users.length, {
    withinMs,
    everyMs: 250,
    explain: () => nodes.map(({ name, service }) => `--- ${name}\n${service.log().slice(-2000)}`).join('\n'),
  })
}

/**
 * Resolves when each of them has accounts, and none has moved for a while. Of few accounts the parts are uneven: an
 * empty slot weighs something too.
 */
export async function evenlyWatched(cluster: Cluster, nodes: readonly Node[]): Promise<void> {
  await until('each node has its part', async () => (await Promise.all(nodes.map(watchedBy))).every((own) => own > 0), {
    withinMs: patientMs,
    everyMs: 200,
  })
  await allWatched(cluster, nodes)
  await pause(3000)
  await allWatched(cluster, nodes)
}
