/**
 * The console's pages and actions as values, and the routes that are made of them. Each looks up the session of its
 * cookie: without one a page leads to the login and an action is refused. An action also needs the session's own token,
 * which no page of another site can know.
 */
import type { z } from 'zod'
import { AppError, type ConsoleSession, type Engine, sameText, toAppError } from '../../engine/index.ts'
import { html, type Html } from '../html.ts'
import { parse } from '../middleware/dispatch.ts'
import { type Call, defineRoute, type PathParameters, type Route, StreamAnswer } from '../route.ts'
import { consoleHeaders, consolePage, plainPage } from './look.ts'

type Values = Readonly<Record<string, unknown>>

/** Who looks at a page, and what a page is made with. */
export interface Visit {
  readonly engine: Engine
  readonly call: Call
  readonly session: ConsoleSession
  /** A part that is sent again, by its id, when it has changed. No form belongs in it. */
  live(id: string, content: Html): Html
  /** What sends an action; the token goes along. */
  form(to: string, content: Html, className?: string): Html
}

export interface Shown {
  readonly title: string
  readonly content: Html
}

/** What comes of an action: a page of its own, or the way back with a sentence. */
type Done = Shown | { readonly to: string; readonly notice: string }

export interface Page {
  readonly path: string
  show(path: Values, values: Values, visit: Visit): Promise<Shown>
}

export interface Action {
  readonly path: string
  act(path: Values, values: Values, visit: Visit): Promise<Done>
}

interface Input<P extends string, S extends z.ZodType> {
  readonly path: PathParameters<P>
  readonly values: z.output<S>
}

export function page<P extends `/console${string}`, S extends z.ZodType>(
  path: P,
  schema: S,
  show: (input: Input<P, S>, visit: Visit) => Promise<Shown>,
): Page {
  return {
    path,
    show: (at, values, visit) =>
      show({ path: at as PathParameters<P>, values: parse(schema, values) as z.output<S> }, visit),
  }
}

export function action<P extends `/console/${string}`, S extends z.ZodType>(
  path: P,
  schema: S,
  act: (input: Input<P, S>, visit: Visit) => Promise<Done>,
): Action {
  return {
    path,
    act: (at, values, visit) =>
      act({ path: at as PathParameters<P>, values: parse(schema, values) as z.output<S> }, visit),
  }
}

const cookieName = 'mailroom_console'

export function sessionOf({ engine, header }: Call): ConsoleSession | null {
  const id = new RegExp(`(?:^|;\\s*)${cookieName}=([\\w-]+)`).exec(header('cookie') ?? '')?.[1]
  return id === undefined ? null : engine.operators.session(id)
}

export function cookieOf({ baseUrl }: Call, { id }: ConsoleSession): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : ''
  return `${cookieName}=${id}; HttpOnly; SameSite=Strict; Path=/console${secure}`
}

/** A browser says which site a form came from; who says nothing is no browser. */
export function isOwn({ baseUrl, header }: Call): boolean {
  if (header('sec-fetch-site') === 'cross-site') return false
  const origin = header('origin')
  return origin === undefined || origin === 'null' || origin === new URL(baseUrl).origin
}

export function redirect(to: string, headers: Readonly<Record<string, string>> = {}): StreamAnswer {
  return new StreamAnswer('', { Location: to, 'Cache-Control': 'no-store', ...headers }, 303)
}

/** As if nothing were there. */
export function checkOn({ engine }: Call, path: string): void {
  if (!engine.operators.consoleOn) throw new AppError('not_found', `path ${path} is invalid`)
}

/** `parts` takes the live parts that the page is made with. */
export function visitOf(call: Call, session: ConsoleSession, parts = new Map<string, string>()): Visit {
  return {
    engine: call.engine,
    call,
    session,
    live(id, content) {
      parts.set(id, content.text)
      return html`<div id="${id}" data-live>${content}</div>`
    },
    form: (to, content, className = 'inline') =>
      html`<form method="post" action="${to}" class="${className}">
        <input type="hidden" name="csrf" value="${session.csrf}" />${content}
      </form>`,
  }
}

/** What came of the last action, until the next page tells it. */
const notices = new WeakMap<ConsoleSession, string>()

function answer(path: string, { title, content }: Shown, visit: Visit, status = 200): StreamAnswer {
  const notice = notices.get(visit.session) ?? null
  notices.delete(visit.session)
  const logout = visit.form('/console/logout', html`<button>Log out</button>`)
  return new StreamAnswer(consolePage({ path, title, notice, content, logout }), consoleHeaders, status)
}

/** Errors are pages too. */
async function answered(path: string, visit: Visit, work: () => Promise<StreamAnswer>): Promise<StreamAnswer> {
  try {
    return await work()
  } catch (thrown) {
    const error = toAppError(thrown)
    const { requestId } = visit.call
    if (error.fault === 'us')
      visit.engine.log.error({ requestId, err: error.cause ?? error }, 'a page of the console failed')
    const words = error.code === 'internal' ? `internal error; request id ${requestId}` : error.message
    const content = html`<div class="card"><p class="bad">${words}</p></div>`
    return answer(
      path,
      { title: error.status === 404 ? 'Not found' : 'That did not work', content },
      visit,
      error.status,
    )
  }
}

export function pageRoute({ path, show }: Page): Route {
  return defineRoute(`GET ${path}`, {
    auth: 'public',
    summary: 'A page of the console',
    response: 'html',
    handler(input, call) {
      checkOn(call, path)
      const [at, values] = [input.path as Values, input.query as Values]
      const session = sessionOf(call)
      if (session === null) {
        return Promise.resolve(redirect(`/console/login?to=${encodeURIComponent(addressOf(path, at, values))}`))
      }
      const visit = visitOf(call, session)
      return answered(path, visit, async () => answer(path, await show(at, values, visit), visit))
    },
  })
}

/** The page's own address again. */
function addressOf(path: string, at: Values, values: Values): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(String(at[name])))
  const query = new URLSearchParams(values as Record<string, string>).toString()
  return query === '' ? filled : `${filled}?${query}`
}

export function actionRoute({ path, act }: Action): Route {
  return defineRoute(`POST ${path}`, {
    auth: 'public',
    summary: 'An action of the console',
    response: 'html',
    async handler(input, call) {
      checkOn(call, path)
      const values = input.body as Values
      const session = sessionOf(call)
      if (session === null) return refused('There is no session, or it is over.')
      if (!sameText(session.csrf, String(values['csrf']))) return refused('csrf: not the token of this session.')
      const visit = visitOf(call, session)
      return answered(path, visit, async () => {
        const done = await act(input.path, values, visit)
        if (!('to' in done)) return answer(path, done, visit)
        notices.set(session, done.notice)
        return redirect(done.to)
      })
    },
  })
}

export function refused(words: string): StreamAnswer {
  const content = html`<p>${words} Nothing was done.</p>
    <p><a href="/console">To the console</a></p>`
  return new StreamAnswer(plainPage('Refused', content), consoleHeaders, 403)
}
