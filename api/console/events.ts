/**
 * Sends the live parts of an open page that have changed, as server-sent events. For that it makes the page again, at
 * most once a second. The pause grows with the number of streams: all of them together use about 1 % of the time.
 */
import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { badParameter, type ConsoleSession, isAppError } from '../../engine/index.ts'
import { type Call, defineRoute, eventStreamHeaders, type Route, StreamAnswer } from '../route.ts'
import { compileRoutes, matchOf } from '../router.ts'
import { text } from '../values.ts'
import { checkOn, type Page, redirect, sessionOf, visitOf } from './frame.ts'

const path = '/console/events'
const shortestPauseMs = 1000
/** The pause is so many times the cost of a page. */
const pauseFactor = 100
/** A page that takes longer has waited for others. So a single open page is made at least every 5 s. */
const mostCostMs = 50
/** Proxies close connections that are silent for longer. */
const heartbeatMs = 15_000
/** Streams of a session. A further stream ends the oldest. */
const mostStreams = 5

export function eventsRoute(pages: readonly Page[]): Route {
  const patterns = compileRoutes(pages)
  const open: Streams = new Map()
  return defineRoute(`GET ${path}`, {
    auth: 'public',
    summary: 'What changes on a page of the console',
    query: z.object({ page: text }),
    response: 'text',
    async handler({ query }, call) {
      checkOn(call, path)
      const session = await sessionOf(call)
      if (session === null) return redirect('/console/login')
      const url = URL.parse(query.page, 'http://console')
      const pattern = patterns.find(({ regexp }) => url !== null && regexp.test(url.pathname))
      const page = pages.find((one) => one.path === pattern?.path)
      if (url === null || pattern === undefined || page === undefined)
        throw badParameter('page', 'no page of the console')
      const match = matchOf(pattern, 'GET', pattern.regexp.exec(url.pathname)?.slice(1) ?? [])
      const values = Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''))
      const make = async () => {
        const parts = new Map<string, string>()
        await page.show(match?.parameters ?? {}, values, visitOf(call, session, parts))
        return parts
      }
      const events = Readable.from(stream(call, session, make, open), { objectMode: false })
      return new StreamAnswer(events, eventStreamHeaders)
    },
  })
}

/** The session of each open stream, by what ends the stream; oldest first. */
type Streams = Map<AbortController, ConsoleSession>
/** Makes a page and returns its live parts, by id. */
type Make = () => Promise<ReadonlyMap<string, string>>

/** A stream counts as open from its first read on: only from then on does `finally` run. */
async function* stream(call: Call, session: ConsoleSession, make: Make, open: Streams): AsyncGenerator<string> {
  const over = new AbortController()
  open.set(over, session)
  const own = [...open.keys()].filter((one) => open.get(one) === session)
  if (own.length > mostStreams) own[0]?.abort()
  const leave = call.engine.revocations.onEnd(session.label, () => over.abort())
  const signal = AbortSignal.any([call.signal, over.signal])
  /** Hashes of the parts that were sent. */
  let sent: ReadonlyMap<string, string> = new Map()
  let quietSince = performance.now()
  try {
    yield 'retry: 3000\n\n'
    while (!signal.aborted && (await call.engine.operators.session(session.id)) !== null) {
      const began = performance.now()
      const parts = [...(await make())].map(([id, part]) => ({ id, part, hash: hash('sha1', part) }))
      const changed = parts.filter((one) => sent.get(one.id) !== one.hash).map(({ id, part }) => [id, part] as const)
      sent = new Map(parts.map((one) => [one.id, one.hash]))
      const ended = performance.now()
      if (changed.length > 0) yield `data: ${JSON.stringify(Object.fromEntries(changed))}\n\n`
      else if (ended - quietSince > heartbeatMs) yield ': still here\n\n'
      if (changed.length > 0 || ended - quietSince > heartbeatMs) quietSince = ended
      const costMs = Math.min(mostCostMs, ended - began)
      const pauseMs = Math.max(shortestPauseMs, pauseFactor * open.size * costMs)
      await pause(pauseMs, undefined, { signal }).catch(() => undefined)
    }
    if (over.signal.aborted) yield 'event: over\ndata: {}\n\n'
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    yield 'event: gone\ndata: {}\n\n'
  } finally {
    leave()
    open.delete(over)
  }
}
