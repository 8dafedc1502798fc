/**
 * Figures of the last hour for operators, one sample in ten seconds: of the process as a whole, whatever the number of
 * accounts.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from './metrics.ts'

export interface Sample {
  readonly at: number
  readonly eventsPerSecond: number
  readonly deliveriesPerSecond: number
  /** Mean of an attempt; 0 = there was none. */
  readonly deliveryMs: number
  readonly memoryMib: number
  /** The longest. */
  readonly loopDelayMs: number
}

export const sampleMs = 10_000
const mostSamples = 360
/** The event loop is looked at so often. */
const lookMs = 20

export interface History {
  /** Samples until the answered function is called. */
  start(): () => void
  /** Oldest first. */
  samples(): readonly Sample[]
}

interface Totals {
  readonly events: number
  readonly deliveries: number
  readonly deliverySeconds: number
}

type Counted = Pick<Metrics, 'changes' | 'deliverySeconds'>

interface HistoryDeps {
  readonly metrics: Counted
  readonly now?: () => number
  readonly everyMs?: number
}

export function createHistory({ metrics, now = Date.now, everyMs = sampleMs }: HistoryDeps): History {
  const samples: Sample[] = []
  return {
    samples: () => samples,
    start() {
      const delay = monitorEventLoopDelay({ resolution: lookMs })
      delay.enable()
      let last: { readonly at: number; readonly totals: Totals } | null = null
      const take = async (): Promise<void> => {
        const at = now()
        const totals = await totalsOf(metrics)
        const loopDelayMs = Math.max(0, delay.max / 1e6 - lookMs)
        delay.reset()
        if (last !== null) {
          samples.push({
            at,
            ...rates(last.totals, totals, (at - last.at) / 1000),
            loopDelayMs,
            memoryMib: memoryMib(),
          })
          if (samples.length > mostSamples) samples.shift()
        }
        last = { at, totals }
      }
      void take()
      const timer = setInterval(() => void take(), everyMs).unref()
      return () => {
        clearInterval(timer)
        delay.disable()
      }
    },
  }
}

function memoryMib(): number {
  return process.memoryUsage.rss() / 1_048_576
}

function rates(from: Totals, to: Totals, seconds: number) {
  const deliveries = to.deliveries - from.deliveries
  return {
    eventsPerSecond: (to.events - from.events) / Math.max(seconds, 0.001),
    deliveriesPerSecond: deliveries / Math.max(seconds, 0.001),
    deliveryMs: deliveries === 0 ? 0 : ((to.deliverySeconds - from.deliverySeconds) * 1000) / deliveries,
  }
}

async function totalsOf({ changes, deliverySeconds }: Counted): Promise<Totals> {
  const [events, attempts] = await Promise.all([changes.get(), deliverySeconds.get()])
  const sum = (name: string): number =>
    attempts.values.reduce((total, value) => (value.metricName?.endsWith(name) ? total + value.value : total), 0)
  return {
    events: events.values.reduce((total, { value }) => total + value, 0),
    deliveries: sum('_count'),
    deliverySeconds: sum('_sum'),
  }
}
