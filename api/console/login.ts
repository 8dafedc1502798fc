/** The console's login and logout. Wrong passwords are limited by address. */
import { z } from 'zod'
import { AppError, toAppError } from '../../engine/index.ts'
import { html } from '../html.ts'
import { type Call, defineRoute, type Route, StreamAnswer } from '../route.ts'
import type { Tries } from '../tries.ts'
import { text } from '../values.ts'
import { action, type Action, checkOn, cookieOf, isOwn, redirect, refused, sessionOf } from './frame.ts'
import { consoleHeaders, plainPage } from './look.ts'

const path = '/console/login'
const ownPage = /^\/console(?:[/?][\w\-.~%/?=&:@+]*)?$/

/** Nowhere else may a login lead. */
function leadsHome(to: string): boolean {
  return ownPage.test(to) && /^\/console(?:\/|$)/.test(new URL(to, 'http://own').pathname)
}

const loginPage = defineRoute(`GET ${path}`, {
  auth: 'public',
  summary: 'The login of the console',
  query: z.object({ to: text.default('/console') }),
  response: 'html',
  handler({ query }, call) {
    checkOn(call, path)
    return Promise.resolve(form(query.to))
  },
})

function form(to: string, problem: AppError | null = null): StreamAnswer {
  const content = html`${problem !== null && html`<p class="bad" role="alert">${problem.message}</p>`}
    <form method="post" action="${path}">
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

function loginRoute(tries: Tries): Route {
  return defineRoute(`POST ${path}`, {
    auth: 'public',
    summary: 'Opens a session of the console',
    body: z.object({ password: text.default(''), to: text.default('/console') }),
    response: 'html',
    async handler({ body: { password, to } }, call) {
      checkOn(call, path)
      if (!isOwn(call)) return refused('The login came from another site.')
      try {
        const former = sessionOf(call)
        const session = await tries.run(call.address, 'console', () => open(call, password))
        if (former !== null) call.engine.operators.logout(former.id)
        return redirect(leadsHome(to) ? to : '/console', { 'Set-Cookie': cookieOf(call, session) })
      } catch (thrown) {
        return form(to, inWords(toAppError(thrown)))
      }
    },
  })
}

async function open({ engine }: Call, password: string) {
  const session = await engine.operators.login(password)
  if (session === null) throw new AppError('unauthorized', 'password: it is wrong')
  return session
}

function inWords(error: AppError): AppError {
  if (error.code === 'unauthorized') return error
  if (error.code !== 'rate_limited') throw error
  const retryAfterMs = error.retryAfterMs ?? 0
  const seconds = Math.ceil(retryAfterMs / 1000)
  return new AppError('rate_limited', `password: too many wrong ones from this address; try again in ${seconds} s`, {
    retryAfterMs,
  })
}

export const logout: Action = action('/console/logout', z.object({}), (_input, { engine, session }) => {
  engine.operators.logout(session.id)
  return Promise.resolve({ to: path, notice: '' })
})

export const loginRoutes = (tries: Tries): readonly Route[] => [loginPage, loginRoute(tries)]
