/** The change log of each account, which the sync writes: reads, and the removal of old changes. */
import type { KeyedCollections } from './aggregates.ts'
import type { ChangeRecord } from './records.ts'

const stepRows = 1000
const askedAtOnce = 20

/** `lastSeq` of an account; 0 = the account has no changes. */
export function changeLog({ changes }: KeyedCollections, lastSeq: (accountId: string) => Promise<number>) {
  const by = ['seq'] as const
  /** The last `seq` of each account in these rows. */
  const newestOf = async (rows: readonly ChangeRecord[]): Promise<ReadonlyMap<string, number>> => {
    const newest = new Map<string, number>()
    const accounts = [...new Set(rows.map((row) => row.accountId))]
    for (let start = 0; start < accounts.length; start += askedAtOnce) {
      const some = accounts.slice(start, start + askedAtOnce)
      await Promise.all(some.map(async (id) => newest.set(id, await lastSeq(id))))
    }
    return newest
  }
  return {
    lastSeq,
    get: (accountId: string, id: string) => changes.find({ id, accountId }),
    /** seq > after, ascending. */
    since: (accountId: string, after: number, limit: number) =>
      changes.list({ accountId }, { by, behind: { seq: after }, limit }),
    ofMessage: (accountId: string, messageId: string) => changes.list({ accountId, messageId }, { by }),
    /**
     * Removes at most `limit` changes from before `before`, oldest first. Returns their number. The newest change of an
     * account stays, because the next `seq` follows it.
     */
    expire: async (before: number, limit: number): Promise<number> => {
      let removed = 0
      let rows: readonly ChangeRecord[] = []
      do {
        const behind = rows.at(-1)
        rows = await changes.list({ at: { until: before - 1 } }, { by: ['at', 'id'], behind, limit: stepRows })
        const newest = await newestOf(rows)
        const old = rows.filter(({ accountId, seq }) => newest.get(accountId) !== seq).slice(0, limit - removed)
        removed += await changes.remove({ id: old.map(({ id }) => id) })
      } while (removed < limit && rows.length === stepRows)
      return removed
    },
  }
}
