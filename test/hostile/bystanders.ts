/** Those who share the process with an attacker: a health check, and a developer who lists. What they wait is what an attack costs. */
import type { Service } from '../support/service.ts'

export interface Waits {
  /** The longest answer of /healthz, in milliseconds. */
  readonly health: number
  /** The longest answer of GET /lite/users with the developer's own key. */
  readonly list: number
}

/** Asks both again and again until the attack is over; each must be answered 200. */
export async function beside(service: Service, attack: () => Promise<unknown>): Promise<Waits> {
  let over = false
  const longest = async (ask: () => Promise<unknown>): Promise<number> => {
    let most = 0
    do {
      const started = performance.now()
      await ask()
      most = Math.max(most, performance.now() - started)
    } while (!over)
    return most
  }
  const health = longest(() => service.ok('GET', '/healthz'))
  const list = longest(() => service.list('/lite/users'))
  const waits = Promise.all([health, list])
  try {
    await Promise.race([attack(), waits])
  } finally {
    over = true
  }
  const [healthMs, listMs] = await waits
  return { health: healthMs, list: listMs }
}
