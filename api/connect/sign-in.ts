/**
 * Sign-in at the mail provider instead of a password. A page with a refresh sends the browser there. A redirect cannot:
 * the CSP lets forms lead to this service only. The browser comes back to one address for each of the two providers.
 */
import {
  type Consent,
  ConsentError,
  type ConsentReason,
  type ConnectTokenRecord,
  type Credential,
  destinationOf,
  type Engine,
  letterOf,
  letterOfHost,
  nameOfProvider,
} from '../../engine/index.ts'
import type { StreamAnswer } from '../route.ts'
import { type Failure, leavingPage, type Mailbox } from './pages.ts'
import type { Visit } from './visit.ts'

export type SignIn = NonNullable<Awaited<ReturnType<typeof signInFor>>>

/** The last part of the address where the browser comes back. */
const pages = { A: 'oauth2callback', B: 'providerbcallback' } as const
export const callbackPages = Object.values(pages)
type CallbackPage = (typeof callbackPages)[number]

/** The developer's OAuth provider for the mailbox; null = there is none. */
export async function signInFor(
  { store, config }: Engine,
  { developerId, accountId }: ConnectTokenRecord,
  { server }: Pick<Mailbox, 'server'>,
) {
  const providers = await store.providers.list(developerId)
  const account = accountId === null ? null : await store.accounts.get(accountId)
  const letter = letterOfHost(server, config)
  const ofHost = providers.filter(({ type }) => letterOf(type) === letter)
  const provider = ofHost.find(({ consumerKey }) => consumerKey === account?.providerKey) ?? ofHost[0]
  if (provider === undefined) return null
  const own = letterOf(provider.type)
  return { providerKey: provider.consumerKey, name: nameOfProvider(own, config), page: pages[own] }
}

function addressOf({ call }: Visit, page: CallbackPage): string {
  return `${call.baseUrl}/connect/${page}`
}

export async function leave(visit: Visit, mailbox: Mailbox): Promise<StreamAnswer> {
  const { engine, record, session, words } = visit
  const signIn = await signInFor(engine, record, mailbox)
  if (signIn === null) return visit.go('login')
  try {
    const { url } = await engine.consent.begin({
      developerId: record.developerId,
      providerKey: signIn.providerKey,
      redirectUri: addressOf(visit, signIn.page),
      loginHint: mailbox.email,
      connectToken: record.token,
      destination: destinationOf(mailbox),
      browser: session.id,
    })
    const content = leavingPage(words, signIn.name, url)
    const title = words.leavingTitle(signIn.name)
    return visit.show({ title, content, refresh: { seconds: 0, to: url }, cancel: true })
  } catch (error) {
    return toLogin(visit, error)
  }
}

const failures: Readonly<Record<ConsentReason, Failure>> = {
  denied: 'consent_denied',
  scope_missing: 'consent_partial',
  no_refresh_token: 'consent_short',
  provider_down: 'provider_down',
  provider_refuses: 'provider_refuses',
  answer_wrong: 'provider_refuses',
  not_registered: 'provider_refuses',
  state_unknown: 'sign_in_old',
  state_expired: 'sign_in_old',
  state_used: 'sign_in_old',
  other_browser: 'sign_in_old',
}

/** Leads to the login page, which shows the problem. Throws errors that are not about the consent. */
function toLogin(visit: Visit, error: unknown): StreamAnswer {
  if (!(error instanceof ConsentError)) throw error
  visit.engine.log.info({ reason: error.reason, why: error.message }, 'a sign-in failed')
  visit.session.problem = { failure: failures[error.reason], detail: error.message }
  return visit.go('login')
}

type Connect = (visit: Visit, mailbox: Mailbox, credential: Credential) => Promise<StreamAnswer>

/** Takes the answer of the provider, with which the browser comes back. */
export async function comeBack(visit: Visit, page: CallbackPage, connect: Connect): Promise<StreamAnswer> {
  const { engine, session, record, values } = visit
  const parameters = new URLSearchParams(values)
  const { mailbox } = session
  let consent: Consent
  try {
    consent = await engine.consent.finish({ redirectUri: addressOf(visit, page), parameters, browser: session.id })
  } catch (error) {
    // The page was loaded again: its try may be under way.
    const isAgain = error instanceof ConsentError && error.reason === 'state_used'
    if (isAgain && engine.connect.tryOf(record.token)?.browser === session.id) return visit.go('connecting')
    return toLogin(visit, error)
  }
  if (mailbox === null) return visit.go('')
  // Another tab may have changed the server or the port meanwhile: the token must not go there.
  if (destinationOf(mailbox) !== consent.destination) return visit.go('login')
  const { email, providerKey, refreshToken } = consent
  const own = [mailbox.email, mailbox.username].map((name) => name.toLowerCase())
  if (email === null || own.includes(email.toLowerCase()))
    return connect(visit, mailbox, { kind: 'oauth2', providerKey, refreshToken })
  session.problem = { failure: 'other_address', detail: email }
  return visit.go('login')
}
