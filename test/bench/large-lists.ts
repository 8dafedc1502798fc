/** The reads that no index bounds, over one mailbox of very many messages: how long each holds the event loop. */
import { largeLists, openLargeMailbox, type LargeRead } from '../support/large-lists.ts'
import { openBenchStore, type BenchOptions } from './lib/options.ts'
import { table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

export interface NamedRead extends LargeRead {
  readonly name: string
}

export async function largeReads({ store: kind, rows }: BenchOptions): Promise<readonly NamedRead[]> {
  const count = rows ?? 200_000
  const { service, remove } = openBenchStore(kind)
  const env = service.mongoUri === undefined ? {} : { MONGODB_URI: service.mongoUri }
  const large = await openLargeMailbox(count, { kind, env, remove })
  try {
    const reads: NamedRead[] = []
    for (const list of largeLists) {
      const { tookMs, heldMs, healthMs, listMs } = await large.read(list)
      const rounded = { tookMs: round(tookMs), heldMs: round(heldMs), healthMs: round(healthMs), listMs: round(listMs) }
      reads.push({ name: list.name, ...rounded })
    }
    table(
      [`one mailbox of ${count} messages, in ms`, 'answered in', 'loop held for', '/healthz waited', 'another list'],
      reads.map(({ name, tookMs, heldMs, healthMs, listMs }) => [name, tookMs, heldMs, healthMs, listMs]),
    )
    return reads
  } finally {
    await large.close()
  }
}
