/**
 * A cache of the connection's prepared statements. LIMIT is written `?+0`: SQLite plans by the value of a bare `?`, and
 * so anew with every call.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { yieldToLoop } from '../../scheduling.ts'

export type Value = SQLInputValue

/** A row as the array of its columns. */
export type Tuple = readonly SQLOutputValue[]
export type Tuples = readonly Tuple[]

export interface Sql {
  readonly sql: string
  readonly values: readonly Value[]
}

/** The first column of every row, parsed as JSON. */
function parsed(rows: Tuples): unknown[] {
  return rows.map(([text]) => JSON.parse(String(text)) as unknown)
}

/** The rows as `parsed` gives them, in steps: a page of mail to thousands of people has megabytes. */
export async function parsedInSteps(rows: Tuples): Promise<unknown[]> {
  const found: unknown[] = []
  for (const [text] of rows) {
    await yieldToLoop()
    found.push(JSON.parse(String(text)) as unknown)
  }
  return found
}

/** The most statements in a cache; then the oldest is dropped. Queries vary with their filters. */
const kept = 400

/** Synchronous reads and writes inside a step. */
export function createStatements(database: DatabaseSync) {
  const prepared = createCache(database)
  const tuples = (sql: string, ...values: readonly Value[]) => prepared(sql).all(...values) as unknown as Tuples
  const tuple = (sql: string, ...values: readonly Value[]) =>
    prepared(sql).get(...values) as unknown as Tuple | undefined
  return {
    /** First column of the first row, parsed as JSON; null = no row. */
    doc: (sql: string, ...values: readonly Value[]): unknown => {
      const text = tuple(sql, ...values)?.[0]
      return typeof text === 'string' ? (JSON.parse(text) as unknown) : null
    },
    /** First column of every row, parsed as JSON. */
    docs: (sql: string, ...values: readonly Value[]) => parsed(tuples(sql, ...values)),
    tuples,
    /** The first row; undefined = no row. */
    tuple,
    /** The first column of every row. */
    texts: (sql: string, ...values: readonly Value[]) => tuples(sql, ...values).map(([text]) => String(text)),
    /** The number in the first column of the first row; 0 = no row or NULL. */
    number: (sql: string, ...values: readonly Value[]) => Number(tuple(sql, ...values)?.[0] ?? 0),
    /** Number of rows changed. */
    run: (sql: string, ...values: readonly Value[]) => Number(prepared(sql).run(...values).changes),
    /** Runs several statements without values. */
    script: (sql: string) => database.exec(sql),
  }
}

export type Statements = ReturnType<typeof createStatements>

function createCache(database: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>()
  return (sql) => {
    const known = statements.get(sql)
    if (known) return known
    const statement = database.prepare(sql)
    statement.setReturnArrays(true)
    statements.set(sql, statement)
    const [oldest] = statements.keys()
    if (statements.size > kept && oldest !== undefined) statements.delete(oldest)
    return statement
  }
}
