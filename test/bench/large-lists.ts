/** The reads that no index bounds, over one mailbox of very many messages: how long each holds the event loop. */
import { largeLists, openLargeMailbox } from '../support/large-lists.ts'
import { openBenchStore, type BenchOptions } from './lib/options.ts'
import { table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

/** Milliseconds. */
export interface LargeRead {
  readonly name: string
  readonly tookMs: number
  readonly heldMs: number
}

export async function largeReads({ store: kind, rows }: BenchOptions): Promise<readonly LargeRead[]> {
  const count = rows ?? 200_000
  const { service, remove } = openBenchStore(kind)
  const env = service.mongoUri === undefined ? {} : { MONGODB_URI: service.mongoUri }
  const large = await openLargeMailbox(count, { kind, env, remove })
  try {
    const reads: LargeRead[] = []
    for (const list of largeLists) {
      const { tookMs, heldMs } = await large.read(list)
      reads.push({ name: list.name, tookMs: round(tookMs), heldMs: round(heldMs) })
    }
    const lines = reads.map(({ name, tookMs, heldMs }) => [name, tookMs, heldMs])
    table([`one mailbox of ${count} messages`, 'answered in ms', 'loop held for ms'], lines)
    return reads
  } finally {
    await large.close()
  }
}
