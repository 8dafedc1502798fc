/**
 * Makes routes of the console's pages and actions. Without a session a page leads to the login, and an action is
 * refused. An action also needs the CSRF token of the session, which no page of another site can know.
 */
import { z } from 'zod'
import { AppError, type ConsoleSession, type Engine, sameText, toAppError } from '../../engine/index.ts'
import { html, type Html } from '../html.ts'
import { parse } from '../middleware/dispatch.ts'
import { type Call, defineRoute, type PathParameters, type Route, StreamAnswer } from '../route.ts'
import { consoleHeaders, consolePage, plainPage, type Shown } from './look.ts'

type Values = Readonly<Record<string, unknown>>

/** A call with its session, and what a page is made with. */
export type Visit = ReturnType<typeof visitOf>

/** The result of an action: a page that is shown once, or a redirect with a notice. */
export type Done = Shown | { readonly to: string; readonly notice: string; readonly cookie?: string }

type Made = Shown | { readonly to: string }

export interface Page extends Route {
  /** Makes the page without its frame. `at`: parameters of its path. */
  show(at: Values, values: Values, visit: Visit): Promise<Made>
}

interface Input<P extends string, S extends z.ZodType> {
  readonly path: PathParameters<P>
  readonly values: z.output<S>
}

const publicPart = { auth: 'public', summary: 'A part of the console', response: 'html' } as const

export function page<P extends `/console${string}`, S extends z.ZodType>(
  path: P,
  schema: S,
  make: (input: Input<P, S>, visit: Visit) => Promise<Made>,
): Page {
  const show: Page['show'] = (at, values, visit) =>
    make({ path: at as PathParameters<P>, values: parse(schema, values) as z.output<S> }, visit)
  const route = defineRoute(`GET ${path}`, {
    ...publicPart,
    async handler(input, call) {
      checkOn(call, path)
      const [at, values] = [input.path as Values, input.query as Values]
      const session = await sessionOf(call)
      if (session === null) return redirect(`/console/login?to=${encodeURIComponent(addressOf(path, at, values))}`)
      const visit = visitOf(call, session)
      return answered(path, visit, async () => {
        const shown = await show(at, values, visit)
        return 'to' in shown ? redirect(shown.to) : answer(path, shown, visit)
      })
    },
  })
  return { ...route, show }
}

export function action<P extends `/console/${string}`, S extends z.ZodType>(
  path: P,
  schema: S,
  act: (input: Input<P, S>, visit: Visit) => Promise<Done>,
): Route {
  return defineRoute(`POST ${path}`, {
    ...publicPart,
    async handler(input, call) {
      checkOn(call, path)
      const values = input.body as Values
      const session = await sessionOf(call)
      if (session === null) return refused('There is no session, or it is over.')
      if (!sameText(session.csrf, String(values['csrf']))) return refused('csrf: not the token of this session.')
      call.actsAs({ by: 'session', actorId: session.label, actorName: 'console' })
      const visit = visitOf(call, session)
      return answered(path, visit, async () => {
        const parsed = parse(schema, values) as z.output<S>
        const done = await act({ path: input.path as Values as PathParameters<P>, values: parsed }, visit)
        if (!('to' in done)) {
          shownOnce.set(session, done)
          return redirect(`${oncePath}?page=${encodeURIComponent(addressOf(path, input.path, {}))}`)
        }
        notices.set(session, done.notice)
        return redirect(done.to, done.cookie === undefined ? {} : { 'Set-Cookie': done.cookie })
      })
    },
  })
}

/** A page that asks before an action. `back`: where Cancel leads. */
export function question(title: string, words: string, form: Html, back: string): Shown {
  const content = html`<section class="card">
    <p>${words}</p>
    ${form} <a class="button" href="${back}">Cancel</a>
  </section>`
  return { title, content }
}

interface Question {
  /** Cancel leads to the part before the id. */
  readonly path: `/console/${string}/{id}/${string}`
  readonly title: string
  readonly button: string
  /** What will happen; `not_found` for an unknown id. */
  words(engine: Engine, id: string): Promise<string>
  act(engine: Engine, id: string): Promise<Done>
}

/** An action that cannot be undone: GET asks, and its button POSTs. */
export function confirmed({ path, title, button, words, act }: Question): readonly Route[] {
  return [
    page(path, z.object({}), async ({ path: { id } }, { engine, form }) => {
      const again = form(path.replace('{id}', id), html`<button class="danger">${button}</button>`)
      return question(title, await words(engine, id), again, path.slice(0, path.indexOf('/{id}')))
    }),
    action(path, z.object({}), ({ path: { id } }, { engine }) => act(engine, id)),
  ]
}

/** The prefix __Host- keeps other hosts, and attackers on the way, from setting the cookie. It needs https. */
function cookieFor({ baseUrl }: Call): readonly [name: string, rules: string] {
  return baseUrl.startsWith('https:')
    ? ['__Host-mailroom_console', 'HttpOnly; SameSite=Strict; Path=/; Secure']
    : ['mailroom_console', 'HttpOnly; SameSite=Strict; Path=/console']
}

/** The value of a cookie of the request. */
export function cookieNamed(call: Call, name: string): string | undefined {
  return new RegExp(`(?:^|;\\s*)${name}=([\\w-]+)`).exec(call.header('cookie') ?? '')?.[1]
}

export async function sessionOf(call: Call): Promise<ConsoleSession | null> {
  const id = cookieNamed(call, cookieFor(call)[0])
  return id === undefined ? null : call.engine.operators.session(id)
}

/** The Set-Cookie header of a session; null = it deletes the cookie. */
export function cookieOf(call: Call, session: ConsoleSession | null): string {
  const [name, rules] = cookieFor(call)
  return session === null ? `${name}=; ${rules}; Max-Age=0` : `${name}=${session.id}; ${rules}`
}

/** Whether a form may come from this site. Browsers name the site; a call without the headers is from no browser. */
export function isOwn(call: Call): boolean {
  if (call.header('sec-fetch-site') === 'cross-site') return false
  const origin = call.header('origin')
  return origin === undefined || origin === 'null' || origin === new URL(call.baseUrl).origin
}

export function redirect(to: string, headers: Readonly<Record<string, string>> = {}): StreamAnswer {
  return new StreamAnswer('', { Location: to, 'Cache-Control': 'no-store', ...headers }, 303)
}

/** Throws `not_found` when the console is off. */
export function checkOn({ engine }: Call, path: string): void {
  if (!engine.operators.consoleOn) throw new AppError('not_found', `path ${path} is invalid`)
}

/** `parts` collects the live parts of the page, by id. */
export function visitOf(call: Call, session: ConsoleSession, parts = new Map<string, string>()) {
  return {
    engine: call.engine,
    call,
    session,
    /** A part of the page that is sent again when it has changed. An update would empty the fields of a form in it. */
    live(id: string, content: Html, tag: 'div' | 'span' = 'div'): Html {
      parts.set(id, content.text)
      return html`<${tag} id="${id}" data-live>${content}</${tag}>`
    },
    /** A form that posts an action, with the CSRF token. */
    form: (to: string, content: Html, className = 'inline'): Html =>
      html`<form method="post" action="${to}" class="${className}">
        <input type="hidden" name="csrf" value="${session.csrf}" />${content}
      </form>`,
  }
}

/** Notice of the last action. The next page shows it. */
const notices = new WeakMap<ConsoleSession, string>()

/** Secrets are shown by a page of their own, after a redirect: a reload does not repeat the action. */
const shownOnce = new WeakMap<ConsoleSession, Shown>()
const oncePath = '/console/shown'

export const oncePage = page(oncePath, z.object({ page: z.string().optional() }), (_input, { session }) => {
  const content = html`<p>What was here is shown once. Make a new one if it is lost.</p>`
  const shown = shownOnce.get(session) ?? { title: 'Shown already', content }
  shownOnce.delete(session)
  return Promise.resolve(shown)
})

function answer(path: string, shown: Shown, visit: Visit, status = 200): StreamAnswer {
  const notice = notices.get(visit.session) ?? null
  notices.delete(visit.session)
  const logout = visit.form('/console/logout', html`<button>Log out</button>`)
  return new StreamAnswer(consolePage(path, shown, notice, logout), consoleHeaders, status)
}

/** The answer of `work`, or a page that shows its error. */
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
    const title = error.status === 404 ? 'Not found' : 'That did not work'
    return answer(path, { title, content }, visit, error.status)
  }
}

/** The address of a page with these parameters. */
function addressOf(path: string, at: Values, values: Values): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(String(at[name])))
  const query = new URLSearchParams(values as Record<string, string>).toString()
  return query === '' ? filled : `${filled}?${query}`
}

export function refused(words: string): StreamAnswer {
  const content = html`<p>${words} Nothing was done.</p>
    <p><a href="/console">To the console</a></p>`
  return new StreamAnswer(plainPage('Refused', content), consoleHeaders, 403)
}
