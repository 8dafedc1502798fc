/** A call to a page of the wizard: its token, its browser session, its language; or why its link is not valid. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import {
  AppError,
  badParameter,
  brandOf,
  type ConnectTokenRecord,
  type Engine,
  sameText,
  toAppError,
} from '../../engine/index.ts'
import { cookieNamed, isOwn, redirect } from '../console/frame.ts'
import { asksForJson, type FrameContext } from '../call.ts'
import { type Html, html } from '../html.ts'
import { type Call, defineRoute, type Route, StreamAnswer } from '../route.ts'
import { createCounter } from '../limits.ts'
import { createLook, isLanguage, type Language, languages, preferredLanguage } from './look.ts'
import type { End, Mailbox, Problem, Setting } from './pages.ts'

/** The progress of one browser with one token, found by a cookie. It is in memory only, without passwords. */
class Session {
  readonly token: string
  readonly id = secretText()
  readonly csrf = secretText()
  /** null = none was chosen. */
  language: Language | null = null
  mailbox: Mailbox | null = null
  /** The problem that the login page shows until the next form. */
  problem: Problem | null = null
  /** Whether the last try was with a sign-in at a provider. */
  signedIn = false
  /** The address of the last try. */
  tried: string | null = null
  sent = false
  /** Whether this browser has connected the mailbox. */
  done = false
  /** Whether the browser was sent to the callback_url. */
  left = false

  constructor(token: string) {
    this.token = token
  }
}

/** A session ends so long after it began. */
const lastsMs = 2 * 3_600_000
/** Sessions of a developer's tokens. A further session replaces the least recently used. */
const mostOfDeveloper = 5000
/** Sessions of a token. A further session replaces the oldest that has sent no form, or the oldest. */
const mostOfToken = 20

type Owner = Pick<ConnectTokenRecord, 'developerId' | 'token'>

function secretText(): string {
  return randomBytes(24).toString('base64url')
}

export function createSessions() {
  /** The sessions of each developer, by id. Sessions of one developer never replace those of another. */
  const byDeveloper = new Map<string, LRUCache<string, Session>>()
  const byToken = new Map<string, Set<Session>>()
  const emptySessions = (developerId: string): LRUCache<string, Session> => {
    const sessions = new LRUCache<string, Session>({
      maxSize: mostOfDeveloper,
      sizeCalculation: () => 1,
      ttl: lastsMs,
      // Typed data goes at the end of its time, even when no call asks for the session again.
      ttlAutopurge: true,
      disposeAfter(session) {
        const ofToken = byToken.get(session.token)
        ofToken?.delete(session)
        if (ofToken?.size === 0) byToken.delete(session.token)
        if (sessions.size === 0) byDeveloper.delete(developerId)
      },
    })
    return sessions
  }
  return {
    find({ developerId, token }: Owner, id: string): Session | undefined {
      const found = byDeveloper.get(developerId)?.get(id)
      return found?.token === token ? found : undefined
    },
    open({ developerId, token }: Owner): Session {
      const all = [...(byToken.get(token) ?? [])]
      const oldest = all.find(({ sent }) => !sent) ?? all[0]
      if (all.length >= mostOfToken && oldest !== undefined) byDeveloper.get(developerId)?.delete(oldest.id)
      const session = new Session(token)
      byDeveloper.getOrInsertComputed(developerId, emptySessions).set(session.id, session)
      byToken.set(token, (byToken.get(token) ?? new Set()).add(session))
      return session
    },
    count: () => [...byDeveloper.values()].reduce((sum, { size }) => sum + size, 0),
  }
}

const cookieOf = ({ token }: ConnectTokenRecord): string => `mailroom_connect_${token}`

/** The path of all pages of the wizard, as the browser sees it: MAILROOM_PUBLIC_URL may have a path. */
const pathOf = (baseUrl: string): string => `${new URL(baseUrl).pathname.replace(/\/$/, '')}/connect`

/** SameSite is Lax, because a sign-in leads back from the provider's site. */
function cookieFor({ baseUrl }: Call, record: ConnectTokenRecord, { id }: Session): string {
  const secure = new URL(baseUrl).protocol === 'https:' ? '; Secure' : ''
  return `${cookieOf(record)}=${id}; HttpOnly; SameSite=Lax; Path=${pathOf(baseUrl)}; Max-Age=${lastsMs / 1000}${secure}`
}

export type Wizard = ReturnType<typeof createWizard>

/** The state that all pages share. `forms` counts the forms of each client address. */
export function createWizard({ brand, uses }: Engine, now: () => number) {
  const forms = createCounter(60_000, now, { uses, kind: 'forms' })
  return { look: createLook(brand), sessions: createSessions(), forms }
}

type Values = Readonly<Record<string, string>>

export interface Visit extends Setting {
  readonly engine: Engine
  readonly call: Call
  readonly record: ConnectTokenRecord
  readonly session: Session
  readonly values: Values
  /** The callback_url with the token; null = the link of an operator has no callback_url. */
  readonly back: string | null
  show(page: Shown): StreamAnswer
  /** A redirect to a step of the same token. */
  go(step: string): StreamAnswer
  /** The page of a link that is not valid any more. */
  end(end: End): StreamAnswer
}

interface Shown {
  readonly title: string
  /** The title in the browser's tab begins with the word for a problem. */
  readonly problem?: Problem | null
  readonly content: Html
  readonly status?: number
  /** The page has a link back to the application. A try that is under way goes on. */
  readonly cancel?: true
  readonly refresh?: { readonly seconds: number; readonly to: string }
}

interface Page {
  readonly at: `${'GET' | 'POST'} /connect${string}`
  /** The step that a switch of the language leads to; '' is the first page. */
  readonly step: string
  readonly handle: (visit: Visit) => StreamAnswer | Promise<StreamAnswer>
  /** A provider sends the browser here: the token is that of the sign-in `state`, and the session must exist. */
  readonly comesBack?: true
}

export type Handler = Page['handle']

export function pageRoute(wizard: Wizard, page: Page): Route {
  return defineRoute(page.at, {
    auth: 'public',
    summary: 'A page of the connect wizard',
    response: 'html',
    async handler({ path, query, body }, call) {
      const values = textsIn((page.at.startsWith('GET') ? query : body) as object)
      try {
        const { token } = path as { readonly token?: string }
        const named = page.comesBack ? call.engine.consent.tokenOf(values['state'] ?? '') : token
        return await answer(wizard, page, call, values, named ?? '')
      } catch (thrown) {
        const error = toAppError(thrown)
        if (call.asksForJson() || error.fault !== 'us') throw error
        call.engine.log.error({ requestId: call.requestId, err: error.cause ?? error }, 'a page of the wizard failed')
        return endAnswer(wizard, call, languageOf(call, values), 'broken')
      }
    },
  })
}

/** Answers a browser with a page where no route has the path. Returns false for other clients, errors and paths. */
export function showLost(wizard: Wizard, ctx: FrameContext, { code }: AppError): boolean {
  const { target, match } = ctx.state.exchange
  const isLost = match === null && (code === 'not_found' || code === 'bad_request')
  if (!isLost || !target.startsWith('/connect/') || asksForJson(ctx)) return false
  const page = endPageOf(wizard, preferredLanguage(ctx), 'unknown')
  ctx.status = statusOf.unknown
  ctx.set(page.headers)
  ctx.body = page.body
  return true
}

async function answer(
  usual: Wizard,
  { at: route, step, handle, comesBack }: Page,
  call: Call,
  values: Values,
  token: string,
): Promise<StreamAnswer> {
  const { sessions, forms } = usual
  const { engine } = call
  const record = await engine.connect.find(token)
  const root = `${pathOf(call.baseUrl)}/${encodeURIComponent(token)}`
  if (record === null) {
    const language = languageOf(call, values)
    if (comesBack) return endAnswer(usual, call, language, 'sign_in_unknown')
    return endAnswer(usual, call, language, 'unknown', { here: root })
  }
  const { wizard, app } = await branded(usual, call, record)
  const { callbackUrl } = record
  const back = callbackUrl === '' ? null : withToken(callbackUrl, engine.config.MAILROOM_TOKEN_PARAM, record.token)
  const known = sessions.find(record, cookieNamed(call, cookieOf(record)) ?? '')
  const language = languageOf(call, values, known)
  if (comesBack && known === undefined) return endAnswer(wizard, call, language, 'other_browser')
  const isForm = route.startsWith('POST')
  // For a link that is not valid any more, the handler says so, whatever the form is.
  const isOpen = engine.connect.life(record) === 'open'
  const isOfSession = known !== undefined && isOwn(call) && sameText(known.csrf, values['csrf'] ?? '')
  const outdated = isForm && isOpen && !isOfSession
  const limit = engine.config.MAILROOM_RATE_CONNECT_PER_MINUTE
  if (outdated || (isForm && limit > 0 && forms.count(call.address).count > limit)) {
    return endAnswer(wizard, call, language, outdated ? 'outdated' : 'busy', { app, again: root, here: root, back })
  }
  const session = known ?? sessions.open(record)
  session.sent ||= isForm
  if (isLanguage(values['lang'] ?? '')) session.language = language
  const cookie: Record<string, string> = known === undefined ? { 'Set-Cookie': cookieFor(call, record, session) } : {}
  const at = (name: string): string => (name === '' ? root : `${root}/${name}`)
  const here = at(step)
  const words = languages[language]
  const show: Visit['show'] = ({ title, problem = null, content: own, status = 200, refresh, cancel }) => {
    const link = html`<p class="links"><a href="${back}">${words.cancel(app)}</a></p>`
    const content = html`${own} ${cancel && back !== null && link}`
    const whole = `${problem === null ? '' : `${words.problem}: `}${title} · ${app}`
    const frame = { language, title: whole, content, app, here, ...(refresh ? { refresh } : {}) }
    return new StreamAnswer(wizard.look.page(frame), { ...wizard.look.headers, ...cookie }, status)
  }
  const go = (name: string): StreamAnswer => redirect(at(name), cookie)
  const end = (why: End): StreamAnswer => endAnswer(wizard, call, language, why, { app, here, back })
  const setting = { words, app, csrf: session.csrf, at }
  return handle({ ...setting, engine, call, record, session, values, back, show, go, end })
}

/** The wizard with the look of the token's developer, and the name of the application that asks for the mailbox. */
async function branded(wizard: Wizard, { engine, baseUrl }: Call, { developerId, callbackUrl }: ConnectTokenRecord) {
  const own = (await engine.store.developers.get(developerId))?.brand
  const brand = own === undefined ? engine.brand : brandOf(engine.brand, own)
  return {
    wizard: own === undefined ? wizard : { ...wizard, look: createLook(brand) },
    app: brand.name ?? new URL(callbackUrl || baseUrl).host,
  }
}

/** The parameters as texts, without those that are null. Throws `bad_request`, which names a list or an object. */
function textsIn(values: object): Values {
  const given = Object.entries(values).filter(([, value]) => value !== null)
  const list = given.find(([, value]) => typeof value === 'object')
  if (list !== undefined) throw badParameter(list[0], 'expected text')
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/** The language of the parameter `lang`, of the session, or that the browser asks for. */
function languageOf(call: Call, { lang = '' }: Values, session?: Session): Language {
  if (isLanguage(lang)) return lang
  return session?.language ?? preferredLanguage(call)
}

const statusOf: Readonly<Record<End, number>> = {
  unknown: 404,
  used: 410,
  expired: 410,
  spent: 410,
  outdated: 403,
  sign_in_unknown: 400,
  other_browser: 403,
  busy: 429,
  broken: 500,
}

/** Links of an end page, where the token is known. */
interface Links {
  readonly app?: string
  /** Where the wizard begins again. */
  readonly again?: string
  readonly here?: string
  /** The callback_url: a browser that missed the last page comes back to the application by it. */
  readonly back?: string | null
}

function endAnswer(wizard: Wizard, call: Call, language: Language, end: End, links: Links = {}): StreamAnswer {
  if (call.asksForJson()) {
    const { text } = languages[language].ends[end]
    if (end === 'unknown') throw new AppError('not_found', 'token: is unknown', { details: { parameter: 'token' } })
    if (statusOf[end] === 410) throw new AppError('gone', `token: ${text}`, { details: { parameter: 'token' } })
  }
  return endPageOf(wizard, language, end, links)
}

function endPageOf({ look }: Wizard, language: Language, end: End, links: Links = {}): StreamAnswer {
  const { app, again, here, back = null } = links
  const words = languages[language]
  const { title, text } = words.ends[end]
  const content = html`<h1>${title}</h1>
    <p>${text}</p>
    ${again !== undefined && html`<p><a href="${again}">${words.startAgain}</a></p>`}
    ${back !== null && html`<p><a class="button main" href="${back}">${words.back(app ?? '')}</a></p>`}`
  const headers = end === 'busy' ? { ...look.headers, 'Retry-After': '60' } : look.headers
  return new StreamAnswer(look.page({ language, title, content, app, here }), headers, statusOf[end])
}

/** Adds the token to the query of the callback_url. The rest of the URL keeps its spelling. */
export function withToken(url: string, parameter: string, token: string): string {
  const [, address = url, fragment = ''] = /^([^#]*)(#[^]*)?$/.exec(url) ?? []
  const sign = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&'
  return `${address}${sign}${parameter}=${encodeURIComponent(token)}${fragment}`
}
