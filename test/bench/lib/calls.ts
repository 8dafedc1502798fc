/** Calls of the API by a light client, and the processor time that they take of two services. */
import { Agent, request } from 'node:http'
import { apiKey, apiSecret, type Service } from '../../support/service.ts'
import { inParallel } from './parallel.ts'
import { cpuNanosOf } from './processor.ts'
import type { Pair } from './ratios.ts'

export type Both<T> = readonly [before: T, now: T]
/** The path of the next call. */
export type Next = () => string

export const unknownId = '0'.repeat(24)

const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`

export interface Caller {
  /** Answers the bytes of the body. Rejects when the answer is not 200, or 404 where that is asked for. */
  get(path: string): Promise<number>
  close(): void
}

export function openCaller(url: string, callers: number): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  const get = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const call = request(url + path, { agent, headers: { authorization } }, (answer) => {
        const { statusCode = 0 } = answer
        let bytes = 0
        if (statusCode !== (path.endsWith(unknownId) ? 404 : 200)) reject(new Error(`${path} answered ${statusCode}`))
        answer.on('data', (chunk: Buffer) => (bytes += chunk.length))
        answer.once('end', () => resolve(bytes)).once('error', reject)
      })
      call.once('error', reject).end()
    })
  return { get, close: () => agent.destroy() }
}

export function inTurn(paths: readonly string[]): Next {
  let next = 0
  return () => paths[next++ % paths.length] ?? '/'
}

export async function callAll(url: string, next: Next, calls: number): Promise<void> {
  const callers = 4
  const caller = openCaller(url, callers)
  await inParallel(Array.from({ length: calls }), callers, () => caller.get(next()))
  caller.close()
}

/** Rounds before those that count: a service that runs for days has compiled what it runs often. */
const warmUps = 10

/** Microseconds a call of each round after the warm-up. From round to round the order is turned around. */
export async function callRounds(
  services: Both<Service>,
  paths: Both<Next>,
  { rounds, calls }: { readonly rounds: number; readonly calls: number },
): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round < warmUps + rounds; round += 1) {
    const micros = [0, 0]
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const before = cpuNanosOf(services[index].pid)
      await callAll(services[index].url, paths[index], calls)
      micros[index] = (cpuNanosOf(services[index].pid) - before) / 1000 / calls
    }
    if (round >= warmUps) pairs.push({ before: micros[0] ?? 0, now: micros[1] ?? 0 })
  }
  return pairs
}
