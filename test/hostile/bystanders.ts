/**
 * Those who share the process with an attacker: a health check, and a developer who lists. What they wait is what an
 * attack costs.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from '../support/service.ts'
import { standstill, until } from '../support/until.ts'

export interface Waits {
  /** The longest wait for /healthz, in milliseconds, without what looks like a machine that stands still. */
  readonly health: number
  /** The same for GET /lite/users with the developer's own key. */
  readonly list: number
  /** Processor time of the service meanwhile, in milliseconds. */
  readonly processor: number
}

/**
 * Nobody waited long, and `calls` of the attacker took less than 100 ms of processor time each: a call cannot hold the
 * others for longer than that, however busy the machine of the test is with other work.
 */
export function assertShort({ health, list, processor }: Waits, calls: number): void {
  assert(health < 1000 && list < 2000, `/healthz waited ${health} ms, a list ${list} ms`)
  assert(processor / calls < 100, `${calls} calls took ${processor} ms of processor time`)
}

/** The most memory that the service has had resident since the last `forget`, in MiB: VmHWM of proc(5). */
export function mostResidentMib({ pid }: Pick<Service, 'pid'>, forget = false): number {
  if (forget) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

/** The same once it grows by less than 8 MiB in 1.5 s: the calls of those beside it make garbage all the time. */
export async function mostSettledMib(service: Pick<Service, 'pid'>): Promise<number> {
  let [most, since] = [0, performance.now()]
  await until(
    'memory that grows no more',
    () => {
      const now = mostResidentMib(service)
      if (now >= most + 8) [most, since] = [now, performance.now()]
      return performance.now() - since > 1500
    },
    { withinMs: 30_000, everyMs: 100 },
  )
  return mostResidentMib(service)
}

/** Of all threads of the service so far, in milliseconds. */
export function processorMs({ pid }: Service): number {
  // Fields 14 and 15 of proc(5), in ticks of 10 ms; the second field may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The service may stand still for as long as this, which looks as if it made others wait and did no work. */
const standstillMs = 3000

/**
 * Asks both again and again, `pauseMs` apart, until the attack is over; each must be answered 200. Without a pause
 * their own calls would be most of the processor time.
 */
export async function beside(service: Service, attack: () => Promise<unknown>, pauseMs = 20): Promise<Waits> {
  let over = false
  const still = standstill()
  const longest = async (ask: () => Promise<unknown>): Promise<number> => {
    let most = 0
    do {
      const [started, lost, used] = [performance.now(), still.lost(), processorMs(service)]
      await ask()
      const waited = performance.now() - started - (still.lost() - lost)
      const worked = processorMs(service) - used
      most = Math.max(most, waited - standstillMs, Math.min(waited, worked + 50))
      await sleep(pauseMs)
    } while (!over)
    return most
  }
  const started = processorMs(service)
  const health = longest(() => service.ok('GET', '/healthz'))
  const list = longest(() => service.list('/lite/users'))
  const waits = Promise.all([health, list])
  try {
    await Promise.race([attack(), waits])
  } finally {
    over = true
  }
  const [healthMs, listMs] = await waits.finally(still.stop)
  return { health: healthMs, list: listMs, processor: processorMs(service) - started }
}
