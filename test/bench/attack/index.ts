/**
 * Everybody who means ill, in a process of their own: mail servers, a developer, strangers, each doing one thing again
 * and again until the time is up. Started by soak.ts with an AttackOrder as its argument; prints how often each did its
 * thing.
 */
import { setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '../../support/service.ts'
import { callsOfStrangers } from './calls.ts'
import { mailServers } from './mail-servers.ts'
import type { Attack, AttackOrder, Stage } from './stage.ts'
import { tenant } from './tenant.ts'

// They would have machines of their own: what they work is not the service's time.
setPriority(15)
const order = JSON.parse(process.argv[2] ?? '{}') as AttackOrder
const stop = AbortSignal.timeout(order.seconds * 1000)
const rounds: Record<string, { done: number; failed: number }> = {}
const stage: Stage = {
  ...order,
  client: createClient(() => order.url, `${order.key}:${order.secret}`),
  stop,
  async repeat(name, everyMs, work) {
    const count = (rounds[name] ??= { done: 0, failed: 0 })
    while (!stop.aborted) {
      try {
        await work()
        count.done += 1
      } catch {
        count.failed += 1
      }
      await pause(everyMs, undefined, { signal: stop }).catch(() => undefined)
    }
  },
}

process.on('uncaughtException', () => undefined)
process.on('unhandledRejection', () => undefined)
const attacks: readonly Attack[] = [...callsOfStrangers, ...mailServers, ...tenant]
const all = attacks.map((attack) =>
  attack(stage).catch((error: unknown) => {
    if (!stop.aborted) rounds[`${attack.name}: ${String(error)}`] = { done: 0, failed: 1 }
  }),
)
await Promise.race([Promise.all(all), pause(order.seconds * 1000 + 10_000)])
process.stdout.write(`${JSON.stringify(rounds)}\n`, () => process.exit(0))
