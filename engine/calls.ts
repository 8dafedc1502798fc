/** Searches the log of API calls by path: a whole path, or a regular expression. */
import { badParameter } from './errors.ts'
import { yieldToLoop } from './scheduling.ts'
import type { CallLogQuery, Page, Store } from './store/port.ts'
import type { CallLogRecord } from './store/records.ts'
import { compilePatterns, costOf } from './webhooks/patterns.ts'

/** Calls that one page tests against an expression. */
const mostLookedAt = 50_000
const step = 1000

/** Cost of an expression over one path: at most 50 ms. */
const mostCost = 3_000_000
const tooCostly = 'takes too long over one of the paths: write a shorter expression, or one with smaller repetitions'

const parameter = 'request_path'

/**
 * A page of calls, newest first. `path` is a whole path, or between slashes a regular expression as in webhook filters.
 * `bad_request` for a malformed expression, and when the newest 50,000 calls do not fill the page.
 */
export async function callsByPath(
  calls: Pick<Store['calls'], 'list'>,
  query: Omit<CallLogQuery, 'path' | 'before'>,
  path: string | null,
  page: Page,
  signal: AbortSignal,
): Promise<CallLogRecord[]> {
  if (path === null) return calls.list(query, page)
  if (!/^\/.*\/$/s.test(path)) return calls.list({ ...query, path }, page)
  const patterns = compilePatterns(parameter, path, { list: false, wildcards: 'no brackets', anchoring: 'whole' })
  const wanted = page.offset + page.limit
  const found: CallLogRecord[] = []
  let last: CallLogRecord | undefined
  for (let lookedAt = 0; lookedAt < mostLookedAt; lookedAt += step) {
    const rows = await calls.list(last === undefined ? query : { ...query, before: last }, { limit: step, offset: 0 })
    for (const row of rows) {
      await yieldToLoop()
      signal.throwIfAborted()
      if (costOf(patterns, [row.path]) > mostCost) throw badParameter(parameter, tooCostly)
      if (patterns.some((pattern) => pattern.matches(row.path))) found.push(row)
    }
    last = rows.at(-1)
    if (found.length >= wanted || rows.length < step) return found.slice(page.offset, wanted)
  }
  throw badParameter(
    parameter,
    `does not match enough of the newest ${mostLookedAt} calls; narrow them by timestamp_after, timestamp_before or account_id`,
  )
}
