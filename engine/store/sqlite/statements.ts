/**
 * Prepared statements of the connection, made once and kept. Their LIMIT is `?+0`: SQLite plans by the value of a bare
 * parameter, and so anew at every call.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'

export type Value = SQLInputValue
export type Row = Record<string, SQLOutputValue>

/** Every row as its columns in order. */
export type Tuples = readonly (readonly SQLOutputValue[])[]

export interface Sql {
  readonly sql: string
  readonly values: readonly Value[]
}

/** First column of every row, parsed as JSON. */
export function parsed(rows: Tuples): unknown[] {
  return rows.map(([text]) => JSON.parse(String(text)) as unknown)
}

/** Texts of queries vary with their filters; past this many the statement that was made first is let go. */
const kept = 400

/** Reads and writes inside a step. Synchronous: nothing else runs between two of them. */
export function createStatements(database: DatabaseSync) {
  const byName = createCache(database, false)
  const byIndex = createCache(database, true)
  const tuples = (sql: string, ...values: readonly Value[]) => byIndex(sql).all(...values) as unknown as Tuples
  const first = (sql: string, values: readonly Value[]): unknown => {
    const row = byIndex(sql).get(...values) as unknown as readonly SQLOutputValue[] | undefined
    return row?.[0]
  }
  return {
    /** First column of the first row, parsed as JSON; null = no row. */
    doc: (sql: string, ...values: readonly Value[]): unknown => {
      const text = first(sql, values)
      return typeof text === 'string' ? (JSON.parse(text) as unknown) : null
    },
    /** First column of every row, parsed as JSON. */
    docs: (sql: string, ...values: readonly Value[]) => parsed(tuples(sql, ...values)),
    /** Every row as its columns in order. */
    tuples,
    row: (sql: string, ...values: readonly Value[]): Row | null => byName(sql).get(...values) ?? null,
    rows: (sql: string, ...values: readonly Value[]): Row[] => byName(sql).all(...values),
    /** Number in the first column of the first row; 0 = no row or NULL. */
    number: (sql: string, ...values: readonly Value[]) => Number(first(sql, values) ?? 0),
    /** Number of rows changed. */
    run: (sql: string, ...values: readonly Value[]) => Number(byName(sql).run(...values).changes),
    /** Several statements without values, not kept. */
    script: (sql: string): void => {
      database.exec(sql)
    },
  }
}

export type Statements = ReturnType<typeof createStatements>

function createCache(database: DatabaseSync, asArrays: boolean): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>()
  return (sql) => {
    const known = statements.get(sql)
    if (known) return known
    const statement = database.prepare(sql)
    statement.setReturnArrays(asArrays)
    statements.set(sql, statement)
    const [oldest] = statements.keys()
    if (statements.size > kept && oldest !== undefined) statements.delete(oldest)
    return statement
  }
}
