/** The change log: numbered per account without gaps. */
import { changeReads, type KeyedCollections } from '../aggregates.ts'
import type { ChangeDraft, ChangeStore } from '../port.ts'
import type { ChangeRecord } from '../records.ts'
import { deleteWhere, type Database } from './database.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

const byIds = 'SELECT doc FROM changes WHERE id IN (SELECT value FROM json_each(?))'
const last = 'SELECT max(seq) FROM changes WHERE account_id = ?'

/** Known ids keep their number, new ones take the next. Answers all of them, in the order given. */
export function insertChanges(sql: Statements, accountId: string, drafts: readonly ChangeDraft[]): ChangeRecord[] {
  if (drafts.length === 0) return []
  let seq = sql.number(last, accountId)
  const there = sql.docs(byIds, JSON.stringify(drafts.map(({ id }) => id))) as ChangeRecord[]
  const numbered = new Map(there.map((change) => [change.id, change]))
  return drafts.map((draft) => {
    const known = numbered.get(draft.id)
    if (known) return known
    seq += 1
    const change = { ...draft, seq }
    numbered.set(draft.id, change)
    tables.changes.insert(sql, change)
    return change
  })
}

/** The newest of an account carries its number on. */
export const expireChanges = deleteWhere(
  'changes',
  'at < ? AND seq < (SELECT max(newest.seq) FROM changes newest WHERE newest.account_id = changes.account_id)',
)

export function createChanges(db: Database, keyed: KeyedCollections): ChangeStore {
  return {
    ...changeReads(keyed),
    lastSeq: (accountId) => db.read(() => db.number(last, accountId)),
    expire: (before, limit) => db.write(() => db.run(expireChanges, before, limit)),
  }
}
