/**
 * One call to a page of the wizard: the token, the session of its browser, and the words of its language. What is wrong
 * with the link is a page as well, or an error where the client asks for JSON.
 */
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
import { type End, endPage, type Mailbox, type Problem, type Setting } from './pages.ts'

/**
 * Who is at which step: one session for each token and browser, in memory, found by a cookie. What was typed, but for
 * passwords, is in it for as long as it lasts; it is never written anywhere.
 */
class Session {
  readonly token: string
  readonly id = secretText()
  readonly csrf = secretText()
  /** null = as the browser asks for. */
  language: Language | null = null
  mailbox: Mailbox | null = null
  /** What the login page shows, until the next form comes. */
  problem: Problem | null = null
  /** The last try was with a sign-in at a provider. */
  signedIn = false
  /** The address of the last try of this browser; null = it has tried none. */
  tried: string | null = null
  /** It has sent a form. */
  sent = false
  /** This browser has connected the mailbox. */
  done = false
  /** It has been sent to the callback_url. */
  left = false

  constructor(token: string) {
    this.token = token
  }
}

const lastsMs = 2 * 3_600_000
/** Of the tokens of one developer. When there are more, the one goes that was used least lately. */
const mostOfDeveloper = 5000
/** Browsers of one token. When there are more, one begins again: the oldest of those that have sent no form. */
const mostOfToken = 20

type Owner = Pick<ConnectTokenRecord, 'developerId' | 'token'>

function secretText(): string {
  return randomBytes(24).toString('base64url')
}

/** Each ends `lastsMs` after it began, however many browsers come to its token since. */
export function createSessions() {
  /** The sessions of a developer's tokens, by id. No developer's push out another one's. */
  const byDeveloper = new Map<string, LRUCache<string, Session>>()
  const byToken = new Map<string, Set<Session>>()
  const ofDeveloper = (developerId: string): LRUCache<string, Session> => {
    const known = byDeveloper.get(developerId)
    if (known !== undefined) return known
    const sessions = new LRUCache<string, Session>({
      maxSize: mostOfDeveloper,
      sizeCalculation: () => 1,
      ttl: lastsMs,
      // What was typed goes when its time is over, also where nobody asks for it again.
      ttlAutopurge: true,
      disposeAfter(session) {
        const ofToken = byToken.get(session.token)
        ofToken?.delete(session)
        if (ofToken?.size === 0) byToken.delete(session.token)
        if (sessions.size === 0) byDeveloper.delete(developerId)
      },
    })
    byDeveloper.set(developerId, sessions)
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
      ofDeveloper(developerId).set(session.id, session)
      byToken.set(token, (byToken.get(token) ?? new Set()).add(session))
      return session
    },
    /** How many are in memory. */
    count: () => [...byDeveloper.values()].reduce((sum, { size }) => sum + size, 0),
  }
}

const cookieOf = ({ token }: ConnectTokenRecord): string => `mailroom_connect_${token}`

/** Of all pages of the wizard, as the browser sees it: the service may lie below a path. */
const pathOf = (baseUrl: string): string => `${new URL(baseUrl).pathname.replace(/\/$/, '')}/connect`

/** Lax: a provider's sign-in leads back from another site. */
function cookieFor({ baseUrl }: Call, record: ConnectTokenRecord, { id }: Session): string {
  const secure = new URL(baseUrl).protocol === 'https:' ? '; Secure' : ''
  return `${cookieOf(record)}=${id}; HttpOnly; SameSite=Lax; Path=${pathOf(baseUrl)}; Max-Age=${lastsMs / 1000}${secure}`
}

export type Wizard = ReturnType<typeof createWizard>

/** What all pages share. */
export function createWizard({ brand, uses }: Engine, now: () => number) {
  return {
    look: createLook(brand),
    sessions: createSessions(),
    /** Forms by address. */
    forms: createCounter(60_000, now, { uses, kind: 'forms' }),
  }
}

/** What a form or an address says. */
type Values = Readonly<Record<string, string>>

export interface Visit extends Setting {
  readonly engine: Engine
  readonly call: Call
  readonly record: ConnectTokenRecord
  readonly session: Session
  readonly values: Values
  /** The callback_url with the token; null = an operator has made the link, so there is none. */
  readonly back: string | null
  show(page: Shown): StreamAnswer
  /** To a step of the same token. */
  go(step: string): StreamAnswer
  /** What is wrong with the link, for good. */
  end(end: End): StreamAnswer
}

interface Shown {
  readonly title: string
  /** That there is one stands before the title. */
  readonly problem?: Problem | null
  readonly content: Html
  readonly status?: number
  /** A link leads back to the application. A try that is under way goes on. */
  readonly cancel?: true
  readonly refresh?: { readonly seconds: number; readonly to: string }
}

/** A form is a POST of the session that the page was made for. */
interface Page {
  readonly at: `${'GET' | 'POST'} /connect${string}`
  /** Where the same is in another language; '' is the first page. */
  readonly step: string
  readonly handle: (visit: Visit) => StreamAnswer | Promise<StreamAnswer>
  /** A provider sends the browser here: its sign-in says which token it is, and this browser has begun it. */
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
        return endAnswer(wizard, call, chosenLanguage(values) ?? usualLanguage(call), 'broken')
      }
    },
  })
}

/** A browser is shown a page also where no page has its address. */
export function showLost(wizard: Wizard, ctx: FrameContext, { code }: AppError): boolean {
  const { target, match } = ctx.state.exchange
  const isLost = match === null && (code === 'not_found' || code === 'bad_request')
  if (!isLost || !target.startsWith('/connect/') || asksForJson(ctx)) return false
  const page = endPageOf(wizard, preferredLanguage(ctx.get('accept-language')), 'unknown')
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
  const chosen = chosenLanguage(values)
  const root = `${pathOf(call.baseUrl)}/${encodeURIComponent(token)}`
  if (record === null) {
    const language = chosen ?? usualLanguage(call)
    if (comesBack) return endAnswer(usual, call, language, 'sign_in_unknown')
    return endAnswer(usual, call, language, 'unknown', { here: root })
  }
  const { wizard, app } = await branded(usual, call, record)
  const { callbackUrl } = record
  const back = callbackUrl === '' ? null : withToken(callbackUrl, engine.config.MAILROOM_TOKEN_PARAM, record.token)
  const known = sessions.find(record, cookieNamed(call, cookieOf(record)) ?? '')
  const language = chosen ?? known?.language ?? usualLanguage(call)
  if (comesBack && known === undefined) return endAnswer(wizard, call, language, 'other_browser')
  const isForm = route.startsWith('POST')
  // A link that is not valid any more says so, whatever was sent.
  const isOpen = engine.connect.life(record) === 'open'
  const outdated = isForm && isOpen && !isOfSession(call, known, values['csrf'] ?? '')
  const limit = engine.config.MAILROOM_RATE_CONNECT_PER_MINUTE
  if (outdated || (isForm && limit > 0 && forms.count(call.address).count > limit)) {
    return endAnswer(wizard, call, language, outdated ? 'outdated' : 'busy', { app, again: root, here: root, back })
  }
  const session = known ?? sessions.open(record)
  session.sent ||= isForm
  if (chosen !== null) session.language = chosen
  const cookie: Record<string, string> = known === undefined ? { 'Set-Cookie': cookieFor(call, record, session) } : {}
  const at = (name: string): string => (name === '' ? root : `${root}/${name}`)
  const here = at(step)
  const words = languages[language]
  return handle({
    engine,
    call,
    record,
    session,
    values,
    words,
    app,
    csrf: session.csrf,
    back,
    at,
    show: ({ title, problem = null, content: own, status = 200, refresh, cancel }) => {
      const link = html`<p class="links"><a href="${back}">${words.cancel(app)}</a></p>`
      const content = html`${own} ${cancel && back !== null && link}`
      const whole = `${problem === null ? '' : `${words.problem}: `}${title} · ${app}`
      const frame = { language, title: whole, content, app, here, ...(refresh ? { refresh } : {}) }
      return new StreamAnswer(wizard.look.page(frame), { ...wizard.look.headers, ...cookie }, status)
    },
    go: (name) => redirect(at(name), cookie),
    end: (end) => endAnswer(wizard, call, language, end, { app, here, back }),
  })
}

/** The wizard in the look of the token's developer, and the name of the application that asks for the mailbox. */
async function branded(wizard: Wizard, { engine, baseUrl }: Call, { developerId, callbackUrl }: ConnectTokenRecord) {
  const own = (await engine.store.developers.get(developerId))?.brand
  const brand = own === undefined ? engine.brand : brandOf(engine.brand, own)
  return {
    wizard: own === undefined ? wizard : { ...wizard, look: createLook(brand) },
    app: brand.name ?? new URL(callbackUrl || baseUrl).host,
  }
}

/** Numbers and flags of JSON are taken as text, null as not given. Throws `bad_request` that names what is no value. */
function textsIn(values: object): Values {
  const given = Object.entries(values).filter(([, value]) => value !== null)
  const list = given.find(([, value]) => typeof value === 'object')
  if (list !== undefined) throw badParameter(list[0], 'expected text')
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

function chosenLanguage({ lang = '' }: Values): Language | null {
  return isLanguage(lang) ? lang : null
}

function usualLanguage(call: Call): Language {
  return preferredLanguage(call.header('accept-language'))
}

/** A form that this service has made, for this browser. */
function isOfSession(call: Call, session: Session | undefined, csrf: string): boolean {
  return session !== undefined && isOwn(call) && sameText(session.csrf, csrf)
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

interface Place {
  readonly app?: string
  /** Where one may begin again. */
  readonly again?: string
  readonly here?: string
  /** The callback_url. After a used token a browser that was stopped before the last page still comes back by it. */
  readonly back?: string | null
}

function endAnswer(wizard: Wizard, call: Call, language: Language, end: End, place: Place = {}): StreamAnswer {
  if (call.asksForJson()) {
    const { text } = languages[language].ends[end]
    if (end === 'unknown') throw new AppError('not_found', 'token: is unknown', { details: { parameter: 'token' } })
    if (statusOf[end] === 410) throw new AppError('gone', `token: ${text}`, { details: { parameter: 'token' } })
  }
  return endPageOf(wizard, language, end, place)
}

function endPageOf({ look }: Wizard, language: Language, end: End, place: Place = {}): StreamAnswer {
  const { app, again, here, back = null } = place
  const words = languages[language]
  const { title } = words.ends[end]
  const content = html`${endPage(words, end, again)}
  ${back !== null && html`<p><a class="button main" href="${back}">${words.back(app ?? '')}</a></p>`}`
  const headers = end === 'busy' ? { ...look.headers, 'Retry-After': '60' } : look.headers
  return new StreamAnswer(look.page({ language, title, content, app, here }), headers, statusOf[end])
}

/** The query and the fragment that the URL has stay as they are. */
export function withToken(url: string, parameter: string, token: string): string {
  const [, address = url, fragment = ''] = /^([^#]*)(#[^]*)?$/.exec(url) ?? []
  const sign = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&'
  return `${address}${sign}${parameter}=${encodeURIComponent(token)}${fragment}`
}
