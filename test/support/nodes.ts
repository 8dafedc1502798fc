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
 * One engine for tests that look into it: calls about an account or a webhook go to the node that has it, or had it
 * last. Resolves when the slots are shared.
 */
export async function engineOver(engines: readonly [Engine, ...Engine[]]): Promise<Engine> {
  const [first] = engines
  if (engines.length === 1) return first
  await shared(engines)
  const owners = new Map<string, Engine>()
  const ownerOf = (of: unknown): Engine => {
    const id = typeof of === 'string' ? of : String((of as { readonly id?: string } | undefined)?.id)
    const has = ({ accounts, webhooks }: Engine): boolean => accounts.view(id) !== null || webhooks.view(id) !== null
    const owner = engines.find(has) ?? owners.get(id) ?? first
    owners.set(id, owner)
    return owner
  }
  return {
    ...first,
    accounts: routed(first, 'accounts', ownerOf),
    webhooks: routed(first, 'webhooks', ownerOf),
  }
}

/** A part of all engines. The first argument of a call, an id or a record, has an owner, whose part takes the call. */
function routed<P extends 'accounts' | 'webhooks'>(first: Engine, part: P, ownerOf: (of: unknown) => Engine) {
  return new Proxy(first[part], {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: readonly unknown[]): unknown => {
        const own = ownerOf(args[0])[part]
        return (Reflect.get(own, name) as (...rest: unknown[]) => unknown).apply(own, [...args])
      }
    },
  })
}

type Method = (...args: never[]) => Promise<unknown>

/**
 * The next call of a method, on whichever node it is, runs `around`, which makes the call when it likes. Later calls
 * are as before; so are all after `undo`.
 */
export function aroundNextCall<T extends Record<K, Method>, K extends keyof T>(
  parts: readonly T[],
  name: K,
  around: (call: () => ReturnType<T[K]>) => Promise<unknown>,
): () => void {
  const methods = parts.map((part) => [part, part[name]] as const)
  const undo = (): void => {
    for (const [part, method] of methods) part[name] = method
  }
  for (const [part, method] of methods)
    part[name] = ((...args: never[]) => {
      undo()
      return around(() => method.apply(part, args) as ReturnType<T[K]>)
    }) as T[K]
  return undo
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
