/** The log of API calls, searched by path: the whole path, or a regular expression over it. */
import { setImmediate as breath } from 'node:timers/promises'
import { badParameter } from './errors.ts'
import type { CallLogQuery, CallLogStore, Page } from './store/port.ts'
import type { CallLogRecord } from './store/records.ts'
import { compilePatterns, type Pattern } from './webhooks/patterns.ts'

/** Calls that an expression is tried on, for one page. */
const mostLookedAt = 50_000
const step = 1000
/** The thread is given up so often: a long expression over long paths takes its time. */
const turnMs = 10

const parameter = 'request_path'

/**
 * A page of calls, newest first. `path` is compared as it is; between slashes it is a regular expression as those of the webhooks'
 * filters. Rejects with `bad_request` for a bad one, and when it was tried on as many calls as may be and the page is not full.
 */
export async function callsByPath(
  calls: Pick<CallLogStore, 'list'>,
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
    signal.throwIfAborted()
    const rows = await calls.list(last === undefined ? query : { ...query, before: last }, { limit: step, offset: 0 })
    found.push(...(await matching(rows, patterns, signal)))
    last = rows.at(-1)
    if (found.length >= wanted || rows.length < step) return found.slice(page.offset, wanted)
  }
  throw badParameter(
    parameter,
    `does not match enough of the newest ${mostLookedAt} calls; narrow them by timestamp_after, timestamp_before or account_id`,
  )
}

async function matching(
  rows: readonly CallLogRecord[],
  patterns: readonly Pattern[],
  signal: AbortSignal,
): Promise<CallLogRecord[]> {
  const found: CallLogRecord[] = []
  let until = 0
  for (const row of rows) {
    if (performance.now() > until) {
      await breath()
      signal.throwIfAborted()
      until = performance.now() + turnMs
    }
    if (patterns.some((pattern) => pattern.matches(row.path))) found.push(row)
  }
  return found
}
