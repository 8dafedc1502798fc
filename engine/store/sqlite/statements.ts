/** Prepared statements of one connection, made once and kept. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'

export type Value = SQLInputValue
export type Row = Record<string, SQLOutputValue>

export interface Sql {
  readonly sql: string
  readonly values: readonly Value[]
}

/** Reads and writes inside a step. Synchronous: nothing else runs between two of them. */
export interface Statements {
  /** First column of the first row, parsed as JSON; null = no row. */
  doc(sql: string, ...values: readonly Value[]): unknown
  /** First column of every row, parsed as JSON. */
  docs(sql: string, ...values: readonly Value[]): unknown[]
  /** First column of the first row, as text; null = no row. */
  text(sql: string, ...values: readonly Value[]): string | null
  /** First column of every row, as the text of a JSON array. */
  list(sql: string, ...values: readonly Value[]): string
  /** Every row as its columns in order. */
  tuples(sql: string, ...values: readonly Value[]): readonly (readonly SQLOutputValue[])[]
  row(sql: string, ...values: readonly Value[]): Row | null
  rows(sql: string, ...values: readonly Value[]): Row[]
  /** Number in the first column of the first row; 0 = no row or NULL. */
  number(sql: string, ...values: readonly Value[]): number
  /** Number of rows changed. */
  run(sql: string, ...values: readonly Value[]): number
  /** Several statements without values, not kept. */
  script(sql: string): void
}

/** Texts of queries vary with their filters; past this many the statement that was made first is let go. */
const kept = 400

export function createStatements(database: DatabaseSync): Statements {
  const byName = createCache(database, false)
  const byIndex = createCache(database, true)
  const first = (sql: string, values: readonly Value[]): unknown => {
    const row = byIndex(sql).get(...values) as unknown as readonly SQLOutputValue[] | undefined
    return row?.[0]
  }
  return {
    doc: (sql, ...values) => {
      const text = first(sql, values)
      return typeof text === 'string' ? (JSON.parse(text) as unknown) : null
    },
    docs: (sql, ...values) => {
      const rows = byIndex(sql).all(...values) as unknown as readonly [string][]
      return rows.map((row) => JSON.parse(row[0]) as unknown)
    },
    text: (sql, ...values) => {
      const text = first(sql, values)
      return typeof text === 'string' ? text : null
    },
    list: (sql, ...values) => {
      const rows = byIndex(sql).all(...values) as unknown as readonly [string][]
      return `[${rows.map((row) => row[0]).join()}]`
    },
    tuples: (sql, ...values) => byIndex(sql).all(...values) as unknown as readonly (readonly SQLOutputValue[])[],
    row: (sql, ...values) => byName(sql).get(...values) ?? null,
    rows: (sql, ...values) => byName(sql).all(...values),
    number: (sql, ...values) => Number(first(sql, values) ?? 0),
    run: (sql, ...values) => Number(byName(sql).run(...values).changes),
    script: (sql) => {
      database.exec(sql)
    },
  }
}

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
