/** Reads the service's own metrics. */
import type { Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'

/** How many accounts are watched. */
export const watchingGauge = 'mailroom_accounts{tag="watching"}'

/** Sum over all labels of one counter or gauge of GET /metrics; 0 when it is not there. */
export async function counterOf(service: Service, name: string): Promise<number> {
  const text = String((await service.api('GET', '/metrics')).body)
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

export async function allWatched(service: Service, accounts: number, withinMs: number): Promise<void> {
  const isReached = async (): Promise<boolean> => (await counterOf(service, watchingGauge)) === accounts
  await until('all accounts are watched', isReached, { withinMs, everyMs: 500 })
}
