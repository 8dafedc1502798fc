/** Deletes in bounded steps, so that a big one does not hold up the others. */
import type { Database } from './database.ts'
import type { Value } from './statements.ts'

/** Rows deleted in one transaction. */
const stepRows = 1000

/** Repeats a bounded DELETE until it finds nothing. Answers how many rows went. */
export async function drain(db: Database, sql: string, ...values: readonly Value[]): Promise<number> {
  for (let total = 0; ;) {
    const deleted = await db.write(() => db.run(sql, ...values, stepRows))
    total += deleted
    if (deleted < stepRows) return total
  }
}

/** DELETE of at most `?` rows of a table with row ids. */
export function deleteWhere(table: string, condition: string): string {
  return `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${condition} LIMIT ?)`
}
