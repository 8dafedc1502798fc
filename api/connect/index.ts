/**
 * The connect wizard: address → login → connecting → done → the developer's callback_url. Each step has an address of
 * its own. A step that lacks the data of an earlier step redirects to that step, so the back button, a reload and a
 * second tab show the right page.
 */
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { z } from 'zod'
import type { AccountRecord, ConnectOutcome, ConnectTry, Credential, Engine } from '../../engine/index.ts'
import { eventStreamHeaders, type Route, StreamAnswer } from '../route.ts'
import { email as emailSchema, lineText, port as portSchema } from '../values.ts'
import {
  addressPage,
  connectingPage,
  donePage,
  hostOf,
  type Field,
  loginPage,
  otherMailboxPage,
  type Problem,
  progressList,
  type Mailbox,
} from './pages.ts'
import { callbackPages, comeBack, leave, signInFor, type SignIn } from './sign-in.ts'
import { type Handler, pageRoute, type Visit, type Wizard } from './visit.ts'

const longestSetting = 320
/** The progress page reloads so often without a script. */
const refreshSeconds = 2
/** A stream of events ends after this time; the browser opens it again. */
const eventsMs = 60_000
/** Proxies close connections that are silent for longer. */
const heartbeatMs = 15_000

export function wizardRoutes(wizard: Wizard): readonly Route[] {
  const page = (method: 'GET' | 'POST', name: string, handle: Handler): Route =>
    pageRoute(wizard, { at: `${method} /connect/{token}${name === '' ? '' : `/${name}`}`, step: name, handle })
  const start = open((visit) => visit.go(''))
  return [
    // A link without its token.
    pageRoute(wizard, { at: 'GET /connect', step: '', handle: first }),
    page('GET', '', open(first)),
    page('GET', '{page}', start),
    page('GET', 'address', start),
    page('POST', 'address', open(takeAddress)),
    page('GET', 'login', open(login)),
    page('POST', 'login', open(withMailbox(takeLogin))),
    page(
      'GET',
      'sign-in',
      open((visit) => visit.go('login')),
    ),
    page('POST', 'sign-in', open(withMailbox(leave))),
    page('GET', 'connecting', open(connecting)),
    page('GET', 'events', events),
    page('GET', 'done', done),
    ...callbackPages.map((name) => {
      const handle = open((visit) => comeBack(visit, name, connectWith))
      return pageRoute(wizard, { at: `GET /connect/${name}`, step: 'login', handle, comesBack: true })
    }),
  ]
}

/** A page of a token that is still valid. */
function open(handle: Handler): Handler {
  return async (visit) => otherMailbox(visit) ?? ended(visit) ?? (await handle(visit))
}

/** The answer to a second tab that asks for another mailbox than the first: a link connects one mailbox. */
function otherMailbox(visit: Visit): StreamAnswer | null {
  const { session, values, words } = visit
  const { tried } = session
  const asked = emailSchema.safeParse(values['email'])
  const isBusy = isDone(visit) || ownTry(visit)?.outcome === null
  if (!isBusy || tried === null || !asked.success || asked.data === tried) return null
  const { title, text } = words.otherMailbox(tried, asked.data)
  return visit.show({ title, content: otherMailboxPage(visit, title, text), status: 409, cancel: true })
}

/** The answer when the token is used or not valid any more. The browser that used it is led to the last page. */
function ended(visit: Visit): StreamAnswer | null {
  const { engine, record } = visit
  if (isDone(visit)) return visit.go('done')
  const life = engine.connect.life(record)
  if (life === 'open') return null
  // A try that began in time may end later.
  return ownTry(visit)?.outcome === null ? null : visit.end(life)
}

/** The try that this browser has begun. */
function ownTry({ engine, record, session }: Visit): ConnectTry | null {
  const found = engine.connect.tryOf(record.token)
  return found?.browser === session.id ? found : null
}

function isDone(visit: Visit): boolean {
  visit.session.done ||= ownTry(visit)?.outcome?.kind === 'made'
  return visit.session.done
}

function first(visit: Visit): StreamAnswer {
  if (!isChangeable(visit)) return visit.go('login')
  return showAddress(visit, visit.session.mailbox?.email ?? '', null)
}

function showAddress(visit: Visit, email: string, problem: Problem | null): StreamAnswer {
  const content = addressPage(visit, email, problem)
  return visit.show({ title: visit.words.title, problem, content, status: problem === null ? 200 : 400, cancel: true })
}

async function takeAddress(visit: Visit): Promise<StreamAnswer> {
  const { session, values, words } = visit
  if (!isChangeable(visit)) return visit.go('login')
  const typed = values['email'] ?? ''
  const parsed = emailSchema.safeParse(typed)
  if (!parsed.success) return showAddress(visit, typed, { field: 'email', words: words.emailMissing })
  const email = parsed.data
  const similar = visit.engine.discovery.similar(email)
  const isWhole = /@[^@]*\.[^@.]{2,}$/.test(email)
  if ((similar !== null || !isWhole) && values['kept'] !== email) {
    const doubt = similar === null ? words.emailShort : words.didYouMean(similar)
    return showAddress(visit, email, { field: 'email', words: doubt, similar })
  }
  session.mailbox = await discovered(visit.engine, email, null)
  session.problem = null
  return visit.go('login')
}

async function discovered({ discovery }: Engine, email: string, account: AccountRecord | null): Promise<Mailbox> {
  // Without an answer of discovery the settings are a guess.
  const [found = null] = await discovery.discover(email).catch(() => [])
  const guess = { server: `imap.${email.slice(email.lastIndexOf('@') + 1)}`, port: 993, useSsl: true, username: email }
  const { server, port, useSsl, username } = account ?? found ?? guess
  return { email, server, port, useSsl, username, found, fixed: account !== null }
}

/** The mailbox of the session. Returns null while its address is not known. */
async function mailboxOf({ engine, record, session }: Visit): Promise<Mailbox | null> {
  if (session.mailbox !== null) return session.mailbox
  const account = record.accountId === null ? null : await engine.store.accounts.get(record.accountId)
  const email = account?.email ?? record.email
  return email === null ? null : (session.mailbox = await discovered(engine, email, account))
}

/** Takes the address that the form was made for: another tab may have changed the session's address. */
async function keepAddress(visit: Visit): Promise<void> {
  const { engine, session, values } = visit
  const parsed = emailSchema.safeParse(values['email'])
  if (!isChangeable(visit) || !parsed.success || parsed.data === session.mailbox?.email) return
  session.mailbox = await discovered(engine, parsed.data, null)
}

/** Whether the user chooses the address: neither the token nor its email account has one. */
function isChangeable({ record }: Visit): boolean {
  return record.email === null && record.accountId === null
}

async function login(visit: Visit): Promise<StreamAnswer> {
  const mailbox = await mailboxOf(visit)
  if (mailbox === null) return visit.go('')
  return showLogin(visit, mailbox, visit.session.problem)
}

async function showLogin(visit: Visit, mailbox: Mailbox, problem: Problem | null, status = 200): Promise<StreamAnswer> {
  const { engine, record, words } = visit
  const signIn = await signInFor(engine, record, mailbox)
  const passwords = takesPasswords(visit, mailbox, signIn)
  const provider = signIn?.name ?? null
  const content = loginPage(visit, { mailbox, problem, provider, passwords, changeable: isChangeable(visit) })
  return visit.show({ title: words.loginTitle, problem, content, status, cancel: true })
}

/** Microsoft takes passwords only by the setting; Google also, as app passwords, while no sign-in is set up. */
function takesPasswords({ engine }: Visit, mailbox: Mailbox, signIn: SignIn | null): boolean {
  const host = hostOf(mailbox)
  return engine.config.MAILROOM_WIZARD_PASSWORDS || host === null || (host === 'google' && signIn === null)
}

/** A form of the login page. For a fixed mailbox the login page must have shown the server first. */
function withMailbox(handle: (visit: Visit, mailbox: Mailbox) => Promise<StreamAnswer>): Handler {
  return async (visit) => {
    if (visit.record.accountId !== null && visit.session.mailbox === null) return visit.go('login')
    visit.session.problem = null
    await keepAddress(visit)
    const mailbox = await mailboxOf(visit)
    return mailbox === null ? visit.go('') : handle(visit, mailbox)
  }
}

async function takeLogin(visit: Visit, known: Mailbox): Promise<StreamAnswer> {
  const { engine, record, session, values, words } = visit
  if (!takesPasswords(visit, known, await signInFor(engine, record, known))) return visit.go('login')
  const { mailbox, problem } = known.fixed ? { mailbox: known, problem: null } : withSettings(visit, known)
  session.mailbox = mailbox
  const password = lineText.safeParse(values['password'])
  const missing: Problem = {
    field: 'password',
    words: (values['password'] ?? '') === '' ? words.passwordMissing : words.tooLong,
  }
  if (problem !== null || !password.success) return showLogin(visit, mailbox, problem ?? missing, 400)
  return connectWith(visit, mailbox, { kind: 'password', password: password.data })
}

/** Begins the try, and leads to its progress. Of a form that was sent twice the second one leads there too. */
async function connectWith(visit: Visit, mailbox: Mailbox, credential: Credential): Promise<StreamAnswer> {
  const { engine, record, session } = visit
  if (ownTry(visit)?.outcome === null) return visit.go('connecting')
  const { email, server, port, useSsl, username } = mailbox
  const input = { email, server, port, useSsl, username, credential }
  if (engine.connect.begin(record, session.id, input)) {
    session.signedIn = credential.kind === 'oauth2'
    session.tried = email
    return visit.go('connecting')
  }
  return showLogin(visit, mailbox, { failure: 'taken', detail: null }, 409)
}

/** A setting that the session keeps: its length is limited. */
const settingText = lineText.refine((text) => text.length <= longestSetting)

/** The settings of the form; a field that is missing keeps its value. */
function withSettings({ values, words }: Visit, known: Mailbox): { mailbox: Mailbox; problem: Problem | null } {
  const texts = { server: words.serverMissing, username: words.usernameMissing, port: words.portWrong }
  const problems: Problem[] = []
  const read = <T>(field: Field & keyof typeof texts, schema: z.ZodType<T>, kept: T): T => {
    const typed = values[field]?.trim()
    if (typed === undefined) return kept
    const parsed = schema.safeParse(typed)
    if (parsed.success) return parsed.data
    problems.push({ field, words: typed === '' || field === 'port' ? texts[field] : words.tooLong })
    return kept
  }
  const server = read('server', settingText, known.server).toLowerCase()
  const port = read('port', portSchema, known.port)
  const username = read('username', settingText, known.username)
  const useSsl = values['security'] === undefined ? known.useSsl : values['security'] !== 'starttls'
  return { mailbox: { ...known, server, port, useSsl, username }, problem: problems[0] ?? null }
}

function connecting(visit: Visit): StreamAnswer {
  const { session, words } = visit
  const own = ownTry(visit)
  if (own === null || session.mailbox === null) return visit.go('login')
  if (own.outcome !== null) return visit.go(stepAfter(visit, own.outcome))
  const content = connectingPage(visit, session.mailbox.email, own.step)
  const refresh = { seconds: refreshSeconds, to: visit.at('connecting') }
  return visit.show({ title: words.connectingTitle, content, refresh, cancel: true })
}

/** The step that follows a try. The problem goes to the session for the login page. */
function stepAfter({ session }: Visit, outcome: ConnectOutcome): string {
  if (outcome.kind === 'made') return 'done'
  if (outcome.kind === 'failed') {
    const isToken = session.signedIn && outcome.failure === 'auth_rejected'
    session.problem = { failure: isToken ? 'token_rejected' : outcome.failure, detail: outcome.message }
  } else if (outcome.kind === 'taken') session.problem = { failure: 'taken', detail: null }
  else {
    // No other login would mend these errors.
    const isConflict = ['conflict', 'too_many', 'bad_request', 'not_found', 'private_address'].includes(outcome.code)
    session.problem = { failure: isConflict ? 'conflict' : 'ours', detail: null }
    // The email account may have another server by now: the login page shows it.
    if (session.mailbox?.fixed) session.mailbox = null
  }
  return 'login'
}

/** The progress of the try. The next page is an event, because EventSource does not follow redirects to a page. */
function events(visit: Visit): StreamAnswer {
  return new StreamAnswer(Readable.from(news(visit), { objectMode: false }), eventStreamHeaders)
}

async function* news(visit: Visit): AsyncGenerator<string> {
  const { signal } = visit.call
  const endsAt = performance.now() + eventsMs
  yield 'retry: 1000\n\n'
  while (!signal.aborted && performance.now() < endsAt) {
    const own = ownTry(visit)
    if (own === null || own.outcome !== null) {
      yield `data: ${JSON.stringify({ to: visit.at('connecting') })}\n\n`
      return
    }
    const { changed, step } = own
    const data = { list: progressList(visit.words, step).text, now: visit.words.progress[step] }
    yield `data: ${JSON.stringify(data)}\n\n`
    await Promise.race([changed, pause(heartbeatMs, undefined, { signal }).catch(() => undefined)])
  }
}

function done(visit: Visit): StreamAnswer {
  const { back, session, words } = visit
  if (!isDone(visit)) return ended(visit) ?? visit.go('')
  // The back button may lead here again: the page goes on by itself only once.
  const onward = back !== null && !session.left
  session.left = true
  const content = donePage(visit, session.tried ?? '', back, onward)
  const refresh = onward ? { refresh: { seconds: 1, to: back } } : {}
  return visit.show({ title: words.doneTitle, content, ...refresh })
}
