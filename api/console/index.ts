/** All routes of the console, with login and logout. The API documents leave them out. */
import { z } from 'zod'
import { AppError, createFairQueue, type Engine, toAppError } from '../../engine/index.ts'
import { html } from '../html.ts'
import { type Call, defineRoute, type Route, StreamAnswer } from '../route.ts'
import { createTries, type Tries } from '../limits.ts'
import { text } from '../values.ts'
import { accountRoutes } from './accounts.ts'
import { audit } from './audit.ts'
import { deliveryRoutes } from './deliveries.ts'
import { eventsRoute } from './events.ts'
import { action, checkOn, cookieOf, isOwn, oncePage, type Page, redirect, refused, sessionOf } from './frame.ts'
import { keyRoutes } from './keys.ts'
import { consoleHeaders, plainPage } from './look.ts'
import { nodes } from './nodes.ts'
import { overview } from './overview.ts'
import { settingRoutes } from './settings.ts'
import { search } from './search.ts'
import { trail } from './trail.ts'
import { webhook, webhooks } from './webhooks.ts'

const loginPath = '/console/login'
const ownPage = /^\/console(?:[/?][\w\-.~%/?=&:@+]*)?$/

/** A login redirects to pages of the console only. */
function isConsolePage(to: string): boolean {
  return ownPage.test(to) && /^\/console(?:\/|$)/.test(new URL(to, 'http://own').pathname)
}

const loginPage = defineRoute(`GET ${loginPath}`, {
  auth: 'public',
  summary: 'The login of the console',
  query: z.object({ to: text.default('/console') }),
  response: 'html',
  handler({ query }, call) {
    checkOn(call, loginPath)
    return Promise.resolve(loginForm(query.to))
  },
})

function loginForm(to: string, problem: AppError | null = null): StreamAnswer {
  const content = html`${problem !== null && html`<p class="bad" role="alert">${problem.message}</p>`}
    <form method="post" action="${loginPath}">
      <input type="hidden" name="to" value="${to}" />
      <label
        >Password <input type="password" name="password" autocomplete="current-password" required autofocus
      /></label>
      <button class="main">Log in</button>
    </form>
    <p class="soft">
      <small
        >The password is MAILROOM_ADMIN_PASSWORD, or the one that the log showed when the service first started.</small
      >
    </p>`
  const wait = problem?.retryAfterMs ?? null
  const headers = wait === null ? consoleHeaders : { ...consoleHeaders, 'Retry-After': String(Math.ceil(wait / 1000)) }
  return new StreamAnswer(plainPage('Console of Mailroom', content), headers, problem?.status ?? 200)
}

/** Logins that wait in the queue. Further logins are refused. */
const mostWaiting = 50

/**
 * Checks one password at a time, of each address in turn: a check costs 80 ms of CPU by design. When the logins before
 * it have reached the limit of wrong passwords, a queued login is refused without a check.
 */
function loginRoute(tries: Tries): Route {
  const queue = createFairQueue({ places: 1, spare: 0 })
  const openNext = (call: Call, password: string) => {
    if (queue.waiting >= mostWaiting)
      throw new AppError('rate_limited', 'password: too many tries at once', { retryAfterMs: 1000 })
    const work = () => tries.run(call.address, 'console', () => openSession(call, password))
    return queue.run({ developerId: call.address, key: '', urgent: false }, work)
  }
  return defineRoute(`POST ${loginPath}`, {
    auth: 'public',
    summary: 'Opens a session of the console',
    body: z.object({ password: text.default(''), to: text.default('/console') }),
    response: 'html',
    async handler({ body: { password, to } }, call) {
      checkOn(call, loginPath)
      if (!isOwn(call)) return refused('The login came from another site.')
      call.actsAs({ by: 'session', actorId: '', actorName: 'console' })
      try {
        const former = await sessionOf(call)
        const session = await openNext(call, password)
        call.actsAs({ by: 'session', actorId: session.label, actorName: 'console' })
        if (former !== null) await call.engine.operators.logout(former.id)
        return redirect(isConsolePage(to) ? to : '/console', { 'Set-Cookie': cookieOf(call, session) })
      } catch (thrown) {
        const error = toAppError(thrown)
        if (!['unauthorized', 'rate_limited'].includes(error.code)) throw error
        return loginForm(to, error)
      }
    },
  })
}

async function openSession({ engine }: Call, password: string) {
  const session = await engine.operators.login(password)
  if (session === null) throw new AppError('unauthorized', 'password: it is wrong')
  return session
}

const logout = action('/console/logout', z.object({}), async (_input, { engine, session, call }) => {
  await engine.operators.logout(session.id)
  return { to: loginPath, notice: '', cookie: cookieOf(call, null) }
})

const others: readonly (Route | Page)[] = [...accountRoutes, ...deliveryRoutes, ...keyRoutes, ...settingRoutes]
const routes = [overview, search, trail, webhooks, webhook, audit, nodes, ...others]

/** Wrong passwords of an address when MAILROOM_WRONG_KEYS sets no limit. */
const usualTries = 10

/** `now`: milliseconds since 1970. */
export function consoleRoutes({ config, log }: Engine, now: () => number): readonly Route[] {
  const words = ['password', 'wrong ones'] as const
  const tries = createTries({ free: config.MAILROOM_WRONG_KEYS || usualTries, now, log, words })
  const pages = routes.filter((route): route is Page => 'show' in route)
  return [loginPage, loginRoute(tries), logout, oncePage, ...routes, eventsRoute(pages)]
}
