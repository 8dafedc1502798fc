/**
 * Requests over HTTP as fast as they are answered (autocannon), and any other work the same way, with the same figures.
 */
import autocannon from 'autocannon'
import { readFileSync } from 'node:fs'
import { apiKey, apiSecret, type Service } from '../../support/service.ts'
import { round, summarise } from './statistics.ts'

export interface Load {
  readonly name: string
  readonly concurrency: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Answers that were no 200, and connections that failed. */
  readonly failed: number
  /** Bytes of one answer on average. */
  readonly bytes: number
  /**
   * Processor time of the service for one answer, in microseconds: tells what a free core could do. null = not the
   * service's work.
   */
  readonly cpuMicros: number | null
}

const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`

export async function httpLoad(
  name: string,
  service: Pick<Service, 'url' | 'pid'>,
  paths: readonly string[],
  concurrency: number,
  seconds: number,
): Promise<Load> {
  const times: number[] = []
  let bytes = 0
  const run = autocannon({
    url: service.url,
    connections: concurrency,
    duration: seconds,
    headers: { authorization },
    requests: paths.map((path) => ({ method: 'GET', path })),
  })
  run.on('response', (_client, _status, size, ms) => {
    times.push(ms)
    bytes += size
  })
  const before = cpuMicrosOf(service.pid)
  const result = await run
  const cpu = cpuMicrosOf(service.pid) - before
  const failed = result.errors + result.timeouts + result.non2xx
  const load = figures(name, concurrency, times, result.duration * 1000, failed, bytes)
  return { ...load, cpuMicros: Math.round(cpu / Math.max(1, times.length)) }
}

/** `workers` run one after the other each, until the time is up. */
export async function workLoad(
  name: string,
  workers: readonly (() => Promise<number>)[],
  seconds: number,
): Promise<Load> {
  const times: number[] = []
  let bytes = 0
  const began = performance.now()
  const until = began + seconds * 1000
  await Promise.all(
    workers.map(async (work) => {
      while (performance.now() < until) {
        const start = performance.now()
        const size = await work()
        times.push(performance.now() - start)
        bytes += size
      }
    }),
  )
  return figures(name, workers.length, times, performance.now() - began, 0, bytes)
}

function figures(
  name: string,
  concurrency: number,
  times: readonly number[],
  tookMs: number,
  failed: number,
  bytes: number,
): Load {
  const hundredths = summarise(times.map((ms) => ms * 100))
  return {
    name,
    concurrency,
    perSecond: round((times.length / tookMs) * 1000),
    p50: Math.round(hundredths.p50) / 100,
    p99: Math.round(hundredths.p99) / 100,
    failed,
    bytes: Math.round(bytes / Math.max(1, times.length)),
    cpuMicros: null,
  }
}

/** User and system time of a process from the kernel, whose clock ticks 100 times a second. */
export function cpuMicrosOf(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = line
    .slice(line.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) * 10_000
}
