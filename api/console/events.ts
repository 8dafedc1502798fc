/**
 * The parts of an open page that have changed, as server-sent events. The page is made anew for it at most once a
 * second, and so seldom that it takes no more than a fiftieth of the time.
 */
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { badParameter, type ConsoleSession } from '../../engine/index.ts'
import { type Call, defineRoute, eventStreamHeaders, type Route, StreamAnswer } from '../route.ts'
import { compileRoutes, matchOf } from '../router.ts'
import { text } from '../values.ts'
import { checkOn, type Page, pageRoute, redirect, sessionOf, visitOf } from './frame.ts'

const path = '/console/events'
const shortestPauseMs = 1000
const share = 50
/** Often enough for proxies that close silent connections. */
const heartbeatMs = 15_000

export function eventsRoute(pages: readonly Page[]): Route {
  const find = finder(pages)
  return defineRoute(`GET ${path}`, {
    auth: 'public',
    summary: 'What changes on a page of the console',
    query: z.object({ page: text }),
    response: 'text',
    handler({ query }, call) {
      checkOn(call, path)
      const session = sessionOf(call)
      if (session === null) return Promise.resolve(redirect('/console/login'))
      const make = find(query.page)
      if (make === null) throw badParameter('page', 'no page of the console')
      return Promise.resolve(
        new StreamAnswer(Readable.from(texts(call, session, make), { objectMode: false }), eventStreamHeaders),
      )
    },
  })
}

/** Makes a page, for its parts. */
type Make = (call: Call, session: ConsoleSession) => Promise<ReadonlyMap<string, string>>

function finder(pages: readonly Page[]): (address: string) => Make | null {
  const byPath = new Map(pages.map((page) => [page.path, page]))
  const patterns = compileRoutes(pages.map(pageRoute))
  return (address) => {
    const url = URL.parse(address, 'http://console')
    if (url === null) return null
    for (const pattern of patterns) {
      const page = byPath.get(pattern.path)
      const captures = pattern.regexp.exec(url.pathname)?.slice(1)
      const match = captures === undefined ? null : matchOf(pattern, 'GET', captures)
      if (page === undefined || match === null) continue
      const values = Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''))
      return async (call, session) => {
        const parts = new Map<string, string>()
        await page.show(match.parameters, values, visitOf(call, session, parts))
        return parts
      }
    }
    return null
  }
}

async function* texts(call: Call, session: ConsoleSession, make: Make): AsyncGenerator<string> {
  const { signal, engine } = call
  let sent: ReadonlyMap<string, string> = new Map()
  let quietSince = performance.now()
  yield 'retry: 3000\n\n'
  while (!signal.aborted && engine.operators.session(session.id) !== null) {
    const began = performance.now()
    const parts = await make(call, session)
    const changed = [...parts].filter(([id, part]) => sent.get(id) !== part)
    sent = parts
    const ended = performance.now()
    if (changed.length > 0) yield `data: ${JSON.stringify(Object.fromEntries(changed))}\n\n`
    else if (ended - quietSince > heartbeatMs) yield ': still here\n\n'
    if (changed.length > 0 || ended - quietSince > heartbeatMs) quietSince = ended
    await pause(Math.max(shortestPauseMs, share * (ended - began)), undefined, { signal }).catch(() => undefined)
  }
}
