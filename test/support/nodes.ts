/**
 * Several nodes, in this process or as processes, where a test knows one: MAILROOM_TEST_NODES=2 with
 * MAILROOM_TEST_STORE=mongodb. Each call goes to one of them at random, the same ones for the same MAILROOM_TEST_SEED.
 */
import type { Engine } from '../../engine/index.ts'
import { allSlots } from '../../engine/store/slots.ts'
import { randomOf } from './random.ts'
import { apiKey, apiSecret, createClient, startService, type Service, type ServiceOptions } from './service.ts'
import { until } from './until.ts'

export const nodeCount =
  process.env['MAILROOM_TEST_STORE'] === 'mongodb' ? Number(process.env['MAILROOM_TEST_NODES'] ?? 1) : 1

/** What nodes share beside the database. */
export const nodeSettings = nodeCount === 1 ? {} : { MAILROOM_SECRET: 'cd'.repeat(32) }

const random = randomOf(Number(process.env['MAILROOM_TEST_SEED'] ?? 1))

export function oneOf<T>(nodes: readonly [T, ...T[]]): T {
  return nodes[Math.floor(random() * nodes.length)] ?? nodes[0]
}

/** Resolves when each node has its part of the slots, and knows who has the others. */
async function shared(engines: readonly Engine[]): Promise<void> {
  const nodes = engines.map(({ store }) => store.nodes)
  const fair = allSlots.length / nodes.length / 2
  await until('each node has its part', () => {
    const owned = allSlots.map((slot) => nodes.filter((node) => node.ownsSlot(slot)).length)
    const parts = nodes.map((node) => allSlots.filter((slot) => node.ownsSlot(slot)).length)
    return owned.every((count) => count === 1) && parts.every((count) => count > fair)
  })
}

/**
 * One engine for tests that look into it: what concerns an account or a webhook is asked of the node that has it.
 * Resolves when the slots are shared.
 */
export async function engineOver(engines: readonly [Engine, ...Engine[]]): Promise<Engine> {
  const [first] = engines
  if (engines.length === 1) return first
  await shared(engines)
  return {
    ...first,
    accounts: routed(engines, 'accounts'),
    webhooks: routed(engines, 'webhooks'),
  }
}

function routed<P extends 'accounts' | 'webhooks'>(engines: readonly [Engine, ...Engine[]], part: P): Engine[P] {
  const whose = (id: unknown): Engine =>
    engines.find((engine) => typeof id === 'string' && engine[part].view(id) !== null) ?? engines[0]
  return new Proxy(engines[0][part], {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: readonly unknown[]): unknown => {
        const own = whose(args[0])[part]
        return (Reflect.get(own, name) as (...rest: unknown[]) => unknown).apply(own, [...args])
      }
    },
  })
}

/** One service of as many processes: calls go to one at random; what ends or starts it ends or starts all. */
export async function startServices(options: ServiceOptions): Promise<Service> {
  const env = { ...nodeSettings, ...options.env }
  const first = await startService({ ...options, env })
  const all: [Service, ...Service[]] = [first]
  while (all.length < nodeCount) all.push(await startService({ ...options, env }))
  if (all.length === 1) return first
  const together = async (work: (one: Service) => Promise<unknown>): Promise<void> => {
    await Promise.all(all.map(work))
  }
  return {
    ...createClient(() => oneOf(all).url, `${apiKey}:${apiSecret}`),
    get url() {
      return first.url
    },
    get pid() {
      return first.pid
    },
    dataDir: first.dataDir,
    log: () => all.map((one) => one.log()).join(''),
    rssKib: () => all.reduce((sum, one) => sum + one.rssKib(), 0),
    kill9: () => together((one) => one.kill9()),
    stop: async () => (await Promise.all(all.map((one) => one.stop()))).find((status) => status !== 0) ?? 0,
    start: (more) => together((one) => one.start(more)),
    remove: () => together((one) => one.remove()),
  }
}
